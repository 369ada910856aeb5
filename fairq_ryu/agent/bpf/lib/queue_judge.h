/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A queue law with its maps, under its lock: packets for one port may leave on several processors at once. The maps here
 * are not for tracing programs, which may not have locks.
 */
#ifndef FAIRQ_QUEUE_JUDGE_H
#define FAIRQ_QUEUE_JUDGE_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../laws/queue_law.h"
#include "../layout.h"
#include "queue_law_maps.h"

/* fq_locked_queue_law of the layout, with the lock as the kernel knows it. */
struct locked_queue_law {
	struct bpf_spin_lock lock;
	__u32 pad;
	struct fq_queue_law_state state;
};

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct locked_queue_law);
} queue_law_states SEC(".maps");

/* By fq_queue_law.table. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_flow_table);
} flow_tables SEC(".maps");

/* Judge a packet by the law in a slot; `draw`: with a random number of the kernel if the law needs one now. */
static __always_inline __u32 judge_by(const struct fq_queue_law *law, __u32 slot,
				      struct fq_queue_law_input *in, bool draw)
{
	struct locked_queue_law *entry = bpf_map_lookup_elem(&queue_law_states, &slot);
	struct fq_flow_table *flows = NULL;
	struct fq_sfb_bins *bins = NULL;
	__u32 table = law->table, verdict;

	if (!entry)
		return FQ_PASS;
	if (law->flags & FQ_QLAW_FLOWS)
		flows = bpf_map_lookup_elem(&flow_tables, &table);
	else if (law->flags & FQ_QLAW_BINS)
		bins = bpf_map_lookup_elem(&sfb_bins, &table);
	/* Not under the lock. If another processor takes it meanwhile, red waits for the next packet's. */
	if (draw && needs_random(law, &entry->state))
		in->random = bpf_get_prandom_u32();
	bpf_spin_lock(&entry->lock);
	verdict = queue_law_judge(law, &entry->state, flows, bins, in);
	bpf_spin_unlock(&entry->lock);
	return verdict;
}

#endif
