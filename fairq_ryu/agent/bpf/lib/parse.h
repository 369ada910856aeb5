/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A frame, parsed: Ethernet, VLAN tags, IPv4 or IPv6, TCP with the options used here. */
#ifndef FAIRQ_PARSE_H
#define FAIRQ_PARSE_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "../verifier.h"

#define MAX_VLAN_TAGS   2
#define VLAN_VID_MASK   0x0FFF
#define MAX_IPV6_EXT    6
#define MAX_TCP_OPTIONS 40
#define MAX_WSCALE      14 /* RFC 7323 section 2.3: larger shifts count as 14 */
#define TCP_OPT_END     0
#define TCP_OPT_NOP     1
#define TCP_OPT_MSS     2
#define TCP_OPT_WSCALE  3
#define TCP_OPT_SACK    5
#define TCP_OPT_TS      8
#define TCP_OPT_TS_LEN  10
#define TCP_OPT_MD5     19 /* RFC 2385 */
#define TCP_OPT_AO      29 /* RFC 5925 */
#define TCP_ECE         1  /* segment.ecn */
#define TCP_CWR         2
#define TCP_AE          4  /* AccECN; earlier: NS */
#define TS_ROOM         12 /* the timestamps option and two NOPs, as nearly every sender has it */
#define IP_FRAGMENT     0x3FFF /* more fragments, or an offset */

/* The fields of one TCP segment that are used here. */
struct segment {
	struct fq_flow_key key;
	__u64 now;
	__u32 payload; /* bytes */
	__u32 seq;     /* host byte order */
	__u32 ack_seq;
	__u32 tcp_off; /* of the TCP header in the packet */
	__u32 options; /* length of the TCP options, bytes */
	__u32 epoch;
	__u32 flight; /* of the other direction, before this segment: bytes that it had under way */
	__u32 tsval;
	__u32 tsecr;
	__u16 window;   /* host byte order, as on the wire */
	__u16 mss;      /* in a SYN; 0: no option */
	__u16 port_mss; /* in a SYN: as in fq_dir */
	__u16 offers;   /* in a SYN: FQ_WS, FQ_TS_OFFERED, FQ_SIGNED */
	__u8 wscale;    /* in a SYN */
	__u8 dir;       /* 0: from lo to hi */
	__u8 option;    /* the place of the next option, while they are read */
	__u8 ecn;       /* TCP_ECE, TCP_CWR, TCP_AE */
	__u8 dscp;
	__u8 reserved; /* the four bits behind the length of the header; the lowest of them is AE */
	union {
		__u8 scale_at; /* in a SYN: where the scale is, from the beginning of the TCP header; 0: no option */
		__u8 own_scale; /* ... after unify.h: as in fq_dir */
		__u8 told; /* else: the scale that the segment itself tells (told_scale.h), + 1; 0: none */
	};
	bool syn, ack, fin, rst, ts;
	bool has_signature; /* TCP-MD5 or TCP-AO */
	bool of_rival;      /* a SYN-ACK that answers the SYN of a rival (rivals.h) */
	bool of_nobody; /* a SYN-ACK of no known connection: it meets windows, and changes no count */
	bool echo_met; /* the law has met its ECE, which is to be taken out (law_flows.h) */
};

enum parsed { NOT_TCP, MALFORMED, OK };

static __always_inline void set_key_v4(struct segment *s, __be32 src, __be32 dst)
{
	/* Any fixed order will do; with equal addresses the ports decide. */
	s->dir = src > dst;
	*(__be32 *)&s->key.lo_addr[12] = s->dir ? dst : src;
	*(__be32 *)&s->key.hi_addr[12] = s->dir ? src : dst;
	s->key.family = 4;
}

static __always_inline int compare_v6(const __u64 *a, const __u64 *b)
{
	if (a[0] != b[0])
		return a[0] < b[0] ? -1 : 1;
	if (a[1] != b[1])
		return a[1] < b[1] ? -1 : 1;
	return 0;
}

