/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * AFCD, approximated-fair and controlled-delay queuing (Xue, Kumar, Cui, Kondikoppa, Chiu and Park): CoDel with a
 * target for each flow, which is lower the larger its share is (Eq. 6).
 *
 *   paper    target_i = target (m_f / m_i)^3; the time above the target is kept for each flow, the dropping state
 *            (count, next drop) for the port: a packet that is below its target ends it
 *   authors  as their code: m_f = b / flows only; exponent 4 with a factor of 10; a tenth of the interval; never a drop
 *            of a flow below the fair share
 *   ours     CoDel with one target, whose drops fall on flows that have sent at least as much as most in the last
 *            seconds, and the drops of AFQ's `ours`. The paper's law cannot hold a flow that does not respond:
 *            CoDel's drops grow by the square root of their number, and each packet of a flow with less than its
 *            share ends the dropping state. And the higher target of such a flow lets the queue grow.
 *
 * The paper's pseudo-code (section III-D), and which function is which line; all here where no file is named:
 *
 *   AFCD_QDISC_ENQUEUE   sample_packet                       sample_flow       queue_flows.h
 *                        afcd_hash                           flow_slot         queue_flows.h
 *                        update shadow_buffer, flow_table    enter_sample      queue_flows.h
 *   AFCD_DEQUEUE         target_delay_i                      afcd_target
 *                        within interval, the least delay
 *                        is above target_delay_i             codel_is_below, codel_is_due   queue_codel.h
 *                        drop, schedule the next, stop       codel_drops       queue_codel.h
 *
 * Both run when a packet arrives: `afcd_judge` is what calls them in this order.
 */
#ifndef FAIRQ_LAW_AFCD_H
#define FAIRQ_LAW_AFCD_H

#include "../../agent/bpf/laws/queue_codel.h"
#include "../afq/law.h"

#define AFCD_LEAST_RATIO    64   /* m_f / m_i << 8: 1/4 ... */
#define AFCD_MOST_RATIO     1024 /* ... to 4 */
#define AFCD_AUTHORS_FACTOR 10
#define AFCD_AUTHORS_PART   10

struct afcd_law {
	struct fq_sharing sharing;
	__u64 target_ns;   /* the queueing delay aimed at */
	__u64 interval_ns; /* for which the delay must have been above it */
};

/* Eq. 6. The target of a flow with m_i samples, ns: 1/64 to 64 times that of the port (authors: 10/256 to 2560). */
LAW_INLINE __u64 afcd_target(const struct afcd_law *p, const struct fq_queue_law_state *st,
			     __u32 samples)
{
	__u64 ratio;

	if (!samples || st->flows <= 1 || !st->fair_q16)
		return p->target_ns;
	ratio = law_min(law_max((st->fair_q16 >> 8) / samples, AFCD_LEAST_RATIO), AFCD_MOST_RATIO);
	if (p->sharing.variant == FQ_VARIANT_AUTHORS)
		return AFCD_AUTHORS_FACTOR *
		       ((p->target_ns * ratio * ratio >> 16) * ratio * ratio >> 16);
	return p->target_ns * ratio * ratio * ratio >> 24;
}

/*
 * Does CoDel's drop, if one is due, wait for a packet of a larger flow? Not for ever: the flows that make the mean may
 * have ended.
 */
LAW_INLINE bool afcd_spares(const struct afcd_law *p, const struct fq_queue_law_state *st,
			    const struct fq_recent *flow, __u64 now)
{
	const struct fq_codel *c = &st->codel;
	__u64 due_ns = c->dropping ? c->drop_next_ns : c->first_above_ns;

	return now >= due_ns && now < due_ns + p->interval_ns && is_small_flow(st, flow, now);
}

LAW_INLINE __u32 afcd_ours(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   struct fq_recent *flow, const struct fq_queue_law_input *in,
			   __u32 sampled, __u32 samples)
{
	const struct afcd_law *own = LAW_OWN(afcd, p);
	bool spared = afcd_spares(own, st, flow, in->now_ns);
	bool drop = codel_drops_of_port(p, st, in, own->target_ns, own->interval_ns, spared) ||
		    afq_ours_drops(&own->sharing, st, flow, in, samples);

	return signal_and_enter(p, st, flow, in, sampled, drop);
}

LAW_INLINE __u32 afcd_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			    struct fq_flow_table *t, struct fq_sfb_bins *bins,
			    const struct fq_queue_law_input *in)
{
	const struct afcd_law *own = LAW_OWN(afcd, p);
	bool authors = own->sharing.variant == FQ_VARIANT_AUTHORS, below, due;
	__u64 interval = authors ? own->interval_ns / AFCD_AUTHORS_PART : own->interval_ns;
	__u32 slot = flow_slot(in), sampled, samples;

	if (!t)
		return FQ_PASS;
	sampled = follow_flow(&own->sharing, p->rate, st, t, in, !authors);
	samples = t->samples[slot];
	if (own->sharing.variant == FQ_VARIANT_OURS)
		return afcd_ours(p, st, &t->recent[slot], in, sampled, samples);
	below = codel_is_below(p, in, afcd_target(own, st, samples));
	due = codel_is_due(&t->first_above_ns[slot], below, in->now_ns, interval);
	if (authors && ((__u64)samples << 16) < st->fair_q16)
		due = false;
	if (!codel_drops(&st->codel, due, below, in->now_ns, own->interval_ns))
		return FQ_PASS;
	return signal(p, st, in);
}

#endif
