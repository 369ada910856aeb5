/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fixed-point arithmetic of the laws. eBPF has neither floating point nor (before -mcpu=v4) signed division.
 *
 * The laws compile for eBPF and for the host alike: no helper, no map, no clock. So tests and models of a network drive
 * the same code as the switch (host.c, queue_host.c).
 */
#ifndef FAIRQ_LAW_ARITHMETIC_H
#define FAIRQ_LAW_ARITHMETIC_H

#include <linux/types.h>

/* Of all functions of the laws. */
#define LAW_INLINE static inline __attribute__((always_inline))

#define NS_PER_S   1000000000ULL
#define MAX_POOL   (1U << 30) /* RFC 7323: the largest window */
#define POOL_SHIFT 8

LAW_INLINE __u64 law_min(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

LAW_INLINE __u64 law_max(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* a - b, but not below 0. */
LAW_INLINE __u64 law_less(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* Bytes that a rate (bytes/s) sends in that time. In thousands, so that 100 Gbit/s and a second fit. */
LAW_INLINE __u64 law_bytes(__u64 rate, __u64 ns)
{
	return rate / 1000 * ns / 1000000;
}

/* a / b; 0 if b is 0, as eBPF divides. */
LAW_INLINE __u64 law_div(__u64 a, __u64 b)
{
	return b ? a / b : 0;
}

#endif
