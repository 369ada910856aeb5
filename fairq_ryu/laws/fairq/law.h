/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FairQ (Abdelmoniem and Bensaou): the pool follows the distance of the queue from its target. Algorithm 1 of the paper
 * moves it by parts of a segment; here it moves by a part of itself times 1 - Q / target (pool.h), as fast at every
 * rate and with every number of flows.
 *
 * The paper has no upper limit: the pool here is at most what the port can hold (pool_cap()), because windows that no
 * sender fills would grow without bound, and cause a burst when one does.
 */
#ifndef FAIRQ_LAW_FAIRQ_H
#define FAIRQ_LAW_FAIRQ_H

#include "../../agent/bpf/laws/pool.h"

/*
 * The window of one of n flows, bytes; `sent` is what this one has sent. A new flow begins with one segment if the
 * floors of all flows do not fit into the buffer above the target: the flows of a volley begin at once, while the
 * others have their larger windows under way.
 */
LAW_INLINE __u32 fairq_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			      __u32 young, __u64 sent, __u32 mss)
{
	__u64 floors;

	if (!n)
		n = 1;
	floors = (__u64)n * p->floor_segments * (st->segment + SEGMENT_HEADERS);
	if (!sent && floors + p->target > p->limit)
		return st->segment;
	return law_max((__u32)(st->pool >> POOL_SHIFT) / n, floor_window(p, st, n));
}

#endif
