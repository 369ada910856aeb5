/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The arithmetic of DCTCP (RFC 8257). Plain C without kernel types: it compiles for eBPF and for the host
 * alike.
 *
 * Linux's tcp_dctcp.c has alpha in 1/1024. There an alpha below 16/1024 loses all of itself in a window
 * instead of a sixteenth, and does not rise again while less than a quarter of the segments is marked. With
 * 20 bits alpha is the RFC's, but for 16/1048576.
 */
#ifndef FAIRQ_DCTCP_H
#define FAIRQ_DCTCP_H

#include <linux/types.h>

#define DCTCP_ALPHA_BITS 20
#define DCTCP_MAX_ALPHA  (1U << DCTCP_ALPHA_BITS) /* alpha = 1 */
#define DCTCP_SHIFT_G    4                        /* g = 1/16 */
#define DCTCP_MIN_CWND   2

#define CC_INLINE static inline __attribute__((always_inline))

/*
 * alpha <- (1 - g) alpha + g marked / delivered, after a window of data. The kernel counts what an ACK
 * delivers after it has called this: a window without a segment says nothing, its segments are in the next.
 */
CC_INLINE __u32 dctcp_alpha(__u32 alpha, __u32 delivered, __u32 marked)
{
	__u64 more;

	if (!delivered)
		return alpha;
	more = ((__u64)marked << (DCTCP_ALPHA_BITS - DCTCP_SHIFT_G)) / delivered;
	more += alpha - (alpha >> DCTCP_SHIFT_G);
	return more < DCTCP_MAX_ALPHA ? more : DCTCP_MAX_ALPHA;
}

/* The window after a marked one: W (1 - p/2), p in 1/32768; not below two segments. */
CC_INLINE __u32 dctcp_window(__u32 cwnd, __u32 power)
{
	__u32 less = (__u64)cwnd * power >> 16;
	__u32 cut = cwnd - less;

	return cut > DCTCP_MIN_CWND ? cut : DCTCP_MIN_CWND;
}

/* p of DCTCP is alpha; in 1/32768. */
CC_INLINE __u32 dctcp_power(__u32 alpha)
{
	return (alpha < DCTCP_MAX_ALPHA ? alpha : DCTCP_MAX_ALPHA) >> (DCTCP_ALPHA_BITS - 15);
}

CC_INLINE __u32 dctcp_window_after_loss(__u32 cwnd)
{
	return cwnd / 2 > DCTCP_MIN_CWND ? cwnd / 2 : DCTCP_MIN_CWND;
}

#endif
