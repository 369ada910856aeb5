// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * For tests: judges what the packet says. Its bytes are a slot, and an fq_queue_law_input; the result is the verdict.
 * Clock, queue and random numbers of the program of the agent cannot be given.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "lib/queue_judge.h"

#define HEADER 14 /* the kernel accepts no shorter packet */

SEC("classifier")
int fq_judge_given(struct __sk_buff *skb)
{
	const struct fq_port_queue_law *law;
	struct fq_queue_law_input in;
	__u32 slot;

	if (bpf_skb_load_bytes(skb, HEADER, &slot, sizeof(slot)) ||
	    bpf_skb_load_bytes(skb, HEADER + sizeof(slot), &in, sizeof(in)))
		return -1;
	law = bpf_map_lookup_elem(&queue_laws, &slot);
	return law ? judge_by(&law->law, slot, &in, false) : -1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
