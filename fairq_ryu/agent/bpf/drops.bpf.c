// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Packets for which the queue of a port had no room, for the ports whose controller asked. The tracepoint
 * fires whenever the kernel frees a packet unsent, so it is attached only while somebody asks. A kernel that
 * does not say why it frees a packet (before Linux 5.17) refuses to load this.
 *
 * Open vSwitch in user space sends packets in batches, and when the queue refuses one it throws away the
 * rest of the batch, of which nobody hears. So at tc egress a packet that the queue would refuse is taken
 * before it does, and Open vSwitch goes on with the next. What is taken is what would have been lost.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "layout.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue_config);
} queue_config SEC(".maps");

/* Those of the queue programs. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_threshold);
} thresholds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue);
} queues SEC(".maps");

/* About a thousand packets. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} drops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_ring_count);
} drop_count SEC(".maps");

/* Only the members used; CO-RE finds where they stand in the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct net_device {
	int ifindex;
	possible_net_t nd_net;
};
struct sk_buff {
	struct net_device *dev;
	unsigned int len;
	unsigned int data_len;
	unsigned char *data;
	__u32 vlan_all;
	__be16 vlan_proto;
	__u16 vlan_tci;
};
#pragma clang attribute pop

enum skb_drop_reason {
	SKB_DROP_REASON_QDISC_DROP = 1, /* the running kernel's number is put in its place */
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
	if (count)
		__sync_fetch_and_add(drop ? &count->told : &count->lost, 1);
	if (!drop)
		return 0;
	drop->ns = bpf_ktime_get_ns();
	drop->ifindex = ifindex;
	drop->len = skb->len;
	drop->taken = 0;
	drop->pad = 0;
	drop->vlan_proto = 0;
	drop->vlan_tci = 0;
	/* Before there was vlan_all (Linux 6.2), a stale tag cannot be told from a real one. */
	if (bpf_core_field_exists(skb->vlan_all) && skb->vlan_all) {
		drop->vlan_proto = skb->vlan_proto;
		drop->vlan_tci = skb->vlan_tci;
	}
	/* What is in pages of their own is left out: headers always stand before that. */
	size = skb->len - skb->data_len;
	if (size > FQ_DROP_BYTES)
		size = FQ_DROP_BYTES;
	drop->captured = bpf_probe_read_kernel(drop->data, size, skb->data) ? 0 : size;
	bpf_ringbuf_submit(drop, 0);
	return 0;
}

/* After the window program: what is taken has been counted and lowered like what is refused. */
SEC("classifier")
int fq_take(struct __sk_buff *skb)
{
	__u32 zero = 0, ifindex = skb->ifindex, len = skb->len, size = len;
	const struct fq_threshold *t = bpf_map_lookup_elem(&thresholds, &ifindex);
	const struct fq_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);
	struct fq_ring_count *count;
	struct fq_drop *drop;

	if (!t || !(t->flags & FQ_REPORT_DROPS) || !t->limit || !queue)
		return TC_ACT_UNSPEC;
	if (queue->backlog + len <= t->limit)
		return TC_ACT_UNSPEC;
	/* A packet of several segments is not one that could be put back. */
	if (skb->gso_segs > 1 || len > FQ_DROP_BYTES || len < 14)
		return TC_ACT_UNSPEC;
	drop = bpf_ringbuf_reserve(&drops, sizeof(*drop), 0);
	if (!drop)
		return TC_ACT_UNSPEC;
	drop->ns = bpf_ktime_get_ns();
	drop->ifindex = ifindex;
	drop->len = len;
	drop->taken = 1;
	drop->pad = 0;
	drop->vlan_proto = skb->vlan_present ? skb->vlan_proto : 0;
	drop->vlan_tci = skb->vlan_present ? skb->vlan_tci : 0;
	drop->captured = len;
	if (size > FQ_DROP_BYTES)
		size = FQ_DROP_BYTES;
	if (size < 14 || bpf_skb_load_bytes(skb, 0, drop->data, size)) {
		bpf_ringbuf_discard(drop, 0);
		return TC_ACT_UNSPEC;
	}
	bpf_ringbuf_submit(drop, 0);
	count = bpf_map_lookup_elem(&drop_count, &zero);
	if (count)
		__sync_fetch_and_add(&count->told, 1);
	return TC_ACT_STOLEN;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
