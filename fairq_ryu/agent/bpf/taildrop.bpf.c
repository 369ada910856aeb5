// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tail drop, packet by packet, for experiments.
 *
 * Open vSwitch in user space sends packets in batches of up to 32. When the queue of a port refuses one of
 * them, Open vSwitch throws away the rest of the batch, of which no counter says anything. Switches do not do
 * that. This program stands at tc egress, sees the backlog that the queue programs keep, and drops a packet
 * for which the queue has no room before the queue can refuse it: Open vSwitch is told that it was sent and
 * goes on with the next. What is lost is exactly what a tail-drop queue of that size loses.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"

/* Sized before it is loaded: one entry a port, by ifindex. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_taildrop);
} taildrops SEC(".maps");

/* The queue programs' own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue);
} queues SEC(".maps");

SEC("classifier")
int fq_taildrop(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, len = skb->len;
	struct fq_taildrop *port = bpf_map_lookup_elem(&taildrops, &ifindex);
	const struct fq_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);

	if (!port || !queue || queue->backlog + len <= port->limit)
		return TC_ACT_UNSPEC;
	__sync_fetch_and_add(&port->packets, 1);
	__sync_fetch_and_add(&port->bytes, len);
	/* TC_ACT_SHOT would be an error to the sender, too. */
	return TC_ACT_STOLEN;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