/* Ports into the key; they decide the direction when both addresses are the same. */
static __always_inline void set_key_ports(struct segment *s, __be16 src, __be16 dst, bool same)
{
	if (same)
		s->dir = src > dst;
	s->key.lo_port = s->dir ? dst : src;
	s->key.hi_port = s->dir ? src : dst;
}

/* The headers of an untagged IPv4 segment without IP options, from byte COMMON_HEADERS on. */
#define COMMON_HEADERS 10
struct common_headers {
	__be16 pad; /* the end of the source address: what follows is aligned */
	__be16 proto;
	struct iphdr ip;
	struct tcphdr tcp;
	__u8 options[TS_ROOM]; /* if the segment has any */
};

/*
 * The timestamps option (RFC 7323) where the RFC recommends it: first, with or without two NOPs
 * before it. read_options() finds it elsewhere.
 */
static __always_inline void read_timestamps(struct segment *s, const __u8 *options)
{
	__be32 value, echo;

	/* The same twice: the verifier needs constant offsets. */
	if (options[0] == TCP_OPT_NOP && options[1] == TCP_OPT_NOP && options[2] == TCP_OPT_TS &&
	    options[3] == TCP_OPT_TS_LEN) {
		__builtin_memcpy(&value, options + 4, sizeof(value));
		__builtin_memcpy(&echo, options + 8, sizeof(echo));
	} else if (options[0] == TCP_OPT_TS && options[1] == TCP_OPT_TS_LEN) {
		__builtin_memcpy(&value, options + 2, sizeof(value));
		__builtin_memcpy(&echo, options + 6, sizeof(echo));
	} else {
		return;
	}
	s->tsval = bpf_ntohl(value);
	s->tsecr = bpf_ntohl(echo);
	s->ts = true;
}

/*
 * Where an IP payload ends that has so many bytes from `off` on. BIG TCP writes 0 where a length does not fit into 16 bits
 * (IPv6: with or without the option for jumbograms); then it is the end of the packet.
 */
static __always_inline __u32 ip_end(const struct __sk_buff *skb, __u32 off, __be16 len)
{
	return len || !skb->gso_size ? off + bpf_ntohs(len) : skb->len;
}

/* The TCP header at `off` of a packet whose IP payload ends at `end`. */
static __always_inline enum parsed parse_tcp(struct __sk_buff *skb, struct segment *s,
					     const struct tcphdr *tcp, __u32 off, __u32 end,
					     bool same)
{
	__u32 len = tcp->doff * 4;
	const __u8 *flags = (const __u8 *)tcp;

	if (tcp->doff < 5 || off + len > end || end > skb->len)
		return MALFORMED;
	set_key_ports(s, tcp->source, tcp->dest, same);
	s->tcp_off = off;
	s->options = len - sizeof(*tcp);
	s->payload = end - off - len;
	s->seq = bpf_ntohl(tcp->seq);
	s->ack_seq = bpf_ntohl(tcp->ack_seq);
	s->window = bpf_ntohs(tcp->window);
	s->syn = tcp->syn;
	s->ack = tcp->ack;
	s->fin = tcp->fin;
	s->rst = tcp->rst;
	s->ecn = flags[13] >> 6 | (flags[12] & 1) << 2;
	s->reserved = flags[12] & 15;
	return OK;
}

/*
 * Global functions are verified once each, separately; inlined, this program would come near the limit of
 * the verifier. Separate verification also needs their checks for NULL, which no caller passes.
 */
