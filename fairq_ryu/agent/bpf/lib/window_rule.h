/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rules for receive windows: which rule applies to an ACK, what it grants, and the lowered window. */
#ifndef FAIRQ_WINDOW_RULE_H
#define FAIRQ_WINDOW_RULE_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "activity.h"
#include "own_rule.h"
#include "parse.h"
#include "port_law.h"
#include "window_maps.h"

/*
 * The window that a rule grants a flow, in steps of its scale. `port` is the port by which its data leaves,
 * `peer` that direction. A flow that is not counted yet counts as one more, because its data is about to come.
 */
static __always_inline __u32 granted_steps(const struct fq_rule *rule, struct segment *s,
					   struct fq_port *port, const struct fq_dir *own,
					   struct fq_dir *peer, __u32 scale)
{
	__u32 bytes = rule->bytes, steps, floor;

	if (rule->kind == FQ_RULE_POOL) {
		__u32 n = counted_flows(port->active, s->epoch);

		if (!is_recent(peer->epoch, s->epoch))
			n++;
		if (n > 1)
			bytes /= n;
	} else if (rule->kind == FQ_RULE_LAW) {
		bytes = law_grant(s, own, peer, port);
		if (bytes == FQ_NO_WINDOW)
			return bytes;
	} else if (bytes == 0) {
		return 0;
	}
	if (bytes < 1U << scale)
		ADD(port->coarse, 1);
	floor = (common_mss(s, own, peer) + (1U << scale) - 1) >> scale;
	/* A law counts in whole segments: rounded down, a window of two would hold one, and wait for its ACK. */
	if (rule->kind == FQ_RULE_LAW)
		bytes += (1U << scale) - 1;
	steps = bytes >> scale;
	return steps > floor ? steps : floor;
}

/*
 * A direction begins with the SYN-ACK: it is counted, unless it is signed or has a rule of its own. `acks`: the other
 * direction.
 */
static __always_inline void direction_began(struct segment *s, struct fq_dir *d,
					    const struct fq_dir *other, const struct fq_config *cfg,
					    __u32 acks)
{
	bool counts = !(d->flags & FQ_SIGNED) && (!cfg->flow_rules || !has_own_rule(s, acks));

	if (counts)
		count_active(d, s->epoch);
	law_direction_began(d, other, FQ_OPENING_SYN_ACK, counts ? s->epoch : 0, s->now);
}

/* Write a window and update the checksum: both, or neither, because one alone would corrupt the packet. */
static __always_inline bool write_window(struct __sk_buff *skb, const struct segment *s,
					 const __be16 *old_window, const __be16 *new_window)
{
	if (bpf_skb_store_bytes(skb, s->tcp_off + offsetof(struct tcphdr, window), new_window,
				sizeof(*new_window), 0))
		return false;
	if (bpf_l4_csum_replace(skb, s->tcp_off + offsetof(struct tcphdr, check), *old_window,
				*new_window, sizeof(*new_window))) {
		bpf_skb_store_bytes(skb, s->tcp_off + offsetof(struct tcphdr, window), old_window,
				    sizeof(*old_window), 0);
		return false;
	}
	return true;
}

/*
 * Lower the window of an ACK that leaves by this port. The flow's own rule applies if its lease lives, else the rule
 * of the port by which the data leaves. On a port that is only observed everything is worked out in the same way, and
 * the ACK is counted instead.
 */
static __always_inline void lower_window(struct __sk_buff *skb, struct segment *s, __u32 leaves_by,
					 const struct fq_config *cfg, struct fq_dir *own,
					 struct fq_dir *peer)
{
	__u32 port_slot = peer->slot, scale = 0, steps;
	struct fq_port *port = port_of(peer);
	struct fq_rule *rule = NULL;
	struct fq_counter *counter;
	const __u32 *observe;
	bool own_rule = false;

	/* The flow's key is no longer needed, and a second key would exceed the stack limit. */
	s->key.dir = s->dir;
	if (cfg->flow_rules) {
		rule = bpf_map_lookup_elem(&flow_rules, &s->key);
		own_rule = rule && rule->expires_ns > s->now;
	}
	if (own_rule) {
		if (is_recent(peer->epoch, s->epoch))
			uncount(peer, s->epoch);
		peer->ruled_until = rule->expires_ns;
		peer->granted = 0; /* by the law; it says nothing about what this rule grants */
	} else {
		peer->ruled_until = 0;
		rule = port ? bpf_map_lookup_elem(&port_rules, &port_slot) : NULL;
		if (!rule || rule->expires_ns <= s->now)
			return;
	}
	if (!port || !(own->ifindex == leaves_by ? port_of(own) : find_port(leaves_by)))
		return; /* in at a port of the bridge, out at another, or it is none of ours */
	ADD(port->acks, 1);
	__u32 slot = rule->slot;
	counter = bpf_map_lookup_elem(&counters, &slot);
	if (counter)
		ADD(counter->matched, 1);
	if (s->has_signature || own->flags & FQ_SIGNED) {
		ADD(port->signed_acks, 1);
		return;
	}
	if (!(own->flags & FQ_KNOWN)) {
		ADD(port->unknown_scale, 1);
		return;
	}
	/* RFC 7323: scaling holds only if both sides sent the option, and not in a SYN. */
	if (!s->syn && own->flags & FQ_WS && peer->flags & FQ_WS)
		scale = own->wscale & 15;
	steps = granted_steps(rule, s, port, own, peer, scale);
	if (rule->kind == FQ_RULE_LAW)
		peer->granted = (steps < s->window ? steps : s->window) << scale;
	if (steps >= s->window && !s->echo_met)
		return;
	observe = bpf_map_lookup_elem(&observed, &port_slot);
	if (observe && *observe) {
		if (steps < s->window)
			ADD(port->would_lower, 1);
		return;
	}
	if (s->echo_met)
		take_echo(skb, s);
	if (steps >= s->window)
		return;

	__be16 old_window = bpf_htons(s->window), new_window = bpf_htons(steps);

	if (!write_window(skb, s, &old_window, &new_window))
		return;
	/*
	 * Not of one that arrives late: its window is not recorded either. A SYN-ACK has a scale only if the SYN had one
	 * (RFC 7323, section 1.3).
	 */
	if (s->ack_seq == own->ack)
		own->passed = s->syn ? steps >> (own->wscale & 15) : steps;
	ADD(port->rewritten, 1);
	ADD(own->rewritten, 1);
	if (counter)
		ADD(counter->rewritten, 1);
}

#endif
