// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The window channel's datapath: tc egress on every port of the bridge.
 *
 * Every TCP segment that leaves a port teaches where its flow leaves; handshakes teach the window
 * scales (RFC 7323) and the MSS; ACKs whose data leaves by a port with a rule get their receive
 * window lowered. Windows are only ever lowered, never below one MSS (rounded up to a step of the
 * scale) unless a rule says 0, and never touched when the scale was not seen. How far each direction
 * has come, and what it said in its last segment, is remembered for who asks.
 *
 * Nothing here knows of a policy. Packets are never dropped or redirected: every path ends in
 * TC_ACT_UNSPEC, which lets the filters of others run.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "layout.h"

#define MAX_VLAN_TAGS   2
#define MAX_IPV6_EXT    6
#define MAX_TCP_OPTIONS 40
#define MAX_WSCALE      14  /* RFC 7323 section 2.3: larger shifts count as 14 */
#define DEFAULT_MSS_V4  536 /* RFC 9293 section 3.7.1: what no MSS option means */
#define DEFAULT_MSS_V6  1220
#define TCP_OPT_END     0
#define TCP_OPT_NOP     1
#define TCP_OPT_MSS     2
#define TCP_OPT_WSCALE  3
#define TCP_OPT_TS      8
#define TCP_OPT_TS_LEN  10
#define TS_ROOM         12 /* the timestamps option and two NOPs, as nearly everybody sends it */
#define IP_FRAGMENT     0x3FFF    /* more fragments, or an offset */
#define MAX_WINDOW      (1 << 30) /* RFC 7323: numbers further apart are of no one window */

/* Sizes of these maps are set by the agent before it loads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_rule);
} port_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_rule);
} flow_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_counter);
} counters SEC(".maps");

/* Too large for the stack. */
static const struct fq_flow new_flow;

/* One TCP segment as far as it concerns us. */
struct segment {
	struct fq_flow_key key;
	__u64 now;
	__u32 payload; /* bytes */
	__u32 seq;     /* host byte order */
	__u32 ack_seq;
	__u32 tcp_off; /* of the TCP header in the packet */
	__u32 options; /* length of the TCP options, bytes */
	__u32 epoch;
	__u32 tsval;
	__u32 tsecr;
	__u16 window; /* host byte order, as on the wire */
	__u16 mss;    /* in a SYN; 0: no option */
	__u16 offers; /* in a SYN: FQ_NEW_WS, FQ_NEW_TS */
	__u8 wscale;  /* in a SYN */
	__u8 dir;     /* 0: from lo to hi */
	bool syn, ack, fin, rst, ts;
};

#define ADD(counter, n) __sync_fetch_and_add(&(counter), (n))

enum parsed { NOT_TCP, MALFORMED, OK };