__noinline int parse(struct __sk_buff *skb, struct segment *s)
{
	__u32 off = ETH_HLEN, end; /* end: where the IP payload ends, by the IP header */
	__be16 proto;
	__u8 next;
	bool same;
	struct tcphdr tcp;
	struct common_headers head;

	if (!s)
		return NOT_TCP;
	/* The kernel's datapath keeps the outer tag beside the packet. */
	if (skb->vlan_present)
		s->key.vlan = skb->vlan_tci & VLAN_VID_MASK;

	/* The common case: one call in place of three. Without options the frame may be shorter. */
	if (!(skb->len >= COMMON_HEADERS + sizeof(head)
		      ? bpf_skb_load_bytes(skb, COMMON_HEADERS, &head, sizeof(head))
		      : bpf_skb_load_bytes(skb, COMMON_HEADERS, &head, sizeof(head) - TS_ROOM)) &&
	    head.proto == bpf_htons(ETH_P_IP) && head.ip.version == 4 && head.ip.ihl == 5 &&
	    head.ip.protocol == IPPROTO_TCP && !(head.ip.frag_off & bpf_htons(IP_FRAGMENT))) {
		enum parsed parsed;

		set_key_v4(s, head.ip.saddr, head.ip.daddr);
		s->dscp = head.ip.tos >> 2;
		parsed = parse_tcp(skb, s, &head.tcp, ETH_HLEN + sizeof(struct iphdr),
				   ip_end(skb, ETH_HLEN, head.ip.tot_len),
				   head.ip.saddr == head.ip.daddr);
		if (parsed == OK && s->options >= TS_ROOM)
			read_timestamps(s, head.options);
		return parsed;
	}

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return NOT_TCP;
#pragma unroll
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		struct {
			__be16 tci;
			__be16 proto;
		} tag;

		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			break;
		if (bpf_skb_load_bytes(skb, off, &tag, sizeof(tag)))
			return NOT_TCP;
		if (i == 0 && !skb->vlan_present)
			s->key.vlan = bpf_ntohs(tag.tci) & VLAN_VID_MASK;
		proto = tag.proto;
		off += 4;
	}

	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, off, &ip, sizeof(ip)))
			return NOT_TCP;
		if (ip.version != 4 || ip.protocol != IPPROTO_TCP)
			return NOT_TCP;
		/* A fragment's checksum and length belong to the whole: leave it alone. */
		if (ip.ihl < 5 || ip.frag_off & bpf_htons(IP_FRAGMENT))
			return MALFORMED;
		end = ip_end(skb, off, ip.tot_len);
		off += ip.ihl * 4;
		set_key_v4(s, ip.saddr, ip.daddr);
		s->dscp = ip.tos >> 2;
		same = ip.saddr == ip.daddr;
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		/* The addresses are compared in words, which the verifier wants aligned. */
		union {
			struct ipv6hdr header;
			struct {
				__u64 begin, from[2], to[2];
			};
		} ip6;
		int order;

		if (bpf_skb_load_bytes(skb, off, &ip6, sizeof(ip6)))
			return NOT_TCP;
		if (ip6.header.version != 6)
			return NOT_TCP;
		next = ip6.header.nexthdr;
		off += sizeof(ip6);
		end = ip_end(skb, off, ip6.header.payload_len);
#pragma unroll
		for (int i = 0; i < MAX_IPV6_EXT; i++) {
			struct {
				__u8 next;
				__u8 len;
			} ext;

			if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING &&
			    next != IPPROTO_DSTOPTS)
				break;
			if (bpf_skb_load_bytes(skb, off, &ext, sizeof(ext)))
				return NOT_TCP;
			next = ext.next;
			off += (ext.len + 1) * 8;
		}
		if (next != IPPROTO_TCP)
			return NOT_TCP;
		order = compare_v6(ip6.from, ip6.to);
		same = order == 0;
		s->dir = order > 0;
		__builtin_memcpy(s->key.lo_addr, s->dir ? ip6.to : ip6.from, 16);
		__builtin_memcpy(s->key.hi_addr, s->dir ? ip6.from : ip6.to, 16);
		s->key.family = 6;
		s->dscp = ip6.header.priority << 2 | ip6.header.flow_lbl[0] >> 6;
	} else {
		return NOT_TCP;
	}

	if (bpf_skb_load_bytes(skb, off, &tcp, sizeof(tcp)) ||
	    parse_tcp(skb, s, &tcp, off, end, same) != OK)
		return MALFORMED;
	if (s->options >= TS_ROOM &&
	    !bpf_skb_load_bytes(skb, off + sizeof(tcp), head.options, TS_ROOM))
		read_timestamps(s, head.options);
	return OK;
}

