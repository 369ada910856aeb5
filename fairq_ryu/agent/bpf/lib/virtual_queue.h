/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A virtual queue: what would stand in a queue that drains at a rate somewhat below that of the line by which packets
 * arrive. It grows when arrivals come near the rate of the line, which is when the queue before the line grows, in the
 * switch above (Kunniyur and Srikant's AVQ; the phantom queues of HULL, NSDI 2012).
 *
 *   between packets -> it drains at the rate, exactly: what is less than a byte counts the next time
 *   a packet        -> its bytes are added; beyond the limit they overflow, and the packet counts as dropped
 *
 * Neither map nor clock: compiles for eBPF and for the host. The twin in Python is fairq_ryu/agent/programs/backlog.py.
 */
#ifndef FAIRQ_VIRTUAL_QUEUE_H
#define FAIRQ_VIRTUAL_QUEUE_H

#include <linux/types.h>

#include "../laws/arithmetic.h"
#include "../layout.h"

/* After so long without a packet it is empty, ns. Bounds what is multiplied below. */
#define MOST_VIRTUAL_NS (8 * NS_PER_S)
#define MILLIONTHS      1000000

/* What drains until `now` and has not been taken off, in millionths of a byte. */
static inline __attribute__((always_inline)) __u64 virtual_drained(const struct fq_queue *q,
								   __u64 now)
{
	return q->rate / 1000 * law_min(law_less(now, q->last_ns), MOST_VIRTUAL_NS) + q->rest;
}

/* Its backlog, bytes. */
static inline __attribute__((always_inline)) __u32 virtual_backlog(const struct fq_queue *q,
								   __u64 now)
{
	if (law_less(now, q->last_ns) >= MOST_VIRTUAL_NS)
		return 0;
	return law_less(q->backlog, virtual_drained(q, now) / MILLIONTHS);
}

/* The integral of its backlog since the last packet, byte ns: a trapezium, or a triangle if it has become empty. */
static inline __attribute__((always_inline)) __u64 virtual_byte_ns(const struct fq_queue *q,
								   __u64 now)
{
	__u64 spent = law_min(law_less(now, q->last_ns), MOST_VIRTUAL_NS);
	__u64 backlog = virtual_backlog(q, now);

	if (!backlog)
		spent = law_min(spent, law_div((__u64)q->backlog * NS_PER_S, q->rate));
	return (q->backlog + backlog) * spent / 2;
}

/*
 * A packet of so many bytes, as so many segments, arrives. `rate`, bytes/s, is in force from now on. Another
 * processor's clock may be ahead: then no time has passed.
 */
static inline __attribute__((always_inline)) void
virtual_arrival(struct fq_queue *q, __u64 rate, __u32 limit, __u32 bytes, __u32 segments, __u64 now)
{
	__u64 drained = virtual_drained(q, now), backlog = virtual_backlog(q, now), beyond;

	q->byte_ns += virtual_byte_ns(q, now);
	q->rest = backlog ? drained % MILLIONTHS : 0;
	q->rate = rate;
	q->last_ns = law_max(q->last_ns, now);
	q->packets += segments;
	q->bytes += bytes;
	backlog += bytes;
	beyond = law_less(backlog, limit);
	q->drops += law_div(beyond * segments + bytes - 1, bytes);
	q->backlog = backlog - beyond;
}

#endif
