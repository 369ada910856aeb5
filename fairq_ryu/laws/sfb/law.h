/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SFB, stochastic fair Blue (Feng, Kandlur, Saha and Shin, INFOCOM 2001), with the numbers of the kernel's qdisc
 * (sch_sfb.c): a flow has one bin in each level, by its hash. A bin with many packets in the queue becomes more likely
 * to drop, an empty one less; the least probability of the bins of a flow counts. A flow for which it is 1 does not
 * respond, and gets PENALTY_RATE packets a second.
 *
 * Other than in the kernel, such a flow gets them even if it sends more often than that: there each of its packets
 * starts the time anew in which a token is earned. Not here: a second set of bins with another hash. The seed is drawn
 * anew for each law.
 */
#ifndef FAIRQ_LAW_SFB_H
#define FAIRQ_LAW_SFB_H

#include "../../agent/bpf/laws/queue_law_common.h"

#define SFB_MOST_P          65535 /* 1, in 1 / 2^16 */
#define SFB_INCREMENT       66    /* 0.001 */
#define SFB_DECREMENT       11
#define SFB_PENALTY_RATE    10 /* packets a second */
#define SFB_PENALTY_BURST   20 /* packets */
#define SFB_PENALTY_LONGEST (10 * NS_PER_S)
#define SFB_HASH_BITS       4

struct sfb_law {
	__u32 bin_packets; /* a bin with so many packets in the queue becomes more likely to drop */
	__u32 bin_most;    /* a bin takes no more packets */
};

/* The token bucket of flows that do not respond. */
struct sfb_state {
	__u64 filled_ns; /* when it was last filled up */
	__u32 tokens;    /* packets that may still pass */
	__u32 pad;
};

/* The bin of a hash in a level. */
LAW_INLINE __u32 sfb_bin(__u32 hash, __u32 level)
{
	return level * FQ_SFB_WIDTH + (hash >> level * SFB_HASH_BITS) % FQ_SFB_WIDTH;
}

/* A packet of a flow with this hash, of so many segments, has entered the queue. */
LAW_INLINE void sfb_entered(struct fq_sfb_bins *bins, __u32 hash, __u32 segments)
{
	for (__u32 level = 0; level < FQ_SFB_LEVELS; level++)
		bins->queued[sfb_bin(hash, level)] += segments;
}

/* ... has left it. */
LAW_INLINE void sfb_left(struct fq_sfb_bins *bins, __u32 hash, __u32 segments)
{
	for (__u32 level = 0; level < FQ_SFB_LEVELS; level++) {
		__u32 bin = sfb_bin(hash, level);

		bins->queued[bin] = law_less(bins->queued[bin], segments);
	}
}

/* May a packet of a flow that does not respond pass? One of many segments may take more tokens than there are. */
LAW_INLINE bool sfb_pays(struct sfb_state *st, __u32 segments, __u64 now)
{
	if (!st->tokens) {
		__u64 age = law_min(law_less(now, st->filled_ns), SFB_PENALTY_LONGEST);

		st->tokens = law_min(age * SFB_PENALTY_RATE / NS_PER_S, SFB_PENALTY_BURST);
		if (!st->tokens)
			return false;
		st->filled_ns = now;
	}
	st->tokens = law_less(st->tokens, segments);
	return true;
}

LAW_INLINE __u32 sfb_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   struct fq_flow_table *t, struct fq_sfb_bins *bins,
			   const struct fq_queue_law_input *in)
{
	const struct sfb_law *own = LAW_OWN(sfb, p);
	__u32 least_p = SFB_MOST_P, least_queued = ~0U, random = in->random & SFB_MOST_P;

	if (!bins)
		return FQ_PASS;
		/* Linux 6.1 refuses a loop whose head follows its last instruction, as a compiler may place them. */
#pragma unroll
	for (__u32 level = 0; level < FQ_SFB_LEVELS; level++) {
		__u32 bin = sfb_bin(in->hash, level);
		__u32 *p_q16 = &bins->p_q16[bin];

		/* Events of packets that left may have been missed. */
		if (!in->backlog)
			bins->queued[bin] = 0;
		if (!bins->queued[bin])
			*p_q16 = law_less(*p_q16, (__u64)SFB_DECREMENT * in->segments);
		else if (bins->queued[bin] >= own->bin_packets)
			*p_q16 = law_min(*p_q16 + (__u64)SFB_INCREMENT * in->segments, SFB_MOST_P);
		least_queued = law_min(least_queued, bins->queued[bin]);
		least_p = law_min(least_p, *p_q16);
	}
	if (least_queued >= own->bin_most)
		return FQ_DROP;
	if (least_p >= SFB_MOST_P)
		return sfb_pays(LAW_STATE(sfb, st), in->segments, in->now_ns) ? FQ_PASS : FQ_DROP;
	if (random >= least_p)
		return FQ_PASS;
	/* With so many marks a flow does not respond, or the port is badly congested. */
	if (least_p > SFB_MOST_P / 2 && random < (least_p - SFB_MOST_P / 2) * 2)
		return FQ_DROP;
	return signal(p, st, in);
}

#endif
