/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The number of flows that are active on a port: in time buckets, each flow in one bucket, the last in which it
 * sent data. Buckets that are older than the activity timeout no longer count.
 */
#ifndef FAIRQ_ACTIVITY_H
#define FAIRQ_ACTIVITY_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "window_maps.h"

/* Is a bucket of that epoch within the activity timeout? */
static __always_inline bool is_recent(__u32 epoch, __u32 now_epoch)
{
	return epoch && now_epoch - epoch < FQ_BUCKETS;
}

/* Remove a direction from the count of `port`, by which it leaves. */
static __always_inline void uncount_on(struct fq_port *port, struct fq_dir *d, __u32 epoch)
{
	if (is_recent(d->epoch, epoch)) {
		__u64 *bucket = &port->active[d->epoch % FQ_BUCKETS], old = *bucket;

		/*
		 * Not below 0, and not from a bucket that was reused since. If another CPU was faster,
		 * the bucket stays: an excess count ages out.
		 */
		if (old >> 32 == d->epoch && (__u32)old)
			__sync_val_compare_and_swap(bucket, old, old - 1);
	}
	d->epoch = 0;
}

/* Remove a direction from its port's count: it ended, or it has a rule of its own now. */
__noinline int uncount(struct fq_dir *d, __u32 epoch)
{
	struct fq_port *port;
	__u32 ifindex;

	if (!d)
		return 0;
	ifindex = d->ifindex;
	port = bpf_map_lookup_elem(&ports, &ifindex);
	if (port)
		uncount_on(port, d, epoch);
	d->epoch = 0;
	return 0;
}

/* Count a direction as active in this epoch, and no longer in the one before. */
__noinline int count_active(struct fq_dir *d, __u32 epoch)
{
	struct fq_port *port;
	__u64 *bucket, old;
	__u32 ifindex;

	if (!d)
		return 0;
	ifindex = d->ifindex;
	port = bpf_map_lookup_elem(&ports, &ifindex);
	if (!port)
		return 0;
	uncount_on(port, d, epoch);
	bucket = &port->active[epoch % FQ_BUCKETS];
	old = *bucket;
	if (old >> 32 != epoch)
		__sync_val_compare_and_swap(bucket, old, (__u64)epoch << 32);
	ADD(*bucket, 1);
	d->epoch = epoch;
	return 0;
}

/*
 * Flows active on the port. Without branches: with eight in a row the verifier would walk 256 paths. The
 * empty asm keeps the compiler from restoring them.
 */
static __always_inline __u32 active_flows(const struct fq_port *port, __u32 epoch)
{
	__u64 n = 0;

#pragma unroll
	for (int i = 0; i < FQ_BUCKETS; i++) {
		__u64 bucket = port->active[i];
		__u64 age = (__u32)(epoch - (__u32)(bucket >> 32));
		__u64 recent = (age - FQ_BUCKETS) >> 63; /* 1 if age < FQ_BUCKETS */

		asm volatile("" : "+r"(recent));
		n += (__u32)bucket * recent;
	}
	return n;
}

#endif
