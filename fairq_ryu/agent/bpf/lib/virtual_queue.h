/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A virtual queue: what would stand in a queue that drains at a rate somewhat below that of the line by which packets
 * arrive. It grows when arrivals come near the rate of the line, which is when the queue before the line grows, in the
 * switch above (Kunniyur and Srikant's AVQ; the phantom queues of HULL, NSDI 2012).
 *
 *   between packets -> it drains at the rate, exactly: what is less than a byte counts the next time
 *   a packet        -> its bytes are added; beyond the limit they overflow
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

/* What drains from the last packet until `now`, << FQ_DRAIN_SHIFT, with what the last one has left over. */
static inline __attribute__((always_inline)) __u64 virtual_drained(const struct fq_queue *q,
								   __u64 spent)
{
	return q->drain * law_min(spent, MOST_VIRTUAL_NS) + q->rest;
}

/* Its backlog after that, bytes. */
static inline __attribute__((always_inline)) __u64 virtual_left(const struct fq_queue *q,
								__u64 spent, __u64 drained)
{
	return spent < MOST_VIRTUAL_NS ? law_less(q->backlog, drained >> FQ_DRAIN_SHIFT) : 0;
}

/* The integral of its backlog meanwhile, byte ns: a trapezium, or a triangle if it has become empty. */
static inline __attribute__((always_inline)) __u64 virtual_area(const struct fq_queue *q,
								__u64 spent, __u64 left)
{
	spent = law_min(spent, MOST_VIRTUAL_NS);
	if (!left)
		spent = law_min(spent, law_div((__u64)q->backlog << FQ_DRAIN_SHIFT, q->drain));
	return (q->backlog + left) * spent / 2;
}

static inline __attribute__((always_inline)) __u32 virtual_backlog(const struct fq_queue *q,
								   __u64 now)
{
	__u64 spent = law_less(now, q->last_ns);

	return virtual_left(q, spent, virtual_drained(q, spent));
}

static inline __attribute__((always_inline)) __u64 virtual_byte_ns(const struct fq_queue *q,
								   __u64 now)
{
	__u64 spent = law_less(now, q->last_ns);

	return virtual_area(q, spent, virtual_left(q, spent, virtual_drained(q, spent)));
}

/*
 * A packet of so many bytes, as so many segments, arrives. `drain`: what drains in a ns, << FQ_DRAIN_SHIFT, from now on.
 * Another processor's clock may be ahead: then no time has passed.
 */
static inline __attribute__((always_inline)) void virtual_arrival(struct fq_queue *q, __u64 drain,
								  __u32 limit, __u64 bytes,
								  __u32 segments, __u64 now)
{
	__u64 spent = law_less(now, q->last_ns), drained = virtual_drained(q, spent);
	__u64 backlog = virtual_left(q, spent, drained);

	q->byte_ns += virtual_area(q, spent, backlog);
	q->rest = backlog ? drained & ((1 << FQ_DRAIN_SHIFT) - 1) : 0;
	q->drain = drain;
	q->last_ns += spent;
	q->packets += segments;
	q->bytes += bytes;
	q->backlog = law_min(backlog + bytes, limit);
}

#endif
