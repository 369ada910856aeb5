/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A fixed pool: the flows of a port share the target's bytes, regardless of the queue. */
#ifndef FAIRQ_LAW_FIXED_POOL_H
#define FAIRQ_LAW_FIXED_POOL_H

#include "pool.h"

static inline __attribute__((always_inline)) void
fixed_pool_tick(const struct fq_law *p, struct fq_law_state *st, const struct fq_law_input *in)
{
	st->pool = (__u64)p->target << POOL_SHIFT;
	bound_pool(p, st, in->flows);
}

#endif
