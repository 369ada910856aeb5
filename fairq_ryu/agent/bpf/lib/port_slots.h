/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where the entries of a port are in the arrays of the programs. */
#ifndef FAIRQ_PORT_SLOTS_H
#define FAIRQ_PORT_SLOTS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* By ifindex, or id of a transmit queue. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} port_slots SEC(".maps");

#endif
