/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The arithmetic of coupled flows: a group has the window of one flow, and its flows share it. Plain C without
 * kernel types: it compiles for eBPF and for the host alike. docs/ctrltcp.md says what is from where.
 *
 * A flow counts while it sends: it is entered into the sums of the epoch in which it was last seen, and the
 * sums of the present epoch and of the one before make up the group. So a flow that falls silent, or whose end
 * the kernel has not reported, drops out by itself.
 */
#ifndef FAIRQ_CTRL_H
#define FAIRQ_CTRL_H

#include "dctcp.h"
#include "layout.h"

#define CTRL_BITS          16            /* of windows, after the point */
#define CTRL_MOST          (1ULL << 40)  /* of a window: 2^24 segments */
#define CTRL_INFINITE      0x7fffffffU   /* the kernel's threshold before any loss */
#define CTRL_LEAST_EPOCH   200000000ULL  /* ns: a timeout is not shorter */
#define CTRL_MOST_EPOCH    4000000000ULL /* ns */
#define CTRL_KEPT          1000000000ULL /* ns: as long, a silent group knows its path */
#define CTRL_STEP          2             /* segments for each ACK of the group */
#define CTRL_INITIAL       10            /* segments, the initial window of RFC 6928 */
#define CTRL_MOST_PRIORITY 1000

/* In the socket. */
struct ctrl_flow {
	__u64 tenant;
	__u64 born_ns; /* of its group; 0: it has none */
	__u32 priority;
	__u32 shared;
	__u32 epoch; /* in which it was last seen */
	__u32 seen;  /* 1: it was, and has been counted */
	__u32 want; /* segments as which it has been counted; 0: it is not limited by its application */
	__u32 fresh; /* 1: it has sent nothing yet */
	__u32 told;  /* its share when it last had an ACK */
	__u32 credit;
	__u32 rounding; /* in 1/65536 segments */
	__u32 una;
	__u32 cuts; /* of the group, of which it knows */
	__u32 high; /* what was sent before the last of them ends here */
	__u32 made; /* the number of the last cut that it has made */
	__u32 paced; /* 1: it has begun with more than an initial window, and is paced; 2: it has an ACK */
	__u32 paced_until; /* what it sends before it is not any more; set by its first ACK */
	__u32 unused;
};

CC_INLINE __u64 ctrl_at_least(__u64 value, __u64 least)
{
	return value > least ? value : least;
}

CC_INLINE __u64 ctrl_at_most(__u64 value, __u64 most)
{
	return value < most ? value : most;
}

CC_INLINE int ctrl_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

CC_INLINE int ctrl_is_counted(const struct fq_cc_group *group, const struct ctrl_flow *flow)
{
	return flow->seen && group->epoch - flow->epoch <= 1;
}

/*
 * What a flow wants that uses less than its window, by the most that it had under way; 0: it uses all. `limited`: the
 * kernel has seen its window full.
 */
CC_INLINE __u32 ctrl_want(__u32 flight, __u32 cwnd, int limited)
{
	__u32 want = 2 * ctrl_at_most(flight, 1 << 30);

	return limited || want > cwnd ? 0 : want;
}

/* Take a flow out of the sums. */
CC_INLINE void ctrl_forget(struct fq_cc_group *group, struct ctrl_flow *flow)
{
	struct fq_cc_sums *sums = &group->sums[flow->epoch & 1];

	if (ctrl_is_counted(group, flow)) {
		sums->all -= flow->priority;
		sums->want -= flow->want;
		if (!flow->want)
			sums->busy -= flow->priority;
	}
	flow->seen = 0;
}

/* Begin a new epoch when the present one is over. */
CC_INLINE void ctrl_turn(struct fq_cc_group *group, __u64 now)
{
	__u64 length = ctrl_at_least(group->rtt_us * 2000ULL, CTRL_LEAST_EPOCH);
	__u64 passed = now > group->epoch_ns ? now - group->epoch_ns : 0;
	struct fq_cc_sums none = {};

	length = ctrl_at_most(length, CTRL_MOST_EPOCH);
	if (passed < length)
		return;
	group->epoch++;
	/* Those of the epoch before the last one. */
	group->sums[group->epoch & 1] = none;
	if (passed >= 2 * length) {
		group->epoch++;
		group->sums[group->epoch & 1] = none;
	}
	group->epoch_ns = now;
	group->rtt_us -= group->rtt_us >> 3;
}

/*
 * A group that was silent for long knows nothing of its path any more: it starts again with the window of the
 * flow that comes first, as the kernel restarts a flow after its silence, up to 3/4 of the window before.
 */
CC_INLINE void ctrl_wake(struct fq_cc_group *group, __u32 cwnd, __u64 now)
{
	__u64 window = (__u64)cwnd << CTRL_BITS;

	if (group->sums[0].all || group->sums[1].all || now < group->used_ns + CTRL_KEPT)
		return;
	if (window >= group->window)
		return;
	group->threshold = ctrl_at_least(group->threshold, group->window - (group->window >> 2));
	group->window = window;
	group->cubic.began = 0;
}

