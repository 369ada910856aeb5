// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Marks every n-th full data segment at an Ethernet port: IPv4 without tags. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FULL     1400 /* bytes of a frame */
#define TOS_AT   15
#define CHECK_AT 24
#define CE       3

/* 0: every how many (0: none), 1: segments with ECT, 2: those marked, 3: segments without ECT */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} marks SEC(".maps");

static __always_inline __u64 *entry(__u32 key)
{
	return bpf_map_lookup_elem(&marks, &key);
}

SEC("classifier")
int mark(struct __sk_buff *skb)
{
	__u64 *every = entry(0), *capable = entry(1), *marked = entry(2), *others = entry(3);
	__u8 tos, version, ce;

	if (!every || !capable || !marked || !others || skb->len < FULL ||
	    bpf_skb_load_bytes(skb, TOS_AT, &tos, 1) ||
	    bpf_skb_load_bytes(skb, TOS_AT - 1, &version, 1))
		return TC_ACT_UNSPEC;
	if (!(tos & CE)) {
		++*others;
		return TC_ACT_UNSPEC;
	}
	++*capable;
	if (!*every || *capable % *every)
		return TC_ACT_UNSPEC;
	ce = tos | CE;
	bpf_l3_csum_replace(skb, CHECK_AT, bpf_htons(version << 8 | tos),
			    bpf_htons(version << 8 | ce), 2);
	bpf_skb_store_bytes(skb, TOS_AT, &ce, 1, 0);
	++*marked;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
