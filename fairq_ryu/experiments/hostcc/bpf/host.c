// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The arithmetic for the host: a shared library for tests. */
#include "d2tcp.h"
#include "dctcp.h"
#include "hstcp.h"
#include "left_out_sign.h"

__u32 cc_host_alpha(__u32 alpha, __u32 delivered, __u32 marked)
{
	return dctcp_alpha(alpha, delivered, marked);
}

__u32 cc_host_window(__u32 cwnd, __u32 power)
{
	return dctcp_window(cwnd, power);
}

__u32 cc_host_window_after_loss(__u32 cwnd)
{
	return dctcp_window_after_loss(cwnd);
}

__u32 cc_host_imminence(__u64 left_bytes, __u64 left_ns, __u32 rtt_us, __u32 cwnd, __u32 mss)
{
	return d2tcp_imminence(left_bytes, left_ns, rtt_us, cwnd, mss);
}

__u32 cc_host_power(__u32 alpha, __u32 imminence)
{
	return d2tcp_power(alpha, imminence);
}

__u32 cc_host_increase(__u32 cwnd)
{
	return hstcp_increase(cwnd);
}

__u32 cc_host_hstcp_after_loss(__u32 cwnd)
{
	return hstcp_window_after_loss(cwnd);
}

__u32 cc_host_threshold_is_impossible(__u32 state, __u32 threshold, __u32 window_before)
{
	return threshold_is_impossible(state, threshold, window_before);
}
