/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The flows of each tenant at each port, counted as those of the port are (activity.h), but by amounts. */
#ifndef FAIRQ_TENANT_COUNTS_H
#define FAIRQ_TENANT_COUNTS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "../verifier.h"
#include "activity.h"
#include "port_maps.h"

/*
 * Made when a tenant has its first flow at a port; where there is no room, the agent removes those without flows. It sets
 * the size before it loads the program.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct fq_tenant_key);
	__type(value, struct fq_tenant_port);
} tenant_ports SEC(".maps");

static __always_inline struct fq_tenant_port *tenant_at(__u32 slot, __u32 tenant)
{
	struct fq_tenant_key key = {.slot = slot, .tenant = tenant};

	return bpf_map_lookup_elem(&tenant_ports, &key);
}

/* Take an amount out of the bucket of an epoch. Not below 0, and not from a bucket that was reused since. */
static __always_inline void take_amount(__u64 *buckets, __u32 counted, __u32 amount)
{
	__u64 *bucket = &buckets[counted % FQ_BUCKETS], old = *bucket;

	if (old >> 32 == counted && (__u32)old >= amount)
		__sync_val_compare_and_swap(bucket, old, old - amount);
}

static __always_inline void put_amount(__u64 *buckets, __u32 epoch, __u32 amount)
{
	__u64 *bucket = &buckets[epoch % FQ_BUCKETS], old = *bucket;

	if (old >> 32 != epoch)
		__sync_val_compare_and_swap(bucket, old, (__u64)epoch << 32);
	ADD(*bucket, amount);
}

/* Remove a direction from the counts of its tenant at a place. */
static __always_inline void leave_tenant(struct fq_place *place, __u32 epoch)
{
	struct fq_tenant_port *at;
	__u32 counted;

	counted = place->tenant_epoch;
	if (!counted)
		return;
	place->tenant_epoch = 0;
	if (!is_recent(counted, epoch))
		return;
	at = tenant_at(place->slot, place->tenant);
	if (!at)
		return;
	if (place->counts & FQ_COUNTS_QUIET) {
		take_amount(at->quiet, counted, place->amount);
		return;
	}
	take_amount(at->flows, counted, 1);
	take_amount(at->shares, counted, place->amount);
	if (place->counts & FQ_COUNTS_YOUNG)
		take_amount(at->young, counted, 1);
}

/* Count a direction for a tenant at its place, with this amount, and no longer as it was counted before. */
__noinline int enter_tenant(struct fq_place *place, __u32 tenant, __u32 counts, __u32 amount,
			    __u32 epoch)
{
	struct fq_tenant_port *at;

	if (!place)
		return 0;
	leave_tenant(place, epoch);
	at = tenant_at(place->slot, tenant);
	if (!at)
		return 0;
	if (counts & FQ_COUNTS_QUIET) {
		put_amount(at->quiet, epoch, amount);
	} else {
		put_amount(at->flows, epoch, 1);
		put_amount(at->shares, epoch, amount);
		if (counts & FQ_COUNTS_YOUNG)
			put_amount(at->young, epoch, 1);
	}
	place->tenant = tenant;
	place->counts = counts;
	place->amount = amount;
	place->tenant_epoch = epoch;
	return 0;
}

/* What tenant_count() counts. */
enum { TENANT_FLOWS, TENANT_SHARES, TENANT_YOUNG, TENANT_QUIET };

/* A count of a tenant at a port. As counted_flows(). */
__noinline __u32 tenant_count(const struct fq_tenant_port *at, __u32 which, __u32 epoch)
{
	const __u64 *buckets;
	__u64 n = 0;

	if (!at)
		return 0;
	buckets = which == TENANT_FLOWS    ? at->flows
		  : which == TENANT_SHARES ? at->shares
		  : which == TENANT_YOUNG  ? at->young
					   : at->quiet;

#pragma unroll
	for (int i = 0; i < FQ_BUCKETS; i++) {
		__u64 bucket = buckets[i];
		__u64 age = (__u32)(epoch - (__u32)(bucket >> 32));
		__u64 recent = (age - FQ_BUCKETS) >> 63;

		ONE_REGISTER(recent);
		n += (__u32)bucket * recent;
	}
	return n;
}

#endif
