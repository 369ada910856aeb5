/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The transmit queue that the kernel will choose for a packet, after tc egress. */
#ifndef FAIRQ_TX_QUEUE_CHOICE_H
#define FAIRQ_TX_QUEUE_CHOICE_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "tx_queue_id.h"

/* Of `count` queues, by skb_tx_hash(), unless the device or XPS chooses otherwise. Returns its id. */
static __always_inline __u32 chosen_tx_queue(struct __sk_buff *skb, __u32 count)
{
	__u32 recorded = skb->queue_mapping;
	__u64 queue;

	queue = recorded ? (recorded - 1) % count : (__u64)bpf_get_hash_recalc(skb) * count >> 32;
	return tx_queue_id(skb->ifindex, queue);
}

#endif
