/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Turns: has a port room for the first window of one more flow? A window is at least one segment, so more flows
 * than the buffer holds segments overflow it, whatever the law. Then the next connections wait, each with its SYN
 * or SYN-ACK, until others have ended.
 *
 * Flows that share the pool have at least one segment each under way; if more is in the queue, that counts. Flows
 * that have just begun have sent nothing yet: their first windows are expected, and the port sends them at its rate.
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

/* Whether so many handshakes are incomplete that nobody waits. */
static inline __attribute__((always_inline)) bool turns_flooded(const struct fq_room *r)
{
	return r->half_open >= r->allowance;
}

static inline __attribute__((always_inline)) bool turns_have_room(const struct fq_room *r)
{
	__u64 shared = (__u64)r->flows * r->frame;

	if (turns_flooded(r))
		return true;
	if (shared + r->expected < (__u64)TURNS_FEW * r->frame)
		return true;
	return law_max(r->backlog, shared) + r->expected + r->first <= r->limit;
}

/* The segment size that a law counts with. */
static inline __attribute__((always_inline)) __u32 turns_segment(const struct fq_law_state *st)
{
	return st->segment ? st->segment : DEFAULT_SEGMENT;
}

/*
 * The first window of the next flow as it fills the queue: what the law grants, but no more than a host sends at
 * once. n flows share the pool with it, `young` of them are young.
 */
static inline __attribute__((always_inline)) __u32
turns_first_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n, __u32 young)
{
	__u32 segment = turns_segment(st);
	__u64 window = law_window(p, st, n, young, 0, segment);

	window = law_max(law_min(window, (__u64)p->first_window * segment), segment);
	return law_min(window + law_div(window + segment - 1, segment) * SEGMENT_HEADERS, MAX_POOL);
}

/* The first windows that the port has not sent yet. */
static inline __attribute__((always_inline)) __u32
turns_expected(const struct fq_law *p, const struct fq_turns *t, __u64 now)
{
	/* Longer than that, anything expected has been sent. */
	__u64 spent = law_min(law_less(now, t->expected_ns), NS_PER_S);

	return law_less(t->expected, law_bytes(p->rate, spent));
}

/* The handshakes that have had their turn and are not complete. */
static inline __attribute__((always_inline)) __u32
turns_half_open(const struct fq_turns *t, const struct fq_law_state *st, __u64 now)
{
	if (law_less(now, t->begun_ns) >= UNPROVEN_NS)
		return 0;
	return law_less(t->begun, law_less(st->proven, t->proven));
}

/*
 * A handshake has its turn: the first window of its flow, fq_turns.first, is expected. More than the buffer holds is
 * never expected, so that the port is free again soon after a flood.
 */
static inline __attribute__((always_inline)) void
turns_admit(const struct fq_law *p, const struct fq_law_state *st, struct fq_turns *t, __u64 now)
{
	if (law_less(now, t->begun_ns) >= UNPROVEN_NS) {
		t->begun_ns = now;
		t->begun = 0;
		t->proven = st->proven;
	}
	t->begun++;
	t->expected = law_min((__u64)turns_expected(p, t, now) + t->first, p->limit);
	t->expected_ns = now;
}

#endif
