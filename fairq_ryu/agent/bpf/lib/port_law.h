/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The law of a port, as ACKs and handshakes meet it. The queue program runs its ticks. */
#ifndef FAIRQ_PORT_LAW_H
#define FAIRQ_PORT_LAW_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../laws/law.h"
#include "../layout.h"
#include "activity.h"
#include "law_flows.h"
#include "parse.h"
#include "port_maps.h"
#include "queue_map.h"
#include "segment_size.h"
#include "window_maps.h"

/*
 * The handshake of a direction has come to a step (FQ_OPENING_...): the law of the port by which it leaves may
 * count it. `other` is the other direction of the connection.
 */
__noinline int law_direction_opens(struct fq_dir *d, const struct fq_dir *other, __u32 step,
				   __u64 now)
{
	struct fq_law_state *state;
	struct fq_port_law *law;
	__u32 ifindex, slot, flags, old;

	if (!d || !other)
		return 0;
	ifindex = d->ifindex;
	if (!port_of(d))
		return 0;
	slot = d->slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	if (!law || !state || law->expires_ns <= now)
		return 0;
	/* Anybody can send a SYN: its MSS counts when it has been answered. */
	if (step >= FQ_OPENING_SYN_ACK)
		law_segment(state, d->mss, other->mss, now);
	old = d->flags;
	flags = law_opening(&law->law, state, step, old, queue_backlog(ifindex, now), now);
	set_flags(d, flags & ~old);
	clear_flags(d, old & ~flags);
	return 0;
}

/*
 * The SYN-ACK of a direction, or at once the proof of its handshake: it shares its port from now on; epoch 0: it does
 * not, because it has a rule of its own, or is signed.
 */
__noinline int law_direction_began(struct fq_dir *d, const struct fq_dir *other, __u32 step,
				   __u32 epoch, __u64 now)
{
	struct fq_port_law *law;
	__u32 slot;

	if (!d || !other)
		return 0;
	d->granted = 0;
	law_direction_opens(d, other, step, now);
	if (!port_of(d))
		return 0;
	slot = d->slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	if (law && law->expires_ns > now && epoch)
		count_sharing(d, epoch, law->law.young_bytes);
	return 0;
}

/* A direction has ended in sequence. */
__noinline int law_direction_ended(struct fq_dir *d, __u64 now)
{
	struct fq_law_state *state;
	struct fq_port_law *law;
	__u32 slot;

	if (!d || !port_of(d))
		return 0;
	slot = d->slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	if (law && state && law->expires_ns > now)
		law_flow_ended(&law->law, state);
	return 0;
}

/* From the SYN at the switch to the last segment of the handshake there, ns; 0: not known. */
static __always_inline __u64 handshake_rtt(const struct fq_dir *one, const struct fq_dir *other)
{
	return one->rtt_ns && other->rtt_ns ? (__u64)one->rtt_ns + other->rtt_ns : 0;
}

/*
 * What the law of a port grants the direction `peer`, bytes, at an ACK of `own`; FQ_NO_WINDOW: nothing. What it
 * had under way before this ACK shows whether it uses its window.
 */
__noinline __u32 law_grant(struct segment *s, const struct fq_dir *own, struct fq_dir *peer,
			   struct fq_port *port)
{
	struct fq_law_state *state;
	struct fq_port_law *law;
	__u32 slot, epoch, n, young, flight, ended;

	if (!s || !own || !peer || !port)
		return FQ_NO_WINDOW;
	slot = peer->slot;
	epoch = s->epoch;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	if (!law || !state || law->expires_ns <= s->now)
		return FQ_NO_WINDOW;
	flight = s->flight + round_released(&peer->round, own->acked, peer->rtt_ns,
					    law->law.base_rtt_ns, s->now);
	/* ACKs come after the FIN, too, when what it had under way may still look like a used window. */
	ended = peer->flags & (FQ_FIN | FQ_RST);
	if (!ended && (!peer->granted || law_uses_window(flight, peer->granted)))
		count_sharing(peer, epoch, law->law.young_bytes);
	if (peer->granted && !ended)
		law_limited(state, flight, peer->granted, handshake_rtt(own, peer), s->now);
	law_segment(state, own->mss, peer->mss, s->now);
	n = counted_flows(port->sharing, epoch);
	young = law->law.young_bytes ? counted_flows(port->young, epoch) : 0;
	if (!is_recent(peer->sharing_epoch, epoch)) {
		n++;
		if (peer->bytes < law->law.young_bytes)
			young++;
	}
	if (law->law.flags & FQ_LAW_FLOWS && !s->syn)
		return law_flow_grant(s, own, peer, flight, n);
	return law_window(&law->law, state, n, young, peer->bytes, common_mss(s, own, peer));
}

#endif
