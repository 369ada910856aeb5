/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments that do not belong to the connection that is recorded for their addresses and ports. Most are late or
 * forged. They are true where
 *  - the ports are used again, and the end of the connection was not seen;
 *  - the connection has gone on elsewhere for a while;
 *  - a forged connection has displaced the true one.
 *
 * Such segments make up a rival, by the same rules as any connection, and change nothing else. It takes the place of
 * the recorded connection when both of its sides have acknowledged each other: for a handshake, with the ACK of
 * the opener. The connection that it displaces becomes the rival, complete as it is. So one who forges a whole
 * conversation is believed until the next segment of the true one.
 */
#ifndef FAIRQ_RIVALS_H
#define FAIRQ_RIVALS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "activity.h"
#include "connection.h"
#include "sequence.h"
#include "window_maps.h"

/* A displaced connection stays for as long as TIME-WAIT does, ns. */
#define DISPLACED_NS (60ULL * 1000000000)
/* A handshake that is not complete stays, whatever else does not fit, ns. */
#define HANDSHAKE_NS (1ULL * 1000000000)

/* Have both sides acknowledged each other? */
static __always_inline bool is_proven(const struct fq_dir *own, const struct fq_dir *peer)
{
	return (own->flags & peer->flags & (FQ_SEQ | FQ_ACK)) == (FQ_SEQ | FQ_ACK);
}

static __always_inline __u64 last_seen(const struct fq_dir *own, const struct fq_dir *peer)
{
	return own->last_ns > peer->last_ns ? own->last_ns : peer->last_ns;
}

/* May another rival take the place of this one? */
static __always_inline bool is_replaceable(const struct segment *s, const struct fq_dir *own,
					   const struct fq_dir *peer)
{
	__u64 last = last_seen(own, peer);

	if (is_proven(own, peer))
		return s->now - last > DISPLACED_NS;
	return s->syn || !((own->flags | peer->flags) & (FQ_SYN_SEEN | FQ_KNOWN)) ||
	       s->now - last > HANDSHAKE_NS;
}

static __always_inline void exchange(struct fq_dir *a, struct fq_dir *b)
{
	word *x = (word *)&a->bytes, *y = (word *)&b->bytes;

#pragma unroll
	for (unsigned int i = 0; i < CONNECTION_WORDS; i++) {
		word other = x[i];

		x[i] = y[i];
		y[i] = other;
	}
	if (!a->ifindex)
		a->ifindex = b->ifindex;
	a->alt_ifindex = 0;
}

/* What a handshake said, for the same connection with later numbers. */
static __always_inline void inherit(struct fq_dir *d, const struct fq_dir *from, bool scaled)
{
	d->isn = from->isn;
	d->mss = from->mss;
	d->wscale = from->wscale;
	d->rtt_ns = from->rtt_ns;
	d->bytes = from->bytes;
	d->packets = from->packets;
	d->rewritten = from->rewritten;
	d->acked = from->acked;
	d->flags |= from->flags & (FQ_KNOWN | FQ_WS | FQ_TS_DUE);
	d->edge = d->ack + ((__u32)d->window << (scaled ? d->wscale & 15 : 0));
}

/*
 * Is the rival the recorded connection, of which segments have gone by elsewhere? Then at least one side (that of
 * the acknowledgements) is about where it was. By chance that is so once in 32,768 times.
 */
static __always_inline bool is_resumed(const struct fq_dir *own, const struct fq_dir *peer,
				       const struct fq_dir *rival, const struct fq_dir *rival_peer)
{
	return own->flags & peer->flags & FQ_KNOWN && !(rival->flags & FQ_KNOWN) &&
	       (rival->seq_next - own->seq_next < SLACK ||
		rival_peer->seq_next - peer->seq_next < SLACK);
}

/* The rival takes the place of the recorded connection. */
static __always_inline void promote(const struct segment *s, struct fq_dir *own,
				    struct fq_dir *peer, struct fq_dir *rival,
				    struct fq_dir *rival_peer, bool opened)
{
	bool resumed = is_resumed(own, peer, rival, rival_peer);
	struct fq_port *port;
	__u32 ifindex;

