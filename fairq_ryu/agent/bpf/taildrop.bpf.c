// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tail drop, packet by packet, for experiments.
 *
 * Open vSwitch in user space sends packets in batches of up to 32. When the queue of a port refuses one of
 * them, Open vSwitch discards the rest of the batch, and no counter shows it. Switches do not do that. This
 * program runs at tc egress, reads the backlog that the queue program keeps, and drops a packet for which the
 * queue has no room before the queue can refuse it: to Open vSwitch it was sent, and it continues with the
 * next. The packets lost are exactly those that a tail-drop queue of that size loses.
 *
 * Ports of a group share a memory as those of many switches do: a queue may hold as much as is free (dynamic
 * thresholds, Choudhury and Hahne 1998, with alpha = 1). One busy port can have half of it, two a third each.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "lib/on_wire.h"
#include "lib/queue_map.h"

/* One entry a port, by ifindex. The size is set before the program is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_taildrop);
} taildrops SEC(".maps");

struct shared {
	__u64 now;
	__u64 held; /* bytes, by all ports of the group */
	__u32 group;
	__u32 pad;
};

static long add_queue(void *map, const __u32 *ifindex, const struct fq_taildrop *port,
		      struct shared *shared)
{
	__u32 key = *ifindex;

	(void)map;
	if (port->group == shared->group)
		shared->held += queue_backlog(key, shared->now);
	return 0;
}

/* Whether a packet may enter the queue of a port that shares its memory. */
static __always_inline int has_room_of_group(const struct fq_taildrop *port, __u32 ifindex,
					     __u32 len)
{
	struct shared shared = {.now = bpf_ktime_get_ns(), .group = port->group};

	bpf_for_each_map_elem(&taildrops, add_queue, &shared, 0);
	return queue_backlog(ifindex, shared.now) + len + shared.held <= port->limit;
}

static __always_inline int has_room(const struct fq_taildrop *port, __u32 ifindex, __u32 backlog,
				    __u32 len)
{
	return backlog + len <= port->limit ||
	       queue_backlog(ifindex, bpf_ktime_get_ns()) + len <= port->limit;
}

SEC("classifier")
int fq_taildrop(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, len = wire_bytes(skb);
	struct fq_taildrop *port = bpf_map_lookup_elem(&taildrops, &ifindex);
	const struct fq_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);

	if (!port || !queue)
		return TC_ACT_UNSPEC;
	if (port->group ? has_room_of_group(port, ifindex, len)
			: has_room(port, ifindex, queue->backlog, len))
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(&port->packets, wire_segments(skb));
	__sync_fetch_and_add(&port->bytes, len);
	/* TC_ACT_SHOT would be an error to the sender, too. */
	return TC_ACT_STOLEN;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
