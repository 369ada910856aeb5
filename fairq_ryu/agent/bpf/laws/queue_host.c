// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The queue laws for the host: a shared library for tests and for models of a network. */
#include "queue_law.h"

#include "flow_hash.h"

__u32 fq_host_judge(const struct fq_queue_law *p, struct fq_queue_law_state *st,
		    struct fq_flow_table *flows, struct fq_sfb_bins *bins,
		    const struct fq_queue_law_input *in)
{
	return queue_law_judge(p, st, flows, bins, in);
}

void fq_host_entered(struct fq_sfb_bins *bins, __u32 hash, __u32 segments)
{
	sfb_entered(bins, hash, segments);
}

void fq_host_left(struct fq_sfb_bins *bins, __u32 hash, __u32 segments)
{
	sfb_left(bins, hash, segments);
}

__u32 fq_host_flow_hash(const __u32 *words, __u32 count, __u32 ports, __u32 protocol, __u32 seed)
{
	return count == 2 ? flow_hash_v4(words[0], words[1], ports, protocol, seed)
			  : flow_hash_v6(words, words + 4, ports, protocol, seed);
}
