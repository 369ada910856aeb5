/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The queue laws: each packet that is about to enter the queue of a port passes, is dropped, or gets the CE mark.
 *
 *   packet at tc egress -> queue_law_judge -> afq.h, afcd.h, red.h, codel.h, sfb.h, or a threshold (mark)
 *
 * The queue is a FIFO that drains at rate C, so a packet that finds the backlog Q in it will wait for Q / C: what laws
 * for the end of a queue (CoDel) measure there, is known here. A packet is dropped before it takes room.
 *
 * Nothing here reads a clock or a map, or draws a random number: all of it compiles for eBPF and for the host. No
 * function calls in eBPF: the laws run under a spin lock.
 */
#ifndef FAIRQ_QUEUE_LAW_H
#define FAIRQ_QUEUE_LAW_H

#include "queue_afcd.h"
#include "queue_afq.h"
#include "queue_codel.h"
#include "queue_law_common.h"
#include "queue_red.h"
#include "queue_sfb.h"

/*
 * DCTCP's marking: by the queue with this packet; of several segments, by that with the middle one: a mark is a mark of
 * all. Only packets that are ECN-capable are marked, the others pass: the queue itself drops them when it is full.
 */
LAW_INLINE __u32 mark_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
			    const struct fq_queue_law_input *in)
{
	if (in->backlog + ((__u64)in->len + segment_bytes(in)) / 2 <= p->mark_bytes)
		return FQ_PASS;
	if (in->ect)
		return FQ_MARK;
	st->counts.unmarked += in->segments;
	return FQ_PASS;
}

/* Whether a law needs the hash of the flow. */
LAW_INLINE bool needs_flow_hash(__u32 kind)
{
	return kind == FQ_QLAW_AFQ || kind == FQ_QLAW_AFCD || kind == FQ_QLAW_SFB;
}

/* Whether a law needs a random number for this packet. */
LAW_INLINE bool needs_random(__u32 kind, const struct fq_queue_law_state *st)
{
	return needs_flow_hash(kind) || (kind == FQ_QLAW_RED && !st->draw_q32);
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
 * Judge a packet. `flows` is the flow table of afq and afcd, `bins` those of sfb; NULL: the law needs none. A law that
 * lacks its table lets everything pass.
 */
LAW_INLINE __u32 queue_law_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
				 struct fq_flow_table *flows, struct fq_sfb_bins *bins,
				 const struct fq_queue_law_input *in)
{
	__u32 verdict = FQ_PASS;

	st->backlog = in->backlog;
	if (p->kind == FQ_QLAW_MARK)
		verdict = mark_judge(p, st, in);
	else if (p->kind == FQ_QLAW_RED)
		verdict = red_judge(p, st, in);
	else if (p->kind == FQ_QLAW_CODEL)
		verdict = codel_judge(p, st, in);
	else if (p->kind == FQ_QLAW_SFB && bins)
		verdict = sfb_judge(p, st, bins, in);
	else if (p->kind == FQ_QLAW_AFQ && flows)
		verdict = afq_judge(p, st, flows, in);
	else if (p->kind == FQ_QLAW_AFCD && flows)
		verdict = afcd_judge(p, st, flows, in);
	count_verdict(st, in, verdict);
	return verdict;
}

#endif
