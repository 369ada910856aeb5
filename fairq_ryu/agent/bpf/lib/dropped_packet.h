/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets that a program drops at tc egress, on their way to the agent: drops.bpf.c and queue_law.bpf.c share this. */
#ifndef FAIRQ_DROPPED_PACKET_H
#define FAIRQ_DROPPED_PACKET_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "captured.h"

/* Room for about a thousand packets. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} drops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_ring_count);
} drop_count SEC(".maps");

/* Hand the packet to the agent, or its beginning. Returns whether the agent will have it. */
static __always_inline bool hand_over_dropped(struct __sk_buff *skb, __u32 cause)
{
	__u32 zero = 0;
	struct fq_ring_count *count;
	struct fq_drop *drop = bpf_ringbuf_reserve(&drops, sizeof(*drop), 0);

	if (!drop)
		return false;
	drop->ns = bpf_ktime_get_ns();
	drop->ifindex = skb->ifindex;
	drop->len = skb->len;
	drop->cause = cause;
	drop->pad = 0;
	drop->vlan_proto = skb->vlan_present ? skb->vlan_proto : 0;
	drop->vlan_tci = skb->vlan_present ? skb->vlan_tci : 0;
	drop->captured = capture(skb, drop->data, FQ_DROP_BYTES);
	if (!drop->captured) {
		bpf_ringbuf_discard(drop, 0);
		return false;
	}
	bpf_ringbuf_submit(drop, 0);
	count = bpf_map_lookup_elem(&drop_count, &zero);
	if (count)
		__sync_fetch_and_add(&count->sent, 1);
	return true;
}

#endif
