/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is known of a connection, learnt from its segments:
 *
 *   SYN -> SYN-ACK that answers it -> window scales, MSS and timestamps of both sides are known
 *   every segment -> port by which its direction leaves, sequence and acknowledgement numbers
 */
#ifndef FAIRQ_CONNECTION_H
#define FAIRQ_CONNECTION_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "activity.h"
#include "parse.h"
#include "window_maps.h"

#define MAX_WINDOW (1 << 30) /* RFC 7323: numbers further apart are of no one window */

/* Too large for the stack. */
static const struct fq_flow new_flow;

/* Enter the connection of a segment in the map; NULL if it is not to be recorded. */
static __always_inline struct fq_flow *new_connection(const __u32 *ifindex, const struct segment *s)
{
	struct fq_port *port;

	/* A bare ACK or the end of an unknown flow is not worth an entry. */
	if (!s->payload && !s->syn)
		return NULL;
	port = bpf_map_lookup_elem(&ports, ifindex);
	if (!bpf_map_update_elem(&flows, &s->key, &new_flow, BPF_NOEXIST) && port)
		ADD(port->created, 1);
	return bpf_map_lookup_elem(&flows, &s->key);
}

/* Record what a SYN or SYN-ACK offers. */
static __always_inline void remember_syn(struct __sk_buff *skb, struct segment *s, struct fq_dir *d)
{
	/* Karn: after a retransmission it is unknown which SYN is answered. */
	bool again = d->flags & (FQ_SYN_SEEN | FQ_KNOWN) && d->isn == s->seq;

	syn_options(skb, s, s->tcp_off + sizeof(struct tcphdr), s->options);
	d->syn_ns = again ? 0 : s->now;
	d->isn = s->seq;
	d->new_mss = s->mss;
	d->new_wscale = s->wscale;
	d->flags = (d->flags & ~(FQ_NEW_WS | FQ_NEW_TS)) | FQ_SYN_SEEN | s->offers;
}

/* The connection is open: the offer of the SYN is in force. `ack`: acknowledged before any data. */
static __always_inline void commit_syn(struct fq_dir *d, __u32 ack, bool timestamps)
{
	d->wscale = d->new_wscale;
	d->mss = d->new_mss;
	d->flags = FQ_KNOWN | FQ_SEQ | (d->flags & FQ_NEW_WS ? FQ_WS : 0) |
		   (timestamps ? FQ_TS_DUE : 0);
	d->bytes = 0;
	d->packets = 0;
	d->rewritten = 0;
	d->ruled_until = 0;
	d->acked = 0;
	d->seq_next = d->isn + 1;
	d->ack = ack;
}

static __always_inline __u32 time_since(const struct segment *s, __u64 then)
{
	__u64 spent = s->now - then;

	if (!then || s->now <= then)
		return 0;
	return spent < 0xFFFFFFFF ? spent : 0xFFFFFFFF;
}

/* Record acknowledgement, window and timestamps of the last segment of this direction. */
static __always_inline void note_segment(const struct segment *s, struct fq_dir *own, __u16 window)
{
	__u16 flags = (own->flags & ~FQ_TS) | FQ_ACK;

	/* If the handshake was not seen, segments with room for timestamps may carry them. */
	if (!(flags & FQ_KNOWN))
		flags = (flags & ~FQ_TS_DUE) | (s->options >= TS_ROOM ? FQ_TS_DUE : 0);
	if (s->ts && flags & FQ_TS_DUE) {
		own->tsval = s->tsval;
		own->tsecr = s->tsecr;
		flags |= FQ_TS;
	}
	own->ack = s->ack_seq;
	own->window = window;
	own->flags = flags;
}

/*
 * A SYN-ACK fixes the scales of both sides, but only if it answers the SYN that was seen: a stray SYN on a
 * live connection (RFC 5961) is answered by a plain ACK, and so changes nothing. Returns whether this
 * SYN-ACK opened the connection; a retransmitted one does not, unless its SYN was retransmitted as well
 * (the first SYN-ACK was lost behind this switch). `again`: a SYN-ACK like this one opened it before.
 */
static __always_inline bool open_connection(struct __sk_buff *skb, struct segment *s,
					    struct fq_dir *own, struct fq_dir *peer, bool again)
{
	bool timestamps;
	__u16 window = s->window;

	if (!(peer->flags & FQ_SYN_SEEN) || s->ack_seq != peer->isn + 1)
		return false;
	uncount(own, s->epoch);
	uncount(peer, s->epoch);
	remember_syn(skb, s, own);
	timestamps = own->flags & peer->flags & FQ_NEW_TS;
	commit_syn(own, s->ack_seq, timestamps);
	commit_syn(peer, own->isn + 1, timestamps);
	if (!again) {
		own->rtt_ns = time_since(s, peer->syn_ns);
		peer->rtt_ns = 0;
	}
	/* The window of a SYN is not scaled; it is recorded as later segments would advertise it. */
	if (own->flags & peer->flags & FQ_WS)
		window >>= own->wscale & 15;
	note_segment(s, own, window);
	return true;
}

/*
 * Follow the sequence and acknowledgement numbers of a direction. They move forward only, so that a reordered
 * segment undoes nothing; numbers further apart than any window start anew.
 */
__noinline int follow(const struct segment *s, struct fq_dir *own, const struct fq_dir *peer)
{
	__s32 ahead, moved;
	__u32 end;

	if (!s || !own || !peer)
		return 0;
	end = s->seq + s->payload + s->fin;
	ahead = end - own->seq_next;
	moved = s->ack_seq - own->ack;
	if (!(own->flags & FQ_SEQ) || ahead > 0 || ahead < -MAX_WINDOW) {
		own->seq_next = end;
		own->flags |= FQ_SEQ;
	}
	/* RFC 9293 section 3.10.7.4: data that was never sent cannot be acknowledged. */
	if (!s->ack || (peer->flags & FQ_SEQ && (__s32)(s->ack_seq - peer->seq_next) > 0))
		return 0;
	if (own->flags & (FQ_ACK | FQ_KNOWN)) {
		if (moved < 0 && moved >= -MAX_WINDOW)
			return 0;
		if (moved > 0 && moved <= MAX_WINDOW) {
			own->acked += moved;
			if (peer->flags & FQ_FIN && s->ack_seq == peer->seq_next)
				own->acked--; /* the FIN */
		}
		/* The last segment of the handshake. The sender of the SYN-ACK has acknowledged before. */
		if (!(own->flags & FQ_ACK) && !moved)
			own->rtt_ns = time_since(s, peer->syn_ns);
	}
	note_segment(s, own, s->window);
	return 0;
}

/* Learn from a segment the port by which its flow leaves; if it carries data, the flow is active. */
static __always_inline void learn(__u32 ifindex, const struct segment *s, struct fq_dir *own)
{
	if (own->ifindex != ifindex) {
		/* The path has changed, or the flow is mirrored and leaves by two ports in turn. */
		uncount(own, s->epoch);
		own->ifindex = ifindex;
	}
	own->last_ns = s->now;
	if (!s->payload)
		return;
	own->bytes += s->payload;
	own->packets++;
	/* Only a flow whose window can be lowered takes a share of the pool. */
	if (own->epoch != s->epoch && own->flags & FQ_KNOWN && !(own->flags & (FQ_FIN | FQ_RST)) &&
	    own->ruled_until <= s->now)
		count_active(own, s->epoch);
}

#endif
