/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IQM (Abdelmoniem and Bensaou): while the first windows of new flows would overflow the queue, every flow has a window
 * of a few segments, and one that has sent its first window has one: the queue that new flows find is of these. The
 * prediction is made with every SYN and SYN-ACK, so that the mode is in force before the next segment of that
 * handshake. Afterwards the windows open again by an eighth in each interval: all at once, the flows would fill the
 * queue at once.
 *
 * Between incasts the flows share a pool that keeps the queue at the target, so that the next volley finds room. With a
 * target of the whole buffer they have no windows then, as in the paper.
 */
#ifndef FAIRQ_LAW_IQM_H
#define FAIRQ_LAW_IQM_H

#include "pool.h"

#define OPENING_SHIFT 3

static inline __attribute__((always_inline)) __u32 limiting_window(const struct fq_law *p,
								   const struct fq_law_state *st)
{
	return (__u32)p->limiting_segments * st->segment;
}

static inline __attribute__((always_inline)) void begin_limiting(const struct fq_law *p,
								 struct fq_law_state *st)
{
	if (!(st->mode & FQ_MODE_LIMITING))
		st->updates++;
	st->mode |= FQ_MODE_LIMITING;
	st->window = limiting_window(p, st);
	st->calm_ns = 0;
}

/* Leave the mode once the queue has been short for `linger`, then open the windows step by step. */
static inline __attribute__((always_inline)) void
leave_limiting(const struct fq_law *p, struct fq_law_state *st, __u64 now, __u32 ticks)
{
	if (!(st->mode & FQ_MODE_LIMITING)) {
		for (__u32 i = 0; i < 8 && i < ticks && st->window; i++) {
			st->window += law_max(st->window >> OPENING_SHIFT, 1);
			if (st->window >= p->limit)
				st->window = 0;
		}
		return;
	}
	if (st->queue >= p->calm)
		st->calm_ns = 0;
	else if (!st->calm_ns)
		/* A late tick ends a silence: the queue had not changed since the last tick. */
		st->calm_ns = ticks > 2 ? st->last_ns : now;
	if (st->calm_ns && now - st->calm_ns >= p->linger_ns) {
		st->mode &= ~FQ_MODE_LIMITING;
		st->calm_ns = 0;
		st->updates++;
	}
}

static inline __attribute__((always_inline)) void
iqm_predict(const struct fq_law *p, struct fq_law_state *st, __u32 backlog)
{
	if ((__u64)st->beta * p->first_window * st->segment + backlog > p->limit)
		begin_limiting(p, st);
}

/* What each of n flows has between incasts; FQ_NO_WINDOW: no window. */
static inline __attribute__((always_inline)) __u32 iqm_share(const struct fq_law *p,
							     const struct fq_law_state *st, __u32 n)
{
	if (p->target >= p->limit)
		return FQ_NO_WINDOW;
	if (!n)
		n = 1;
	return law_max((__u32)(st->pool >> POOL_SHIFT) / n, floor_window(p, st, n));
}

/*
 * The window of one of n flows, which has sent so many bytes. All have the same once the queue is short. A new flow
 * begins with one segment: what is in the queue has to drain before there is room for more of each.
 */
static inline __attribute__((always_inline)) __u32
iqm_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n, __u64 sent)
{
	bool congested = st->mode & FQ_MODE_LIMITING && !st->calm_ns;

	if (!st->window)
		return iqm_share(p, st, n);
	if (congested && !sent && p->target < p->limit)
		return st->segment;
	return congested && sent >= (__u64)p->first_window * st->segment ? st->segment : st->window;
}

static inline __attribute__((always_inline)) void iqm_tick(const struct fq_law *p,
							   struct fq_law_state *st,
							   const struct fq_law_input *in,
							   __u32 ticks)
{
	leave_limiting(p, st, in->now_ns, ticks);
	if (!(st->mode & FQ_MODE_LIMITING)) {
		if (st->window >= iqm_share(p, st, in->flows))
			st->window = 0;
		if (!in->flows)
			st->pool = (__u64)p->target << POOL_SHIFT;
		else if (!st->window && p->target < p->limit)
			scale_pool(p, st, in, ticks);
		bound_pool(p, st, in->flows);
	}
	iqm_predict(p, st, in->backlog);
	st->beta = 0;
}

#endif
