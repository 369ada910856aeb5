/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What is known of the queues that far queues stand for: the window program and that of far queues write it. */
#ifndef FAIRQ_HIDDEN_MAP_H
#define FAIRQ_HIDDEN_MAP_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/* By slot. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_hidden);
} hidden SEC(".maps");

#endif
