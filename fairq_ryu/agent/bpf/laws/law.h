/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The window laws: what happens at a tick, when a flow begins or ends, and the window of a flow.
 *
 *   queue tracepoint, at least T after the last tick  -> law_tick
 *   SYN, SYN-ACK and the ACK that completes them      -> law_opening: law_flow_began once for each flow
 *   FIN in sequence, or RST                           -> law_flow_ended
 *   ACK whose data leaves by the port                 -> law_window, law_limited; with FQ_LAW_FLOWS, law_acked
 *   data, with FQ_LAW_FLOWS                           -> law_sent
 *
 * What differs between the laws is in their headers, fairq_ryu/laws/NAME/law.h: the functions NAME_tick and so on, of
 * which a law may lack those that it does not need. The generated header <fairq_laws.h> includes these headers, and has
 * for each such function the list of the laws that define it.
 *
 * Nothing here reads a clock or a map: all of it compiles for eBPF and for the host.
 */
#ifndef FAIRQ_LAW_H
#define FAIRQ_LAW_H

#include <fairq_laws.h>

#include "opening.h"
#include "own.h"
#include "pool.h"
#include "round.h"

#define DEFAULT_SEGMENT 1460
#define MOST_SEGMENT    8960 /* in a frame of 9,000 bytes, the largest that is usual on Ethernet */
#define SEGMENT_NS      NS_PER_S /* a flow that was seen counts for so long, and at most twice as long */
#define MOST_TICKS      64       /* that one late tick makes up for */
#define MOST_RTT        (NS_PER_S / 2) /* of a flow that counts */
#define RTT_KNOWN_NS    NS_PER_S       /* the shortest round trip counts for so long */

/*
 * A flow has been seen whose two ends announce these MSS; 0: none. Neither end sends larger segments than the other
 * receives. The segment of the law is the largest of the flows of the last one to two periods.
 */
LAW_INLINE void law_segment(struct fq_law_state *st, __u32 one, __u32 other, __u64 now)
{
	__u32 mss = law_min(one && other ? law_min(one, other) : one + other, MOST_SEGMENT);
	__u64 age = law_less(now, st->segment_ns);

	if (age >= SEGMENT_NS) {
		st->segment_before = age < 2 * SEGMENT_NS ? st->segment_now : 0;
		st->segment_now = 0;
		st->segment_ns = now;
	} else if (mss <= st->segment_now) {
		return;
	}
	st->segment_now = law_max(st->segment_now, mss);
	if (st->segment_now || st->segment_before)
		st->segment = law_max(st->segment_now, st->segment_before);
}

/* Run the law if it is due. Returns whether it did. */
LAW_INLINE bool law_tick(const struct fq_law *p, struct fq_law_state *st,
			 const struct fq_law_input *in)
{
	__u64 elapsed = in->now_ns - st->last_ns, area = in->byte_ns - st->byte_ns;
	bool behind = area >> 63;
	__u32 ticks;

	/* Another processor may have written a time to a state that was cleared for this law: only a pool shows that
	 * it has begun. */
	if (!st->last_ns || !st->pool) {
		if (!st->segment)
			st->segment = DEFAULT_SEGMENT;
		start_pool(p, st);
		bound_pool(p, st, in->flows);
		st->queue = in->backlog;
	} else {
		/* Another processor's clock, or reading, may be behind: this one counts with the next tick. The
		 * integral of the queue wraps. One that stays behind for a second is that of another queue. */
		if (in->now_ns <= st->last_ns || elapsed < p->interval_ns ||
		    (behind && elapsed <= NS_PER_S))
			return false;
		ticks = law_min(law_max(law_div(elapsed, p->interval_ns), 1), MOST_TICKS);
		if (ticks > 2)
			st->late++;
		st->queue = law_min(behind ? in->backlog : area / elapsed, MAX_POOL);
		st->limited_by = FQ_LIMITED_BY_QUEUE;
#define TICK(number, tick) LAW_CALL(number, tick(p, st, in, ticks))
		LAWS_WITH_TICK(TICK) if (p->gain_q16) pool_tick(p, st, in, ticks);
	}
	st->last_ns = in->now_ns;
	st->byte_ns = in->byte_ns;
	st->flows = in->flows;
	st->young = in->young;
	return true;
}

