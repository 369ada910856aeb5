/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Events for the agent when a queue crosses one of its thresholds. The programs that keep queues share the maps. */
#ifndef FAIRQ_THRESHOLD_EVENTS_H
#define FAIRQ_THRESHOLD_EVENTS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "threshold_maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} threshold_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_ring_count);
} event_count SEC(".maps");

/* If the backlog has crossed a threshold, send the agent an event. */
static __noinline int report_crossing(struct fq_queue *st, __u32 ifindex)
{
	const struct fq_threshold *t = bpf_map_lookup_elem(&thresholds, &ifindex);
	struct fq_threshold_event *event;
	struct fq_ring_count *count;
	__u32 zero = 0, state;

	if (!st || !t || !t->cng)
		return 0;
	state = st->state;
	if (st->backlog >= t->cng)
		state = FQ_CNG;
	else if (st->backlog <= t->nom)
		state = FQ_NOM;
	if (state == st->state)
		return 0;
	st->state = state;
	event = bpf_ringbuf_reserve(&threshold_events, sizeof(*event), 0);
	count = bpf_map_lookup_elem(&event_count, &zero);
	if (!event) {
		if (count)
			__sync_fetch_and_add(&count->lost, 1);
		return 0;
	}
	if (count)
		__sync_fetch_and_add(&count->sent, 1);
	event->ns = st->last_ns;
	event->ifindex = ifindex;
	event->state = state;
	event->backlog = st->backlog;
	event->pad = 0;
	bpf_ringbuf_submit(event, 0);
	return 0;
}

#endif
