/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The pool of a port: bytes that its flows share, never more than the port can hold and never less than a
 * segment. A pool is raised only while flows use their whole windows: otherwise it would grow without bound
 * while the queue is short, and overflow the queue when the flows send again.
 */
#ifndef FAIRQ_LAW_POOL_H
#define FAIRQ_LAW_POOL_H

#include <linux/types.h>
#include <stdbool.h>

#include "../layout.h"
#include "arithmetic.h"

#define SEGMENT_HEADERS 66 /* bytes: Ethernet, IPv4, TCP with timestamps */

#define MOST_DRAIN_NS (10 * NS_PER_S)

/* In a far queue the pool is raised by this part of what it would be, once it is larger than is explained. */
#define FAR_CAUTION 4

/* A whole window that was used counts for so many ticks: not every flow has an ACK in each. */
#define USED_TICKS 8

/* The round trip of the flows that share the pool: the setting, or what their handshakes took if that was longer. */
static inline __attribute__((always_inline)) __u64 round_trip(const struct fq_law *p,
							      const struct fq_law_state *st)
{
	return law_max(p->base_rtt_ns, st->rtt_ns);
}

/*
 * Bytes that the port can hold: its buffer and what is on the way in a round trip. A handshake may have waited in
 * the queue of this port, so the buffer is not added to what is on the way in its time. Half of a far queue's buffer is
 * left to new flows: whether it is full is not seen.
 */
static inline __attribute__((always_inline)) __u64 pool_cap(const struct fq_law *p,
							    const struct fq_law_state *st)
{
	__u64 buffer = p->flags & FQ_FAR_LAW ? p->limit / 2 : p->limit;
	__u64 held = buffer + law_bytes(p->rate, p->base_rtt_ns);

	return law_min(law_max(held, law_bytes(p->rate, st->rtt_ns)), MAX_POOL);
}

/* The minimum window of each of n flows, bytes. */
static inline __attribute__((always_inline)) __u32
floor_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n)
{
	__u64 window = (__u64)p->floor_segments * st->segment;

	return n * window <= p->limit ? window : st->segment;
}

/* Has a flow used its whole window within the time in which it could have? */
static inline __attribute__((always_inline)) bool
flows_are_limited(const struct fq_law *p, const struct fq_law_state *st, __u64 now)
{
	__u64 answer = round_trip(p, st) + law_div((__u64)st->queue * NS_PER_S, p->rate);
	__u64 least = (__u64)USED_TICKS * p->interval_ns;

	return st->limited_ns && law_less(now, st->limited_ns) <= law_max(least, 2 * answer);
}

/*
 * A virtual queue is late: it tells that the pool is too large, but not by how much. What the round trip explains, and
 * twice the target, may be granted for a far queue; from there on the pool feels its way, because the round trip may be
 * longer than is known.
 */
static inline __attribute__((always_inline)) __u64 explained(const struct fq_law *p,
							     const struct fq_law_state *st)
{
	return law_bytes(p->rate, round_trip(p, st)) + 2ULL * p->target;
}

static inline __attribute__((always_inline)) void raise_pool(const struct fq_law *p,
							     struct fq_law_state *st,
							     const struct fq_law_input *in,
							     __u64 amount)
{
	if (!flows_are_limited(p, st, in->now_ns)) {
		st->limited_by = FQ_LIMITED_BY_FLOWS;
		return;
	}
	if (p->flags & FQ_FAR_LAW && st->pool >> POOL_SHIFT > explained(p, st))
		amount /= FAR_CAUTION;
	st->pool += amount;
}

/* After each tick: bound the pool, and work out what is in force. */
static inline __attribute__((always_inline)) void bound_pool(const struct fq_law *p,
							     struct fq_law_state *st, __u32 n)
{
	__u64 cap = pool_cap(p, st) << POOL_SHIFT, least = (__u64)st->segment << POOL_SHIFT;
	__u64 floors = (__u64)n * floor_window(p, st, n);

	if (st->pool >= cap) {
		st->pool = cap;
		st->limited_by = FQ_LIMITED_BY_CAP;
	}
	if (st->pool < least)
		st->pool = least;
	st->granted = st->pool >> POOL_SHIFT;
	st->mode &= ~FQ_MODE_FLOORED;
	if (floors > st->granted) {
		st->mode |= FQ_MODE_FLOORED;
		st->granted = law_min(floors, MAX_POOL);
		st->limited_by = FQ_LIMITED_BY_FLOOR;
	}
}

/* No flows: the next ones find a pool of the target's size. */
static inline __attribute__((always_inline)) void start_pool(const struct fq_law *p,
							     struct fq_law_state *st)
{
	st->pool = (__u64)p->target << POOL_SHIFT;
	st->mode = 0;
}

/* While the floors are in force, the queue depends on them and not on the pool. */
static inline __attribute__((always_inline)) bool pool_is_frozen(const struct fq_law *p,
								 const struct fq_law_state *st)
{
	return st->mode & FQ_MODE_FLOORED && st->queue > p->target;
}

/*
 * How far the queue is from the target, in targets, << 16; at most 64 targets, which keeps what is worked out
 * from it within 64 bits.
 */
static inline __attribute__((always_inline)) __u64 distance_q16(const struct fq_law *p,
								const struct fq_law_state *st)
{
	__u64 distance = st->queue > p->target ? st->queue - p->target : p->target - st->queue;

	return law_min(law_div(distance << 16, p->target), 64 << 16);
}

/*
 * The gain of a tick, << 16. It is worked out for the round trip of the setting; with a longer one the answer of the
 * queue comes later, and the pool has to move more slowly.
 */
static inline __attribute__((always_inline)) __u64
pool_gain(const struct fq_law *p, const struct fq_law_state *st, __u32 ticks)
{
	__u64 gain = law_min((__u64)p->gain_q16 * ticks, 1 << 15), drain;

	if (st->rtt_ns <= p->base_rtt_ns)
		return gain;
	drain = law_min(law_div((__u64)p->target * NS_PER_S, p->rate), MOST_DRAIN_NS);
	return law_div(gain * (p->base_rtt_ns + drain), st->rtt_ns + drain);
}

/*
 * Move the pool by its own size times the distance of the queue from the target, so that the time in which it
 * follows does not depend on the number of flows or the rate: gain_q16 is worked out from the round trip. Where most
 * of a pool is on the way and not in the queue, its own size is too much: then by two targets.
 */
static inline __attribute__((always_inline)) void scale_pool(const struct fq_law *p,
							     struct fq_law_state *st,
							     const struct fq_law_input *in,
							     __u32 ticks)
{
	__u64 moved = law_min(st->pool, (__u64)2 * p->target << POOL_SHIFT);
	__u64 move = (moved * pool_gain(p, st, ticks) >> 16) * distance_q16(p, st) >> 16;

	if (pool_is_frozen(p, st))
		return;
	if (st->queue <= p->target)
		raise_pool(p, st, in, move);
	else
		st->pool -= law_min(
			move,
			st->pool >> 1); /* an overflow of the queue is no reason to stop all */
	st->updates++;
}

/* The pool of fairq and las follows the queue while there are flows. */
static inline __attribute__((always_inline)) void pool_tick(const struct fq_law *p,
							    struct fq_law_state *st,
							    const struct fq_law_input *in,
							    __u32 ticks)
{
	if (in->flows)
		scale_pool(p, st, in, ticks);
	else
		start_pool(p, st);
	bound_pool(p, st, in->flows);
}

#endif
