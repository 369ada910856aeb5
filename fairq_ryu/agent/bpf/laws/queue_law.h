/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The queue laws: each packet that is about to enter the queue of a port passes, is dropped, or gets the CE mark.
 *
 *   packet at tc egress -> queue_law_judge -> NAME_judge of the law in fairq_ryu/laws/NAME/law.h
 *
 * The queue is a FIFO that drains at rate C, so a packet that finds the backlog Q in it will wait for Q / C: what laws
 * for the end of a queue (CoDel) measure there, is known here. A packet is dropped before it takes room.
 *
 * Nothing here reads a clock or a map, or draws a random number: all of it compiles for eBPF and for the host. No
 * function calls in eBPF: the laws run under a spin lock.
 */
#ifndef FAIRQ_QUEUE_LAW_H
#define FAIRQ_QUEUE_LAW_H

#include <fairq_queue_laws.h>

#include "queue_law_common.h"

/* Whether a law needs the hash of the flow. */
LAW_INLINE bool needs_flow_hash(const struct fq_queue_law *p)
{
	return p->flags & (FQ_QLAW_FLOWS | FQ_QLAW_BINS);
}

/* Whether a law needs a random number for this packet: NAME_draws, or else that with the hash of the flow. */
LAW_INLINE bool needs_random(const struct fq_queue_law *p, const struct fq_queue_law_state *st)
{
#define DRAWS(number, draws) LAW_CALL(number, return draws(st))
	QUEUE_LAWS_WITH_DRAWS(DRAWS)
	return needs_flow_hash(p);
}

/* A packet of a flow with this hash, of so many segments, has entered the queue of a law with bins, or left it. */
LAW_INLINE void queue_law_entered(const struct fq_queue_law *p, struct fq_sfb_bins *bins,
				  __u32 hash, __u32 segments)
{
#define ENTERED(number, entered) LAW_CALL(number, entered(bins, hash, segments))
	QUEUE_LAWS_WITH_ENTERED(ENTERED);
}

LAW_INLINE void queue_law_left(const struct fq_queue_law *p, struct fq_sfb_bins *bins, __u32 hash,
			       __u32 segments)
{
#define LEFT(number, left) LAW_CALL(number, left(bins, hash, segments))
	QUEUE_LAWS_WITH_LEFT(LEFT);
}

/* Count what was decided about a packet. */
LAW_INLINE void count_verdict(struct fq_queue_law_state *st, const struct fq_queue_law_input *in,
			      __u32 verdict)
{
	st->counts.judged += in->segments;
	if (!in->ect)
		st->counts.not_ect += in->segments;
	if (verdict == FQ_DROP) {
		st->counts.dropped += in->segments;
		st->counts.dropped_bytes += in->len;
	} else if (verdict == FQ_MARK) {
		st->counts.marked += in->segments;
	}
	st->last_ns = in->now_ns;
}

/*
 * Judge a packet. `flows` is the flow table of a law that has one, `bins` are those of one that has them. A law that lacks
 * its table lets everything pass.
 */
LAW_INLINE __u32 queue_law_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
				 struct fq_flow_table *flows, struct fq_sfb_bins *bins,
				 const struct fq_queue_law_input *in)
{
	__u32 verdict = FQ_PASS;

	st->backlog = in->backlog;
#define JUDGE(number, judge) LAW_CALL(number, verdict = judge(p, st, flows, bins, in))
	QUEUE_LAWS_WITH_JUDGE(JUDGE);
	count_verdict(st, in, verdict);
	return verdict;
}

#endif
