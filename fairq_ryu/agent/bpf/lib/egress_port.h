/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The port by which a direction leaves. With a mirror its segments leave by two ports; on a new path they leave by
 * another port. The acknowledgements of the receiver show which port leads to it.
 */
#ifndef FAIRQ_EGRESS_PORT_H
#define FAIRQ_EGRESS_PORT_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "far_place.h"
#include "parse.h"
#include "places.h"
#include "window_maps.h"

/* Without an ACK: a direction has moved if it leaves only by the new port for this number of time buckets. */
#define MOVE_BUCKETS 2

/* Record another port for a direction. If the direction is counted as active, it is counted there. */
__noinline int move_to_port(struct fq_dir *d, __u32 ifindex, __u32 epoch)
{
	bool counted;

	if (!d)
		return 0;
	counted = is_recent(d->out.epoch, epoch);
	uncount_at(&d->out, epoch);
	set_place(&d->out, ifindex);
	d->alt_ifindex = 0;
	if (counted)
		count_active(&d->out, epoch);
	return 0;
}

/*
 * A segment has left by `ifindex`, which is not the recorded port. The direction has moved there
 *  - if the recorded port no longer exists;
 *  - if the recorded port is recorded for both directions: then it is the port of a mirror;
 *  - if the segment is acknowledged before it has left by the recorded port (see follow());
 *  - if no segment has left by the recorded port for MOVE_BUCKETS.
 */
__noinline int seen_on_other_port(const struct segment *s, struct fq_dir *own, struct fq_dir *peer,
				  __u32 ifindex)
{
	__u32 port;

	if (!s || !own || !peer)
		return 0;
	port = own->out.ifindex;
	if (!find_port(port))
		return move_to_port(own, ifindex, s->epoch);
	if (port == peer->out.ifindex) {
		if (peer->alt_ifindex)
			move_to_port(peer, peer->alt_ifindex, s->epoch);
		return move_to_port(own, ifindex, s->epoch);
	}
	if (own->alt_ifindex != ifindex) {
		own->alt_ifindex = ifindex;
		own->alt_from = own->seq_next;
		own->alt_epoch = s->epoch;
	}
	if (s->epoch - own->alt_epoch >= MOVE_BUCKETS)
		move_to_port(own, ifindex, s->epoch);
	return 0;
}

/*
 * Record the port by which a segment leaves. If the segment has payload, its flow is active. `segments`: as so many it
 * will be on the wire.
 */
static __always_inline void note_departure(__u32 ifindex, const struct segment *s, __u32 segments,
					   struct fq_dir *own, struct fq_dir *peer)
{
	own->last_ns = s->now;
	if (own->out.ifindex == ifindex) {
		own->alt_ifindex = 0;
		if (!port_of(&own->out)) /* another agent, or the port was added again */
			set_place(&own->out, ifindex);
	} else if (!own->out.ifindex) {
		set_place(&own->out, ifindex);
	} else {
		seen_on_other_port(s, own, peer, ifindex);
		if (own->out.ifindex != ifindex)
			return; /* a mirror's copy, unless the direction turns out to have moved */
	}
	/* The payload of a SYN is counted when the SYN is answered. */
	if (!s->payload || s->syn)
		return;
	ADD(own->bytes, s->payload);
	ADD(own->packets, segments);
	/* Without a handshake, its segments show what the receiver takes. */
	if ((own->flags & (FQ_KNOWN | FQ_TOLD)) == FQ_TOLD && s->payload / segments > peer->mss)
		peer->mss = s->payload / segments;
	/* Only a flow whose window can be lowered takes a share of the pool. */
	if (!(own->flags & (FQ_KNOWN | FQ_TOLD)) || own->flags & (FQ_FIN | FQ_RST | FQ_SIGNED))
		return;
	if (own->out.epoch != s->epoch && own->ruled_until <= s->now)
		count_active(&own->out, s->epoch);
	if (own->far.ifindex && own->far.epoch != s->epoch)
		count_arriving(&own->far, s->epoch);
}

#endif