/* The share of a flow, in 1/65536 segments, as one that is not limited by its application. */
CC_INLINE __u64 ctrl_share(const struct fq_cc_group *group, const struct ctrl_flow *flow)
{
	__u64 want = group->sums[0].want + group->sums[1].want;
	__u64 all = (__u64)group->sums[0].all + group->sums[1].all;
	__u64 busy = (__u64)group->sums[0].busy + group->sums[1].busy;
	__u64 p = flow->priority, fair, rest;

	if (ctrl_is_counted(group, flow)) {
		all -= p;
		want -= flow->want;
		if (!flow->want)
			busy -= p;
	}
	want = ctrl_at_most(want << CTRL_BITS, group->window);
	fair = group->window * p / (all + p);
	rest = (group->window - want) * p / (busy + p);
	return ctrl_at_least(fair, rest);
}

/*
 * What a flow is told: its congestion window, in segments. One that is limited by its application keeps an initial
 * window of its share: its next message may be larger. And a quarter more than it wants: otherwise it would seem to
 * use all of it at its next ACK.
 */
CC_INLINE __u32 ctrl_told(const struct fq_cc_group *group, const struct ctrl_flow *flow)
{
	__u64 others = (__u64)group->sums[0].all + group->sums[1].all;
	__u64 share = ctrl_share(group, flow);

	/* Flows round at different points, so that their windows add up to that of the group. */
	if (others > (ctrl_is_counted(group, flow) ? flow->priority : 0))
		share += flow->rounding;
	share >>= CTRL_BITS;
	if (flow->want)
		share = ctrl_at_most(
			share, ctrl_at_least((__u64)flow->want + flow->want / 4, CTRL_INITIAL));
	return ctrl_at_least(share, 1);
}

/* The slow start threshold that goes with it. */
CC_INLINE __u32 ctrl_told_threshold(const struct fq_cc_group *group, __u32 told)
{
	return group->window < group->threshold ? CTRL_INFINITE
						: ctrl_at_least(told, DCTCP_MIN_CWND);
}

/* Take a flow out of its group. */
CC_INLINE void ctrl_leave(struct fq_cc_group *group, struct ctrl_flow *flow)
{
	if (group->born_ns != flow->born_ns)
		return;
	ctrl_forget(group, flow);
	if (group->flows)
		group->flows--;
	flow->born_ns = 0;
}

/* A flow sends, or has an ACK. want: see struct ctrl_flow. */
CC_INLINE void ctrl_seen(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 want, __u32 cwnd,
			 __u32 rtt_us, __u64 now)
{
	struct fq_cc_sums *sums;

	ctrl_turn(group, now);
	ctrl_wake(group, cwnd, now);
	if (!ctrl_is_counted(group, flow))
		flow->credit = group->credit;
	ctrl_forget(group, flow);
	flow->seen = 1;
	flow->epoch = group->epoch;
	flow->want = want;
	sums = &group->sums[group->epoch & 1];
	sums->all += flow->priority;
	sums->want += want;
	if (!want)
		sums->busy += flow->priority;
	group->used_ns = now;
	if (rtt_us > group->rtt_us)
		group->rtt_us = rtt_us;
}

/* A flow sends after a silence, or for the first time. */
CC_INLINE void ctrl_sends(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd,
			  __u32 rtt_us, __u64 now)
{
	ctrl_seen(group, flow, flow->fresh ? 0 : flow->want, cwnd, rtt_us, now);
	flow->fresh = 0;
}

/*
 * Enter a flow into a group. Returns its congestion window: its share as one that sends all that it may. Until it sends,
 * it counts as one that wants an initial window: it may only receive. rtt_us: 0 if it is not known, so that the flow
 * cannot be paced.
 */
CC_INLINE __u32 ctrl_register(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd,
			      __u32 threshold, __u32 una, __u32 next, __u32 rtt_us, __u64 now)
{
	__u32 told;

	if (!group->born_ns) {
		group->born_ns = now;
		group->epoch_ns = group->used_ns = now;
		group->window = (__u64)cwnd << CTRL_BITS;
		group->threshold = (__u64)threshold << CTRL_BITS;
	}
	flow->born_ns = group->born_ns;
	flow->seen = flow->made = flow->paced = flow->paced_until = 0;
	/* Multiples of the golden ratio are spread evenly, however many there are. */
	flow->rounding = group->opened * 40503U & 0xffff;
	flow->una = flow->high = una;
	flow->cuts = group->cuts;
	group->flows++;
	group->opened++;
	ctrl_seen(group, flow, 0, cwnd, rtt_us, now);
	flow->told = told = ctrl_told(group, flow);
	flow->fresh = una == next;
	if (flow->fresh)
		ctrl_seen(group, flow, CTRL_INITIAL, cwnd, rtt_us, now);
	if (told <= cwnd)
		return told;
	flow->paced = rtt_us != 0;
	return rtt_us ? told : cwnd;
}

