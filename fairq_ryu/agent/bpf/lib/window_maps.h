/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The maps of the window program. The agent sets their sizes before it loads the program. */
#ifndef FAIRQ_WINDOW_MAPS_H
#define FAIRQ_WINDOW_MAPS_H

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
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_flow);
} flows SEC(".maps");

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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_rule);
} port_rules SEC(".maps");

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

/* Add to a member of an entry that several CPUs may write at once. */
#define ADD(counter, n) __sync_fetch_and_add(&(counter), (n))

#endif
