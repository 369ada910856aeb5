/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One largest scale for the network. A SYN or SYN-ACK with a larger one leaves with that, and the windows of later
 * segments are converted where they leave. From there on all is as if the host had chosen this scale: the flow map, rules,
 * laws, and the segments that the agent sends itself, which have a mark and are not converted again.
 *
 * Never to a larger scale: without the agent, or on another path, a field is read smaller than it is meant.
 */
#ifndef FAIRQ_UNIFY_H
#define FAIRQ_UNIFY_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"
#include "sequence.h"
#include "tcp_bytes.h"
#include "window_maps.h"

/* The port by which a packet leaves is only observed. */
static __always_inline bool leaves_observed(const struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	const __u32 *slot = bpf_map_lookup_elem(&port_slots, &ifindex);
	const __u32 *is = slot ? bpf_map_lookup_elem(&observed, slot) : NULL;

	return is && *is;
}

/*
 * A SYN or SYN-ACK, which s->own_scale then is of. One that is repeated leaves as the first did; a SYN-ACK is changed only
 * if its SYN has passed as well; where a port is only observed, neither. Not inlined, for the reason given at parse().
 */
__noinline int unify_syn(struct __sk_buff *skb, struct segment *s, const struct fq_dir *own,
			 const struct fq_dir *peer)
{
	const struct fq_config *cfg;
	__u32 zero = 0, to;
	__u8 scale;

	if (!s || !own || !peer)
		return 0;
	cfg = bpf_map_lookup_elem(&config, &zero);
	scale = s->wscale;
	if (!cfg || !(s->offers & FQ_WS) || s->has_signature || s->rst)
		goto leave;
	if (has_sent_syn(s, own)) {
		to = own->wscale;
		if (!own->own_scale)
			goto leave;
		if (scale == to) { /* it has left by another port before */
			s->own_scale = own->own_scale;
			return 0;
		}
	} else {
		to = cfg->unify;
		if (s->now < cfg->unify_ns ||
		    (s->ack && !(peer->flags & (FQ_SYN_SEEN | FQ_KNOWN))) || leaves_observed(skb))
			goto leave;
	}
	if (scale <= to || !write_scale(skb, s, to))
		goto leave;
	s->wscale = to;
	s->own_scale = scale + 1;
	return 0;
leave:
	s->own_scale = 0;
	return 0;
}

/* A later segment, where its direction leaves. */
__noinline int unify_window(struct __sk_buff *skb, struct segment *s, const struct fq_dir *own,
			    const struct fq_dir *peer)
{
	__u32 word, window;
	__be32 before;

	if (!s || !own || !peer)
		return 0;
	if (skb->mark >> FQ_TURN_SHIFT == FQ_SENT_MARK) {
		skb->mark = 0;
		return 0;
	}
	if (!(own->flags & FQ_KNOWN) || !(own->flags & peer->flags & FQ_WS) || s->has_signature ||
	    bpf_skb_load_bytes(skb, s->tcp_off + TCP_WORD, &before, sizeof(before)))
		return 0;
	word = bpf_ntohl(before);
	window = converted_window(word & TCP_WINDOW_MASK, own->own_scale - 1, own->wscale);
	if (write_tcp_word(skb, s, before, (word & ~TCP_WINDOW_MASK) | window))
		s->window = window;
	return 0;
}

#endif
