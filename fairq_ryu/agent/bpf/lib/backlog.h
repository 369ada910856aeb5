/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long the backlog of a queue is believed. The kernel calls no tracing program for some milliseconds while another
 * one is attached or detached, so the queue program can miss the events that empty a queue. Under load the next event
 * has the exact backlog again. But a queue that is idle afterwards would have a backlog until its next packet.
 *
 *   event                           -> its backlog is believed for drain_ns, in which a queue with a backlog has events
 *   none since then                 -> the backlog counts as 0, and the agent reads the qdisc
 *   the qdisc was read, and no event since -> what was read is believed, for drain_ns again
 *
 * The tracepoints write fq_queue, the agent writes fq_queue_check: there is one writer for each, so an event that comes
 * while the agent reads the qdisc is never overwritten. A virtual queue misses nothing, and drains between its packets.
 *
 * Compiles for eBPF and for the host; the twin in Python is
 * fairq_ryu/agent/programs/backlog.py.
 */
#ifndef FAIRQ_BACKLOG_H
#define FAIRQ_BACKLOG_H

#include <linux/types.h>

#include "../laws/arithmetic.h"
#include "../layout.h"
#include "virtual_queue.h"

/* The backlog, bytes. */
static inline __attribute__((always_inline)) __u32
believed_backlog(const struct fq_queue *q, const struct fq_queue_check *c, __u64 now)
{
	__u64 since = q->last_ns;
	__u32 backlog = q->backlog;

	if (q->drain)
		return virtual_backlog(q, now);
	if (c->event_ns == since) {
		since = c->ns;
		backlog = c->backlog;
	}
	return law_less(now, since) > c->drain_ns ? 0 : backlog;
}

/* Its integral since the last event, byte ns. */
static inline __attribute__((always_inline)) __u64
believed_byte_ns(const struct fq_queue *q, const struct fq_queue_check *c, __u64 now)
{
	__u64 since = q->last_ns, before = 0;
	__u32 backlog = q->backlog;

	if (q->drain)
		return virtual_byte_ns(q, now);
	if (c->event_ns == since) {
		since = c->ns;
		backlog = c->backlog;
		before = c->byte_ns;
	}
	return before + law_min(law_less(now, since), c->drain_ns) * backlog;
}

#endif
