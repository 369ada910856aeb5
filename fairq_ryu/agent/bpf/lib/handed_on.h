/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the window program has found out about a packet, for the programs that the packet meets next at the same tc
 * egress: the slot of its port or transmit queue, and the time. A look-up by ifindex costs ten times one by slot.
 *
 * It is in the control block of the packet, which belongs to tc until the packet is in its queue. What an earlier user
 * may have left there is no harm: the mark must be there, and the slot be one of this device.
 */
#ifndef FAIRQ_HANDED_ON_H
#define FAIRQ_HANDED_ON_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "port_maps.h"
#include "tx_queue_id.h"

#define HANDED_ON 0xFA17C0DEU

enum { HANDED_MARK, HANDED_SLOT, HANDED_NOW_LOW, HANDED_NOW_HIGH };

/* Nothing is known about this packet yet. */
static __always_inline void hand_on_nothing(struct __sk_buff *skb)
{
	skb->cb[HANDED_MARK] = 0;
}

static __always_inline void hand_on(struct __sk_buff *skb, __u32 slot, __u64 now)
{
	skb->cb[HANDED_SLOT] = slot;
	skb->cb[HANDED_NOW_LOW] = now;
	skb->cb[HANDED_NOW_HIGH] = now >> 32;
	skb->cb[HANDED_MARK] = HANDED_ON;
}

/* The slot and time that were handed on. Returns the id of the port or transmit queue; 0: nothing was handed on. */
static __always_inline __u32 handed_on(struct __sk_buff *skb, __u32 *slot, __u64 *now)
{
	const struct fq_port *port;
	__u32 found = skb->cb[HANDED_SLOT], device = skb->ifindex, id;

	if (skb->cb[HANDED_MARK] != HANDED_ON)
		return 0;
	port = bpf_map_lookup_elem(&ports, &found);
	if (!port)
		return 0;
	id = port->ifindex;
	if (id != device && !is_tx_queue_of(id, device))
		return 0;
	*slot = found;
	*now = (__u64)skb->cb[HANDED_NOW_HIGH] << 32 | skb->cb[HANDED_NOW_LOW];
	return id;
}

#endif
