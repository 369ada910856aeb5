/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RED (Floyd and Jacobson, ToN 1993, figure 2), "gentle" (Floyd, 2000): the probability grows from max_p at max_th to 1
 * at twice that; with `abrupt` it is 1 from max_th on, as in the kernel. The average is kept as in the kernel (red.h): << weight_shift, without a multiplication. Probabilities
 * are in 1 / 2^32.
 */
#ifndef FAIRQ_LAW_RED_H
#define FAIRQ_LAW_RED_H

#include "../../agent/bpf/laws/queue_law_common.h"

#define RED_IDLE_BITS 24               /* an idle time of more packets leaves an average of 0 */
#define RED_MOST_IDLE (100 * NS_PER_S) /* longer ones count as this */
#define RED_MOST_LEN  (1 << 20)

struct red_law {
	__u64 slope_q48;    /* max_p / (max_th - min_th), a byte */
	__u64 steep_q48;    /* (1 - max_p) / max_th: above max_th */
	__u32 min_bytes;    /* min_th */
	__u32 max_bytes;    /* max_th */
	__u32 max_p_q32;    /* max_p, the probability at max_th */
	__u16 weight_shift; /* the weight of the average is 1 / (1 << weight_shift), 1 to 16 */
	__u8 by_bytes;      /* 1: long packets are more likely to be dropped */
	__u8 abrupt;        /* 1: from max_th on all are dropped */
};

struct red_state {
	__u64 average;    /* of the backlog, bytes << weight_shift */
	__u64 left_bytes; /* in the queue after the last packet */
	__u32 since; /* packets since the last drop or mark, and 1; 0: the average is below min_th */
	__u32 draw_q32; /* the next drop is at p_b times `since` of so much; 0: not drawn yet */
};

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
	struct red_state *own = LAW_STATE(red, st);
	__u32 shift = LAW_OWN(red, p)->weight_shift & 31;
	__u64 drained_ns, idle = 0, found = 0, packets = in->segments, distance;
	bool above;

	if (!in->backlog && own->average) {
		drained_ns = st->last_ns + queueing_delay(p, own->left_bytes);
		idle = law_min(law_less(in->now_ns, drained_ns), RED_MOST_IDLE);
	}
	if (!idle && packets == 1) {
		own->average += in->backlog - (own->average >> shift);
	} else {
		if (idle)
			packets = law_div(law_bytes(p->rate, idle), FULL_FRAME);
		else
			found = in->backlog + (in->len - segment_bytes(in)) / 2;
		found <<= shift;
		above = own->average > found;
		distance = red_left(above ? own->average - found : found - own->average, packets,
				    shift);
		own->average = above ? found + distance : found - distance;
	}
	own->left_bytes = (__u64)in->backlog + in->len;
}

/* p_b, in 1 / 2^32, of an average of at least min_th and less than twice max_th. The agent has divided. */
LAW_INLINE __u64 red_probability(const struct red_law *p, __u64 average)
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
			   struct fq_flow_table *t, struct fq_sfb_bins *bins,
			   const struct fq_queue_law_input *in)
{
	const struct red_law *law = LAW_OWN(red, p);
	struct red_state *own = LAW_STATE(red, st);
	__u64 average, probability, last;

	red_update(p, st, in);
	if (!own->draw_q32)
		own->draw_q32 = in->random;
	average = own->average >> (law->weight_shift & 31);
	if (average < law->min_bytes) {
		own->since = 0;
		return FQ_PASS;
	}
	own->since = law_max(own->since, 1);
	if (average >= law->max_bytes * (law->abrupt ? 1ULL : 2ULL)) {
		own->since = 1;
		return FQ_DROP;
	}
	probability = red_probability(law, average);
	if (law->by_bytes)
		probability = probability * law_min(segment_bytes(in), RED_MOST_LEN) / FULL_FRAME;
	probability = law_min(probability, Q32_ONE - 1);
	last = law_min((__u64)own->since + in->segments - 1, ~0U);
	if (!own->draw_q32 || probability * last < own->draw_q32) {
		own->since = law_min(last + 1, ~0U);
		return FQ_PASS;
	}
	own->since = 1;
	own->draw_q32 = 0;
	/* Above max_th the average is not under control: marks are no remedy. */
	return average < law->max_bytes ? signal(p, st, in) : FQ_DROP;
}

/* There is a random number for each drop, and not for each packet. */
LAW_INLINE bool red_draws(const struct fq_queue_law_state *st)
{
	return !LAW_STATE(red, st)->draw_q32;
}

#endif
