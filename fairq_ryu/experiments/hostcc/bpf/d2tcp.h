/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The arithmetic of D2TCP (SIGCOMM 2012): p = alpha^d, where d = T_c / D is the time that the flow still
 * needs over the time that it still has. alpha < 1, so a flow that is late (d > 1) cuts its window less.
 */
#ifndef FAIRQ_D2TCP_H
#define FAIRQ_D2TCP_H

#include "dctcp.h"
#include "d2tcp_tables.h"

#define D2TCP_ONE      128 /* d = 1: also of flows without deadline, and of those that missed it */
#define D2TCP_LEAST    64
#define D2TCP_MOST     256
#define D2TCP_MAX_RTT  (1ULL << 24) /* us */
#define D2TCP_MAX_LEFT (1ULL << 30) /* segments */
#define D2TCP_MAX_CWND (1ULL << 20) /* segments */
#define D2TCP_MAX_TIME (1ULL << 32) /* us */

CC_INLINE __u64 d2tcp_at_most(__u64 value, __u64 most)
{
	return value < most ? value : most;
}

/*
 * d in 1/128. T_c = left / (3/4 W) round trips, because the window of a flow that cuts it by half and grows
 * back is 3/4 W on average. left_bytes and left_ns: what is not acknowledged, and until the deadline (0:
 * there is none, or it has passed).
 */
CC_INLINE __u32 d2tcp_imminence(__u64 left_bytes, __u64 left_ns, __u32 rtt_us, __u32 cwnd,
				__u32 mss)
{
	__u64 segments, need, have;

	if (!left_bytes || !left_ns || !rtt_us || !cwnd || !mss)
		return D2TCP_ONE;
	segments = d2tcp_at_most((left_bytes - 1) / mss + 1, D2TCP_MAX_LEFT);
	need = d2tcp_at_most(rtt_us, D2TCP_MAX_RTT) * segments * 4 * D2TCP_ONE;
	have = d2tcp_at_most(left_ns / 1000 + 1, D2TCP_MAX_TIME) *
	       d2tcp_at_most(cwnd, D2TCP_MAX_CWND) * 3;
	need /= have;
	if (need < D2TCP_LEAST)
		return D2TCP_LEAST;
	return d2tcp_at_most(need, D2TCP_MOST);
}

/* -log2(alpha / 1048576) in 1/65536, for alpha above 0; linear between the entries of its table. */
CC_INLINE __u32 d2tcp_log(__u32 alpha)
{
	__u32 places = 0, step, rest;

	/* To 1 <= alpha < 2, by at most 20 places. */
	for (__u32 bits = 16; bits; bits >>= 1) {
		if (alpha < DCTCP_MAX_ALPHA * 2 >> bits) {
			alpha <<= bits;
			places += bits;
		}
	}
	step = alpha >> 12 & 255;
	rest = alpha & 4095;
	return (places << 16) - d2tcp_log2[step] -
	       (((d2tcp_log2[step + 1] - d2tcp_log2[step]) * rest + 2048) >> 12);
}

/*
 * alpha^d in 1/32768 as 2^(d log2(alpha)), by two tables that are linear between their entries. Worst error
 * 0.00005. For d = 1 it is alpha itself.
 */
CC_INLINE __u32 d2tcp_power(__u32 alpha, __u32 imminence)
{
	__u32 x, step, rest, high, low;

	if (alpha >= DCTCP_MAX_ALPHA || imminence == D2TCP_ONE)
		return dctcp_power(alpha);
	if (!alpha)
		return 0;
	/* In 1/65536; at most 2 * 20 * 65536. */
	x = (__u64)d2tcp_log(alpha) * imminence >> 7;
	step = x >> 8 & 255;
	rest = x & 255;
	high = d2tcp_exp2[step];
	low = d2tcp_exp2[step + 1];
	high -= ((high - low) * rest + 128) >> 8;
	x = d2tcp_at_most(x >> 16, 31);
	return (high + (1U << x >> 1)) >> x;
}

#endif
