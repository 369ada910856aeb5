/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments that the far queue of a flow has lost, or a queue before it: a gap in the sequence numbers, which a later segment
 * fills. Nothing shows a loss behind which nothing came: its repetition looks like the segment itself.
 *
 *   1 2 . . 5 6      -> from 3 to 5 is missing
 *   3, then 4, again -> two segments were lost; nothing is missing any more
 *
 * Of several gaps the first and the last are known; what has come between them counts as missing, until it is repeated.
 */
#ifndef FAIRQ_LOST_ABOVE_H
#define FAIRQ_LOST_ABOVE_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"
#include "port_maps.h"

static __always_inline bool has_hole(const struct fq_dir *d)
{
	return (__s32)(d->hole_to - d->hole_from) > 0;
}

/* A segment with data has come; `next` was to come next, and `mss` are the bytes of a whole one. */
static __always_inline void note_gap(const struct segment *s, struct fq_dir *own, __u32 next,
				     __u32 mss)
{
	__u32 end = s->seq + s->payload;
	struct fq_port *port;

	if ((__s32)(s->seq - next) > 0) {
		if (!has_hole(own))
			own->hole_from = next;
		own->hole_to = s->seq;
		return;
	}
	if (!has_hole(own) || (__s32)(s->seq - own->hole_from) < 0 ||
	    (__s32)(s->seq - own->hole_to) >= 0)
		return;
	own->hole_from = end;
	port = port_of(&own->far);
	if (port)
		ADD(port->lost_above, mss ? (s->payload + mss - 1) / mss : 1);
}

#endif
