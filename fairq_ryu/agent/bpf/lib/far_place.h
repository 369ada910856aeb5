/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The far queue that a direction of a connection passes: that of the port by which its segments arrive.
 *
 * The kernel notes that port in packets that it forwards itself. In those that the userspace datapath sends, that its
 * upcalls return, or that this machine sends, it is not known. Then it is the port by which the other direction leaves:
 * the way back of its ACKs. Nothing is taken from the packet itself, and no segment gets here that is not believed.
 */
#ifndef FAIRQ_FAR_PLACE_H
#define FAIRQ_FAR_PLACE_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "places.h"
#include "window_maps.h"

/* A direction arrives by this interface from now on. */
__noinline int arrive_by(struct fq_place *far, __u32 ifindex, __u32 epoch)
{
	if (!far)
		return 0;
	uncount_at(far, epoch);
	set_place(far, FQ_FAR | ifindex);
	far->granted = 0;
	return 0;
}

/* Count a direction with data as active in its far queue. Asks once in a bucket whether there is one now. */
__noinline int count_arriving(struct fq_place *far, __u32 epoch)
{
	if (!far)
		return 0;
	if (!port_of(far)) {
		uncount_at(far, epoch);
		set_place(far, far->ifindex);
	}
	count_active(far, epoch);
	far->epoch = epoch;
	return 0;
}

/* Count a direction as active wherever it passes. */
static __always_inline void count_at_places(struct fq_dir *d, __u32 epoch)
{
	count_active(&d->out, epoch);
	if (d->far.ifindex)
		count_arriving(&d->far, epoch);
}

/* A segment of `own` leaves by this device, which is the recorded one of its direction. */
static __always_inline void note_arrivals(const struct __sk_buff *skb, __u32 epoch,
					  struct fq_dir *own, struct fq_dir *peer)
{
	__u32 device = skb->ifindex, from = skb->ingress_ifindex;

	if (from == device) /* it hands the segment to this machine */
		from = 0;
	if (from && own->far.ifindex != (FQ_FAR | from))
		arrive_by(&own->far, from, epoch);
	if ((!from || !peer->far.ifindex) && peer->far.ifindex != (FQ_FAR | device))
		arrive_by(&peer->far, device, epoch);
}

#endif
