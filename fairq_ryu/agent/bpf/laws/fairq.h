/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FairQ (Abdelmoniem and Bensaou): the pool follows the distance of the queue from its target.
 *
 *   paper  Algorithm 1: each T adds (1 - Q / target) * S / M to incr, each M-th adds incr to the pool
 *   ours   the pool moves by a part of itself times 1 - Q / target (pool.h)
 *
 * The paper has no upper limit: the pool here is at most what the port can hold (pool_cap()), because windows that no
 * sender fills would grow without bound, and cause a burst when one does. Slow start (paper) adds two segments for each
 * flow until the queue first reaches the target; what it has put into the queue above the target is taken back at once,
 * for which the law itself would take hundreds of milliseconds.
 */
#ifndef FAIRQ_LAW_FAIRQ_H
#define FAIRQ_LAW_FAIRQ_H

#include "pool.h"

static inline __attribute__((always_inline)) void end_slow_start(const struct fq_law *p,
								 struct fq_law_state *st)
{
	__u64 target = (__u64)p->target << POOL_SHIFT;
	__u64 above = (__u64)(st->queue - p->target) << POOL_SHIFT;

	st->mode &= ~FQ_MODE_SLOW_START;
	st->pool = law_max(law_less(st->pool, above), target);
	st->incr = 0;
	st->count = 0;
	st->updates++;
}

/* The increment of one tick, bytes << 16, two's complement. */
static inline __attribute__((always_inline)) __u64 fairq_increment(const struct fq_law *p,
								   const struct fq_law_state *st)
{
	__u64 step = law_div(distance_q16(p, st) * st->segment, p->increments);

	return st->queue > p->target ? -step : step;
}

static inline __attribute__((always_inline)) void
update_pool(const struct fq_law *p, struct fq_law_state *st, const struct fq_law_input *in)
{
	__u64 move = st->incr;
	bool down = (__s64)move < 0;

	if (down)
		move = -move;
	move >>= 16 - POOL_SHIFT;
	if (st->mode & FQ_MODE_SLOW_START)
		raise_pool(p, st, in, ((__u64)2 * st->segment << POOL_SHIFT) * in->flows);
	else if (down)
		st->pool = law_less(st->pool, move);
	else
		raise_pool(p, st, in, move);
	st->incr = 0;
	st->count = 0;
	st->updates++;
}

static inline __attribute__((always_inline)) void fairq_tick(const struct fq_law *p,
							     struct fq_law_state *st,
							     const struct fq_law_input *in,
							     __u32 ticks)
{
	bool frozen = pool_is_frozen(p, st);

	if (!in->flows) {
		start_pool(p, st);
	} else if (p->gain == FQ_GAIN_OURS) {
		scale_pool(p, st, in, ticks);
	} else if (st->mode & FQ_MODE_SLOW_START && st->queue >= p->target && !frozen) {
		end_slow_start(p, st);
	} else if (!frozen) {
		st->incr += fairq_increment(p, st) * ticks;
		st->count += ticks;
		if (st->count >= p->increments)
			update_pool(p, st, in);
	}
	bound_pool(p, st, in->flows);
}

/*
 * The window of one of n flows, bytes; `sent` is what this one has sent. A new flow begins with one segment if the
 * floors of all flows do not fit into the buffer above the target: the flows of a volley begin at once, while the
 * others have their larger windows under way.
 */
static inline __attribute__((always_inline)) __u32
pool_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n, __u64 sent)
{
	__u64 floors;

	if (!n)
		n = 1;
	floors = (__u64)n * p->floor_segments * (st->segment + SEGMENT_HEADERS);
	if (!sent && floors + p->target > p->limit)
		return st->segment;
	return law_max((__u32)(st->pool >> POOL_SHIFT) / n, floor_window(p, st, n));
}

#endif
