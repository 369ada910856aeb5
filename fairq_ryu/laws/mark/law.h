/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DCTCP's marking: by the queue with this packet; of several segments, by that with the middle one: a mark is a mark of
 * all. Only packets that are ECN-capable are marked, the others pass: the queue itself drops them when it is full.
 */
#ifndef FAIRQ_LAW_MARK_H
#define FAIRQ_LAW_MARK_H

#include "../../agent/bpf/laws/queue_law_common.h"

struct mark_law {
	__u32 mark_bytes; /* K */
	__u32 pad;
};

LAW_INLINE __u32 mark_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			    struct fq_flow_table *t, struct fq_sfb_bins *bins,
			    const struct fq_queue_law_input *in)
{
	if (in->backlog + ((__u64)in->len + segment_bytes(in)) / 2 <= LAW_OWN(mark, p)->mark_bytes)
		return FQ_PASS;
	if (in->ect)
		return FQ_MARK;
	st->counts.unmarked += in->segments;
	return FQ_PASS;
}

#endif
