/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices with several transmit queues, each with a qdisc of its own (mq): a direction of a connection belongs to the
 * queue that its segments use. The kernel chooses the queue after tc egress, so it is
 *
 *   the one in which the last segment was seen (fq_enqueue); else the one in which it is recorded
 *   the one that the kernel chooses by the hash of the flow, while nothing has been seen (a packet that finds its
 *   queue empty may pass it without an event)
 */
#ifndef FAIRQ_TX_QUEUE_H
#define FAIRQ_TX_QUEUE_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "egress_port.h"
#include "flow_map.h"
#include "parse.h"
#include "tx_queue_choice.h"
#include "tx_queue_id.h"

/* The number of transmit queues, by ifindex, of devices that have several. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tx_queues SEC(".maps");

/* The queue that the kernel is expected to choose. */
static __always_inline __u32 expected_tx_queue(struct __sk_buff *skb)
{
	__u32 device = skb->ifindex;
	const __u32 *count = bpf_map_lookup_elem(&tx_queues, &device);

	return count && *count ? chosen_tx_queue(skb, *count) : device;
}

/* The id of the queue by which a direction leaves. If that is another one than recorded, it is counted there. */
static __always_inline __u32 tx_queue_of(struct __sk_buff *skb, struct fq_dir *own, __u32 epoch)
{
	__u32 device = skb->ifindex, here = own->out.ifindex, id = own->tx_queue;

	if (!is_tx_queue_of(id, device))
		id = is_tx_queue_of(here, device) ? here : expected_tx_queue(skb);
	if (here != id && (here == device || is_tx_queue_of(here, device)))
		move_to_port(own, id, epoch);
	return id;
}

/* Tell fq_enqueue which segment is on its way; s NULL: none. */
static __always_inline void announce_leaving(const struct segment *s, __u32 ifindex, __u32 id)
{
	__u32 zero = 0;
	struct fq_leaving *next = bpf_map_lookup_elem(&leaving, &zero);

	if (!next)
		return;
	next->ifindex = 0;
	if (!s)
		return;
	__builtin_memcpy(&next->key, &s->key, sizeof(next->key));
	next->dir = s->dir & 1;
	next->id = id;
	next->ifindex = ifindex;
}

#endif
