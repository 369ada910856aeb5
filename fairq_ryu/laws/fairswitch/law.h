/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * FairSwitch, the NetFPGA prototype of FairQ, in two forms: as its code (Verilog), and as the text of the paper
 * describes it. In both, each flow has the target divided by the number of flows, and what differs is how this
 * window follows the queue.
 *
 * Verilog: a trim, which moves by a small step in each interval and rests while the queue is near the target.
 *
 * Text: Algorithm 1 moves the window itself, in proportion to the distance of the queue from the target, once in
 * `increments` intervals. The queue is the mean of the last 32 samples, one in each interval. Flows count with their
 * SYN-ACK until a FIN or RST, and no longer after a second without any. When their number changes, the window is
 * worked out anew.
 */
#ifndef FAIRQ_LAW_FAIRSWITCH_H
#define FAIRQ_LAW_FAIRSWITCH_H

#include "../../agent/bpf/laws/own.h"
#include "../../agent/bpf/laws/pool.h"

#define FAIRSWITCH_LEAST         2048 /* bytes, of the code: the smallest window before the trim */
#define FAIRSWITCH_EMPTY         80 /* bytes, of the code: a queue that is not longer counts as empty */
#define FAIRSWITCH_SAMPLES       32 /* AVG_32 */
#define FAIRSWITCH_SAMPLES_SHIFT 5
#define FAIRSWITCH_FLOWS         1000000 /* that are counted */
#define FAIRSWITCH_SETTLE_SHIFT  24

struct fairswitch_law {
	__u32 trim_step;  /* of the code: change of the trim in one tick, bytes */
	__u32 increments; /* of the text: M; 0: the law is that of the code */
	__u32 settle_q24; /* of the text: M is at least so much for each byte of a segment */
};

struct fairswitch_state {
	__u32 trim;   /* of the code, bytes; all else is of the text */
	__u32 flows;  /* that count */
	__u64 window; /* of each, bytes << 8 */
	__u64 below; /* sums of the distances of the mean queue from the target since the last update */
	__u64 above;
	__u32 intervals; /* since then */
	__u16 avoidance; /* 1: slow start is over */
	__u16 next;      /* place of the oldest sample */
	__u64 sum;       /* of all samples */
	__u32 samples[FAIRSWITCH_SAMPLES];
};

/* The number of flows has changed. Without flows, the next one begins with the whole target, in slow start. */
LAW_INLINE void fairswitch_share(const struct fq_law *p, struct fairswitch_state *own, __u32 flows)
{
	flows = law_min(flows, FAIRSWITCH_FLOWS);
	if (flows == own->flows)
		return;
	own->flows = flows;
	own->window = law_div((__u64)p->target << POOL_SHIFT, law_max(flows, 1));
	if (!flows)
		own->avoidance = 0;
}

LAW_INLINE void fairswitch_flow_began(const struct fq_law *p, struct fq_law_state *st,
				      __u32 backlog, __u64 now)
{
	struct fairswitch_state *own = LAW_STATE(fairswitch, st);

	if (!LAW_OWN(fairswitch, p)->increments)
		return;
	/* What was open before a second without any has ended, though nobody may have seen its end. */
	if (law_less(now, st->seen_ns) >= NS_PER_S)
		fairswitch_share(p, own, 0);
	fairswitch_share(p, own, own->flows + 1);
}

LAW_INLINE void fairswitch_flow_ended(const struct fq_law *p, struct fq_law_state *st)
{
	struct fairswitch_state *own = LAW_STATE(fairswitch, st);

	if (LAW_OWN(fairswitch, p)->increments && own->flows)
		fairswitch_share(p, own, own->flows - 1);
}

LAW_INLINE __u32 fairswitch_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
				   __u32 young, __u64 sent, __u32 mss)
{
	const struct fairswitch_state *own = LAW_STATE(fairswitch, st);
	__u64 window;

	if (!LAW_OWN(fairswitch, p)->increments)
		window = law_max(FAIRSWITCH_LEAST, law_div(p->target, n ? n : 1)) + own->trim;
	else
		window = own->flows ? own->window >> POOL_SHIFT : p->target;
	return law_min(law_max(window, st->segment), pool_cap(p, st));
}

