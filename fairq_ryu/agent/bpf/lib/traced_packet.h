/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a packet at a tracepoint is on the wire: on_wire.h for tracing programs. */
#ifndef FAIRQ_TRACED_PACKET_H
#define FAIRQ_TRACED_PACKET_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "core_types.h"

/* The segments of a packet whose other part is at this address. Global, so that it is verified once. */
__noinline __u32 shared_segments(__u64 address)
{
	const struct skb_shared_info *shared = (const void *)address;

	return BPF_CORE_READ(shared, gso_size) ? BPF_CORE_READ(shared, gso_segs) : 1;
}

/* Its segments, as its qdisc counts packets. */
static __always_inline __u32 traced_segments(const struct sk_buff *skb)
{
	/* To Linux 7.3, what is read in place is a pointer and no number. */
	return shared_segments((__u64)BPF_CORE_READ(skb, head) + skb->end);
}

/* Its bytes, likewise. */
static __always_inline __u32 traced_bytes(const struct sk_buff *skb)
{
	return BPF_CORE_READ((const struct qdisc_skb_cb *)skb->cb, pkt_len);
}

#endif
