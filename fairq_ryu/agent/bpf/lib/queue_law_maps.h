/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The maps of queue laws that the queue program and the program of the laws share. The agent sets their sizes. */
#ifndef FAIRQ_QUEUE_LAW_MAPS_H
#define FAIRQ_QUEUE_LAW_MAPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/* By slot: a look-up in an array costs a tenth of one in a hash. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port_queue_law);
} queue_laws SEC(".maps");

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_depth);
} depths SEC(".maps");

/* By fq_queue_law.table. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_sfb_bins);
} sfb_bins SEC(".maps");

#endif