/* A flow begins whose data leaves by the port. */
LAW_INLINE void law_flow_began(const struct fq_law *p, struct fq_law_state *st, __u32 backlog,
			       __u64 now)
{
#define FLOW_BEGAN(number, began) LAW_CALL(number, began(p, st, backlog, now))
	LAWS_WITH_FLOW_BEGAN(FLOW_BEGAN);
}

/* A handshake has come to a step: `flags` of its direction; returns the new ones. */
LAW_INLINE __u32 law_opening(const struct fq_law *p, struct fq_law_state *st, __u32 step,
			     __u32 flags, __u32 backlog, __u64 now)
{
	if (step == FQ_OPENING_PROVEN)
		st->proven++;
	if (law_counts(p, st, step, &flags, now)) {
		if (!st->segment)
			st->segment = DEFAULT_SEGMENT;
		law_flow_began(p, st, backlog, now);
	}
	return flags;
}

LAW_INLINE void law_flow_ended(const struct fq_law *p, struct fq_law_state *st)
{
#define FLOW_ENDED(number, ended) LAW_CALL(number, ended(p, st))
	LAWS_WITH_FLOW_ENDED(FLOW_ENDED);
}

/*
 * The window of a flow, bytes; FQ_NO_WINDOW: it keeps its own. n flows share the pool, this one among them;
 * `young` of them are young. This one has sent `sent` bytes, and its segments have `mss`.
 */
LAW_INLINE __u32 law_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			    __u32 young, __u64 sent, __u32 mss)
{
#define WINDOW(number, window) LAW_CALL(number, return window(p, st, n, young, sent, mss))
	LAWS_WITH_WINDOW(WINDOW)
	return FQ_NO_WINDOW;
}

/* The minimum window of each of n flows where new connections take turns, of which `young` are young, bytes. */
LAW_INLINE __u64 law_floor(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			   __u32 young)
{
#define FLOOR(number, floor) LAW_CALL(number, return floor(p, st, n, young))
	LAWS_WITH_FLOOR(FLOOR)
	return p->flags & FQ_LAW_FLOOR ? floor_window(p, st, n) : st->segment;
}

/*
 * Data of a flow leaves in a frame of `len` bytes and finds this backlog. `again`: it has left before. A frame may be of
 * several segments (segmentation offload).
 */
LAW_INLINE void law_sent(const struct fq_law *p, struct fq_law_flow *f, __u32 backlog, __u32 len,
			 __u32 payload, __u32 mss, bool again)
{
#define SENT(number, sent) LAW_CALL(number, sent(p, f, backlog, len, payload, mss, again))
	LAWS_WITH_SENT(SENT);
}

/* An ACK of a flow. Returns its window, bytes. */
LAW_INLINE __u32 law_acked(const struct fq_law *p, struct fq_law_flow *f,
			   const struct fq_law_ack *in)
{
#define ACKED(number, acked) LAW_CALL(number, return acked(p, f, in))
	LAWS_WITH_ACKED(ACKED)
	return FQ_NO_WINDOW;
}

/* An ACK shows that a flow had `flight` of its `granted` bytes under way: does it use its window? */
LAW_INLINE bool law_uses_window(__u32 flight, __u32 granted)
{
	return flight > granted / 2;
}

/*
 * ... and all of it? Then the pool may be raised. `rtt`: what the handshake of the flow took, ns; 0: not known. Of
 * all such flows the shortest counts: if a flow with a short round trip wants more, the queue shows soon what it does.
 */
LAW_INLINE void law_limited(struct fq_law_state *st, __u32 flight, __u32 granted, __u64 rtt,
			    __u64 now)
{
	if ((__u64)flight + st->segment <= granted)
		return;
	st->limited_ns = now;
	if (!rtt ||
	    (st->rtt_ns && rtt > st->rtt_ns && law_less(now, st->rtt_seen_ns) < RTT_KNOWN_NS))
		return;
	st->rtt_ns = law_min(rtt, MOST_RTT);
	st->rtt_seen_ns = now;
}

#endif
