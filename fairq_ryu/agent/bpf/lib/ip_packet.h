/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The IP header of a frame with 0 to 2 VLAN tags: its ECN field (RFC 3168), and the hash of the flow. The kernel's
 * helper for CE marks goes by the network header, which is wrong behind a tag that is in the packet, so the mark is
 * written here.
 */
#ifndef FAIRQ_IP_PACKET_H
#define FAIRQ_IP_PACKET_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../laws/flow_hash.h"
#include "parse.h"

#define ECN_MASK 3
#define ECN_CE   3
#define ECN_V6   (ECN_CE << 4) /* in the second byte of an IPv6 header */

/* The parts of an IP packet that are used here. */
struct ip_packet {
	__u32 off;    /* of the IP header in the frame */
	__u32 hash;   /* of the flow */
	__u16 head;   /* the first two bytes of the IP header, as in the packet */
	__u8 version; /* 4, 6; 0: it is no IP */
	__u8 ecn;     /* 0: not ECN-capable; 3: CE */
};

static __always_inline bool has_ports(__u32 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP;
}

/* A fragment has no ports: all of a packet belong to one flow. */
static __always_inline bool is_fragment(const struct iphdr *ip)
{
	return ip->frag_off & bpf_htons(IP_FRAGMENT);
}

static __always_inline __u32 v6_hash(struct __sk_buff *skb, const struct ipv6hdr *ip, __u32 off,
				     __u32 seed)
{
	__u32 words[8], ports = 0;
	__u8 next = ip->nexthdr;

	off += sizeof(*ip);
#pragma unroll
	for (int i = 0; i < MAX_IPV6_EXT; i++) {
		struct {
			__u8 next;
			__u8 len;
		} ext;

		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
			break;
		if (bpf_skb_load_bytes(skb, off, &ext, sizeof(ext)))
			break;
		next = ext.next;
		off += (ext.len + 1) * 8;
	}
	if (has_ports(next) && bpf_skb_load_bytes(skb, off, &ports, sizeof(ports)))
		ports = 0;
	__builtin_memcpy(words, &ip->saddr, sizeof(words));
	return flow_hash_v6(words, words + 4, ports, next, seed);
}

/*
 * Any frame. A global function, which the verifier checks once; it is not called for the common packets. Returns the
 * version.
 */
__noinline int read_any_ip(struct __sk_buff *skb, struct ip_packet *p, __u32 seed)
{
	__u32 off = ETH_HLEN, ports = 0;
	__be16 proto;
	union {
		struct iphdr v4;
		struct ipv6hdr v6;
	} ip;

	if (!p)
		return 0;
	p->version = p->ecn = 0;
	p->hash = 1;
	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return 0;
#pragma unroll
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			break;
		if (bpf_skb_load_bytes(skb, off + 2, &proto, sizeof(proto)))
			return 0;
		off += 4;
	}
	p->off = off;
	if (proto == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, off, &ip.v4, sizeof(ip.v4)) || ip.v4.version != 4 ||
		    ip.v4.ihl < 5)
			return 0;
		if (has_ports(ip.v4.protocol) && !is_fragment(&ip.v4) &&
		    bpf_skb_load_bytes(skb, off + ip.v4.ihl * 4, &ports, sizeof(ports)))
			ports = 0;
		p->hash = flow_hash_v4(ip.v4.saddr, ip.v4.daddr, ports, ip.v4.protocol, seed);
		p->ecn = ip.v4.tos & ECN_MASK;
		p->version = 4;
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, off, &ip.v6, sizeof(ip.v6)) || ip.v6.version != 6)
			return 0;
		p->hash = v6_hash(skb, &ip.v6, off, seed);
		p->ecn = ip.v6.flow_lbl[0] >> 4 & ECN_MASK;
		p->version = 6;
	} else {
		p->hash = flow_hash_v4(proto, 0, 0, 0, seed);
		return 0;
	}
	__builtin_memcpy(&p->head, &ip, sizeof(p->head));
	return p->version;
}

/*
 * Read the IP header of a frame; the common one, of IPv4 without tags and options, without a call, and then with the
 * hash only where it is needed.
 */
static __always_inline void read_ip(struct __sk_buff *skb, struct ip_packet *p, __u32 seed,
				    bool needs_hash)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const struct iphdr *ip = data + ETH_HLEN;
	const __u32 *ports = (const void *)(ip + 1);

	if ((void *)(ports + 1) > end ||
	    ((const struct ethhdr *)data)->h_proto != bpf_htons(ETH_P_IP) || ip->version != 4 ||
	    ip->ihl != 5) {
		read_any_ip(skb, p, seed);
		return;
	}
	p->off = ETH_HLEN;
	p->version = 4;
	p->ecn = ip->tos & ECN_MASK;
	p->head = *(const __u16 *)ip;
	if (needs_hash)
		p->hash = flow_hash_v4(ip->saddr, ip->daddr,
				       has_ports(ip->protocol) && !is_fragment(ip) ? *ports : 0,
				       ip->protocol, seed);
}

/* Mark a packet that is ECN-capable: both of its bits become 1. Returns whether it has the mark. */
static __always_inline bool mark_ce(struct __sk_buff *skb, const struct ip_packet *p)
{
	__be16 head = p->head | bpf_htons(p->version == 6 ? ECN_V6 : ECN_CE);
	/* A sum over the packet, if a card has made one: in IPv4 the header's checksum makes up for the mark. */
	__u64 flags = p->version == 6 ? BPF_F_RECOMPUTE_CSUM : 0;

	if (p->ecn == ECN_CE)
		return true;
	if (!p->ecn || !p->version || bpf_skb_store_bytes(skb, p->off, &head, sizeof(head), flags))
		return false;
	/* Both, or neither: a packet with a wrong checksum would be lost. */
	if (p->version == 4 && bpf_l3_csum_replace(skb, p->off + offsetof(struct iphdr, check),
						   p->head, head, sizeof(head))) {
		bpf_skb_store_bytes(skb, p->off, &p->head, sizeof(p->head), 0);
		return false;
	}
	return true;
}

#endif
