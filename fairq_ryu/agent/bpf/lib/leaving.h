/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The port by which a direction leaves. A mirror makes its segments leave by two ports, and a new path by another
 * one: which of them it is, the receiver decides. What it acknowledges has reached it.
 */
#ifndef FAIRQ_LEAVING_H
#define FAIRQ_LEAVING_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "activity.h"
#include "parse.h"
#include "window_maps.h"

/* Without an acknowledgement: time buckets in which a direction leaves by no other port. */
#define MOVE_BUCKETS 2

/* A direction leaves by another port from now on; where it was counted, it is counted there. */
__noinline int move(struct fq_dir *d, __u32 ifindex, __u32 epoch)
{
	bool counted;

	if (!d)
		return 0;
	counted = is_recent(d->epoch, epoch);
	uncount(d, epoch);
	d->ifindex = ifindex;
	d->alt_ifindex = 0;
	if (counted)
		count_active(d, epoch);
	return 0;
}

/*
 * A segment has left by `ifindex`, which is not the port that is recorded: by a mirror, or by a new path. It is a
 * new path
 *  - if the recorded port is gone, or if both directions were recorded there: then that is the mirror;
 *  - if the segment is acknowledged before it has left by the recorded port (see follow());
 *  - if nothing has left by the recorded port for a while.
 */
__noinline int left_elsewhere(const struct segment *s, struct fq_dir *own, struct fq_dir *peer,
			      __u32 ifindex)
{
	__u32 port;

	if (!s || !own || !peer)
		return 0;
	port = own->ifindex;
	if (!bpf_map_lookup_elem(&ports, &port))
		return move(own, ifindex, s->epoch);
	if (port == peer->ifindex) {
		if (peer->alt_ifindex)
			move(peer, peer->alt_ifindex, s->epoch);
		return move(own, ifindex, s->epoch);
	}
	if (own->alt_ifindex != ifindex) {
		own->alt_ifindex = ifindex;
		own->alt_from = own->seq_next;
		own->alt_epoch = s->epoch;
	}
	if ((__u8)(s->epoch - own->alt_epoch) >= MOVE_BUCKETS)
		move(own, ifindex, s->epoch);
	return 0;
}

/* Learn from a segment the port by which its flow leaves; if it carries data, the flow is active. */
static __always_inline void learn(__u32 ifindex, const struct segment *s, struct fq_dir *own,
				  struct fq_dir *peer)
{
	own->last_ns = s->now;
	if (own->ifindex == ifindex) {
		own->alt_ifindex = 0;
	} else if (!own->ifindex) {
		own->ifindex = ifindex;
	} else {
		left_elsewhere(s, own, peer, ifindex);
		if (own->ifindex != ifindex)
			return; /* a copy, as far as is known */
	}
	/* What a SYN carries counts when it is answered. */
	if (!s->payload || s->syn)
		return;
	own->bytes += s->payload;
	own->packets++;
	/* Only a flow whose window can be lowered takes a share of the pool. */
	if (own->epoch != s->epoch && own->flags & FQ_KNOWN && !(own->flags & (FQ_FIN | FQ_RST)) &&
	    own->ruled_until <= s->now)
		count_active(own, s->epoch);
}

#endif
