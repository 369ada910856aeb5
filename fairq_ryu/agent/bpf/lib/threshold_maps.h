/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The thresholds of ports and the settings of the programs that read them: the queue and drop programs. */
#ifndef FAIRQ_THRESHOLD_MAPS_H
#define FAIRQ_THRESHOLD_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/* By number of the bridge. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue_config);
} queue_config SEC(".maps");

/* By ifindex. Likewise. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_threshold);
} thresholds SEC(".maps");

#endif