/* Bytes per second at which a flow that begins with a large share sends: as the group did before. */
CC_INLINE __u64 ctrl_pace(const struct fq_cc_group *group, __u32 mss, __u32 rtt_us)
{
	__u64 bytes =
		ctrl_at_most(group->window >> CTRL_BITS, 1 << 20) * ctrl_at_most(mss, 1 << 16);

	return rtt_us ? bytes * 1000000 / rtt_us : 0;
}

/* Whether it is paced no more: its first window of data has been acknowledged, and the next one. */
CC_INLINE int ctrl_stops_pacing(struct ctrl_flow *flow, __u32 una, __u32 next)
{
	if (!flow->paced)
		return 0;
	if (flow->paced == 1) {
		flow->paced = 2;
		flow->paced_until = next;
	}
	if (ctrl_before(una, flow->paced_until))
		return 0;
	flow->paced = 0;
	return 1;
}

/* An ACK of a flow for this many segments: all flows may rise, and a cut becomes known. */
CC_INLINE void ctrl_acked(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 una, __u32 next,
			  __u32 segments)
{
	group->credit += ctrl_at_least(segments, CTRL_STEP);
	if (flow->cuts != group->cuts) {
		flow->cuts = group->cuts;
		flow->high = next;
	}
	/* So that it is never behind by half of all sequence numbers. */
	if (!ctrl_before(una, flow->high))
		flow->high = una;
	flow->una = una;
	flow->fresh = 0;
}

/*
 * Whether a flow uses its share; one that is still below says nothing about the window of the group. Its share may be
 * larger than at its last ACK, by what the ACKs of others have added since: then what it was counts.
 */
CC_INLINE int ctrl_fills(const struct fq_cc_group *group, const struct ctrl_flow *flow, __u32 cwnd)
{
	return cwnd >= ctrl_at_most(flow->told, ctrl_told(group, flow));
}

/* The congestion window after an ACK, for which the base law has changed the group's. */
CC_INLINE __u32 ctrl_window(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd,
			    __u32 most)
{
	__u32 told = ctrl_told(group, flow);
	__u32 credit = ctrl_at_most(group->credit - flow->credit, most);

	flow->credit = group->credit;
	flow->told = told;
	return told <= cwnd ? told : cwnd + ctrl_at_most(told - cwnd, credit);
}

/*
 * Whether a loss, or a mark, is a new loss event. What was sent before the last cut of the group, of whichever
 * flow, is lost by the event that was answered by that cut.
 */
CC_INLINE int ctrl_is_new_event(const struct fq_cc_group *group, const struct ctrl_flow *flow,
				__u32 una)
{
	return flow->cuts == group->cuts && !ctrl_before(una, flow->high);
}

/* Before the base law cuts the group's window. Nobody else sends: the window is that of this flow. */
CC_INLINE void ctrl_before_cut(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd,
			       __u32 next)
{
	__u64 all = (__u64)group->sums[0].all + group->sums[1].all;
	__u64 window = (__u64)cwnd << CTRL_BITS;

	group->window_before = group->window;
	group->threshold_before = group->threshold;
	if (all <= (ctrl_is_counted(group, flow) ? flow->priority : 0) && window < group->window)
		group->window = window;
	group->cuts++;
	flow->cuts = flow->made = group->cuts;
	flow->high = next;
}

/* After it. */
CC_INLINE void ctrl_after_cut(struct fq_cc_group *group)
{
	group->window = ctrl_at_least(group->window, DCTCP_MIN_CWND << CTRL_BITS);
	group->threshold = group->window;
}

/* Take back the last cut, if this flow has made it. Returns the congestion window. */
CC_INLINE __u32 ctrl_undo(struct fq_cc_group *group, struct ctrl_flow *flow, __u32 cwnd)
{
	if (flow->made && flow->made == group->cuts && group->threshold_before) {
		group->window = ctrl_at_least(group->window, group->window_before);
		group->threshold = group->threshold_before;
		group->threshold_before = 0;
	}
	return ctrl_at_least(cwnd, ctrl_told(group, flow));
}

/*
 * Slow start of the group, one segment for each that is acknowledged; returns how many are left for congestion
 * avoidance.
 */
CC_INLINE __u32 ctrl_slow_start(struct fq_cc_group *group, __u32 acked)
{
	__u64 more = (__u64)acked << CTRL_BITS;

	if (group->window >= group->threshold)
		return acked;
	if (more > group->threshold - group->window)
		more = group->threshold - group->window;
	group->window = ctrl_at_most(group->window + more, CTRL_MOST);
	return acked - (more >> CTRL_BITS);
}

/* Reno's congestion avoidance: a segment for each window that is acknowledged. */
CC_INLINE void ctrl_reno_grow(struct fq_cc_group *group, __u32 acked)
{
	__u64 more = ((__u64)acked << 2 * CTRL_BITS) / ctrl_at_least(group->window, 1);

	group->window = ctrl_at_most(group->window + more, CTRL_MOST);
}

CC_INLINE void ctrl_reno_cut(struct fq_cc_group *group)
{
	group->window >>= 1;
}

#endif
