/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The size of the segments of a flow. */
#ifndef FAIRQ_SEGMENT_SIZE_H
#define FAIRQ_SEGMENT_SIZE_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"

#define DEFAULT_MSS_V4 536 /* RFC 9293 section 3.7.1: what no MSS option means */
#define DEFAULT_MSS_V6 1220
#define ETHERNET_MSS   1460

/*
 * The segment size of the flow: the smaller MSS of the two ends, because an end does not send larger segments than
 * it can receive. Without an MSS option the receiver accepts the default size; the sender's own size is not known.
 */
static __always_inline __u32 common_mss(const struct segment *s, const struct fq_dir *receiver,
					const struct fq_dir *sender)
{
	__u32 mss = receiver->mss;

	/* Nobody has seen an MSS: the largest segment that has come (egress_port.h), and no less than most hosts send. */
	if ((receiver->flags & (FQ_KNOWN | FQ_TOLD)) == FQ_TOLD)
		return mss > ETHERNET_MSS ? mss : ETHERNET_MSS;
	if (!mss)
		mss = s->key.family == 4 ? DEFAULT_MSS_V4 : DEFAULT_MSS_V6;
	return sender->mss && sender->mss < mss ? sender->mss : mss;
}

#endif
