// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The arithmetic for the host: a shared library for tests. */
#include "ctrl_cubic.h"
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

__u32 cc_host_cubic_time(__u32 segments)
{
	return cubic_time(segments);
}

__u32 cc_host_ctrl_register(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd,
			    __u32 threshold, __u32 una, __u32 next, __u32 rtt_us, __u64 now)
{
	return ctrl_register(group, flow, cwnd, threshold, una, next, rtt_us, now);
}

__u32 cc_host_ctrl_leave(struct fq_cc_group *group, struct ctrl_flow *flow)
{
	ctrl_leave(group, flow);
	return 0;
}

/* A flow sends, or has an ACK. */
__u32 cc_host_ctrl_seen(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 want, __u32 cwnd,
			__u32 rtt_us, __u64 now)
{
	ctrl_seen(group, flow, want, cwnd, rtt_us, now);
	return ctrl_told(group, flow);
}

__u32 cc_host_ctrl_sends(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd,
			 __u32 rtt_us, __u64 now)
{
	ctrl_sends(group, flow, cwnd, rtt_us, now);
	return ctrl_told(group, flow);
}

__u32 cc_host_ctrl_want(__u32 flight, __u32 cwnd, __u32 limited)
{
	return ctrl_want(flight, cwnd, limited);
}

__u32 cc_host_ctrl_fills(const struct fq_cc_group *group, const struct ctrl_flow *flow, __u32 cwnd)
{
	return ctrl_fills(group, flow, cwnd);
}

/* An ACK; returns whether the flow stops being paced. */
__u32 cc_host_ctrl_acked(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 una, __u32 next,
			 __u32 segments)
{
	ctrl_acked(group, flow, una, next, segments);
	return ctrl_stops_pacing(flow, una, next);
}

/* The base law grows the window of the group. cubic: 0 for Reno. */
__u32 cc_host_ctrl_grow(struct fq_cc_group *group, __u32 acked, __u32 cubic, __u32 rtt_us,
			__u64 now)
{
	acked = ctrl_slow_start(group, acked);
	if (acked && cubic)
		ctrl_cubic_grow(group, acked, rtt_us, now);
	else if (acked)
		ctrl_reno_grow(group, acked);
	return acked;
}

__u32 cc_host_ctrl_window(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd, __u32 most)
{
	return ctrl_window(group, flow, cwnd, most);
}

/* A loss; returns whether it is a new event, for which the window of the group has been cut. */
__u32 cc_host_ctrl_lost(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd, __u32 una,
			__u32 next, __u32 cubic)
{
	if (!ctrl_is_new_event(group, flow, una))
		return 0;
	ctrl_before_cut(group, flow, cwnd, next);
	if (cubic)
		ctrl_cubic_cut(group);
	else
		ctrl_reno_cut(group);
	ctrl_after_cut(group);
	return 1;
}

__u32 cc_host_ctrl_undo(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd)
{
	return ctrl_undo(group, flow, cwnd);
}
