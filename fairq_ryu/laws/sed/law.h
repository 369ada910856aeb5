/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of SED (Lu) that must not wait for a controller: in congestion (CNG) every flow has the base window;
 * at NOM, after `linger`, none has. The controller's grants for single flows are rules of their own, which
 * override it. New flows whose first windows will congest the queue count as congestion.
 */
#ifndef FAIRQ_LAW_SED_H
#define FAIRQ_LAW_SED_H

#include "../../agent/bpf/laws/limiting.h"
#include "../../agent/bpf/laws/own.h"

struct sed_law {
	__u64 linger_ns; /* the queue must have been short for this long */
	__u32 calm;      /* a queue below it is short: NOM and 1, bytes */
	__u16 limiting_segments;
	__u16 anticipate; /* 1: new flows that will congest the queue count as congestion */
};

struct sed_state {
	__u64 expected_ns; /* when `expected` was computed */
	__u32 expected;    /* bytes of first windows that the port has not sent yet */
	__u32 pad;
};

LAW_INLINE void sed_begin(const struct fq_law *p, struct fq_law_state *st)
{
	begin_limiting(st, LAW_OWN(sed, p)->limiting_segments);
	LAW_STATE(sed, st)->expected = 0; /* flows that begin from now on have a base window, too */
}

LAW_INLINE void sed_tick(const struct fq_law *p, struct fq_law_state *st,
			 const struct fq_law_input *in, __u32 ticks)
{
	const struct sed_law *own = LAW_OWN(sed, p);

	leave_limiting(p, st, own->calm, own->linger_ns, in->now_ns, ticks);
	if (in->backlog >= p->target)
		sed_begin(p, st);
}

/* A flow has begun: it sends its first window while the port goes on sending what it has. */
LAW_INLINE void sed_flow_began(const struct fq_law *p, struct fq_law_state *st, __u32 backlog,
			       __u64 now)
{
	struct sed_state *own = LAW_STATE(sed, st);
	/* Longer than that, anything expected has been sent. */
	__u64 spent = law_min(law_less(now, own->expected_ns), NS_PER_S);

	if (st->mode & FQ_MODE_LIMITING || !LAW_OWN(sed, p)->anticipate)
		return;
	own->expected = law_less(own->expected, law_bytes(p->rate, spent));
	own->expected =
		law_min((__u64)own->expected + (__u64)p->first_window * st->segment, MAX_POOL);
	own->expected_ns = now;
	if ((__u64)backlog + own->expected > p->target)
		sed_begin(p, st);
}

/*
 * The window of a flow whose segments have this size: a base window is a number of its own segments, so that
 * flows with small ones do not have more of them under way. The same holds while the windows open again.
 */
LAW_INLINE __u32 sed_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			    __u32 young, __u64 sent, __u32 mss)
{
	if (st->mode & FQ_MODE_LIMITING)
		return LAW_OWN(sed, p)->limiting_segments * mss;
	if (!st->window)
		return FQ_NO_WINDOW;
	return law_min(law_div((__u64)st->window * mss, st->segment), MAX_POOL);
}

#endif
