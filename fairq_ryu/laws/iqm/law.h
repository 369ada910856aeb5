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

#include "../../agent/bpf/laws/limiting.h"
#include "../../agent/bpf/laws/own.h"
#include "../../agent/bpf/laws/pool.h"

#define MOST_STARTS 1000000 /* counted in an interval */

struct iqm_law {
	__u64 linger_ns; /* the queue must have been short for this long */
	__u32 calm;      /* a queue below it is short, bytes */
	__u16 limiting_segments;
	__u16 pad;
};

LAW_INLINE void iqm_predict(const struct fq_law *p, struct fq_law_state *st, __u32 backlog)
{
	if ((__u64)st->beta * p->first_window * st->segment + backlog > p->limit)
		begin_limiting(st, LAW_OWN(iqm, p)->limiting_segments);
}

/* What each of n flows has between incasts; FQ_NO_WINDOW: no window. */
LAW_INLINE __u32 iqm_share(const struct fq_law *p, const struct fq_law_state *st, __u32 n)
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
LAW_INLINE __u32 iqm_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			    __u32 young, __u64 sent, __u32 mss)
{
	bool congested = st->mode & FQ_MODE_LIMITING && !st->calm_ns;

	if (!st->window)
		return iqm_share(p, st, n);
	if (congested && !sent && p->target < p->limit)
		return st->segment;
	return congested && sent >= (__u64)p->first_window * st->segment ? st->segment : st->window;
}

LAW_INLINE void iqm_tick(const struct fq_law *p, struct fq_law_state *st,
			 const struct fq_law_input *in, __u32 ticks)
{
	const struct iqm_law *own = LAW_OWN(iqm, p);

	leave_limiting(p, st, own->calm, own->linger_ns, in->now_ns, ticks);
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

LAW_INLINE void iqm_flow_began(const struct fq_law *p, struct fq_law_state *st, __u32 backlog,
			       __u64 now)
{
	if (st->beta < MOST_STARTS)
		st->beta++;
	iqm_predict(p, st, backlog);
}

LAW_INLINE void iqm_flow_ended(const struct fq_law *p, struct fq_law_state *st)
{
	if (st->beta)
		st->beta--;
}

#endif
