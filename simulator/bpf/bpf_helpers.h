/* SPDX-License-Identifier: GPL-2.0-only */
/* In the place of libbpf's header: what the window program calls, for the simulator (maps.cc, program.c). */
#ifndef SIMULATOR_BPF_HELPERS_H
#define SIMULATOR_BPF_HELPERS_H

#include <linux/types.h>
#include <stddef.h>

#include "../maps.h"

#define SEC(name)         __attribute__((used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val) *name
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline      __attribute__((noinline))

struct __sk_buff;

/* A map is known by its address; its declaration has its kind and the sizes of its entries. */
#define MAP_KIND(map)  (sizeof(*(map)->type) / sizeof(int))
#define MAP_SIZES(map) MAP_KIND(map), sizeof(*(map)->key), sizeof(*(map)->value)

#define bpf_map_lookup_elem(map, k) sim_map_lookup((map), MAP_SIZES(map), (k))
#define bpf_map_update_elem(map, k, v, flags) \
	sim_map_update((map), MAP_SIZES(map), (k), (v), (flags))
#define bpf_map_delete_elem(map, k) sim_map_delete((map), sizeof(*(map)->key), (k))

/* No controller listens to rings: they have no room. */
#define bpf_ringbuf_reserve(ring, size, flags) NULL
#define bpf_ringbuf_submit(data, flags)        ((void)(data))
#define bpf_ringbuf_discard(data, flags)       ((void)(data))

__u64 bpf_ktime_get_ns(void);
__u32 bpf_get_prandom_u32(void);
__u32 bpf_get_hash_recalc(struct __sk_buff *skb);
long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len);
long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len,
			 __u64 flags);
long bpf_check_mtu(void *ctx, __u32 ifindex, __u32 *mtu, __s32 more, __u64 flags);
long bpf_l4_csum_replace(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to, __u64 size);

#endif
