/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments that do not belong to the connection that is recorded for their addresses and ports. Most of them are
 * late or forged. They are genuine if
 *  - the ports are used again, and the end of the old connection was not seen;
 *  - the connection has used another path for a while;
 *  - a forged connection has replaced the real one.
 *
 * Such segments are recorded as a rival: a second connection with the same addresses and ports, which changes nothing
 * else. It replaces the recorded connection when both of its sides have acknowledged each other; in a handshake, this
 * is the ACK of the client. The replaced connection becomes the rival, with its complete state. So a completely forged
 * connection is recorded only until the next segment of the real one.
 */
#ifndef FAIRQ_RIVALS_H
#define FAIRQ_RIVALS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "connection.h"
#include "far_place.h"
#include "flow_key.h"
#include "places.h"
#include "port_law.h"
#include "sequence.h"
#include "window_maps.h"

/* A replaced connection is kept at least for the duration of TIME-WAIT, ns. */
#define DISPLACED_NS (60ULL * 1000000000)
/* An incomplete handshake is kept at least for this time, unless another SYN arrives, ns. */
#define HANDSHAKE_NS (1ULL * 1000000000)

/* Whether both sides have acknowledged each other. */
static __always_inline bool is_proven(const struct fq_dir *own, const struct fq_dir *peer)
{
	return (own->flags & peer->flags & (FQ_SEQ | FQ_ACK)) == (FQ_SEQ | FQ_ACK);
}

static __always_inline __u64 last_seen(const struct fq_dir *own, const struct fq_dir *peer)
{
	return own->last_ns > peer->last_ns ? own->last_ns : peer->last_ns;
}

/* Whether another rival may be recorded in place of this one. */
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
	if (!a->out.ifindex)
		set_place(&a->out, b->out.ifindex);
	a->alt_ifindex = 0;
	a->owner = 0;                        /* priorities are of connections */
	a->out.granted = a->far.granted = 0; /* to the other */
}

/* Take over the state that does not depend on the sequence numbers. */
static __always_inline void inherit(struct fq_dir *d, const struct fq_dir *from, bool scaled)
{
	d->isn = from->isn;
	d->mss = from->mss;
	d->wscale = from->wscale;
	d->own_scale = from->own_scale;
	d->rtt_ns = from->rtt_ns;
	d->bytes = from->bytes;
	d->packets = from->packets;
	d->rewritten = from->rewritten;
	d->acked = from->acked;
	set_flags(d, from->flags & (FQ_KNOWN | FQ_WS | FQ_TS_DUE | FQ_ECN | FQ_SIGNED));
	d->edge = d->ack + ((__u32)d->window << (scaled ? d->wscale & 15 : 0));
}

/*
 * Whether the rival is the recorded connection, some segments of which have used another path. Then at least one side
 * (the one that sends ACKs only) has about the same sequence number. For another connection the probability of that
 * is 1 in 32,768.
 */
static __always_inline bool is_resumed(const struct fq_dir *own, const struct fq_dir *peer,
				       const struct fq_dir *rival, const struct fq_dir *rival_peer)
{
	return own->flags & peer->flags & FQ_KNOWN && !(rival->flags & FQ_KNOWN) &&
	       (rival->seq_next - own->seq_next < SLACK ||
		rival_peer->seq_next - peer->seq_next < SLACK);
}

/* Replace the recorded connection by the rival. */
static __always_inline void promote(const struct segment *s, struct fq_dir *own,
				    struct fq_dir *peer, struct fq_dir *rival,
				    struct fq_dir *rival_peer, bool opened)
{
	bool resumed = is_resumed(own, peer, rival, rival_peer);
	struct fq_port *port;
	__u32 ifindex, step, epoch = s->epoch;

	if (resumed) {
		bool scaled = own->flags & peer->flags & FQ_WS;

		inherit(rival, own, scaled);
		inherit(rival_peer, peer, scaled);
	}
	exchange(own, rival);
	exchange(peer, rival_peer);
	clear_flags(own, FQ_RIVAL);
	clear_flags(peer, FQ_RIVAL);
	if (rival->flags & FQ_KNOWN && !(own->flags & FQ_KNOWN)) {
		set_flags(own, FQ_RIVAL);
		set_flags(peer, FQ_RIVAL);
	}
	rival->last_ns = s->now;
	if (resumed) {
		/* It is the same connection, with older numbers. */
		clear_connection(rival);
		clear_connection(rival_peer);
	}
	if (is_closed(own, peer)) {
		uncount(own, s->epoch);
		uncount(peer, s->epoch);
	} else if (opened) {
		ifindex = s->syn ? own->out.ifindex : peer->out.ifindex; /* of the SYN-ACK */
		port = find_port(ifindex);
		if (port)
			ADD(port->handshakes, 1);
		/* Both have the flag, or neither. */
		if (own->flags & FQ_SIGNED) {
			epoch = 0;
		} else {
			count_at_places(own, s->epoch);
			count_at_places(peer, s->epoch);
		}
		step = s->syn ? FQ_OPENING_SYN_ACK : FQ_OPENING_PROVEN;
		law_direction_began(own, peer, step, epoch, s->now);
		law_direction_began(peer, own, step, epoch, s->now);
	}
}

