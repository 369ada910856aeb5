/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FQ_MODE_LIMITING: for some time every flow has a window of a few segments. Afterwards the windows open again by an
 * eighth in each interval: all at once, the flows would fill the queue at once.
 */
#ifndef FAIRQ_LAW_LIMITING_H
#define FAIRQ_LAW_LIMITING_H

#include <linux/types.h>

#include "../layout.h"
#include "arithmetic.h"

#define OPENING_SHIFT 3

/* Every flow has a window of so many segments from now on. */
LAW_INLINE void begin_limiting(struct fq_law_state *st, __u32 segments)
{
	if (!(st->mode & FQ_MODE_LIMITING))
		st->updates++;
	st->mode |= FQ_MODE_LIMITING;
	st->window = segments * st->segment;
	st->calm_ns = 0;
}

/* Leave the mode once the queue has been below `calm` bytes for so long, then open the windows step by step. */
LAW_INLINE void leave_limiting(const struct fq_law *p, struct fq_law_state *st, __u32 calm,
			       __u64 linger_ns, __u64 now, __u32 ticks)
{
	if (!(st->mode & FQ_MODE_LIMITING)) {
		for (__u32 i = 0; i < 8 && i < ticks && st->window; i++) {
			st->window += law_max(st->window >> OPENING_SHIFT, 1);
			if (st->window >= p->limit)
				st->window = 0;
		}
		return;
	}
	if (st->queue >= calm)
		st->calm_ns = 0;
	else if (!st->calm_ns)
		/* A late tick ends a silence: the queue had not changed since the last tick. */
		st->calm_ns = ticks > 2 ? st->last_ns : now;
	if (st->calm_ns && now - st->calm_ns >= linger_ns) {
		st->mode &= ~FQ_MODE_LIMITING;
		st->calm_ns = 0;
		st->updates++;
	}
}

#endif