	if (resumed) {
		bool scaled = own->flags & peer->flags & FQ_WS;

		inherit(rival, own, scaled);
		inherit(rival_peer, peer, scaled);
	}
	exchange(own, rival);
	exchange(peer, rival_peer);
	own->flags &= ~FQ_RIVAL;
	peer->flags &= ~FQ_RIVAL;
	if (rival->flags & FQ_KNOWN && !(own->flags & FQ_KNOWN)) {
		own->flags |= FQ_RIVAL;
		peer->flags |= FQ_RIVAL;
	}
	rival->last_ns = s->now;
	if (resumed) {
		/* It is not displaced, only older. */
		forget(rival);
		forget(rival_peer);
	}
	if (is_closed(own, peer)) {
		uncount(own, s->epoch);
		uncount(peer, s->epoch);
	} else if (opened) {
		ifindex = s->syn ? own->ifindex : peer->ifindex; /* of the SYN-ACK */
		port = bpf_map_lookup_elem(&ports, &ifindex);
		if (port)
			ADD(port->handshakes, 1);
		count_active(own, s->epoch);
		count_active(peer, s->epoch);
	}
}

/*
 * A segment that does not belong to the connection of `own` and `peer`. Returns whether it does now. Not inlined, as
 * parse() is not.
 */
__noinline int dispute(struct __sk_buff *skb, struct segment *s, struct fq_dir *own,
		       struct fq_dir *peer)
{
	struct fq_dir *rival, *rival_peer;
	struct fq_flow *flow;
	bool known, proven, opened = false;

	if (!s || !own || !peer)
		return 0;
	flow = bpf_map_lookup_elem(&rivals, &s->key);
	if (!flow || !belongs(s, &flow->dir[s->dir & 1], &flow->dir[(s->dir & 1) ^ 1])) {
		/* Neither a reset nor an answer is the beginning of anything. */
		if (s->rst || (s->syn && s->ack))
			return 0;
		if (!s->ack && !s->syn)
			return 0;
		if (flow && !is_replaceable(s, &flow->dir[0], &flow->dir[1]))
			return 0;
		if (bpf_map_update_elem(&rivals, &s->key, &new_flow, BPF_ANY))
			return 0;
		flow = bpf_map_lookup_elem(&rivals, &s->key);
		if (!flow)
			return 0;
	}
	rival = &flow->dir[s->dir & 1];
	rival_peer = &flow->dir[(s->dir & 1) ^ 1];
	proven = is_proven(rival, rival_peer);
	known = rival->flags & FQ_KNOWN;
	if (!proven)
		rival->last_ns = s->now;
	rival->ifindex = skb->ifindex;
	if (s->rst) {
		rival->flags |= FQ_RST;
		rival_peer->flags |= FQ_RST;
		return 0;
	}
	if (s->syn && !s->ack) {
		if (!known)
			remember_syn(skb, s, rival, false);
		return 0;
	}
	if (s->syn) {
		opened = open_connection(skb, s, rival, rival_peer, false);
		/* On a connection in use a SYN-ACK proves nothing. */
		if (is_live(own, peer)) {
			own->flags |= FQ_RIVAL;
			peer->flags |= FQ_RIVAL;
			return 0;
		}
		if (!opened)
			return 0;
	} else {
		follow(s, rival, rival_peer);
		if (!is_proven(rival, rival_peer))
			return 0;
		opened = known && !proven;
	}
	promote(s, own, peer, rival, rival_peer, opened);
	return 1;
}

/*
 * Although a segment may belong to the recorded connection: is it that of a rival? FQ_RIVAL says that this may be:
 *  - The handshake of another connection has been answered. The initial numbers of a host go on with the time, so
 *    those of the next connection may lie within the window of the one before.
 *  - A connection of unknown scale, whose windows may be large, has displaced one of known scale.
 * Or the connection has just been entered (`fresh`), and a forged one was removed that had displaced it.
 */
__noinline int is_disputed(const struct segment *s, struct fq_dir *own, struct fq_dir *peer,
			   bool fresh)
{
	struct fq_dir *rival, *rival_peer;
	struct fq_flow *flow;

	if (!s || !own || !peer || s->syn || s->rst)
		return 0;
	flow = bpf_map_lookup_elem(&rivals, &s->key);
	if (flow) {
		rival = &flow->dir[s->dir & 1];
		rival_peer = &flow->dir[(s->dir & 1) ^ 1];
		if (fresh)
			return is_proven(rival, rival_peer) && fits(s, rival, rival_peer);
		if (rival->flags & FQ_KNOWN &&
		    s->now - last_seen(rival, rival_peer) <= DISPLACED_NS &&
		    (!is_proven(rival, rival_peer) || !(own->flags & FQ_KNOWN)))
			return fits(s, rival, rival_peer);
	}
	own->flags &= ~FQ_RIVAL;
	peer->flags &= ~FQ_RIVAL;
	return 0;
}

#endif