/*
 * Record a segment that does not belong to the connection of `own` and `peer` as one of a rival. Returns whether the
 * rival has replaced the connection. Not inlined, for the reason given at parse().
 */
__noinline int match_rival(struct __sk_buff *skb, struct segment *s, struct fq_dir *own,
			   struct fq_dir *peer)
{
	const struct fq_flow_key *key;
	struct fq_dir *rival, *rival_peer;
	struct fq_flow *flow;
	bool known, proven, opened = false;

	if (!s || !own || !peer)
		return 0;
	key = copied_key(&s->key, 0);
	if (!key)
		return 0;
	flow = bpf_map_lookup_elem(&rivals, key);
	if (!flow || !is_of_connection(s, &flow->dir[s->dir & 1], &flow->dir[(s->dir & 1) ^ 1])) {
		/* A connection starts neither with a RST nor with a SYN-ACK. */
		if (s->rst || (s->syn && s->ack))
			return 0;
		if (!s->ack && !s->syn)
			return 0;
		if (flow && !is_replaceable(s, &flow->dir[0], &flow->dir[1]))
			return 0;
		if (bpf_map_update_elem(&rivals, key, &new_flow, BPF_ANY))
			return 0;
		flow = bpf_map_lookup_elem(&rivals, key);
		if (!flow)
			return 0;
	}
	rival = &flow->dir[s->dir & 1];
	rival_peer = &flow->dir[(s->dir & 1) ^ 1];
	proven = is_proven(rival, rival_peer);
	known = rival->flags & FQ_KNOWN;
	if (!proven)
		rival->last_ns = s->now;
	set_place(&rival->out, skb->ifindex);
	if (s->rst) {
		set_flags(rival, FQ_RST | FQ_RESETS);
		set_flags(rival_peer, FQ_RST);
		return 0;
	}
	if (s->syn && !s->ack) {
		if (!known)
			remember_syn(s, rival, false);
		return 0;
	}
	if (s->syn) {
		s->of_rival = true;
		opened = open_connection(s, rival, rival_peer, false);
		/* On a live connection both SYN and SYN-ACK may be forged. */
		if (is_live(own, peer)) {
			set_flags(own, FQ_RIVAL);
			set_flags(peer, FQ_RIVAL);
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
 * Whether a segment belongs to a rival, although it is acceptable for the recorded connection. This is possible if
 * FQ_RIVAL is set:
 *  - A SYN of another connection has been answered. Initial sequence numbers increase with time, so those of the next
 *    connection may be in the window of the previous one.
 *  - A connection of unknown scale, with a large window, has replaced one of known scale.
 * It is also possible if the entry is new (`fresh`): an entry that had replaced this connection was removed.
 */
__noinline int is_of_rival(const struct segment *s, struct fq_dir *own, struct fq_dir *peer,
			   bool fresh)
{
	const struct fq_flow_key *key;
	struct fq_dir *rival, *rival_peer;
	struct fq_flow *flow;

	if (!s || !own || !peer || s->syn || s->rst)
		return 0;
	key = copied_key(&s->key, 0);
	if (!key)
		return 0;
	flow = bpf_map_lookup_elem(&rivals, key);
	if (flow) {
		rival = &flow->dir[s->dir & 1];
		rival_peer = &flow->dir[(s->dir & 1) ^ 1];
		if (fresh)
			return is_proven(rival, rival_peer) && is_acceptable(s, rival, rival_peer);
		if (rival->flags & FQ_KNOWN &&
		    s->now - last_seen(rival, rival_peer) <= DISPLACED_NS &&
		    (!is_proven(rival, rival_peer) || !(own->flags & FQ_KNOWN)))
			return is_acceptable(s, rival, rival_peer);
	}
	clear_flags(own, FQ_RIVAL);
	clear_flags(peer, FQ_RIVAL);
	return 0;
}

#endif
