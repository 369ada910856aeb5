/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A pool of two sizes: a large one while the queue is short, a small one while it is long. */
#ifndef FAIRQ_LAW_RELAY_H
#define FAIRQ_LAW_RELAY_H

#include "../../agent/bpf/laws/own.h"
#include "../../agent/bpf/laws/pool.h"

struct relay_law {
	__u64 hold_ns; /* least time between two changes */
	__u32 large;   /* bytes */
	__u32 small;
};

struct relay_state {
	__u64 changed_ns; /* 0: never */
};

LAW_INLINE void relay_tick(const struct fq_law *p, struct fq_law_state *st,
			   const struct fq_law_input *in, __u32 ticks)
{
	const struct relay_law *own = LAW_OWN(relay, p);
	struct relay_state *state = LAW_STATE(relay, st);
	__u64 wanted = (__u64)(st->queue > p->target ? own->small : own->large) << POOL_SHIFT;

	if (wanted != st->pool && in->now_ns - state->changed_ns >= own->hold_ns) {
		st->pool = wanted;
		state->changed_ns = in->now_ns;
		st->updates++;
	}
	bound_pool(p, st, in->flows);
}

LAW_INLINE __u32 relay_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			      __u32 young, __u64 sent, __u32 mss)
{
	return law_max(law_div(st->pool >> POOL_SHIFT, n ? n : 1), floor_window(p, st, n));
}

#endif