/* The code: move the trim. */
LAW_INLINE void fairswitch_trim(const struct fq_law *p, struct fq_law_state *st, __u32 flows,
				__u32 ticks)
{
	__u32 dead = st->segment / 4;
	struct fairswitch_state *own = LAW_STATE(fairswitch, st);
	__u64 step = (__u64)LAW_OWN(fairswitch, p)->trim_step * ticks;

	if (!flows) {
		own->trim = 0;
	} else if (st->queue > (__u64)p->target + dead) {
		own->trim = law_less(own->trim, step);
		st->updates++;
	} else if (st->queue > FAIRSWITCH_EMPTY && (__u64)st->queue + dead < p->target) {
		own->trim = law_min(own->trim + step, p->limit);
		st->updates++;
	}
}

/* The text, AVG_32: the queue of so many intervals. Returns the mean of the last 32. */
LAW_INLINE __u32 fairswitch_mean(struct fairswitch_state *own, __u32 queue, __u32 ticks)
{
	for (__u32 i = 0; i < FAIRSWITCH_SAMPLES; i++) {
		__u32 *oldest = &own->samples[own->next % FAIRSWITCH_SAMPLES];

		if (i >= ticks)
			break;
		own->sum = own->sum - *oldest + queue;
		*oldest = queue;
		own->next++;
	}
	return own->sum >> FAIRSWITCH_SAMPLES_SHIFT;
}

/* M, or more: with larger segments Algorithm 1 would swing. */
LAW_INLINE __u32 fairswitch_increments(const struct fq_law *p, const struct fq_law_state *st)
{
	__u64 settles = (__u64)LAW_OWN(fairswitch, p)->settle_q24 * st->segment;

	settles = (settles + (1 << FAIRSWITCH_SETTLE_SHIFT) - 1) >> FAIRSWITCH_SETTLE_SHIFT;
	return law_max(LAW_OWN(fairswitch, p)->increments, settles);
}

/* The text, Algorithm 1: M intervals or more have passed, in which the mean of the queue was `mean` at last. */
LAW_INLINE void fairswitch_update(const struct fq_law *p, struct fq_law_state *st, __u32 mean)
{
	__u32 m = fairswitch_increments(p, st);
	struct fairswitch_state *own = LAW_STATE(fairswitch, st);
	__u64 sum = law_max(own->below, own->above) - law_min(own->below, own->above);
	__u64 change = law_div(sum * st->segment << POOL_SHIFT, (__u64)m * p->target * own->flows);

	if (!own->avoidance) {
		own->window += (__u64)own->intervals / m * 2 * st->segment << POOL_SHIFT;
		own->avoidance = mean >= p->target;
	} else if (own->below >= own->above) {
		own->window += change;
	} else {
		own->window = law_less(own->window, change);
	}
	own->window = law_min(own->window, pool_cap(p, st) << POOL_SHIFT);
	own->below = own->above = 0;
	own->intervals = 0;
	st->updates++;
}

/*
 * The text. Flows that were open before the law, and that have been counted out, are not missed: at least those count
 * that are seen to use their windows. The timer of Algorithm 1 rests while there are none.
 */
LAW_INLINE void fairswitch_follow(const struct fq_law *p, struct fq_law_state *st,
				  const struct fq_law_input *in, __u32 ticks)
{
	struct fairswitch_state *own = LAW_STATE(fairswitch, st);
	__u32 mean = fairswitch_mean(own, st->queue, ticks);
	bool silent = law_less(in->now_ns, st->seen_ns) >= NS_PER_S;

	fairswitch_share(p, own, silent ? in->flows : law_max(own->flows, in->flows));
	if (!own->flows)
		return;
	if (mean < p->target)
		own->below += (__u64)(p->target - mean) * ticks;
	else
		own->above += (__u64)(mean - p->target) * ticks;
	own->intervals += ticks;
	if (own->intervals >= fairswitch_increments(p, st))
		fairswitch_update(p, st, mean);
}

LAW_INLINE void fairswitch_tick(const struct fq_law *p, struct fq_law_state *st,
				const struct fq_law_input *in, __u32 ticks)
{
	bool text = LAW_OWN(fairswitch, p)->increments;
	__u32 flows = in->flows;

	if (text) {
		fairswitch_follow(p, st, in, ticks);
		flows = LAW_STATE(fairswitch, st)->flows;
	} else {
		fairswitch_trim(p, st, flows, ticks);
	}
	st->granted = law_min((__u64)flows * fairswitch_window(p, st, flows, 0, 0, 0), MAX_POOL);
}

#endif
