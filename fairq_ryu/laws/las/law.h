/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Least attained service: flows that have sent little get a larger part of the pool. The pool is FairQ's
 * (ours). A young flow weighs LAS_WEIGHT old ones.
 *
 * While there are more than LAS_FEW young flows, as in a volley, old ones get one segment, and the young ones
 * share the rest by what they have sent: whoever is ahead gets further ahead. If all had the same, all would
 * end together, at the very end; so some end early, and the last no later. What they get above one segment is
 * bounded by the room that the buffer has above the target and one segment of every flow: old flows have their larger
 * windows under way when a volley begins.
 */
#ifndef FAIRQ_LAW_LAS_H
#define FAIRQ_LAW_LAS_H

#include "../../agent/bpf/laws/pool.h"

#define LAS_WEIGHT 8
#define LAS_FEW    4

/* The window of a flow that has sent so much, bytes; of n flows, `young` are young. */
LAW_INLINE __u32 las_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			    __u32 young, __u64 sent, __u32 mss)
{
	__u64 pool = st->pool >> POOL_SHIFT, rest, room;
	__u32 old = law_less(n, young);
	bool is_young = sent < p->young_bytes;

	if (!is_young && young > LAS_FEW)
		return st->segment;
	if (young > LAS_FEW) {
		if (!sent)
			return st->segment;
		rest = law_div(law_less(pool, (__u64)old * st->segment), young);
		rest = law_div(rest * (st->segment + 2 * law_min(sent, p->young_bytes)),
			       2 * st->segment);
		room = law_less(p->limit, p->target + (__u64)n * (st->segment + SEGMENT_HEADERS));
		return law_max(law_min(rest, st->segment + law_div(room, young)), st->segment);
	}
	rest = law_div(pool, law_max((__u64)LAS_WEIGHT * young + old, 1));
	return law_max(is_young ? rest * LAS_WEIGHT : rest, floor_window(p, st, n));
}

/* In a volley, one segment. */
LAW_INLINE __u64 las_floor(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			   __u32 young)
{
	return young > LAS_FEW ? st->segment : floor_window(p, st, n);
}

#endif
