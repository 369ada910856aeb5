/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The map of connections, and the segment on its way to a transmit queue: window and queue program use both. */
#ifndef FAIRQ_FLOW_MAP_H
#define FAIRQ_FLOW_MAP_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/* The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_leaving);
} leaving SEC(".maps");

#endif
