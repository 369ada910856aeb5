/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* CoDel (RFC 8289) where packets enter the queue: the control law is in queue_codel.h, which AFCD has as well. */
#ifndef FAIRQ_LAW_CODEL_H
#define FAIRQ_LAW_CODEL_H

#include "../../agent/bpf/laws/queue_codel.h"

struct codel_law {
	__u64 target_ns;   /* the queueing delay aimed at */
	__u64 interval_ns; /* for which the delay must have been above it */
};

LAW_INLINE __u32 codel_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			     struct fq_flow_table *t, struct fq_sfb_bins *bins,
			     const struct fq_queue_law_input *in)
{
	const struct codel_law *own = LAW_OWN(codel, p);

	if (codel_drops_of_port(p, st, in, own->target_ns, own->interval_ns, false))
		return signal(p, st, in);
	return FQ_PASS;
}

#endif
