/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rules for receive windows: which rules apply to an ACK, what they grant, and the lowered window. */
#ifndef FAIRQ_WINDOW_RULE_H
#define FAIRQ_WINDOW_RULE_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "far_place.h"
#include "own_rule.h"
#include "parse.h"
#include "places.h"
#include "port_law.h"
#include "window_maps.h"

/* Steps of a scale that no window has: the ACK stays as it is. */
#define NO_STEPS 65536

/*
 * The window that a rule grants the direction `peer` at a place, in steps of its scale; FQ_NO_WINDOW: none. A flow that
 * is not counted yet counts as one more, because its data is about to come.
 */
static __always_inline __u32 granted_steps(const struct fq_rule *rule, struct segment *s,
					   const struct fq_dir *own, struct fq_dir *peer,
					   struct fq_place *place, struct fq_port *port)
{
	__u32 bytes = rule->bytes, scale = scale_of(s, own, peer), steps, floor;

	if (rule->kind == FQ_RULE_POOL) {
		__u32 n = counted_flows(port, ACTIVE, s->epoch);

		if (!is_recent(place->epoch, s->epoch))
			n++;
		if (n > 1)
			bytes /= n;
	} else if (rule->kind == FQ_RULE_LAW) {
		bytes = law_grant(s, own, peer, place, port);
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
 * What an ACK of `own` may advertise by the rule of a place of the direction `peer`, in steps; NO_STEPS: whatever it
 * does. At a place that is only observed everything is worked out in the same way, and the ACK is counted instead.
 */
__noinline __u32 place_steps(struct segment *s, const struct fq_dir *own, struct fq_dir *peer,
			     struct fq_place *place, const struct fq_rule *rule)
{
	struct fq_counter *counter;
	struct fq_port *port;
	const __u32 *observe;
	__u32 slot, steps;

	if (!s || !own || !peer || !place || !rule)
		return NO_STEPS;
	port = port_of(place);
	if (!port)
		return NO_STEPS; /* it is none of ours */
	ADD(port->acks, 1);
	slot = rule->slot;
	counter = bpf_map_lookup_elem(&counters, &slot);
	if (counter)
		ADD(counter->matched, 1);
	if (is_signed(s, own)) {
		ADD(port->signed_acks, 1);
		return NO_STEPS;
	}
	if (has_unknown_scale(s, own)) {
		ADD(port->unknown_scale, 1);
		return NO_STEPS;
	}
	if (!(own->flags & FQ_KNOWN))
		ADD(port->scale_told, 1);
	steps = granted_steps(rule, s, own, peer, place, port);
	if (rule->kind == FQ_RULE_LAW && !s->of_nobody) {
		place->granted = (steps < s->window ? steps : s->window) << scale_of(s, own, peer);
		place->by_receiver = steps >= s->window;
	}
	slot = place->slot;
	observe = bpf_map_lookup_elem(&observed, &slot);
	if (observe && *observe) {
		if (steps < s->window)
			ADD(port->would_lower, 1);
		s->echo_met = false;
		return NO_STEPS;
	}
	return steps;
}

/* The rule of a place; NULL: none with a lease. If its slot is another port's by now, place_steps() finds that out. */
static __always_inline const struct fq_rule *place_rule(const struct fq_place *place, __u64 now)
{
	__u32 slot = place->slot;
	const struct fq_rule *rule = bpf_map_lookup_elem(&port_rules, &slot);

	return rule && rule->expires_ns > now ? rule : NULL;
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
		count_at_places(d, s->epoch);
	law_direction_began(d, other, FQ_OPENING_SYN_ACK, counts ? s->epoch : 0, s->now);
	if (cfg->tenants && counts)
		tenant_direction_began(s, d, acks ^ 1);
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

/* A window was lowered by this rule, at this place. */
__noinline int count_lowered(const struct fq_place *place, __u32 slot)
{
	struct fq_counter *counter = bpf_map_lookup_elem(&counters, &slot);
	struct fq_port *port;

	if (!place)
		return 0;
	port = port_of(place);
	if (port)
		ADD(port->rewritten, 1);
	if (counter)
		ADD(counter->rewritten, 1);
	return 0;
}

/*
 * Lower the window of an ACK that leaves by this port, to the smaller of what the places of its data allow: the port
 * by which that leaves, where the flow's own rule applies if its lease lives, and its far queue.
 */
static __always_inline void lower_window(struct __sk_buff *skb, struct segment *s, __u32 leaves_by,
					 const struct fq_config *cfg, struct fq_dir *own,
					 struct fq_dir *peer)
{
	const struct fq_rule *rule = NULL, *far = NULL;
	__u32 steps = NO_STEPS;
	bool by_far;

	/* The flow's key is no longer needed, and a second key would exceed the stack limit. */
	s->key.dir = s->dir;
	if (cfg->flow_rules)
		rule = bpf_map_lookup_elem(&flow_rules, &s->key);
	if (rule && rule->expires_ns > s->now) {
		if (is_recent(peer->out.epoch, s->epoch))
			uncount_at(&peer->out, s->epoch);
		peer->ruled_until = rule->expires_ns;
		peer->out.granted = 0; /* by the law; it says nothing about what this rule grants */
	} else {
		peer->ruled_until = 0;
		rule = place_rule(&peer->out, s->now);
	}
	if (cfg->far)
		far = place_rule(&peer->far, s->now);
	else if (!rule)
		return;
	if (!(own->out.ifindex == leaves_by ? port_of(&own->out) : find_port(leaves_by)))
		return; /* in at a port of the bridge, out at another */
	if (cfg->tenants && !s->of_nobody)
		tenant_shares(s, own, peer,
			      (far ? AT_FAR : 0) | (rule && !peer->ruled_until ? AT_OUT : 0));
	if (far)
		steps = place_steps(s, own, peer, &peer->far, far);
	by_far = far;
	if (rule) {
		__u32 allowed = place_steps(s, own, peer, &peer->out, rule);

		if (allowed <= steps) {
			steps = allowed;
			by_far = false;
		}
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
	if (s->ack_seq == own->ack && !s->of_nobody)
		own->passed = s->syn ? steps >> (own->wscale & 15) : steps;
	ADD(own->rewritten, 1);
	if (by_far)
		count_lowered(&peer->far, far ? far->slot : 0);
	else
		count_lowered(&peer->out, rule ? rule->slot : 0);
}

#endif
