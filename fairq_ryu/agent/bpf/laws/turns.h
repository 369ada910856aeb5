/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Turns: has a port room for the first window of one more flow? A window is at least one segment, so more flows
 * than the buffer holds segments overflow it, whatever the law. Then the next connections wait, each with its SYN
 * or SYN-ACK, until others have ended.
 *
 * Flows that share the pool have at least the law's minimum window each under way, which may be several segments. If
 * more is in the queue, that counts. Flows that have just begun have sent nothing yet: their first windows are expected
 * until they have come, whatever the port sends meanwhile, because the senders of the queue send as much again. A
 * handshake leaves behind what is in the queue and takes a round trip, so a first window comes within fq_turns.hold_ns.
 *
 * Against floods of SYNs: a forged handshake that has had its turn is never completed. While as many as the allowance
 * (fq_law.syn_allowance) are incomplete, nobody waits and no further first window is expected, as without turns.
 * After UNPROVEN_NS all of them are forgotten. The allowance is at least the number of flows for which the buffer has
 * room, so honest handshakes do not use it up: they are completed within a round-trip time.
 */
#ifndef FAIRQ_LAW_TURNS_H
#define FAIRQ_LAW_TURNS_H

#include "law.h"

#define TURNS_FEW 4 /* segments: with less under way, nobody waits, however small the buffer */
#define MOST_HOLD (NS_PER_S / 5) /* that a first window is expected, however slow the port */

/* Whether so many handshakes are incomplete that nobody waits. */
LAW_INLINE bool turns_flooded(const struct fq_room *r)
{
	return r->half_open >= r->allowance;
}

LAW_INLINE bool turns_have_room(const struct fq_room *r)
{
	__u64 shared = (__u64)r->flows * r->frame;

	if (turns_flooded(r))
		return true;
	if (shared + r->expected < (__u64)TURNS_FEW * r->frame)
		return true;
	return law_max((__u64)r->backlog + r->expected, (__u64)r->flows * r->floor) + r->first <=
	       r->limit;
}

/* The segment size that a law counts with. */
LAW_INLINE __u32 turns_segment(const struct fq_law_state *st)
{
	return st->segment ? st->segment : DEFAULT_SEGMENT;
}

/* A window as it fills the queue: with headers. */
LAW_INLINE __u32 turns_frames(const struct fq_law_state *st, __u64 window)
{
	__u32 segment = turns_segment(st);

	return law_min(window + law_div(window + segment - 1, segment) * SEGMENT_HEADERS, MAX_POOL);
}

/* The minimum window of each of n flows, of which `young` are young, as it fills the queue. */
LAW_INLINE __u32 turns_floor(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			     __u32 young)
{
	return turns_frames(st, law_max(law_floor(p, st, n, young), turns_segment(st)));
}

/*
 * The first window of the next flow as it fills the queue: what the law grants, but no more than a host sends at
 * once, and no less than its minimum, which the flow has soon after. n flows share the pool with it, `young` of them
 * are young.
 */
LAW_INLINE __u32 turns_first_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
				    __u32 young)
{
	__u32 segment = turns_segment(st);
	__u64 window = law_window(p, st, n, young, 0, segment);

	window = law_max(law_min(window, (__u64)p->first_window * segment), segment);
	return law_max(turns_frames(st, window), turns_floor(p, st, n, young));
}

/*
 * The longest time from a handshake's turn until the first window of its flow is in the queue: the handshake leaves
 * behind what the buffer holds, and takes a round trip. Measured round trips may have waited in the queue themselves,
 * so they count up to the time that the port takes to send its buffer.
 */
LAW_INLINE __u64 turns_hold(const struct fq_law *p, const struct fq_law_state *st)
{
	__u64 drain = law_div((__u64)p->limit * NS_PER_S, p->rate);

	return law_min(drain + law_max(p->base_rtt_ns, law_min(st->rtt_ns, drain)), MOST_HOLD);
}

/* The first windows that may not have come yet: of the last one to two times hold_ns. */
LAW_INLINE __u32 turns_expected(const struct fq_law *p, const struct fq_turns *t, __u64 now)
{
	__u64 age = law_less(now, t->expected_ns);

	if (age >= 2 * t->hold_ns)
		return 0;
	if (age >= t->hold_ns)
		return t->expected;
	return law_min((__u64)t->expected + t->earlier, p->limit);
}

/* The handshakes that have had their turn and are not complete. */
LAW_INLINE __u32 turns_half_open(const struct fq_turns *t, const struct fq_law_state *st, __u64 now)
{
	if (law_less(now, t->begun_ns) >= UNPROVEN_NS)
		return 0;
	return law_less(t->begun, law_less(st->proven, t->proven));
}

/*
 * A handshake leaves: the first window of its flow is expected, fq_turns.first, or 0 if its sender's window is closed.
 * More than the buffer holds is never expected, so that the port is free again soon after a flood.
 */
LAW_INLINE void turns_admit(const struct fq_law *p, const struct fq_law_state *st,
			    struct fq_turns *t, __u32 first, __u64 now)
{
	if (law_less(now, t->begun_ns) >= UNPROVEN_NS) {
		t->begun_ns = now;
		t->begun = 0;
		t->proven = st->proven;
	}
	t->begun++;
	if (law_less(now, t->expected_ns) >= 2 * t->hold_ns) {
		t->earlier = 0;
		t->expected = 0;
		t->expected_ns = now;
	} else if (law_less(now, t->expected_ns) >= t->hold_ns) {
		t->earlier = t->expected;
		t->expected = 0;
		t->expected_ns += t->hold_ns;
	}
	t->expected = law_min((__u64)t->expected + first, p->limit);
}

#endif