static __always_inline void set_key_v4(struct segment *s, __be32 src, __be32 dst)
{
	/* Any fixed order will do; equal addresses are told apart by port. */
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

/* What an untagged IPv4 segment without IP options begins with, from COMMON_HEADERS on. */
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
 * before it. Elsewhere it is not looked for.
 */
static __always_inline void read_timestamps(struct segment *s, const __u8 *options)
{
	__be32 value, echo;

	/* Twice the same: the verifier wants to see constant offsets. */
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

/* The TCP header at `off` of a packet whose IP payload ends at `end`. */
static __always_inline enum parsed parse_tcp(struct __sk_buff *skb, struct segment *s,
					     const struct tcphdr *tcp, __u32 off, __u32 end,
					     bool same)
{
	__u32 len = tcp->doff * 4;

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
	return OK;
}

/*
 * Global functions are verified once each, by themselves; inlined, this program would come near the
 * limit of what the verifier walks. Hence also their checks for NULL, which no caller passes.
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

	/* Most packets by far: one call in place of three. Without options they may be shorter. */
	if (!(skb->len >= COMMON_HEADERS + sizeof(head)
		      ? bpf_skb_load_bytes(skb, COMMON_HEADERS, &head, sizeof(head))
		      : bpf_skb_load_bytes(skb, COMMON_HEADERS, &head, sizeof(head) - TS_ROOM)) &&
	    head.proto == bpf_htons(ETH_P_IP) && head.ip.version == 4 && head.ip.ihl == 5 &&
	    head.ip.protocol == IPPROTO_TCP && !(head.ip.frag_off & bpf_htons(IP_FRAGMENT))) {
		enum parsed parsed;

		set_key_v4(s, head.ip.saddr, head.ip.daddr);
		parsed = parse_tcp(skb, s, &head.tcp, ETH_HLEN + sizeof(struct iphdr),
				   ETH_HLEN + bpf_ntohs(head.ip.tot_len),
				   head.ip.saddr == head.ip.daddr);
		if (parsed == OK && s->options >= TS_ROOM)
			read_timestamps(s, head.options);
		return parsed;
	}

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return NOT_TCP;
#pragma unroll
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		if (proto != bpf_htons(ETH_P_8021Q) && proto != bpf_htons(ETH_P_8021AD))
			break;
		if (bpf_skb_load_bytes(skb, off + 2, &proto, sizeof(proto)))
			return NOT_TCP;
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
		end = off + bpf_ntohs(ip.tot_len);
		off += ip.ihl * 4;
		set_key_v4(s, ip.saddr, ip.daddr);
		same = ip.saddr == ip.daddr;
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip6;
		int order;

		if (bpf_skb_load_bytes(skb, off, &ip6, sizeof(ip6)))
			return NOT_TCP;
		if (ip6.version != 6)
			return NOT_TCP;
		next = ip6.nexthdr;
		off += sizeof(ip6);
		end = off + bpf_ntohs(ip6.payload_len);
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
		order = compare_v6((__u64 *)&ip6.saddr, (__u64 *)&ip6.daddr);
		same = order == 0;
		s->dir = order > 0;
		__builtin_memcpy(s->key.lo_addr, s->dir ? &ip6.daddr : &ip6.saddr, 16);
		__builtin_memcpy(s->key.hi_addr, s->dir ? &ip6.saddr : &ip6.daddr, 16);
		s->key.family = 6;
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
 * The options of a SYN into the segment. Malformed options end the walk; what came before them
 * counts. `at` is where they stand in the packet, `len` their length in bytes.
 */
__noinline int syn_options(struct __sk_buff *skb, struct segment *s, __u32 at, __u32 len)
{
	__u8 opt[MAX_TCP_OPTIONS + 3] = {}; /* a look past the end meets zeros */
	__u32 next = 0, ts_at = 0;
	__be32 ts[2];

	if (!s)
		return 0;
	s->mss = s->offers = s->wscale = 0;
	s->ts = false;
	/* Spelt out for the verifier: 1 to 40 bytes into 40 bytes. */
	if (len < 1 || len > MAX_TCP_OPTIONS || bpf_skb_load_bytes(skb, at, opt, len))
		return 0;
	/* Byte by byte, with a constant index: the verifier walks this in few steps. */
	for (__u32 i = 0; i < MAX_TCP_OPTIONS; i++) {
		__u8 kind = opt[i], size = opt[i + 1];

		if (i != next)
			continue;
		if (i >= len || kind == TCP_OPT_END)
			break;
		if (kind == TCP_OPT_NOP) {
			next = i + 1;
			continue;
		}
		if (size < 2 || i + size > len)
			break;
		if (kind == TCP_OPT_MSS && size == 4)
			s->mss = opt[i + 2] << 8 | opt[i + 3];
		if (kind == TCP_OPT_WSCALE && size == 3) {
			s->wscale = opt[i + 2] < MAX_WSCALE ? opt[i + 2] : MAX_WSCALE;
			s->offers |= FQ_NEW_WS;
		}
		if (kind == TCP_OPT_TS && size == TCP_OPT_TS_LEN)
			ts_at = at + i + 2;
		next = i + size;
	}
	if (ts_at && !bpf_skb_load_bytes(skb, ts_at, ts, sizeof(ts))) {
		s->tsval = bpf_ntohl(ts[0]);
		s->tsecr = bpf_ntohl(ts[1]);
		s->ts = true;
		s->offers |= FQ_NEW_TS;
	}
	return 0;
}

/* Is a bucket of that epoch within the activity timeout? */
static __always_inline bool is_recent(__u32 epoch, __u32 now_epoch)
{
	return epoch && now_epoch - epoch < FQ_BUCKETS;
}

/* Take a direction out of the count of `port`, where it leaves. */
static __always_inline void uncount_on(struct fq_port *port, struct fq_dir *d, __u32 epoch)
{
	if (is_recent(d->epoch, epoch)) {
		__u64 *bucket = &port->active[d->epoch % FQ_BUCKETS], old = *bucket;

		/*
		 * Not below 0, and not from a bucket that has been taken over since. If another CPU
		 * was quicker, let it be: what is counted too much ages out.
		 */
		if (old >> 32 == d->epoch && (__u32)old)
			__sync_val_compare_and_swap(bucket, old, old - 1);
	}
	d->epoch = 0;
}

/* The direction ended, or it has a rule of its own now. */
__noinline int uncount(struct fq_dir *d, __u32 epoch)
{
	struct fq_port *port;
	__u32 ifindex;

	if (!d)
		return 0;
	ifindex = d->ifindex;
	port = bpf_map_lookup_elem(&ports, &ifindex);
	if (port)
		uncount_on(port, d, epoch);
	d->epoch = 0;
	return 0;
}

/* Count a direction as active in this epoch, and no longer in the one before. */
__noinline int count_active(struct fq_dir *d, __u32 epoch)
{
	struct fq_port *port;
	__u64 *bucket, old;
	__u32 ifindex;

	if (!d)
		return 0;
	ifindex = d->ifindex;
	port = bpf_map_lookup_elem(&ports, &ifindex);
	if (!port)
		return 0;
	uncount_on(port, d, epoch);
	bucket = &port->active[epoch % FQ_BUCKETS];
	old = *bucket;
	if (old >> 32 != epoch)
		__sync_val_compare_and_swap(bucket, old, (__u64)epoch << 32);
	ADD(*bucket, 1);
	d->epoch = epoch;
	return 0;
}

/*
 * Flows active on the port. Without branches: eight of them in a row would make the verifier walk
 * 256 paths. The empty asm keeps the compiler from putting them back.
 */
static __always_inline __u32 active_flows(const struct fq_port *port, __u32 epoch)
{
	__u64 n = 0;

#pragma unroll
	for (int i = 0; i < FQ_BUCKETS; i++) {
		__u64 bucket = port->active[i];
		__u64 age = (__u32)(epoch - (__u32)(bucket >> 32));
		__u64 recent = (age - FQ_BUCKETS) >> 63; /* 1 if age < FQ_BUCKETS */

		asm volatile("" : "+r"(recent));
		n += (__u32)bucket * recent;
	}
	return n;
}

static __always_inline void remember_syn(struct __sk_buff *skb, struct segment *s, struct fq_dir *d)
{
	/* Karn: whose SYN came twice cannot tell which of them is answered. */
	bool again = d->flags & (FQ_SYN_SEEN | FQ_KNOWN) && d->isn == s->seq;

	syn_options(skb, s, s->tcp_off + sizeof(struct tcphdr), s->options);
	d->syn_ns = again ? 0 : s->now;
	d->isn = s->seq;
	d->new_mss = s->mss;
	d->new_wscale = s->wscale;
	d->flags = (d->flags & ~(FQ_NEW_WS | FQ_NEW_TS)) | FQ_SYN_SEEN | s->offers;
}

/* `ack` is what it acknowledges before any data. */
static __always_inline void commit_syn(struct fq_dir *d, __u32 ack, bool timestamps)
{
	d->wscale = d->new_wscale;
	d->mss = d->new_mss;
	d->flags = FQ_KNOWN | FQ_SEQ | (d->flags & FQ_NEW_WS ? FQ_WS : 0) |
		   (timestamps ? FQ_TS_DUE : 0);
	d->bytes = 0;
	d->packets = 0;
	d->rewritten = 0;
	d->ruled_until = 0;
	d->acked = 0;
	d->seq_next = d->isn + 1;
	d->ack = ack;
}

static __always_inline __u32 time_since(const struct segment *s, __u64 then)
{
	__u64 spent = s->now - then;

	if (!then || s->now <= then)
		return 0;
	return spent < 0xFFFFFFFF ? spent : 0xFFFFFFFF;
}

/* What a segment that acknowledges says besides: the latest word of this direction. */
static __always_inline void note_word(const struct segment *s, struct fq_dir *own, __u16 window)
{
	__u16 flags = (own->flags & ~FQ_TS) | FQ_ACK;

	/* Where nobody has said whether timestamps belong, room for them is a maybe. */
	if (!(flags & FQ_KNOWN))
		flags = (flags & ~FQ_TS_DUE) | (s->options >= TS_ROOM ? FQ_TS_DUE : 0);
	if (s->ts && flags & FQ_TS_DUE) {
		own->tsval = s->tsval;
		own->tsecr = s->tsecr;
		flags |= FQ_TS;
	}
	own->ack = s->ack_seq;
	own->window = window;
	own->flags = flags;
}

/*
 * A SYN-ACK settles the scales of both sides, but only when it answers the SYN that was seen: a
 * stray SYN on a live connection (RFC 5961) is answered by a plain ACK, and so changes nothing.
 * Returns whether this SYN-ACK opened the connection; a repeated one does not, unless its SYN was
 * repeated as well (the first SYN-ACK was lost further on). `again`: it did open it before.
 */
static __always_inline bool open_connection(struct __sk_buff *skb, struct segment *s,
					    struct fq_dir *own, struct fq_dir *peer, bool again)
{
	bool timestamps;
	__u16 window = s->window;

	if (!(peer->flags & FQ_SYN_SEEN) || s->ack_seq != peer->isn + 1)
		return false;
	uncount(own, s->epoch);
	uncount(peer, s->epoch);
	remember_syn(skb, s, own);
	timestamps = own->flags & peer->flags & FQ_NEW_TS;
	commit_syn(own, s->ack_seq, timestamps);
	commit_syn(peer, own->isn + 1, timestamps);
	if (!again) {
		own->rtt_ns = time_since(s, peer->syn_ns);
		peer->rtt_ns = 0;
	}
	/* The window of a SYN is not scaled; remembered it is as later segments would say it. */
	if (own->flags & peer->flags & FQ_WS)
		window >>= own->wscale & 15;
	note_word(s, own, window);
	return true;
}

/*
 * How far its sender is, and what it has acknowledged. Numbers move forward only, so that a segment
 * that was overtaken takes nothing back; those out of any window of each other start anew.
 */
__noinline int follow(const struct segment *s, struct fq_dir *own, const struct fq_dir *peer)
{
	__s32 ahead, moved;
	__u32 end;

	if (!s || !own || !peer)
		return 0;
	end = s->seq + s->payload + s->fin;
	ahead = end - own->seq_next;
	moved = s->ack_seq - own->ack;
	if (!(own->flags & FQ_SEQ) || ahead > 0 || ahead < -MAX_WINDOW) {
		own->seq_next = end;
		own->flags |= FQ_SEQ;
	}
	/* RFC 9293 section 3.10.7.4: what was never sent cannot be acknowledged. */
	if (!s->ack || (peer->flags & FQ_SEQ && (__s32)(s->ack_seq - peer->seq_next) > 0))
		return 0;
	if (own->flags & (FQ_ACK | FQ_KNOWN)) {
		if (moved < 0 && moved >= -MAX_WINDOW)
			return 0;
		if (moved > 0 && moved <= MAX_WINDOW) {
			own->acked += moved;
			if (peer->flags & FQ_FIN && s->ack_seq == peer->seq_next)
				own->acked--; /* the FIN */
		}
		/* The handshake's last segment. Whoever sent the SYN-ACK has acknowledged before. */
		if (!(own->flags & FQ_ACK) && !moved)
			own->rtt_ns = time_since(s, peer->syn_ns);
	}
	note_word(s, own, s->window);
	return 0;
}

/*
 * The window that a rule grants a flow, in steps of its scale. `port` is the port its data leaves
 * by, `peer` that direction; a flow that is not counted counts as one more, for its data is about
 * to come.
 */
static __always_inline __u32 granted_steps(const struct fq_rule *rule, const struct segment *s,
					   struct fq_port *port, const struct fq_dir *own,
					   const struct fq_dir *peer, __u32 scale)
{
	__u32 bytes = rule->bytes, mss = own->mss, steps, floor;

	if (rule->kind == FQ_RULE_POOL) {
		__u32 n = active_flows(port, s->epoch);

		if (!is_recent(peer->epoch, s->epoch))
			n++;
		if (n > 1)
			bytes /= n;
	} else if (bytes == 0) {
		return 0;
	}
	if (bytes < 1U << scale)
		ADD(port->coarse, 1);
	if (!mss)
		mss = s->key.family == 4 ? DEFAULT_MSS_V4 : DEFAULT_MSS_V6;
	floor = (mss + (1U << scale) - 1) >> scale;
	steps = bytes >> scale;
	return steps > floor ? steps : floor;
}

static __always_inline void lower_window(struct __sk_buff *skb, const struct segment *s,
					 struct fq_dir *own, struct fq_dir *peer)
{
	__u32 zero = 0, ifindex = peer->ifindex, leaves_by = own->ifindex, scale = 0, steps;
	struct fq_config *cfg = bpf_map_lookup_elem(&config, &zero);
	struct fq_rule *rule = NULL;
	struct fq_counter *counter;
	struct fq_port *port;
	bool own_rule = false;

	if (cfg && cfg->flow_rules) {
		struct fq_flow_key key = s->key;

		key.dir = s->dir;
		rule = bpf_map_lookup_elem(&flow_rules, &key);
		own_rule = rule && rule->expires_ns > s->now;
	}
	if (own_rule) {
		if (is_recent(peer->epoch, s->epoch))
			uncount(peer, s->epoch);
		peer->ruled_until = rule->expires_ns;
	} else {
		peer->ruled_until = 0;
		rule = bpf_map_lookup_elem(&port_rules, &ifindex);
		if (!rule || rule->expires_ns <= s->now)
			return;
	}
	port = bpf_map_lookup_elem(&ports, &ifindex);
	if (!port || !bpf_map_lookup_elem(&ports, &leaves_by))
		return; /* in at a port of the bridge, out at another, or it is none of ours */
	ADD(port->acks, 1);
	__u32 slot = rule->slot;
	counter = bpf_map_lookup_elem(&counters, &slot);
	if (counter)
		ADD(counter->matched, 1);
	if (!(own->flags & FQ_KNOWN)) {
		ADD(port->unknown_scale, 1);
		return;
	}
	/* RFC 7323: scaling holds only if both sides sent the option, and not in a SYN. */
	if (!s->syn && own->flags & FQ_WS && peer->flags & FQ_WS)
		scale = own->wscale & 15;
	steps = granted_steps(rule, s, port, own, peer, scale);
	if (steps >= s->window)
		return;

	__be16 old_window = bpf_htons(s->window), new_window = bpf_htons(steps);

	/* Both, or neither: a window without its checksum would be a corrupt packet. */
	if (bpf_skb_store_bytes(skb, s->tcp_off + offsetof(struct tcphdr, window), &new_window,
				sizeof(new_window), 0))
		return;
	if (bpf_l4_csum_replace(skb, s->tcp_off + offsetof(struct tcphdr, check), old_window,
				new_window, sizeof(new_window))) {
		bpf_skb_store_bytes(skb, s->tcp_off + offsetof(struct tcphdr, window), &old_window,
				    sizeof(old_window), 0);
		return;
	}
	ADD(port->rewritten, 1);
	ADD(own->rewritten, 1);
	if (counter)
		ADD(counter->rewritten, 1);
}

/* The segment leaves by this port: so does its flow, and if it bears data, the flow is active. */
static __always_inline void learn(__u32 ifindex, const struct segment *s, struct fq_dir *own)
{
	if (own->ifindex != ifindex) {
		/* It has moved; or it is mirrored, and leaves by two ports in turn. */
		uncount(own, s->epoch);
		own->ifindex = ifindex;
	}
	own->last_ns = s->now;
	if (!s->payload)
		return;
	own->bytes += s->payload;
	own->packets++;
	/* Only what a window can reach takes a share of the pool. */
	if (own->epoch != s->epoch && own->flags & FQ_KNOWN && !(own->flags & (FQ_FIN | FQ_RST)) &&
	    own->ruled_until <= s->now)
		count_active(own, s->epoch);
}

SEC("classifier")
int fq_egress(struct __sk_buff *skb)
{
	struct segment s = {};
	__u32 zero = 0, ifindex = skb->ifindex;
	struct fq_config *cfg;
	struct fq_port *port;
	struct fq_flow *flow;
	struct fq_dir *own, *peer;
	enum parsed parsed = parse(skb, &s);
	bool opened; /* by a SYN-ACK like this one */

	if (parsed == NOT_TCP)
		return TC_ACT_UNSPEC;
	if (parsed == MALFORMED) {
		port = bpf_map_lookup_elem(&ports, &ifindex);
		if (port)
			ADD(port->malformed, 1);
		return TC_ACT_UNSPEC;
	}
	cfg = bpf_map_lookup_elem(&config, &zero);
	if (!cfg || !cfg->bucket_ns)
		return TC_ACT_UNSPEC;
	s.now = bpf_ktime_get_ns();
	s.epoch = s.now / cfg->bucket_ns;

	flow = bpf_map_lookup_elem(&flows, &s.key);
	if (!flow) {
		/* A bare ACK or the end of an unknown flow is not worth an entry. */
		if (!s.payload && !s.syn)
			return TC_ACT_UNSPEC;
		port = bpf_map_lookup_elem(&ports, &ifindex);
		if (!bpf_map_update_elem(&flows, &s.key, &new_flow, BPF_NOEXIST) && port)
			ADD(port->created, 1);
		flow = bpf_map_lookup_elem(&flows, &s.key);
		if (!flow)
			return TC_ACT_UNSPEC;
	}
	own = &flow->dir[s.dir & 1];
	peer = &flow->dir[(s.dir & 1) ^ 1];
	opened = own->flags & FQ_KNOWN && own->isn == s.seq;
	learn(ifindex, &s, own);

	if (s.syn && !s.ack) {
		remember_syn(skb, &s, own);
		return TC_ACT_UNSPEC;
	}
	if (s.syn && opened)
		own->syn_ns = 0; /* sent again: the answer tells no time */
	if (s.syn && open_connection(skb, &s, own, peer, opened)) {
		port = bpf_map_lookup_elem(&ports, &ifindex);
		if (port && !opened)
			ADD(port->handshakes, 1);
		count_active(own, s.epoch);
		count_active(peer, s.epoch);
	}
	if (s.rst) {
		uncount(own, s.epoch);
		uncount(peer, s.epoch);
		own->flags |= FQ_RST;
		peer->flags |= FQ_RST;
		return TC_ACT_UNSPEC;
	}
	if (!s.syn)
		follow(&s, own, peer);
	if (s.fin) {
		uncount(own, s.epoch);
		own->flags |= FQ_FIN;
	}
	if (s.ack && peer->ifindex)
		lower_window(skb, &s, own, peer);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
