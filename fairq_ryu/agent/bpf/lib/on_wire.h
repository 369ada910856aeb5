/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a packet is on the wire. With segmentation offload (TSO, GSO, GRO) one packet of the kernel holds many segments
 * behind one header: up to 64 KB, and with BIG TCP more. It is cut when it leaves its queue. Qdiscs count what it will be
 * then, each segment with its headers, and the kernel has worked that out before tc egress.
 */
#ifndef FAIRQ_ON_WIRE_H
#define FAIRQ_ON_WIRE_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Its bytes, as its qdisc will count them. */
static __always_inline __u32 wire_bytes(const struct __sk_buff *skb)
{
	return skb->wire_len;
}

/* Its segments, likewise. A guest leaves their number to its host; then the last one may be of headers only. */
static __always_inline __u32 wire_segments(const struct __sk_buff *skb)
{
	__u32 size = skb->gso_size, segments;

	if (!size)
		return 1;
	segments = skb->gso_segs;
	return segments ? segments : (skb->len + size - 1) / size;
}

#endif
