/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RED (Floyd and Jacobson, ToN 1993, figure 2), "gentle" (Floyd, 2000): the probability grows from max_p at max_th to 1
 * at twice that; with ABRUPT it is 1 from max_th on, as in the kernel. The average is kept as in the kernel (red.h): << weight_shift, without a multiplication. Probabilities
 * are in 1 / 2^32.
 */
#ifndef FAIRQ_QUEUE_RED_H
#define FAIRQ_QUEUE_RED_H

#include "queue_law_common.h"

#define RED_IDLE_BITS 24               /* an idle time of more packets leaves an average of 0 */
#define RED_MOST_IDLE (100 * NS_PER_S) /* longer ones count as this */
#define RED_MOST_LEN  (1 << 20)

/* a * f >> 32, for f up to 1 << 32. */
LAW_INLINE __u64 red_times(__u64 a, __u64 f)
{
	return (a >> 32) * f + ((a & 0xFFFFFFFF) * f >> 32);
}

/* What is left of a distance between average and queue after so many packets: distance * (1 - w)^packets. */
LAW_INLINE __u64 red_left(__u64 distance, __u64 packets, __u32 weight_shift)
{
	__u64 factor = Q32_ONE - (Q32_ONE >> weight_shift);

	if (packets >> RED_IDLE_BITS)
		return 0;
	for (int i = 0; i < RED_IDLE_BITS && packets; i++, packets >>= 1) {
		if (packets & 1)
			distance = red_times(distance, factor);
		factor = red_times(factor, factor);
	}
	return distance;
}

/*
 * Count the queue at this arrival into the average. An average of 0 needs no more than that. Several segments find the
 * same queue and one another, so for each of them it counts with half of the others.
 */
LAW_INLINE void red_update(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   const struct fq_queue_law_input *in)
{
	__u32 shift = p->weight_shift & 31;
	__u64 drained_ns, idle = 0, found = 0, packets = in->segments, distance;
	bool above;

	if (!in->backlog && st->average) {
		drained_ns = st->last_ns + queueing_delay(p, st->left_bytes);
		idle = law_min(law_less(in->now_ns, drained_ns), RED_MOST_IDLE);
	}
	if (!idle && packets == 1) {
		st->average += in->backlog - (st->average >> shift);
	} else {
		if (idle)
			packets = law_div(law_bytes(p->rate, idle), FULL_FRAME);
		else
			found = in->backlog + (in->len - segment_bytes(in)) / 2;
		found <<= shift;
		above = st->average > found;
		distance =
			red_left(above ? st->average - found : found - st->average, packets, shift);
		st->average = above ? found + distance : found - distance;
	}
	st->left_bytes = (__u64)in->backlog + in->len;
}

/* p_b, in 1 / 2^32, of an average of at least min_th and less than twice max_th. The agent has divided. */
LAW_INLINE __u64 red_probability(const struct fq_queue_law *p, __u64 average)
{
	if (average < p->max_bytes)
		return (average - p->min_bytes) * p->slope_q48 >> 16;
	return p->max_p_q32 + ((average - p->max_bytes) * p->steep_q48 >> 16);
}

/*
 * As many packets between two drops as others are as likely, 1 to 1 / p_b. Instead of a random number for each packet,
 * which is compared with p_a, there is one for each drop: the drop comes when packets times p_b reach it (section 11 of
 * the paper; the kernel does the same). It is that of the packet with the segment in which it comes.
 */
LAW_INLINE __u32 red_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   const struct fq_queue_law_input *in)
{
	__u64 average, probability, last;

	red_update(p, st, in);
	if (!st->draw_q32)
		st->draw_q32 = in->random;
	average = st->average >> (p->weight_shift & 31);
	if (average < p->min_bytes) {
		st->since = 0;
		return FQ_PASS;
	}
	st->since = law_max(st->since, 1);
	if (average >= p->max_bytes * (p->flags & FQ_QLAW_ABRUPT ? 1ULL : 2ULL)) {
		st->since = 1;
		return FQ_DROP;
	}
	probability = red_probability(p, average);
	if (p->flags & FQ_QLAW_BYTES)
		probability = probability * law_min(segment_bytes(in), RED_MOST_LEN) / FULL_FRAME;
	probability = law_min(probability, Q32_ONE - 1);
	last = law_min((__u64)st->since + in->segments - 1, ~0U);
	if (!st->draw_q32 || probability * last < st->draw_q32) {
		st->since = law_min(last + 1, ~0U);
		return FQ_PASS;
	}
	st->since = 1;
	st->draw_q32 = 0;
	/* Above max_th the average is not under control: marks are no remedy. */
	return average < p->max_bytes ? signal(p, st, in) : FQ_DROP;
}

#endif
