/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an arrived packet was on the wire. Nobody has worked that out at tc ingress: of a packet that GRO has put together
 * of many segments, the headers of all but one are gone.
 */
#ifndef FAIRQ_ARRIVED_H
#define FAIRQ_ARRIVED_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "on_wire.h"

/* Of each frame: preamble, frame check sequence, and the gap to the next. */
#define FRAME_OVERHEAD 24
#define VLAN_TAG       4
#define IPV6_HEADER    40
#define UDP_HEADER     8

/* The length of the headers that each segment of the packet had, bytes. */
static __always_inline __u32 segment_headers(struct __sk_buff *skb)
{
	__u32 off = ETH_HLEN;
	__be16 proto;
	__u8 first, next, offset;

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return off;
	if (proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD)) {
		if (bpf_skb_load_bytes(skb, off + 2, &proto, sizeof(proto)))
			return off;
		off += VLAN_TAG;
	}
	if (bpf_skb_load_bytes(skb, off, &first, sizeof(first)))
		return off;
	if (proto == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, off + 6, &next, sizeof(next)))
			return off;
		off += IPV6_HEADER;
	} else if (proto == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, off + 9, &next, sizeof(next)))
			return off;
		off += (first & 15) * 4;
	} else {
		return off;
	}
	if (next == IPPROTO_UDP)
		return off + UDP_HEADER;
	if (next != IPPROTO_TCP || bpf_skb_load_bytes(skb, off + 12, &offset, sizeof(offset)))
		return off;
	return off + (offset >> 4) * 4;
}

/* Its bytes on the wire, as so many segments. */
static __always_inline __u32 arrived_bytes(struct __sk_buff *skb, __u32 segments)
{
	__u32 overhead = FRAME_OVERHEAD + (skb->vlan_present ? VLAN_TAG : 0);
	__u32 bytes = skb->len + segments * overhead;

	return segments > 1 ? bytes + (segments - 1) * segment_headers(skb) : bytes;
}

#endif
