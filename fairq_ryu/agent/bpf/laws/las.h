/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Least attained service: flows that have sent little get a larger part of the pool. The pool is FairQ's
 * (ours). A young flow weighs LAS_WEIGHT old ones; while there are more than LAS_FEW young flows, old ones get
 * one segment, so that a volley has the queue to itself.
 */
#ifndef FAIRQ_LAW_LAS_H
#define FAIRQ_LAW_LAS_H

#include "pool.h"

#define LAS_WEIGHT 8
#define LAS_FEW    4

static inline __attribute__((always_inline)) void las_tick(const struct fq_law *p,
							   struct fq_law_state *st,
							   const struct fq_law_input *in,
							   __u32 ticks)
{
	if (in->flows)
		scale_pool(p, st, in, ticks);
	else
		start_pool(p, st);
	bound_pool(p, st, in->flows);
}

/* The window of a flow, bytes; of n flows, `young` are young. */
static inline __attribute__((always_inline)) __u32 las_window(const struct fq_law *p,
							      const struct fq_law_state *st,
							      __u32 n, __u32 young, bool is_young)
{
	__u64 pool = st->pool >> POOL_SHIFT, rest;
	__u32 old = law_less(n, young);

	if (!is_young && young > LAS_FEW)
		return st->segment;
	if (young > LAS_FEW) {
		/* Old flows have a segment each: the young ones share the rest. */
		rest = law_less(pool, (__u64)old * st->segment);
		return law_max(law_div(rest, young), st->segment);
	}
	rest = law_div(pool, law_max((__u64)LAS_WEIGHT * young + old, 1));
	return law_max(is_young ? rest * LAS_WEIGHT : rest, floor_window(p, st, n));
}

#endif
