/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps of ports and their laws: the window program has them, the queue program uses the same. The agent
 * sets their sizes before it loads the programs.
 */
#ifndef FAIRQ_PORT_MAPS_H
#define FAIRQ_PORT_MAPS_H

#include <linux/bpf.h>
#include <stddef.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_config);
} config SEC(".maps");

/*
 * Arrays of slots (port_slots), as the next two: a look-up in an array costs a tenth of one in a hash. A slot is free
 * or a port's. A program may read an entry while the agent writes it: every mixture of an old and a new rule or law
 * is one that grants at least a segment.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port_law);
} port_laws SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_law_state);
} law_states SEC(".maps");

/* The port in a slot, if it has this ifindex: slots are used again. */
static __always_inline struct fq_port *port_in(__u32 slot, __u32 ifindex)
{
	struct fq_port *port = bpf_map_lookup_elem(&ports, &slot);

	return port && ifindex && port->ifindex == ifindex ? port : NULL;
}

/* The port, or far queue, of a place; NULL: it is none of the agent's. */
static __always_inline struct fq_port *port_of(const struct fq_place *place)
{
	return port_in(place->slot, place->ifindex);
}

/* Add to a member of an entry that several CPUs may write at once. */
#define ADD(counter, n) __sync_fetch_and_add(&(counter), (n))

#endif
