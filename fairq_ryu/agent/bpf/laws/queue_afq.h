/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * AFQ, approximate fairness by differential dropping (Pan, Breslau, Prabhakar and Shenker, CCR 2003): a packet of a
 * flow whose share m_i is above the fair one is dropped with probability D_i = 1 - m_f / m_i (Eq. 2), so that the
 * flow keeps the fair share. Never before the shadow buffer is full, and (but for the authors' code) never into an empty
 * queue: m_f changes with packets that arrive. Two flows that had lost nearly all in slow start, when m_f was least, sent
 * a packet now and then, lost seven of eight, and never came back.
 */
#ifndef FAIRQ_QUEUE_AFQ_H
#define FAIRQ_QUEUE_AFQ_H

#include "queue_flows.h"

#define AFQ_AUTHORS_PART  1000 /* the authors' code drops with D_i / 1000 ... */
#define AFQ_AUTHORS_ABOVE 12   /* ... and only above so many tenths of the fair share */

/* D_i in 1 / 2^16 of a flow with m_i samples, above 0. */
LAW_INLINE __u32 afq_probability_q16(__u32 fair_q16, __u32 samples)
{
	return law_less(1 << 16, fair_q16 / samples);
}

/* Is a packet of a flow with m_i samples to be dropped for its share? */
LAW_INLINE bool afq_drops(const struct fq_queue_law *p, const struct fq_queue_law_state *st,
			  const struct fq_queue_law_input *in, __u32 samples)
{
	__u64 drop_q32;

	if (!has_share(p, st, samples))
		return false;
	if (p->variant != FQ_VARIANT_AUTHORS && in->backlog <= FULL_FRAME)
		return false;
	drop_q32 = (__u64)afq_probability_q16(st->fair_q16, samples) << 16;
	if (p->variant == FQ_VARIANT_AUTHORS) {
		if (((__u64)samples << 16) * 10 <= (__u64)st->fair_q16 * AFQ_AUTHORS_ABOVE)
			return false;
		drop_q32 /= AFQ_AUTHORS_PART;
	}
	return in->random < drop_q32;
}

LAW_INLINE __u32 afq_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   struct fq_flow_table *t, const struct fq_queue_law_input *in)
{
	follow_flow(p, st, t, in, true);
	if (!afq_drops(p, st, in, t->samples[flow_slot(in)]))
		return FQ_PASS;
	return signal(p, st, in);
}

#endif
