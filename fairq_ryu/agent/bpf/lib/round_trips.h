/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Round trips between this bridge and senders beyond a far queue, which show what stands in the queue that nobody sees:
 *
 *   SYN, SYN-ACK                 -> its answer (connection.h)
 *   segment with a new TSval     -> first segment whose TSecr echoes it, or a later one (RFC 7323)
 *
 * A flow awaits one answer at a time, and clocks of timestamps tick once a millisecond: nothing else is sampled. What a
 * round trip takes with an empty queue is the least one of all from that host in the last 9 to 17 seconds.
 */
#ifndef FAIRQ_ROUND_TRIPS_H
#define FAIRQ_ROUND_TRIPS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../laws/hidden.h"
#include "../layout.h"
#include "hidden_map.h"
#include "parse.h"
#include "port_maps.h"

#define ASKED_SHIFT 10 /* fq_dir.asked_us */

/* By a hash of far queue and host. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FQ_LEAST);
	__type(key, __u32);
	__type(value, struct fq_least);
} least SEC(".maps");

/* The sender of a segment, which has come by this far queue, as an index into `least`. */
static __always_inline __u32 host_hash(const struct segment *s, __u32 slot)
{
	const __u32 *words = (const __u32 *)(s->dir & 1 ? s->key.hi_addr : s->key.lo_addr);

	return least_index(words, slot);
}

/* A segment has come by the far queue of its direction, so long after what it answers, ns. */
__noinline int sample_round_trip(const struct segment *s, const struct fq_dir *own, __u32 took)
{
	struct fq_least *known;
	struct fq_hidden *h;
	__u32 slot, host;

	if (!s || !own || !took || !port_of(&own->far))
		return 0;
	slot = own->far.slot;
	host = host_hash(s, slot);
	h = bpf_map_lookup_elem(&hidden, &slot);
	known = bpf_map_lookup_elem(&least, &host);
	if (h && known)
		hidden_sample(h, least_excess(known, took, s->now));
	return 0;
}

/* A segment of `own`, no SYN, before its timestamps are recorded: it answers, or it may be answered. */
static __always_inline void follow_round_trips(const struct segment *s, struct fq_dir *own,
					       struct fq_dir *peer)
{
	__u32 now = s->now >> ASKED_SHIFT, took;

	if (!s->ts)
		return;
	if (own->asked_us && (__s32)(s->tsecr - own->asked_tsval) >= 0) {
		took = now - own->asked_us;
		own->asked_us = 0;
		if (took < 1U << (32 - ASKED_SHIFT))
			sample_round_trip(s, own, took << ASKED_SHIFT);
	}
	if (!peer->asked_us && peer->far.slot != FQ_NO_SLOT && own->flags & FQ_TS &&
	    (__s32)(s->tsval - own->tsval) > 0) {
		peer->asked_tsval = s->tsval;
		peer->asked_us = now ? now : 1;
	}
}

#endif
