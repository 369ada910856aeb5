/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The laws of the places that a direction passes, as ACKs and handshakes meet them. The programs of queues run their
 * ticks.
 */
#ifndef FAIRQ_PORT_LAW_H
#define FAIRQ_PORT_LAW_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../laws/law.h"
#include "../layout.h"
#include "law_flows.h"
#include "parse.h"
#include "places.h"
#include "port_maps.h"
#include "queue_map.h"
#include "segment_size.h"
#include "tenants.h"
#include "window_maps.h"

/* The places of a direction, each of which may have a law. */
static __always_inline struct fq_place *place_of(struct fq_dir *d, int far)
{
	return far ? &d->far : &d->out;
}

/*
 * The handshake of a direction has come to a step (FQ_OPENING_...): the laws of its places may count it. `other` is the
 * other direction of the connection.
 */
__noinline int law_direction_opens(struct fq_dir *d, const struct fq_dir *other, __u32 step,
				   __u64 now)
{
	if (!d || !other)
		return 0;
	for (int far = 0; far < 2; far++) {
		const struct fq_place *place = place_of(d, far);
		__u32 slot = place->slot, shift = far ? FQ_FAR_FLAGS : 0, flags, old;
		struct fq_law_state *state;
		struct fq_port_law *law;

		if (!port_of(place))
			continue;
		law = bpf_map_lookup_elem(&port_laws, &slot);
		state = bpf_map_lookup_elem(&law_states, &slot);
		if (!law || !state || law->expires_ns <= now)
			continue;
		/* Anybody can send a SYN: its MSS counts when it has been answered. */
		if (step >= FQ_OPENING_SYN_ACK)
			law_segment(state, carried_mss(d), carried_mss(other), now);
		old = d->flags >> shift & (FQ_BEGUN | FQ_UNPROVEN);
		flags = law_opening(&law->law, state, step, old, queue_backlog(place->ifindex, now),
				    now);
		/* Afterwards: a law may ask how long it has seen none. */
		if (step >= FQ_OPENING_SYN_ACK)
			state->seen_ns = now;
		set_flags(d, (flags & ~old) << shift);
		clear_flags(d, (old & ~flags) << shift);
	}
	return 0;
}

/*
 * The SYN-ACK of a direction, or at once the proof of its handshake: it shares its places from now on; epoch 0: it does
 * not, because it has a rule of its own, or is signed.
 */
__noinline int law_direction_began(struct fq_dir *d, const struct fq_dir *other, __u32 step,
				   __u32 epoch, __u64 now)
{
	if (!d || !other)
		return 0;
	law_direction_opens(d, other, step, now);
	for (int far = 0; far < 2; far++) {
		struct fq_place *place = place_of(d, far);
		__u32 slot = place->slot;
		struct fq_port_law *law;

		place->granted = 0;
		law = port_of(place) ? bpf_map_lookup_elem(&port_laws, &slot) : NULL;
		if (law && law->expires_ns > now && epoch)
			count_sharing(place, epoch, d->bytes < law->law.young_bytes);
	}
	return 0;
}

/* A direction has ended, by a FIN in sequence or a RST. */
__noinline int law_direction_ended(struct fq_dir *d, __u64 now)
{
	if (!d)
		return 0;
	for (int far = 0; far < 2; far++) {
		const struct fq_place *place = place_of(d, far);
		__u32 slot = place->slot;
		struct fq_law_state *state;
		struct fq_port_law *law;

		if (!port_of(place))
			continue;
		law = bpf_map_lookup_elem(&port_laws, &slot);
		state = bpf_map_lookup_elem(&law_states, &slot);
		if (law && state && law->expires_ns > now)
			law_flow_ended(&law->law, state);
	}
	return 0;
}

/* From the SYN at the switch to the last segment of the handshake there, ns; 0: not known. */
static __always_inline __u64 handshake_rtt(const struct fq_dir *one, const struct fq_dir *other)
{
	return one->rtt_ns && other->rtt_ns ? (__u64)one->rtt_ns + other->rtt_ns : 0;
}

/*
 * What the law of a place grants the direction `peer`, bytes, at an ACK of `own`; FQ_NO_WINDOW: nothing. What it
 * had under way before this ACK shows whether it uses its window.
 */
static __always_inline __u32 law_grant(struct segment *s, const struct fq_dir *own,
				       struct fq_dir *peer, struct fq_place *place,
				       struct fq_port *port)
{
	__u32 slot = place->slot, epoch = s->epoch, flight = s->flight, n, ended;
	struct fq_law_state *state;
	struct fq_port_law *law;
	__u32 youngest;
	bool young;

	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	if (!law || !state || law->expires_ns <= s->now)
		return FQ_NO_WINDOW;
	young = peer->bytes < law->law.young_bytes;
	if (!s->of_nobody) {
		flight += round_released(&peer->round, own->acked,
					 peer->rtt_ns ?: law->law.base_rtt_ns, s->now);
		/* ACKs come after the FIN, too, when what it had under way may still look like a used window. */
		ended = peer->flags & (FQ_FIN | FQ_RST);
		if (!ended && (!place->granted || law_uses_window(flight, place->granted)))
			count_sharing(place, epoch, young);
		/* What the receiver limits does not want a larger pool. */
		if (place->granted && !place->by_receiver && !ended)
			law_limited(state, flight, place->granted, handshake_rtt(own, peer),
				    s->now);
		law_segment(state, carried_mss(own), carried_mss(peer), s->now);
		state->seen_ns = s->now;
	}
	if (law->law.flags & FQ_LAW_TENANTS && !s->of_nobody) {
		n = tenant_window_at(slot);
		if (n != NO_TENANTS)
			return n;
	}
	n = counted_flows(port, SHARING, epoch);
	youngest = law->law.young_bytes ? counted_flows(port, YOUNG, epoch) : 0;
	if (!is_recent(place->sharing_epoch, epoch)) {
		n++;
		youngest += young;
	}
	/* A window is made of what is under way: what a near sender has released would count twice after a burst. */
	if (law->law.flags & FQ_LAW_FLOWS && !s->syn)
		return law_flow_grant(s, own, peer,
				      peer->rtt_ns > law->law.base_rtt_ns ? flight : s->flight, n);
	return law_window(&law->law, state, n, youngest, peer->bytes, common_mss(s, own, peer));
}

#endif
