/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Copies of SYN, FIN and RST for controllers that have asked for them:
 *
 *   segment -> a rule whose lease lives? -> token bucket of the port -> that of the bridge -> the ring buffer
 *
 * The window program calls it for the segments that it believes. Copies of one connection are in the ring buffer
 * in the order in which its segments left. Nothing here changes a packet.
 */
#ifndef FAIRQ_SEGMENT_COPY_H
#define FAIRQ_SEGMENT_COPY_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "captured.h"
#include "parse.h"
#include "window_maps.h"

/* The agent sets the sizes of these three before it loads the program: by the number of its bridges. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FQ_COPY_RULES);
	__type(key, __u32);
	__type(value, struct fq_copy_rule);
} copy_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FQ_COPY_RULES);
	__type(key, __u32);
	__type(value, struct fq_copy_count);
} copy_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_copy_state);
} copy_state SEC(".maps");

/* Room for about eight thousand segments. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} copies SEC(".maps");

/* The rule that a segment matches. With several of the flags, RST decides, then SYN, as in the flow map. */
static __always_inline __u32 copy_rule_of(const struct segment *s)
{
	__u32 rule = s->rst ? FQ_COPY_RST : s->syn ? FQ_COPY_SYN : FQ_COPY_FIN;

	return s->key.family == 6 ? rule + FQ_COPY_FLAGS : rule;
}

/*
 * Take a token of a bucket; false: there is none. `paid` is the time until which the copies so far are paid, so a
 * bucket that is not used fills by itself.
 */
static __always_inline bool take_token(__u64 *paid, const struct fq_copy_limit *limit, __u64 now)
{
#pragma unroll
	for (int i = 0; i < ADVANCE_TRIES; i++) {
		__u64 old = *(volatile __u64 *)paid, next = (old > now ? old : now) + limit->gap_ns;

		if (next > now + limit->burst_ns)
			return false;
		if (__sync_val_compare_and_swap(paid, old, next) == old)
			return true;
	}
	return false; /* other CPUs were faster each time */
}

/*
 * Copy a segment, if a controller has asked for such segments of the bridge by whose port it leaves. Not inlined, for
 * the reason given at parse().
 */
__noinline int copy_segment(struct __sk_buff *skb, struct segment *s)
{
	__u32 zero = 0, bridge, kind, index;
	const struct fq_config *cfg;
	const struct fq_copy_rule *rule;
	struct fq_copy_count *count;
	struct fq_copy_state *all;
	struct fq_port *port;
	struct fq_copy *copy;

	if (!s)
		return 0;
	cfg = bpf_map_lookup_elem(&config, &zero);
	if (!cfg || !cfg->copies)
		return 0;
	port = find_port(skb->ifindex);
	if (!port)
		return 0;
	bridge = port->bridge;
	kind = copy_rule_of(s);
	index = bridge * FQ_COPY_RULES + kind;
	rule = bpf_map_lookup_elem(&copy_rules, &index);
	if (!rule || rule->expires_ns <= s->now)
		return 0;
	count = bpf_map_lookup_elem(&copy_counts, &index);
	all = bpf_map_lookup_elem(&copy_state, &bridge);
	if (!count || !all)
		return 0;
	ADD(count->matched, 1);
	/* The port first: one that is flooded takes nothing from the bucket of the bridge. */
	if (!take_token(&port->copy_ns, &rule->port, s->now) ||
	    !take_token(&all->copy_ns, &rule->bridge, s->now)) {
		ADD(port->copies_suppressed, 1);
		ADD(all->suppressed, 1);
		return 0;
	}
	copy = bpf_ringbuf_reserve(&copies, sizeof(*copy), 0);
	if (!copy) {
		ADD(all->lost, 1);
		return 0;
	}
	copy->ns = s->now;
	copy->ifindex = skb->ifindex;
	copy->len = skb->len;
	copy->vlan_proto = skb->vlan_present ? skb->vlan_proto : 0;
	copy->vlan_tci = skb->vlan_present ? skb->vlan_tci : 0;
	copy->rule = kind;
	copy->pad = 0;
	copy->captured = capture(skb, copy->data, FQ_COPY_BYTES);
	if (!copy->captured) {
		bpf_ringbuf_discard(copy, 0);
		return 0;
	}
	bpf_ringbuf_submit(copy, 0);
	ADD(count->copied, 1);
	ADD(port->copies, 1);
	return 0;
}

#endif
