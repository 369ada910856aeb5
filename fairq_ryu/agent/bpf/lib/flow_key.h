/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The key of a segment's flow, for look-ups in global functions. */
#ifndef FAIRQ_FLOW_KEY_H
#define FAIRQ_FLOW_KEY_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"

/* For each processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_flow_key);
} key_copy SEC(".maps");

/*
 * A copy of the key. Before Linux 6.2 the verifier refuses a key in an argument of a global function, and the stack has
 * no room for a copy. `dir`: as in the copy.
 */
static __always_inline const struct fq_flow_key *copied_key(const struct fq_flow_key *key, __u8 dir)
{
	__u32 zero = 0;
	struct fq_flow_key *copy = bpf_map_lookup_elem(&key_copy, &zero);

	if (copy) {
		/* In words: its type alone has an alignment of two bytes. */
		__builtin_memcpy(__builtin_assume_aligned(copy, 8),
				 __builtin_assume_aligned(key, 8), sizeof(*copy));
		copy->dir = dir;
	}
	return copy;
}

#endif
