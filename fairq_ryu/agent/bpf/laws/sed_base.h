/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of SED (Lu) that must not wait for a controller: in congestion (CNG) every flow has the base window;
 * at NOM, after `linger`, none has. The controller's grants for single flows are rules of their own, which
 * override it. New flows whose first windows will congest the queue count as congestion.
 */
#ifndef FAIRQ_LAW_SED_BASE_H
#define FAIRQ_LAW_SED_BASE_H

#include "iqm.h"

static inline __attribute__((always_inline)) void sed_base_begin(const struct fq_law *p,
								 struct fq_law_state *st)
{
	begin_limiting(p, st);
	st->expected = 0; /* flows that begin from now on have a base window, too */
}

static inline __attribute__((always_inline)) void sed_base_tick(const struct fq_law *p,
								struct fq_law_state *st,
								const struct fq_law_input *in,
								__u32 ticks)
{
	leave_limiting(p, st, in->now_ns, ticks);
	if (in->backlog >= p->target)
		sed_base_begin(p, st);
}

/* A flow has begun: it sends its first window while the port goes on sending what it has. */
static inline __attribute__((always_inline)) void
sed_base_flow(const struct fq_law *p, struct fq_law_state *st, __u32 backlog, __u64 now)
{
	/* Longer than that, anything expected has been sent. */
	__u64 spent = law_min(law_less(now, st->expected_ns), NS_PER_S);

	if (st->mode & FQ_MODE_LIMITING || !(p->flags & FQ_LAW_ANTICIPATE))
		return;
	st->expected = law_less(st->expected, law_bytes(p->rate, spent));
	st->expected =
		law_min((__u64)st->expected + (__u64)p->first_window * st->segment, MAX_POOL);
	st->expected_ns = now;
	if ((__u64)backlog + st->expected > p->target)
		sed_base_begin(p, st);
}

/*
 * The window of a flow whose segments have this size: a base window is a number of its own segments, so that
 * flows with small ones do not have more of them under way. The same holds while the windows open again.
 */
static inline __attribute__((always_inline)) __u32
sed_base_window(const struct fq_law *p, const struct fq_law_state *st, __u32 mss)
{
	if (st->mode & FQ_MODE_LIMITING)
		return p->limiting_segments * mss;
	if (!st->window)
		return FQ_NO_WINDOW;
	return law_min(law_div((__u64)st->window * mss, st->segment), MAX_POOL);
}

#endif
