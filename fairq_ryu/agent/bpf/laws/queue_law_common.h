/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the queue laws have in common. */
#ifndef FAIRQ_QUEUE_LAW_COMMON_H
#define FAIRQ_QUEUE_LAW_COMMON_H

#include <linux/types.h>
#include <stdbool.h>

#include "../layout.h"
#include "arithmetic.h"
#include "own.h"

#define FULL_FRAME 1514 /* bytes: of the packets in which the papers count */
#define Q32_ONE    (1ULL << 32)

/* For how long a packet waits that finds this backlog, ns. */
LAW_INLINE __u64 queueing_delay(const struct fq_queue_law *p, __u64 backlog)
{
	return law_div(backlog * NS_PER_S, p->rate);
}

/* A segment of a packet, bytes. */
LAW_INLINE __u32 segment_bytes(const struct fq_queue_law_input *in)
{
	return in->segments > 1 ? in->len / in->segments : in->len;
}

/* A packet is to be dropped, or marked in place of that. */
LAW_INLINE __u32 signal(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			const struct fq_queue_law_input *in)
{
	if (!(p->flags & FQ_QLAW_ECN))
		return FQ_DROP;
	if (in->ect)
		return FQ_MARK;
	st->counts.unmarked += in->segments;
	return FQ_DROP;
}

#endif
