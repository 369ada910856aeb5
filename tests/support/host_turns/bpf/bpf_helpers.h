/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* In the place of libbpf's header: what the turns program calls, for the host. */
#ifndef HOST_BPF_HELPERS_H
#define HOST_BPF_HELPERS_H

#include <linux/types.h>
#include <stddef.h>

#define SEC(name)         __attribute__((used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val) *name
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline      __attribute__((noinline))

struct __sk_buff;

void *bpf_map_lookup_elem(const void *map, const void *key);
long bpf_map_update_elem(const void *map, const void *key, const void *value, __u64 flags);
long bpf_map_delete_elem(const void *map, const void *key);
__u64 bpf_ktime_get_ns(void);
long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len);
void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *data, __u64 flags);
void bpf_ringbuf_discard(void *data, __u64 flags);

#endif
