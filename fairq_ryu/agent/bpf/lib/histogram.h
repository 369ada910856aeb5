/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The bins of the queue histogram. */
#ifndef FAIRQ_HISTOGRAM_H
#define FAIRQ_HISTOGRAM_H

#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/*
 * Bin of a depth: 16 to the octave from 16 bytes on, so a bin is never wider than 6.25 % of its depth.
 * fairq_ryu/agent/layout.py has the inverse.
 */
static __always_inline __u32 fq_bin(__u32 depth)
{
	__u32 octave = 0, rest = depth;

	if (depth < 16)
		return depth;
	if (rest >= 1U << 16) {
		octave += 16;
		rest >>= 16;
	}
	if (rest >= 1U << 8) {
		octave += 8;
		rest >>= 8;
	}
	if (rest >= 1U << 4) {
		octave += 4;
		rest >>= 4;
	}
	if (rest >= 1U << 2) {
		octave += 2;
		rest >>= 2;
	}
	if (rest >= 1U << 1)
		octave += 1;
	/* octave is now floor(log2(depth)), 4 or more */
	__u32 bin = (octave - 3) * 16 + ((depth >> (octave - 4)) & 15);
	return bin < FQ_HIST_BINS ? bin : FQ_HIST_BINS - 1;
}

#endif
