/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Types of the kernel that the tracepoints pass: only the members used here. CO-RE replaces their offsets by
 * those of the running kernel when a program is loaded.
 */
#ifndef FAIRQ_CORE_TYPES_H
#define FAIRQ_CORE_TYPES_H

#include <linux/types.h>

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
struct netdev_queue {
	struct net_device *dev;
};
struct gnet_stats_queue {
	__u32 backlog;
	__u32 drops;
};
/* Its name and the types of its members differ between kernels; it begins with bytes and packets, 64 bits each. */
struct gnet_stats_basic_sync {
	__u64 begin;
};
struct Qdisc {
	__u32 flags;
	__u32 parent;
	struct gnet_stats_basic_sync bstats;
	struct gnet_stats_queue qstats;
};
/* Of a packet that is in a qdisc. */
struct qdisc_skb_cb {
	unsigned int pkt_len;
};
struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
};
struct sk_buff {
	struct sk_buff *next;
	struct net_device *dev;
	unsigned int len;
	unsigned int data_len;
	__u32 mark;
	char cb[48];
	unsigned int end; /* offset from head */
	unsigned char *head;
	unsigned char *data;
	__u32 vlan_all;
	__be16 vlan_proto;
	__u16 vlan_tci;
};
#pragma clang attribute pop

#endif
