/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The size of the segments of a flow. */
#ifndef FAIRQ_SEGMENT_SIZE_H
#define FAIRQ_SEGMENT_SIZE_H

#include <linux/bpf.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"

#define DEFAULT_MSS_V4 536 /* RFC 9293 section 3.7.1: what no MSS option means */
#define DEFAULT_MSS_V6 1220
#define ETHERNET_MSS   1460

/*
 * The segment size of the flow: the smaller MSS of the two ends, because an end does not send larger segments than
 * it can receive. Without an MSS option the receiver accepts the default size; the sender's own size is not known.
 */
static __always_inline __u32 common_mss(const struct segment *s, const struct fq_dir *receiver,
					const struct fq_dir *sender)
{
	__u32 mss = receiver->mss;

	/* Nobody has seen an MSS: the largest segment that has come (egress_port.h), and no less than most hosts send. */
	if ((receiver->flags & (FQ_KNOWN | FQ_TOLD)) == FQ_TOLD)
		return mss > ETHERNET_MSS ? mss : ETHERNET_MSS;
	if (!mss)
		mss = s->key.family == 4 ? DEFAULT_MSS_V4 : DEFAULT_MSS_V6;
	return sender->mss && sender->mss < mss ? sender->mss : mss;
}

/*
 * The largest segment that the port carries by which a SYN or SYN-ACK leaves: its receiver has no larger frames. Not
 * inlined: the stack of its caller is full.
 */
__noinline int note_port_mss(struct __sk_buff *skb, struct segment *s)
{
	__u32 mtu = 0, headers;

	if (!s || bpf_check_mtu(skb, 0, &mtu, 0, 0) < 0)
		return 0;
	headers = sizeof(struct tcphdr) +
		  (s->key.family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	s->port_mss = mtu > headers ? (mtu - headers < 0xFFFF ? mtu - headers : 0xFFFF) : 0;
	return 0;
}

/* The MSS that a direction has announced, as far as it counts for others: anybody can make one up. */
static __always_inline __u32 carried_mss(const struct fq_dir *d)
{
	return d->port_mss && d->port_mss < d->mss ? d->port_mss : d->mss;
}

/* Nothing of its connection is changed. */
static __always_inline bool is_signed(const struct segment *s, const struct fq_dir *own)
{
	return s->has_signature || own->flags & FQ_SIGNED;
}

/* Nobody knows what its window means: the handshake was not seen, and the segment does not tell its scale. */
static __always_inline bool has_unknown_scale(const struct segment *s, const struct fq_dir *own)
{
	return !(own->flags & FQ_KNOWN) && (s->syn || !s->told);
}

/* Both sides have sent the option (RFC 7323), or the segment tells its scale itself; and this is no SYN. */
static __always_inline __u32 scale_of(const struct segment *s, const struct fq_dir *own,
				      const struct fq_dir *peer)
{
	if (s->syn)
		return 0;
	if (!(own->flags & FQ_KNOWN))
		return s->told ? (s->told - 1) & 15 : 0;
	return own->flags & FQ_WS && peer->flags & FQ_WS ? own->wscale & 15 : 0;
}

#endif
