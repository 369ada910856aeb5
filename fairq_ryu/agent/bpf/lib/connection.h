/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is known of a connection, learnt from its own segments (sequence.h):
 *
 *   SYN -> SYN-ACK that answers it -> window scales, MSS and timestamps of both sides are known
 *   every segment -> sequence and acknowledgement numbers of its direction, its end
 */
#ifndef FAIRQ_CONNECTION_H
#define FAIRQ_CONNECTION_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "egress_port.h"
#include "lost_above.h"
#include "parse.h"
#include "places.h"
#include "round_trips.h"
#include "segment_size.h"
#include "sequence.h"
#include "window_maps.h"

/* Too large for the stack. */
static const struct fq_flow new_flow;

/* What the laws of both places have noted of a direction that opens. */
#define OPENING_FLAGS ((FQ_BEGUN | FQ_UNPROVEN) | (FQ_BEGUN | FQ_UNPROVEN) << FQ_FAR_FLAGS)

/*
 * Enter the connection of a segment in the flow map, with its former state if it was silent; NULL if it is not to be
 * recorded.
 */
static __always_inline struct fq_flow *new_connection(const __u32 *ifindex, const struct segment *s,
						      bool *fresh)
{
	const struct fq_flow *state = bpf_map_lookup_elem(&silent, &s->key);
	struct fq_port *port;

	*fresh = !state && !s->syn;
	/* A bare ACK or the end of an unknown flow is not worth an entry. */
	if (!state && (s->rst || !(s->syn || (s->payload && s->ack))))
		return NULL;
	port = find_port(*ifindex);
	if (!bpf_map_update_elem(&flows, &s->key, state ? state : &new_flow, BPF_NOEXIST) && port)
		ADD(port->created, 1);
	if (state)
		bpf_map_delete_elem(&silent, &s->key);
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* Record the offers of a SYN or SYN-ACK. `copy`: it leaves by another port than the recorded one. */
static __always_inline void remember_syn(const struct segment *s, struct fq_dir *d, bool copy)
{
	/* Karn: after a retransmission it is unknown which SYN is answered. */
	bool again = d->flags & (FQ_SYN_SEEN | FQ_KNOWN) && d->isn == s->seq;
	__u32 next = s->seq + 1 + s->payload;

	if (!(again && copy))
		d->syn_ns = again ? 0 : s->now;
	d->isn = s->seq;
	/* With Fast Open, the SYN may be retransmitted without its data, after the data was accepted. */
	if (!again || (__s32)(next - d->seq_next) > 0)
		d->seq_next = next;
	d->mss = s->mss;
	/* Flooded, it leaves by ports that do not lead to its receiver, too. */
	if (!(again && copy) || s->port_mss > d->port_mss)
		d->port_mss = s->port_mss;
	d->wscale = s->wscale;
	d->own_scale = s->own_scale;
	d->flags = (d->flags & ~(FQ_WS | FQ_TS_OFFERED | FQ_SIGNED)) | FQ_SYN_SEEN | s->offers;
}

/* The connection is open: the offer of the SYN is in force. `ack`: acknowledged before any data. `agreed`: flags. */
static __always_inline void commit_syn(struct fq_dir *d, __u32 ack, __u32 agreed)
{
	d->flags = FQ_KNOWN | FQ_SEQ | (d->flags & (FQ_WS | OPENING_FLAGS)) | agreed;
	d->bytes = d->seq_next - (d->isn + 1); /* Fast Open */
	d->packets = d->bytes > 0;
	d->rewritten = 0;
	d->ruled_until = 0;
	d->acked = 0;
	d->round.ns = 0;
	d->hole_from = d->hole_to = 0;
	d->asked_us = 0;
	d->ack = ack;
	d->edge = ack;
}

static __always_inline __u32 time_since(const struct segment *s, __u64 then)
{
	__u64 spent = s->now - then;

	if (!then || s->now <= then)
		return 0;
	return spent < 0xFFFFFFFF ? spent : 0xFFFFFFFF;
}

/* Record window and timestamps of the last segment of this direction. */
static __always_inline void note_segment(const struct segment *s, struct fq_dir *own,
					 const struct fq_dir *peer, __u16 window)
{
	__u32 old = own->flags, flags = old & ~FQ_TS, scale = MAX_WSCALE, edge;

	/* If the handshake was not seen, segments with room for timestamps may carry them. */
	if (!(flags & FQ_KNOWN))
		flags = (flags & ~FQ_TS_DUE) | (s->options >= TS_ROOM ? FQ_TS_DUE : 0);
	else
		scale = flags & peer->flags & FQ_WS ? own->wscale & 15 : 0;
	if (s->ts && flags & FQ_TS_DUE) {
		own->tsval = s->tsval;
		own->tsecr = s->tsecr;
		flags |= FQ_TS;
	}
	/* If another switch lowers windows before this one, the sender may still use an earlier, larger window. */
	edge = s->ack_seq + ((__u32)window << scale);
	if (!(flags & (FQ_ACK | FQ_KNOWN)) || (__s32)(edge - own->edge) > 0)
		own->edge = edge;
	own->window = own->passed = window;
	flags |= FQ_ACK;
	set_flags(own, flags & ~old);
	clear_flags(own, old & ~flags);
}

/*
 * A SYN-ACK that answers the recorded SYN fixes the scales of both sides. Returns whether it opened the
 * connection: a retransmitted one does not.
 */
static __always_inline bool open_connection(const struct segment *s, struct fq_dir *own,
					    struct fq_dir *peer, bool copy)
{
	bool timestamps, first = !(own->flags & FQ_KNOWN);
	__u32 agreed;
	__u16 window = s->window;

	if (!(peer->flags & (FQ_SYN_SEEN | FQ_KNOWN)))
		return false;
	if (!first && own->isn == s->seq) {
		if (!copy)
			own->syn_ns = 0; /* retransmitted: its answer gives no RTT */
		return false;
	}
	remember_syn(s, own, copy);
	timestamps = own->flags & peer->flags & FQ_TS_OFFERED;
	if (!first)
		timestamps = s->ts && peer->flags & FQ_TS_DUE;
	agreed = (timestamps ? FQ_TS_DUE : 0) | ((own->flags | peer->flags) & FQ_SIGNED);
	commit_syn(own, s->ack_seq, agreed);
	commit_syn(peer, own->isn + 1, agreed);
	/* RFC 3168 section 6.1.1. With AccECN the same flags are a counter, and the answer to a SYN differs. */
	if (s->ecn == TCP_ECE) {
		own->flags |= FQ_ECN;
		peer->flags |= FQ_ECN;
	}
	own->acked = s->ack_seq - (peer->isn + 1);
	own->rtt_ns = time_since(s, peer->syn_ns);
	sample_round_trip(s, own, own->rtt_ns);
	peer->rtt_ns = 0;
	/* The window of a SYN is not scaled; it is recorded as later segments would advertise it. */
	if (own->flags & peer->flags & FQ_WS)
		window >>= own->wscale & 15;
	note_segment(s, own, peer, window);
	return first;
}

/* Nobody resets a connection and goes on: its RST did not count for the other end, by its checksum perhaps. */
static __always_inline void take_back_reset(struct fq_dir *own, struct fq_dir *peer)
{
	clear_flags(own, FQ_RST | FQ_RESETS);
	clear_flags(peer, FQ_RST | FQ_RESETS);
	set_flags(own, FQ_GOES_ON);
}

/*
 * Follow the numbers of a direction, by an acceptable segment. They only increase, so that a reordered segment
 * undoes nothing.
 *
 * A FIN ends its direction if all data before it was seen. Otherwise (a segment was lost before the switch) it
 * ends the direction when the receiver acknowledges it.
 */
__noinline int follow(const struct segment *s, struct fq_dir *own, struct fq_dir *peer)
{
	__s32 ahead, moved = 0;
	__u32 end, flags;

	if (!s || !own || !peer)
		return 0;
	end = s->seq + s->payload + s->fin;
	flags = own->flags;
	if (own->far.ifindex && flags & FQ_SEQ && s->payload)
		note_gap(s, own, own->seq_next, common_mss(s, peer, own));
	if (flags & FQ_SEQ) {
		ahead = advance(&own->seq_next, end);
	} else {
		ahead = 1;
		own->seq_next = end;
		set_flags(own, FQ_SEQ);
	}
	if (ahead > 0) {
		/* It has gone on: what seemed to be its FIN, or its RST, was not believed. */
		if (flags & FQ_FIN) {
			clear_flags(own, FQ_FIN);
			set_flags(own, FQ_GOES_ON);
		}
		if (flags & FQ_RESETS)
			take_back_reset(own, peer);
		if (s->fin && (flags & (FQ_SEQ | FQ_GOES_ON)) == FQ_SEQ &&
		    (__s32)(s->seq - (end - ahead)) <= 0) {
			set_flags(own, FQ_FIN);
			uncount(own, s->epoch);
		}
		if (s->fin)
			set_flags(own, FQ_FIN_DUE);
		else if (flags & FQ_FIN_DUE)
			clear_flags(own, FQ_FIN_DUE);
	} else if (s->fin && !ahead && !(flags & (FQ_FIN | FQ_FIN_DUE))) {
		/* A later ACK arrived first: the first FIN was lost before the switch, or segments were reordered. */
		if (peer->flags & FQ_ACK && peer->ack == end) {
			set_flags(own, FQ_FIN);
			uncount(own, s->epoch);
			if (peer->acked)
				ADD(peer->acked, -1);
		} else {
			set_flags(own, FQ_FIN_DUE);
		}
	}
	if (flags & (FQ_ACK | FQ_KNOWN)) {
		moved = advance(&own->ack, s->ack_seq);
		if (moved < 0)
			return 0;
		if (moved)
			ADD(own->acked, moved);
		if (moved && flags & FQ_RESETS)
			take_back_reset(own, peer);
		if (peer->flags & FQ_FIN_DUE && s->ack_seq == peer->seq_next) {
			clear_flags(peer, FQ_FIN_DUE);
			set_flags(peer, FQ_FIN);
			uncount(peer, s->epoch);
			if (moved)
				ADD(own->acked, -1); /* the FIN is no payload */
		}
		/* The last segment of the handshake. The sender of the SYN-ACK has acknowledged before. */
		if (!(flags & FQ_ACK) && !moved) {
			own->rtt_ns = time_since(s, peer->syn_ns);
			sample_round_trip(s, own, own->rtt_ns);
		}
		if (peer->alt_ifindex && (__s32)(s->ack_seq - peer->alt_from) > 0) {
			/* Data that has not left by the recorded port has arrived: the flow has moved. */
			ADD(peer->bytes, peer->seq_next - peer->alt_from);
			move_to_port(peer, peer->alt_ifindex, s->epoch);
		}
	} else {
		own->ack = s->ack_seq;
	}
	note_segment(s, own, peer, s->window);
	return 0;
}

#endif
