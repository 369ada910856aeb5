/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ids of transmit queues. The twin in Python is fairq_ryu/agent/tx_queues.py. */
#ifndef FAIRQ_TX_QUEUE_ID_H
#define FAIRQ_TX_QUEUE_ID_H

#include <linux/types.h>
#include <stdbool.h>

#include "../layout.h"

static inline __attribute__((always_inline)) __u32 tx_queue_id(__u32 ifindex, __u32 queue)
{
	return FQ_TX_QUEUE | ifindex << FQ_TX_QUEUE_BITS | (queue & ((1 << FQ_TX_QUEUE_BITS) - 1));
}

/* Is this the id of a queue of that device? */
static inline __attribute__((always_inline)) bool is_tx_queue_of(__u32 id, __u32 ifindex)
{
	return id & FQ_TX_QUEUE && (id & ~FQ_TX_QUEUE) >> FQ_TX_QUEUE_BITS == ifindex;
}

#endif
