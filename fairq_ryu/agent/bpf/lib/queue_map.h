/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The maps of queues: the queue program and the agent write them, the programs at tc egress read them. */
#ifndef FAIRQ_QUEUE_MAP_H
#define FAIRQ_QUEUE_MAP_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "backlog.h"

/* By ifindex. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue);
} queues SEC(".maps");

/* Likewise. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue_check);
} queue_checks SEC(".maps");

/* The backlog of the queue of a port, bytes; 0 if there is none. */
static __always_inline __u32 queue_backlog(__u32 ifindex, __u64 now)
{
	const struct fq_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);
	const struct fq_queue_check *check;

	if (!queue)
		return 0;
	if (queue->drain)
		return virtual_backlog(queue, now);
	/* A busy queue is spared the second look-up: no drain_ns is shorter. */
	if (!queue->backlog || now <= queue->last_ns + FQ_MARGIN_NS)
		return queue->backlog;
	check = bpf_map_lookup_elem(&queue_checks, &ifindex);
	return check ? believed_backlog(queue, check, now) : queue->backlog;
}

#endif
