/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The queue that a law with a pool is told of where there is only a virtual one.
 *
 * A real queue holds what the windows allow beyond what the path holds: a pool that is larger by a segment makes it
 * longer by a segment, and no more. Nothing waits in a virtual queue. It grows as long as data arrives at more than its
 * rate, by however little, so a pool that followed its length would go on growing while the virtual queue fills, and
 * shrinking until it is empty: hidden queue and goodput would swing between the extremes. What a pool changes at once is
 * the rate at which data arrives. So the law is told
 *
 *	target * load + ARRIVALS_ABOVE * target * (load - 1, at least 0) + (backlog - target / 2, at least 0) / ARRIVALS_BACKLOG
 *
 * where `load` is the rate of arrivals over that of the virtual queue, and `backlog` that of the virtual queue. At the
 * rate of the virtual queue the pool rests; above it the hidden queue fills, so that weighs more; and a backlog that is
 * longer than those of bursts lowers the pool until it is gone.
 */
#ifndef FAIRQ_LAW_ARRIVALS_H
#define FAIRQ_LAW_ARRIVALS_H

#include <linux/types.h>

#include "../layout.h"
#include "arithmetic.h"

#define ARRIVALS_ABOVE   4
#define ARRIVALS_BACKLOG 4
/* The load is that of a round trip, and at least of so many frames, which a rate can be told from. */
#define ARRIVALS_FRAMES  64
#define ARRIVALS_FRAME   1538 /* a full one on the wire, bytes */
#define ARRIVALS_MOST    4    /* the load is at most this */

/* Bytes arrive. */
static inline __attribute__((always_inline)) void arrivals_count(struct fq_arrivals *a, __u64 bytes)
{
	a->bytes = law_min(a->bytes + bytes, 1ULL << 32);
}

/*
 * A tick of the law is due: work out the integral of the queue that it is told of. `rate`: of the virtual queue, which
 * may be more or less than that of the law (hidden.h), bytes/s.
 */
static inline __attribute__((always_inline)) void
arrivals_tick(const struct fq_law *p, struct fq_arrivals *a, __u64 rate, __u32 backlog, __u64 now)
{
	__u64 elapsed = law_less(now, a->ns), settle, load, length;

	if (!elapsed)
		return;
	/* No law ran, or nothing arrived: what has been counted is not the load of now. */
	if (elapsed > NS_PER_S) {
		a->load_q16 = 0;
		a->bytes = 0;
		a->ns = now;
		return;
	}
	settle = law_div(ARRIVALS_FRAMES * ARRIVALS_FRAME * NS_PER_S, rate);
	settle = law_min(law_max(settle, p->base_rtt_ns), NS_PER_S);
	load = law_div(law_min(a->bytes * NS_PER_S / elapsed, ARRIVALS_MOST * rate) << 16, rate);
	load = law_div(a->load_q16 * settle + load * elapsed, settle + elapsed);
	length = load + ARRIVALS_ABOVE * law_less(load, 1 << 16);
	length = (p->target * length >> 16) + law_less(backlog, p->target / 2) / ARRIVALS_BACKLOG;
	a->length_ns += law_min(length, MAX_POOL) * elapsed;
	a->load_q16 = load;
	a->bytes = 0;
	a->ns = now;
}

#endif
