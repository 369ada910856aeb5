/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The flows of a port that count: as active, as using their windows (for laws), as young. Each count is in time
 * buckets, each flow in one bucket, the last in which it did so. Buckets that are older than the activity
 * timeout no longer count. Flows enter and leave counts in places.h.
 */
#ifndef FAIRQ_ACTIVITY_H
#define FAIRQ_ACTIVITY_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "../verifier.h"
#include "port_maps.h"

/* Is a bucket of that epoch within the activity timeout? */
static __always_inline bool is_recent(__u32 epoch, __u32 now_epoch)
{
	return epoch && now_epoch - epoch < FQ_BUCKETS;
}

/* Remove a flow from a count; `counted` is the epoch of its bucket. */
static __always_inline void leave_bucket(__u64 *buckets, __u32 *counted, __u32 epoch)
{
	if (is_recent(*counted, epoch)) {
		__u64 *bucket = &buckets[*counted % FQ_BUCKETS], old = *bucket;

		/*
		 * Not below 0, and not from a bucket that was reused since. If another CPU was faster,
		 * the bucket stays: an excess count ages out.
		 */
		if (old >> 32 == *counted && (__u32)old)
			__sync_val_compare_and_swap(bucket, old, old - 1);
	}
	*counted = 0;
}

/* Take a flow into a count, in the bucket of this epoch and no longer in the one before. */
static __always_inline void enter_bucket(__u64 *buckets, __u32 *counted, __u32 epoch)
{
	__u64 *bucket = &buckets[epoch % FQ_BUCKETS], old;

	leave_bucket(buckets, counted, epoch);
	old = *bucket;
	if (old >> 32 != epoch)
		__sync_val_compare_and_swap(bucket, old, (__u64)epoch << 32);
	ADD(*bucket, 1);
	*counted = epoch;
}

/* The counts of a port. */
enum { ACTIVE, SHARING, YOUNG };

/*
 * Flows in a count of a port. Without branches, which ONE_REGISTER keeps the compiler from restoring: with eight in a
 * row the verifier would walk 256 paths. Not inlined: the stack of its callers would be twice as large.
 */
__noinline __u32 counted_flows(const struct fq_port *port, __u32 which, __u32 epoch)
{
	const __u64 *buckets;
	__u64 n = 0;

	if (!port)
		return 0;
	buckets = which == ACTIVE ? port->active : which == SHARING ? port->sharing : port->young;

#pragma unroll
	for (int i = 0; i < FQ_BUCKETS; i++) {
		__u64 bucket = buckets[i];
		__u64 age = (__u32)(epoch - (__u32)(bucket >> 32));
		__u64 recent = (age - FQ_BUCKETS) >> 63; /* 1 if age < FQ_BUCKETS */

		ONE_REGISTER(recent);
		n += (__u32)bucket * recent;
	}
	return n;
}

#endif