/*
 * Whether all options are the timestamps and SACK blocks, each after two NOPs, as nearly every receiver writes them. Not
 * inlined: its bytes would be part of the stack of everything that the program calls.
 */
__noinline int has_only_sack(struct __sk_buff *skb, const struct segment *s)
{
	__u8 opt[TS_ROOM + 4];

	return s && s->options > TS_ROOM &&
	       !bpf_skb_load_bytes(skb, s->tcp_off + sizeof(struct tcphdr), opt, sizeof(opt)) &&
	       opt[0] == TCP_OPT_NOP && opt[1] == TCP_OPT_NOP && opt[2] == TCP_OPT_TS &&
	       opt[3] == TCP_OPT_TS_LEN && opt[TS_ROOM] == TCP_OPT_NOP &&
	       opt[TS_ROOM + 1] == TCP_OPT_NOP && opt[TS_ROOM + 2] == TCP_OPT_SACK &&
	       TS_ROOM + 2 + opt[TS_ROOM + 3] == s->options;
}

/* Whether parse() has not read all options of interest. It has in nearly all segments that are no SYN. */
static __always_inline bool has_more_options(struct __sk_buff *skb, const struct segment *s)
{
	if (!s->options)
		return false;
	return s->syn || !s->ts || (s->options != TS_ROOM && !has_only_sack(skb, s));
}

/*
 * Read all options of a segment. Malformed options end the walk; those before them count. Not inlined, for the reason
 * given at parse().
 */
__noinline int read_options(struct __sk_buff *skb, struct segment *s)
{
	__u8 opt[MAX_TCP_OPTIONS + 3] = {}; /* a read past the end finds zeros */
	/* In memory that the verifier does not follow: to it, all steps are the same. */
	volatile __u8 *place;
	__u32 at, len;
	__be32 ts[2];
	__u64 last;

	if (!s)
		return 0;
	at = s->tcp_off + sizeof(struct tcphdr);
	len = s->options;
	last = len - 1;
	/* No test for 0: after one, an older verifier still believes that the length may be 0. */
	ONE_REGISTER(last);
	if (last >= MAX_TCP_OPTIONS || bpf_skb_load_bytes(skb, at, opt, last + 1))
		return 0;
	/* Again: the compiler forgets the bounds, so that it keeps both tests of the place. */
	ONE_REGISTER(last);
	place = &s->option;
	*place = 0;
	for (int i = 0; i < MAX_TCP_OPTIONS; i++) {
		__u64 next = *place;
		__u8 kind, length;

		ONE_REGISTER(next);
		if (next >= MAX_TCP_OPTIONS || next > last)
			break;
		kind = opt[next];
		length = opt[next + 1];
		if (kind == TCP_OPT_END)
			break;
		if (kind == TCP_OPT_NOP) {
			*place = next + 1;
			continue;
		}
		if (length < 2 || next + length > len)
			break;
		*place = next + length;
		if (kind == TCP_OPT_MSS && length == 4) {
			s->mss = opt[next + 2] << 8 | opt[next + 3];
		} else if (kind == TCP_OPT_WSCALE && length == 3) {
			s->wscale = opt[next + 2] < MAX_WSCALE ? opt[next + 2] : MAX_WSCALE;
			s->offers |= FQ_WS;
			if (s->syn)
				s->scale_at = sizeof(struct tcphdr) + next + 2;
		} else if (kind == TCP_OPT_TS && length == TCP_OPT_TS_LEN &&
			   !bpf_skb_load_bytes(skb, at + next + 2, ts, sizeof(ts))) {
			s->tsval = bpf_ntohl(ts[0]);
			s->tsecr = bpf_ntohl(ts[1]);
			s->ts = true;
			s->offers |= FQ_TS_OFFERED;
		} else if (kind == TCP_OPT_MD5 || kind == TCP_OPT_AO) {
			s->has_signature = true;
			s->offers |= FQ_SIGNED;
		}
	}
	return 0;
}

#endif
