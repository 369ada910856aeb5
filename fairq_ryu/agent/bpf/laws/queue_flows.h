/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which flow has which share of the queue, and which share is fair (AFQ and AFCD).
 *
 *   every s-th packet -> the shadow buffer, a ring of the last b samples
 *                     -> the flow table: m_i, the samples of each flow in that ring       (Eq. 3)
 *   m_f = samples / flows, then by the queue, at most every tau                           (Eq. 4; Eq. 1 and 5)
 *
 * Two flows with the same slot are judged as one. flow_count has only flows with samples: those that live long.
 *
 * The names of the equations are those of the AFCD paper (Xue et al.), the gains those of AFD (Pan et al., CCR 2003).
 */
#ifndef FAIRQ_QUEUE_FLOWS_H
#define FAIRQ_QUEUE_FLOWS_H

#include "../verifier.h"
#include "queue_law_common.h"

#define FAIR_GAIN_OLD   17 /* alpha of Eq. 1, in tenths */
#define FAIR_GAIN_NEW   18 /* beta */
#define MOST_SAMPLES    8  /* of one packet: of 64 KB every fifth segment */
#define FAIR_LEAST_PART 8  /* m_f is never less than this part of b / flows */

LAW_INLINE __u32 flow_slot(const struct fq_queue_law_input *in)
{
	return in->hash % FQ_FLOW_SLOTS;
}

LAW_INLINE __u32 shadow_size(const struct fq_sharing *p)
{
	return law_min(law_max(p->shadow_packets, 1), FQ_SHADOW);
}

LAW_INLINE bool is_filling(const struct fq_sharing *p, const struct fq_queue_law_state *st)
{
	return st->filled < shadow_size(p);
}

/* Enter a packet in the shadow buffer, which has `size` samples, and the flow table. */
LAW_INLINE void enter_sample(struct fq_queue_law_state *st, struct fq_flow_table *t, __u32 slot,
			     __u32 size)
{
	__u64 place = st->next, old;

	if (place >= size)
		place = 0;
	/* Said again for the verifier. */
	ONE_REGISTER(place);
	if (place >= FQ_SHADOW || slot >= FQ_FLOW_SLOTS)
		return;
	/* The ring has slots + 1; 0: no sample yet. */
	old = (__u64)t->shadow[place] - 1;
	ONE_REGISTER(old);
	if (old >= FQ_FLOW_SLOTS) {
		st->filled++;
	} else if (t->samples[old]) {
		t->samples[old]--;
		if (!t->samples[old] && st->flows)
			st->flows--;
	}
	t->shadow[place] = slot + 1;
	if (!t->samples[slot])
		st->flows++;
	t->samples[slot]++;
	st->next = place + 1;
	st->counts.sampled++;
}

/* Enter every s-th segment. Returns the number of them in this packet. */
LAW_INLINE __u32 sample_flow(const struct fq_sharing *p, struct fq_queue_law_state *st,
			     struct fq_flow_table *t, const struct fq_queue_law_input *in)
{
	__u32 every = law_max(p->sample_every, 1), seen = st->skipped + in->segments, samples;
	__u32 size = shadow_size(p);

	if (seen < every) {
		st->skipped = seen;
		return 0;
	}
	samples = law_min(seen / every, MOST_SAMPLES);
	st->skipped = seen % every;
	/* A load of the size at the end of each turn would be a way back without a jump, which Linux 6.1 refuses. */
	ONE_REGISTER(size);
	for (__u32 i = 0; i < MOST_SAMPLES && i < samples; i++)
		enter_sample(st, t, flow_slot(in), size);
	return samples;
}

/*
 * tau, at most as given. In one tau, Eq. 1 changes the queue by alpha C tau / (1514 m_f) of its change in the last: with
 * many flows that exceeds 1 in 1 / 160 s, and the queue would swing. Here it is at most a half.
 */
LAW_INLINE __u64 fair_step_ns(const struct fq_sharing *p, __u64 rate, __u32 fair_q16)
{
	__u64 samples_q8 = fair_q16 >> 8;
	__u64 step =
		law_div(samples_q8 * (10 * FULL_FRAME * NS_PER_S), (2 * FAIR_GAIN_OLD << 8) * rate);

	return law_min(p->update_ns, step);
}

/* Eq. 1: m_f += alpha (Q_old - Q_t) - beta (Q - Q_t), Q in packets. */
LAW_INLINE __u64 fair_moved(const struct fq_sharing *p, __u64 fair_q16, __u64 old, __u64 backlog)
{
	__u64 up = FAIR_GAIN_OLD * old + (__u64)FAIR_GAIN_NEW * p->target_bytes;
	__u64 down = (__u64)FAIR_GAIN_OLD * p->target_bytes + FAIR_GAIN_NEW * backlog;

	if (up >= down)
		return fair_q16 + ((up - down) << 16) / (10 * FULL_FRAME);
	return law_less(fair_q16, ((down - up) << 16) / (10 * FULL_FRAME));
}

/*
 * Enter a packet, and work out the fair share if it is due; `by_queue`: with Eq. 1 and not only Eq. 4, from which it
 * begins when the ring is full. Returns the number of its segments that were sampled.
 */
LAW_INLINE __u32 follow_flow(const struct fq_sharing *p, __u64 rate, struct fq_queue_law_state *st,
			     struct fq_flow_table *t, const struct fq_queue_law_input *in,
			     bool by_queue)
{
	bool filling = is_filling(p, st);
	__u64 size_q16 = (__u64)shadow_size(p) << 16, flows, fair;
	__u32 samples = sample_flow(p, st, t, in);

	flows = law_max(st->flows, 1);
	if (!by_queue || filling || !st->fair_q16) {
		st->fair_q16 = ((__u64)st->filled << 16) / flows;
	} else {
		if (in->now_ns < st->update_at_ns)
			return samples;
		fair = fair_moved(p, st->fair_q16, st->old_bytes, in->backlog);
		fair = law_max(fair, size_q16 / (FAIR_LEAST_PART * flows));
		st->fair_q16 = law_min(fair, size_q16);
		st->counts.updates++;
	}
	st->old_bytes = in->backlog;
	st->update_at_ns = in->now_ns + fair_step_ns(p, rate, st->fair_q16);
	return samples;
}

/* Whether a flow with m_i samples can be judged by its share. Before the ring is full, every flow looks too fast. */
LAW_INLINE bool has_share(const struct fq_sharing *p, const struct fq_queue_law_state *st,
			  __u32 samples)
{
	return samples && st->flows > 1 && st->fair_q16 && !is_filling(p, st);
}

#endif
