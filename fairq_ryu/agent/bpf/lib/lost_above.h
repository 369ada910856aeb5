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

#define LARGEST_WINDOW (1 << 30) /* RFC 7323 */

static __always_inline bool has_hole(const struct fq_dir *d)
{
	return (__s32)(d->hole_to - d->hole_from) > 0;
}

/* A segment with data has come; `next` was to come next, and `mss` are the bytes of a whole one. */
static __always_inline void note_gap(const struct segment *s, struct fq_dir *own, __u32 next,
				     __u32 mss)
{
	__u32 end = s->seq + s->payload, missing = s->payload;
	struct fq_port *port;

	if ((__s32)(s->seq - next) > 0) {
		if (!has_hole(own))
			own->hole_from = next;
		own->hole_to = s->seq;
		return;
	}
	/* No window is larger than a GiB: what lies further back does not come again. */
	if (has_hole(own) && (__s32)(next - own->hole_to) > LARGEST_WINDOW)
		own->hole_from = own->hole_to;
	if (!has_hole(own) || (__s32)(end - own->hole_from) <= 0 ||
	    (__s32)(s->seq - own->hole_to) >= 0)
		return;
	if ((__s32)(s->seq - own->hole_from) < 0)
		missing = end - own->hole_from;
	own->hole_from = end;
	port = port_of(&own->far);
	if (port)
		ADD(port->lost_above, mss ? (missing + mss - 1) / mss : 1);
}

#endif
