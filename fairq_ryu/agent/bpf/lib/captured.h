/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The beginning of a packet, for a record in a ring buffer. */
#ifndef FAIRQ_CAPTURED_H
#define FAIRQ_CAPTURED_H

#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_helpers.h>

#include "../verifier.h"

/* Copy at most `room` bytes to `data`. Returns their number; 0: the packet cannot be read. */
static __always_inline __u32 capture(struct __sk_buff *skb, void *data, __u32 room)
{
	__u64 size = skb->len;

	/* Of several segments never all: nobody is to send them again as one. */
	if (skb->gso_size)
		size--;
	if (size > room)
		size = room;
	/* Otherwise the compiler tests skb->len in place of it, and to the verifier the size may be 0. */
	ONE_REGISTER(size);
	if (size < ETH_HLEN || bpf_skb_load_bytes(skb, 0, data, size))
		return 0;
	return size;
}

#endif
