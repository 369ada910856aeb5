/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RED (Floyd and Jacobson, ToN 1993, figure 2), "gentle" (Floyd, 2000): the probability grows from max_p at max_th to 1
 * at twice that. The average is kept as in the kernel (red.h): << weight_shift, without a multiplication. Probabilities
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

/* The average after the queue was empty for the time of so many packets: average * (1 - w)^packets. */
LAW_INLINE __u64 red_after_idle(__u64 average, __u64 packets, __u32 weight_shift)
{
	__u64 factor = Q32_ONE - (Q32_ONE >> weight_shift);

	if (packets >> RED_IDLE_BITS)
		return 0;
	for (int i = 0; i < RED_IDLE_BITS && packets; i++, packets >>= 1) {
		if (packets & 1)
			average = red_times(average, factor);
		factor = red_times(factor, factor);
	}
	return average;
}

/* Count the queue at this arrival into the average. */
LAW_INLINE void red_update(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   const struct fq_queue_law_input *in)
{
	__u32 shift = p->weight_shift & 31;
	__u64 idle = law_less(in->now_ns, st->drained_ns);

	if (!in->backlog && st->last_ns && idle) {
		idle = law_min(idle, RED_MOST_IDLE);
		st->average = red_after_idle(st->average,
					     law_div(law_bytes(p->rate, idle), FULL_FRAME), shift);
	} else {
		st->average += in->backlog - (st->average >> shift);
	}
	st->drained_ns = in->now_ns + queueing_delay(p, (__u64)in->backlog + in->len);
}

/* p_b, in 1 / 2^32, of an average of at least min_th. */
LAW_INLINE __u64 red_probability(const struct fq_queue_law *p, __u64 average)
{
	__u64 part;

	if (average < p->max_bytes)
		return law_div(p->max_p_q32 * (average - p->min_bytes),
			       p->max_bytes - p->min_bytes);
	part = law_div((average - p->max_bytes) << 32, p->max_bytes);
	return p->max_p_q32 + red_times(part, Q32_ONE - p->max_p_q32);
}

LAW_INLINE __u32 red_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			   const struct fq_queue_law_input *in)
{
	__u64 average, probability, spread;

	red_update(p, st, in);
	average = st->average >> (p->weight_shift & 31);
	if (average < p->min_bytes) {
		st->since = 0;
		return FQ_PASS;
	}
	if (average >= 2ULL * p->max_bytes) {
		st->since = 1;
		return FQ_DROP;
	}
	probability = red_probability(p, average);
	if (p->flags & FQ_QLAW_BYTES)
		probability = probability * law_min(in->len, RED_MOST_LEN) / FULL_FRAME;
	probability = law_min(probability, Q32_ONE - 1);
	/* p_a = p_b / (1 - count * p_b): drops are spread evenly. st->since is count + 1. */
	spread = probability * st->since;
	st->since++;
	/* p_a <= random, without a division. */
	if (spread < Q32_ONE &&
	    probability << 32 <= in->random * (Q32_ONE - spread) + (Q32_ONE - spread - 1))
		return FQ_PASS;
	st->since = 1;
	/* Above max_th the average is not under control: marks are no remedy. */
	return average < p->max_bytes ? signal(p, st, in) : FQ_DROP;
}

#endif
