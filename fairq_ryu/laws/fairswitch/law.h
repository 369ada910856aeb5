/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FairSwitch, the NetFPGA prototype of FairQ: each flow has the target divided by the number of flows, plus a
 * trim that follows the queue in small steps. The trim rests while the queue is near the target.
 */
#ifndef FAIRQ_LAW_FAIRSWITCH_H
#define FAIRQ_LAW_FAIRSWITCH_H

#include "../../agent/bpf/laws/own.h"
#include "../../agent/bpf/laws/pool.h"

#define FAIRSWITCH_LEAST 2048 /* bytes: the smallest window before the trim */
#define FAIRSWITCH_EMPTY 80   /* bytes: a queue that is not longer counts as empty */

struct fairswitch_law {
	__u32 trim_step; /* change of the trim in one tick, bytes */
	__u32 pad;
};

struct fairswitch_state {
	__u32 trim; /* bytes */
	__u32 pad;
};

LAW_INLINE __u32 fairswitch_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
				   __u32 young, __u64 sent, __u32 mss)
{
	__u64 base = law_max(FAIRSWITCH_LEAST, law_div(p->target, n ? n : 1));

	return law_min(law_max(base + LAW_STATE(fairswitch, st)->trim, st->segment),
		       pool_cap(p, st));
}

LAW_INLINE void fairswitch_tick(const struct fq_law *p, struct fq_law_state *st,
				const struct fq_law_input *in, __u32 ticks)
{
	__u32 dead = st->segment / 4;
	struct fairswitch_state *own = LAW_STATE(fairswitch, st);
	__u64 step = (__u64)LAW_OWN(fairswitch, p)->trim_step * ticks;

	if (!in->flows) {
		own->trim = 0;
	} else if (st->queue > (__u64)p->target + dead) {
		own->trim = law_less(own->trim, step);
		st->updates++;
	} else if (st->queue > FAIRSWITCH_EMPTY && (__u64)st->queue + dead < p->target) {
		own->trim = law_min(own->trim + step, p->limit);
		st->updates++;
	}
	st->granted =
		law_min((__u64)in->flows * fairswitch_window(p, st, in->flows, 0, 0, 0), MAX_POOL);
}

#endif
