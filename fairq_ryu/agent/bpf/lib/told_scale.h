/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The scale that a segment tells itself, because the shim of its host has written it there (shim.bpf.c). It is for
 * connections whose handshake was not seen, and taken out before the segment leaves.
 *
 * It applies to this segment only: nothing is kept that a forged one could change for the segments of others. And it
 * only divides the window that a rule grants, which is written if it is less than the field. So whatever is told, no
 * window is raised, and whoever tells too much or too little does what he could do with the window field as well.
 */
#ifndef FAIRQ_TOLD_SCALE_H
#define FAIRQ_TOLD_SCALE_H

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"
#include "tcp_bytes.h"
#include "window_maps.h"

/* By slot, written by the agent only: FQ_TELL_...; 0: nothing is believed, and the bits stay. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} told_ports SEC(".maps");

/* Not inlined, for the reason given at parse(). */
__noinline int take_told_scale(struct __sk_buff *skb, struct segment *s)
{
	__u32 ifindex = skb->ifindex, word, cleared, window, told = 0;
	const __u32 *slot, *mode;
	__be32 before;

	if (!s || s->has_signature)
		return 0;
	slot = bpf_map_lookup_elem(&port_slots, &ifindex);
	mode = slot ? bpf_map_lookup_elem(&told_ports, slot) : NULL;
	if (!mode || !*mode ||
	    bpf_skb_load_bytes(skb, s->tcp_off + TCP_WORD, &before, sizeof(before)))
		return 0;
	word = bpf_ntohl(before);
	window = word & TCP_WINDOW_MASK;
	if (*mode == FQ_TELL_RESERVED) {
		cleared = TCP_RESERVED_MASK;
		told = s->reserved;
	} else if (*mode == FQ_TELL_RESERVED3) {
		cleared = TCP_RESERVED_MASK & ~(1U << TCP_RESERVED_SHIFT);
		told = s->reserved >> 1;
	} else {
		cleared = 8U << TCP_RESERVED_SHIFT;
		/* Four bits of the scale + 4, twelve of the window in steps of 16 of its own. */
		if (s->reserved & 8 && window >> 12 >= 4) {
			told = (window >> 12) - 4;
			window = (window & 0xFFF) << 4;
			s->told = told + 1;
		}
	}
	if (!write_tcp_word(skb, s, before, (word & ~cleared & ~TCP_WINDOW_MASK) | window)) {
		s->told = 0;
		return 0;
	}
	s->window = window;
	s->reserved &= ~(cleared >> TCP_RESERVED_SHIFT);
	if (*mode == FQ_TELL_RESERVED)
		s->ecn &= ~TCP_AE;
	if (told && told <= MAX_WSCALE)
		s->told = told + 1;
	return 0;
}

/* A segment of this connection tells its scale. That of the handshake counts, if it was seen. */
__noinline int note_told_scale(struct __sk_buff *skb, struct segment *s, struct fq_dir *own,
			       struct fq_dir *peer)
{
	struct fq_port *port;
	int scale;

	if (!s || !own || !peer)
		return 0;
	if (!(own->flags & FQ_KNOWN)) {
		set_flags(own, FQ_TOLD);
		set_flags(peer, FQ_TOLD);
		return 0;
	}
	scale = own->own_scale ? own->own_scale - 1 : own->wscale;
	if (s->told - 1 != (own->flags & peer->flags & FQ_WS ? scale : 0)) {
		port = find_port(skb->ifindex);
		if (port)
			ADD(port->scale_wrong, 1);
	}
	return 0;
}

#endif
