/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * AFQ, approximate fairness by differential dropping (Pan, Breslau, Prabhakar and Shenker, CCR 2003): a packet of a
 * flow whose share m_i is above the fair one is dropped with probability D_i = 1 - m_f / m_i (Eq. 2), so that the
 * flow keeps the fair share. Never before the shadow buffer is full, and (but for the authors' code) never into an empty
 * queue: m_f changes with packets that arrive. Two flows that had lost nearly all in slow start, when m_f was least, sent
 * a packet now and then, lost seven of eight, and never came back.
 *
 *   paper    Eq. 2
 *   authors  as their code: a thousandth of that probability, and only above 1.2 fair shares
 *   ours     Eq. 2, but a small flow may have 1.25 fair shares: one that has sent less than the mean in the last seconds
 */
#ifndef FAIRQ_LAW_AFQ_H
#define FAIRQ_LAW_AFQ_H

#include "../../agent/bpf/laws/queue_flows.h"
#include "../../agent/bpf/laws/queue_recent.h"

struct afq_law {
	struct fq_sharing sharing;
};

#define AFQ_AUTHORS_PART  1000 /* the authors' code drops with D_i / 1000 ... */
#define AFQ_AUTHORS_ABOVE 12   /* ... and only above so many tenths of the fair share */
#define AFQ_SMALL_ABOVE   5    /* ours: a small flow may have so many quarters of the fair share */

/* D_i in 1 / 2^16 of a flow with m_i samples, above 0. */
LAW_INLINE __u32 afq_probability_q16(__u32 fair_q16, __u32 samples)
{
	return law_less(1 << 16, fair_q16 / samples);
}

/* Is a packet of a flow with m_i samples to be dropped for its share? */
LAW_INLINE bool afq_drops(const struct fq_sharing *p, const struct fq_queue_law_state *st,
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

/* Has the flow sent less in the last seconds than the mean, over packets, of what their flows have sent? */
LAW_INLINE bool is_small_flow(const struct fq_queue_law_state *st, const struct fq_recent *flow,
			      __u64 now)
{
	return recent_q16(flow, now) < recent_q16(&st->mean, now);
}

/*
 * ours: AFQ's drop. The m_i of a flow with its fair share is above m_f half of the time. Beside a flow that does not
 * respond to losses, only a flow that does would slow down. So a small flow may have a quarter more, but not more than
 * that: a new flow is small for seconds.
 */
LAW_INLINE bool afq_ours_drops(const struct fq_sharing *p, const struct fq_queue_law_state *st,
			       const struct fq_recent *flow, const struct fq_queue_law_input *in,
			       __u32 samples)
{
	bool near = ((__u64)samples << 16) * 4 < (__u64)st->fair_q16 * AFQ_SMALL_ABOVE;

	return afq_drops(p, st, in, samples) && !(near && is_small_flow(st, flow, in->now_ns));
}

/* ours: drop or mark a packet, or let it pass; if it stays, its samples count as sent by its flow. */
LAW_INLINE __u32 signal_and_enter(const struct fq_queue_law *p, struct fq_queue_law_state *st,
				  struct fq_recent *flow, const struct fq_queue_law_input *in,
				  __u32 sampled, bool drop)
{
	__u32 verdict = drop ? signal(p, st, in) : FQ_PASS;

	if (verdict != FQ_DROP && sampled)
		recent_enter(flow, &st->mean, sampled, in->now_ns);
	return verdict;
}

LAW_INLINE __u32 afq_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   struct fq_flow_table *t, struct fq_sfb_bins *bins,
			   const struct fq_queue_law_input *in)
{
	const struct fq_sharing *own = &LAW_OWN(afq, p)->sharing;
	__u32 slot = flow_slot(in), sampled, samples;

	if (!t)
		return FQ_PASS;
	sampled = follow_flow(own, p->rate, st, t, in, true);
	samples = t->samples[slot];
	if (own->variant == FQ_VARIANT_OURS) {
		struct fq_recent *flow = &t->recent[slot];

		return signal_and_enter(p, st, flow, in, sampled,
					afq_ours_drops(own, st, flow, in, samples));
	}
	return afq_drops(own, st, in, samples) ? signal(p, st, in) : FQ_PASS;
}

#endif
