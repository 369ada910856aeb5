// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The queue laws for the host: a shared library for tests and for models of a network. */
#include "queue_law.h"

#include "flow_hash.h"

/* Steps of laws, to be compared with their formulas. */

__u64 fq_host_recent(const struct fq_recent *flow, __u64 now)
{
	return recent_q16(flow, now);
}

void fq_host_enter(struct fq_recent *flow, struct fq_recent *mean, __u32 samples, __u64 now)
{
	recent_enter(flow, mean, samples, now);
}

__u64 fq_host_red_left(__u64 distance, __u64 packets, __u32 weight_shift)
{
	return red_left(distance, packets, weight_shift);
}

__u64 fq_host_afcd_target(const struct fq_queue_law *p, const struct fq_queue_law_state *st,
			  __u32 samples)
{
	return afcd_target(LAW_OWN(afcd, p), st, samples);
}

/* A law as a whole */

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
