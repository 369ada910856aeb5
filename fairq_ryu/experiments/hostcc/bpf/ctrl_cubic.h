/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * CUBIC (RFC 9438) for the window of a group, with Linux's constants: C = 0.4, beta = 717/1024. As in Linux, but
 * without HyStart.
 */
#ifndef FAIRQ_CTRL_CUBIC_H
#define FAIRQ_CTRL_CUBIC_H

#include "ctrl.h"

#define CUBIC_BETA       717        /* of 1024 */
#define CUBIC_MOST_TIME  (1U << 20) /* ms: the curve's cube stays within 64 bits */
#define CUBIC_ROOT_STEPS 9

/*
 * The cube root of a number from 10^6 to 2^63, by Newton's method from above; at most one too large or too small.
 * Few branches, because the verifier follows each.
 */
CC_INLINE __u32 cubic_root(__u64 value)
{
	__u64 root = 2, rest = value;

	for (__u32 bits = 12; bits >= 3; bits /= 2) {
		if (rest >> 3 * bits) {
			root <<= bits;
			rest >>= 3 * bits;
		}
	}
	root <<= 2;
	for (int i = 0; i < CUBIC_ROOT_STEPS; i++)
		root = (2 * root + value / (root * root)) / 3;
	return root;
}

/* K in ms: the time in which the curve C t^3 falls by this many segments; (2.5 s)^3 for each. */
CC_INLINE __u32 cubic_time(__u32 segments)
{
	return cubic_root(segments * 2500000000ULL);
}

/* The curve, t ms after it began: its window in segments. */
CC_INLINE __u32 cubic_curve(const struct fq_cc_cubic *cubic, __u32 t)
{
	__u64 away = ctrl_at_most(t > cubic->k ? t - cubic->k : cubic->k - t, CUBIC_MOST_TIME);
	__u64 far = away * away * away / 2500000000ULL;

	if (t >= cubic->k)
		return ctrl_at_most(cubic->origin + far, CTRL_MOST >> CTRL_BITS);
	return cubic->origin > far ? cubic->origin - far : 0;
}

/*
 * The curve waits while the window does not follow it, because nobody sends or nobody uses the window (RFC 9438: that
 * time does not count): else the window would jump to where the curve has got to. ACKs may be two round trips apart.
 * Returns the time: another processor may have read the clock later, and come first.
 */
CC_INLINE __u32 cubic_wait(struct fq_cc_cubic *cubic, __u32 rtt, __u32 now)
{
	if (cubic->began && ctrl_before(now, cubic->followed))
		return cubic->followed;
	if (cubic->began && now - cubic->followed > 2 * rtt + 1)
		cubic->began = ctrl_at_least(cubic->began + (now - cubic->followed - rtt), 1);
	cubic->followed = now;
	return now;
}

/* Congestion avoidance: by one segment for so many that are acknowledged. */
CC_INLINE __u32 cubic_count(struct fq_cc_cubic *cubic, __u32 window, __u32 acked, __u32 now)
{
	__u32 target, count, share;

	window = ctrl_at_least(window, 1);
	cubic->acked += acked;
	if (!cubic->began) {
		cubic->began = now;
		cubic->acked = acked;
		cubic->reno = window;
		cubic->k = cubic->last_max > window ? cubic_time(cubic->last_max - window) : 0;
		cubic->origin = ctrl_at_least(cubic->last_max, window);
	}
	target = cubic_curve(cubic, now - cubic->began + cubic->least_rtt);
	count = target > window ? window / (target - window) : 100 * window;
	if (!cubic->last_max && count > 20)
		count = 20;
	/* Never slower than Reno with the same cut: 3 (1 - beta) / (1 + beta) segments in a round trip. */
	share = ctrl_at_least((__u64)window * (1024 + CUBIC_BETA) / (3 * (1024 - CUBIC_BETA)), 1);
	cubic->reno += cubic->acked / share;
	cubic->acked %= share;
	if (cubic->reno > window)
		count = ctrl_at_most(count, window / (cubic->reno - window));
	return ctrl_at_least(count, 2);
}

CC_INLINE void ctrl_cubic_grow(struct fq_cc_group *group, __u32 acked, __u32 rtt_us, __u64 now)
{
	struct fq_cc_cubic *cubic = &group->cubic;
	__u32 rtt = rtt_us / 1000, count;
	/* 0 is no time; it comes once in 50 days. */
	__u32 ms = ctrl_at_least((__u32)(now / 1000000), 1);

	if (rtt && (!cubic->least_rtt || rtt < cubic->least_rtt))
		cubic->least_rtt = rtt;
	count = cubic_count(cubic, group->window >> CTRL_BITS, acked, cubic_wait(cubic, rtt, ms));
	group->window =
		ctrl_at_most(group->window + ((__u64)acked << CTRL_BITS) / count, CTRL_MOST);
}

CC_INLINE void ctrl_cubic_cut(struct fq_cc_group *group)
{
	__u32 window = group->window >> CTRL_BITS;

	group->cubic.began = 0;
	/* Fast convergence: a flow that loses below its last maximum leaves room for others. */
	if (window < group->cubic.last_max)
		group->cubic.last_max = (__u64)window * (1024 + CUBIC_BETA) / 2048;
	else
		group->cubic.last_max = window;
	group->window = group->window * CUBIC_BETA >> 10;
}

#endif
