// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The drop program: reports packets for which the queue of a port has no room, on ports that report drops.
 *
 * fq_dropped is a tracepoint that fires whenever the kernel frees a packet unsent, so it is attached only
 * while a port reports drops. A kernel that gives no reason for freeing a packet (before Linux 5.17) refuses
 * to load this program.
 *
 * fq_drop_before_full runs at tc egress. Open vSwitch in user space sends packets in batches, and when the
 * queue refuses one it discards the rest of the batch without any report. So a packet that the queue would
 * refuse is dropped here, before the queue can refuse it, and Open vSwitch continues with the next. The
 * packets dropped are those that would have been lost.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "layout.h"
#include "lib/core_types.h"
#include "lib/dropped_packet.h"
#include "lib/on_wire.h"
#include "lib/queue_map.h"
#include "lib/threshold_maps.h"
#include "lib/traced_packet.h"

enum skb_drop_reason {
	SKB_DROP_REASON_QDISC_DROP = 1, /* CO-RE puts the running kernel's number in its place */
};

SEC("tp_btf/kfree_skb")
int BPF_PROG(fq_dropped, struct sk_buff *skb, void *location, enum skb_drop_reason reason)
{
	__u32 zero = 0, ifindex, size;
	const struct fq_threshold *t;
	struct fq_queue_config *cfg;
	struct fq_ring_count *count;
	struct net_device *dev;
	struct fq_drop *drop;

	if (reason != bpf_core_enum_value(enum skb_drop_reason, SKB_DROP_REASON_QDISC_DROP))
		return 0;
	dev = skb->dev;
	if (!dev)
		return 0;
	ifindex = dev->ifindex;
	t = bpf_map_lookup_elem(&thresholds, &ifindex);
	cfg = bpf_map_lookup_elem(&queue_config, &zero);
	if (!t || !(t->flags & FQ_REPORT_DROPS) || !cfg || dev->nd_net.net->ns.inum != cfg->netns)
		return 0;
	count = bpf_map_lookup_elem(&drop_count, &zero);
	drop = bpf_ringbuf_reserve(&drops, sizeof(*drop), 0);
	if (!drop) {
		if (count)
			__sync_fetch_and_add(&count->lost, 1);
		return 0;
	}
	if (count)
		__sync_fetch_and_add(&count->sent, 1);
	drop->ns = bpf_ktime_get_ns();
	drop->ifindex = ifindex;
	drop->len = skb->len;
	drop->cause = FQ_DROP_REFUSED;
	drop->pad = 0;
	drop->vlan_proto = 0;
	drop->vlan_tci = 0;
	/* Without vlan_all (before Linux 6.2) a stale tag cannot be distinguished from a real one. */
	if (bpf_core_field_exists(skb->vlan_all) && skb->vlan_all) {
		drop->vlan_proto = skb->vlan_proto;
		drop->vlan_tci = skb->vlan_tci;
	}
	/* Data in pages of its own is left out: headers always precede it. */
	size = skb->len - skb->data_len;
	/* Of several segments never all: nobody is to send them again as one. */
	if (size == skb->len && traced_segments(skb) > 1)
		size--;
	if (size > FQ_DROP_BYTES)
		size = FQ_DROP_BYTES;
	drop->captured = bpf_probe_read_kernel(drop->data, size, skb->data) ? 0 : size;
	bpf_ringbuf_submit(drop, 0);
	return 0;
}

/* Runs after the window program: a packet dropped here has been counted and lowered like a refused one. */
SEC("classifier")
int fq_drop_before_full(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex, len = wire_bytes(skb);
	const struct fq_threshold *t = bpf_map_lookup_elem(&thresholds, &ifindex);
	const struct fq_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);

	if (!t || !(t->flags & FQ_REPORT_DROPS) || !t->limit || !queue)
		return TC_ACT_UNSPEC;
	/* With a backlog that is stale, the port would drop all packets, and no event would correct it. */
	if (queue->backlog + len <= t->limit ||
	    queue_backlog(ifindex, bpf_ktime_get_ns()) + len <= t->limit)
		return TC_ACT_UNSPEC;
	/* A packet of several segments could not be sent again by a controller. */
	if (skb->gso_size || len > FQ_DROP_BYTES)
		return TC_ACT_UNSPEC;
	return hand_over_dropped(skb, FQ_DROP_BEFORE_FULL) ? TC_ACT_STOLEN : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
