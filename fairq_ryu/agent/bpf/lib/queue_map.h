/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The map of queues: the queue program writes it, the drop and tail drop programs read it. */
#ifndef FAIRQ_QUEUE_MAP_H
#define FAIRQ_QUEUE_MAP_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/* By ifindex. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue);
} queues SEC(".maps");

#endif
