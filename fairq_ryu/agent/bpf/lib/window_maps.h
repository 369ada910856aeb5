/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The maps of the window program. The agent sets their sizes before it loads the program. */
#ifndef FAIRQ_WINDOW_MAPS_H
#define FAIRQ_WINDOW_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "flow_map.h"
#include "port_maps.h"
#include "port_slots.h"

/*
 * Established connections without segments for the idle timeout; the agent moves them here. Not in flows, which the
 * agent reads as a whole several times a second.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_flow);
} silent SEC(".maps");

/* Connections that claim the addresses and ports of one in flows (rivals.h). */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_flow);
} rivals SEC(".maps");

/* The VLAN of frames that leave by a port without a tag, by ifindex; no entry: VLAN 0. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} port_vlans SEC(".maps");

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_rule);
} port_rules SEC(".maps");

/* By slot, written by the agent only: 1 if the port is only observed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} observed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_rule);
} flow_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_counter);
} counters SEC(".maps");

/* The port with this ifindex; NULL: it is none of the agent's. */
static __always_inline struct fq_port *find_port(__u32 ifindex)
{
	const __u32 *slot = bpf_map_lookup_elem(&port_slots, &ifindex);

	return slot ? port_in(*slot, ifindex) : NULL;
}

/* A direction passes a port, or a far queue, with this index or id. */
static __always_inline void set_place(struct fq_place *place, __u32 ifindex)
{
	const __u32 *slot = bpf_map_lookup_elem(&port_slots, &ifindex);

	place->ifindex = ifindex;
	place->slot = slot ? *slot : FQ_NO_SLOT;
}

/* Attempts to advance a number. If other CPUs were faster each time, the next segment advances it. */
#define ADVANCE_TRIES 4

/*
 * Advance a sequence or acknowledgement number of an entry that several CPUs may write at once. It never goes back.
 * Returns how far `to` was ahead; 0 or less: the number stays.
 */
static __always_inline __s32 advance(__u32 *number, __u32 to)
{
	__s32 ahead = 0;

#pragma unroll
	for (int i = 0; i < ADVANCE_TRIES; i++) {
		__u32 old = *(volatile __u32 *)number;

		ahead = to - old;
		if (ahead <= 0 || __sync_val_compare_and_swap(number, old, to) == old)
			return ahead;
	}
	return 0;
}

/* Both directions of a connection change the flags of each other, on different CPUs. */
static __always_inline void set_flags(struct fq_dir *d, __u32 flags)
{
	if (~d->flags & flags)
		__sync_fetch_and_or(&d->flags, flags);
}

static __always_inline void clear_flags(struct fq_dir *d, __u32 flags)
{
	if (d->flags & flags)
		__sync_fetch_and_and(&d->flags, ~flags);
}

#endif
