/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CoDel (Nichols and Jacobson, CACM 2012; RFC 8289), where packets enter the queue: the delay of a packet is known when
 * it arrives. One drop for each arrival at most. The control law is that of the kernel (codel_impl.h), bit for bit:
 * 1 / sqrt(count) by one Newton step for each drop, in 16 bits. As in the kernel, a packet of several segments is one drop.
 */
#ifndef FAIRQ_QUEUE_CODEL_H
#define FAIRQ_QUEUE_CODEL_H

#include "queue_law_common.h"

#define CODEL_MOST_INV 0xFFFF0000U /* 1, in the 16 bits that the kernel keeps */

/* Where the delay counts as below the target: with the least queue since the last packet, or less than one frame. */
LAW_INLINE bool codel_is_below(const struct fq_queue_law *p, const struct fq_queue_law_input *in,
			       __u64 target_ns)
{
	__u32 least = law_min(in->backlog, in->low);

	return least <= FULL_FRAME || queueing_delay(p, least) < target_ns;
}

/* Has the delay been above the target for an interval? */
LAW_INLINE bool codel_is_due(__u64 *first_above_ns, bool below, __u64 now, __u64 interval_ns)
{
	if (below) {
		*first_above_ns = 0;
		return false;
	}
	if (!*first_above_ns) {
		*first_above_ns = now + interval_ns;
		return false;
	}
	return now >= *first_above_ns;
}

/* inv_sqrt_q32 of the next count: inv * (3 - count * inv^2) / 2. */
LAW_INLINE void codel_newton_step(struct fq_codel *c)
{
	__u64 inv = c->inv_sqrt_q32, square = inv * inv >> 32;
	__u64 value = (3ULL << 32) - c->count * square;

	value >>= 2; /* its product with inv would not fit */
	c->inv_sqrt_q32 = (value * inv >> (32 - 2 + 1)) & CODEL_MOST_INV;
}

/* The time between two drops, interval / sqrt(count). An interval of 60 s times 32 bits would not fit. */
LAW_INLINE __u64 codel_gap(const struct fq_codel *c, __u64 interval_ns)
{
	return interval_ns * (c->inv_sqrt_q32 >> 16) >> 16;
}

/*
 * The dropping state: whether this packet is to be dropped. `due`: its flow, or queue, has been above the target for
 * an interval; `below`: it is not above the target, which ends the state.
 */
LAW_INLINE bool codel_drops(struct fq_codel *c, bool due, bool below, __u64 now, __u64 interval_ns)
{
	if (c->dropping) {
		if (below) {
			c->dropping = 0;
			return false;
		}
		if (!due || now < c->drop_next_ns)
			return false;
		c->count++;
		codel_newton_step(c);
		c->drop_next_ns += codel_gap(c, interval_ns);
		return true;
	}
	if (!due)
		return false;
	c->dropping = 1;
	/* Shortly after the last time: it goes on with the rate that it had reached. */
	if (c->count - c->last_count > 1 && c->count > c->last_count &&
	    law_less(now, c->drop_next_ns) < 16 * interval_ns) {
		c->count -= c->last_count;
		codel_newton_step(c);
	} else {
		c->count = 1;
		c->inv_sqrt_q32 = CODEL_MOST_INV;
	}
	c->last_count = c->count;
	c->drop_next_ns = now + codel_gap(c, interval_ns);
	return true;
}

/*
 * Whether CoDel of the port drops this packet, with this target and interval. `spared`: a drop that is due waits for
 * another packet.
 */
LAW_INLINE bool codel_drops_of_port(const struct fq_queue_law *p, struct fq_queue_law_state *st,
				    const struct fq_queue_law_input *in, __u64 target_ns,
				    __u64 interval_ns, bool spared)
{
	bool below = codel_is_below(p, in, target_ns);
	bool due = codel_is_due(&st->codel.first_above_ns, below, in->now_ns, interval_ns);

	return codel_drops(&st->codel, due && !spared, below, in->now_ns, interval_ns);
}

#endif
