/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The maps of ports and their laws: the window program has them, the queue program uses the same. The agent
 * sets their sizes before it loads the programs.
 */
#ifndef FAIRQ_PORT_MAPS_H
#define FAIRQ_PORT_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port);
} ports SEC(".maps");

/* By ifindex, as the next. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port_law);
} port_laws SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_law_state);
} law_states SEC(".maps");

/* Add to a member of an entry that several CPUs may write at once. */
#define ADD(counter, n) __sync_fetch_and_add(&(counter), (n))

#endif
