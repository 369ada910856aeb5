/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What each flow has sent in the last seconds (AFQ and AFCD, ours): its samples, each of which counts half after 4.3 s (2^32
 * ns), a quarter after 8.6 s, and so on.
 *
 * The shadow buffer has the last 1.2 s. After a loss, CUBIC and Reno take seconds to grow again, so that for a second or
 * two the flow with the higher mean rate is the one with fewer samples.
 */
#ifndef FAIRQ_QUEUE_RECENT_H
#define FAIRQ_QUEUE_RECENT_H

#include "queue_law_common.h"

#define RECENT_UNIT_SHIFT 20 /* of fq_recent.at */
#define RECENT_HALF_SHIFT 12 /* units in which a sample comes to count half */
#define RECENT_MEAN_SHIFT 8  /* weight of a sample in the mean: 1 / 256 */

/* 2^-x = 1 - x (STEEP - FLAT x) / 2^16 for x from 0 to 1: exact at both ends, as is the slope at 0; within 1 % between. */
#define RECENT_STEEP 45426
#define RECENT_FLAT  12658

/* The samples as they count now. */
LAW_INLINE __u64 recent_q16(const struct fq_recent *r, __u64 now)
{
	__u32 elapsed = (__u32)(now >> RECENT_UNIT_SHIFT) - r->at;
	__u64 part = elapsed & ((1 << RECENT_HALF_SHIFT) - 1), value = r->samples_q16;

	if (elapsed >> 31) /* another processor has a later time */
		return value;
	elapsed >>= RECENT_HALF_SHIFT;
	if (elapsed >= 32)
		return 0;
	value >>= elapsed;
	return value - (value * part * (RECENT_STEEP - (RECENT_FLAT * part >> RECENT_HALF_SHIFT)) >>
			(RECENT_HALF_SHIFT + 16));
}

LAW_INLINE void recent_set(struct fq_recent *r, __u64 samples_q16, __u64 now)
{
	r->samples_q16 = law_min(samples_q16, 0xFFFFFFFF);
	r->at = now >> RECENT_UNIT_SHIFT;
}

/* So many samples of a flow. `mean`: the recent samples that the flow of a sample has on average. */
LAW_INLINE void recent_enter(struct fq_recent *flow, struct fq_recent *mean, __u32 samples,
			     __u64 now)
{
	__u64 value = recent_q16(mean, now);

	recent_set(flow, recent_q16(flow, now) + ((__u64)samples << 16), now);
	if (flow->samples_q16 > value)
		value += (flow->samples_q16 - value) * samples >> RECENT_MEAN_SHIFT;
	else
		value -= (value - flow->samples_q16) * samples >> RECENT_MEAN_SHIFT;
	recent_set(mean, value, now);
}

#endif
