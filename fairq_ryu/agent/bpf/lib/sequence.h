/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which segments belong to a recorded connection, by their sequence and acknowledgement numbers.
 *
 * An attacker may know addresses and ports of a connection, but not its sequence numbers. So a segment that is
 * not acceptable to the receiver (RFC 9293 section 3.10.7.4, RFC 5961) does not change the state here either.
 * Both numbers are checked; random numbers pass with a probability of about (window / 2^32)^2. A reset must have
 * one of two exact sequence numbers.
 */
#ifndef FAIRQ_SEQUENCE_H
#define FAIRQ_SEQUENCE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include "../layout.h"
#include "parse.h"

#define MAX_WINDOW  (1U << 30) /* RFC 7323: the largest window */
#define MAX_UNKNOWN (1U << 24) /* the largest window that is accepted if the scale is not known */
/*
 * Tolerance on both sides of a window: for the first segments, which the window of a SYN allows, for probes of a
 * closed window, and for late duplicates.
 */
#define SLACK       (1U << 16)

/* Whether more than a SYN was seen of the connection. */
static __always_inline bool is_live(const struct fq_dir *own, const struct fq_dir *peer)
{
	return (own->flags | peer->flags) & (FQ_SEQ | FQ_KNOWN);
}

/* Whether the connection has ended. */
static __always_inline bool is_closed(const struct fq_dir *own, const struct fq_dir *peer)
{
	return (own->flags | peer->flags) & FQ_RST || own->flags & peer->flags & FQ_FIN;
}

/* By how much sequence numbers of the other side may differ from the one that `d` has acknowledged. */
static __always_inline __u32 tolerance(const struct fq_dir *d)
{
	__u32 window = d->edge - d->ack;

	if (window > MAX_WINDOW)
		window = 0;
	if (!(d->flags & FQ_KNOWN) && window > MAX_UNKNOWN)
		window = MAX_UNKNOWN;
	return window + SLACK;
}

/* Whether a SYN-ACK or RST acknowledges the SYN of `peer`, and at most the data in that SYN (RFC 7413). */
static __always_inline bool acknowledges_syn(const struct segment *s, const struct fq_dir *peer)
{
	return s->ack && s->ack_seq - (peer->isn + 1) <= peer->seq_next - (peer->isn + 1);
}

/* Whether the sender of `own` has sent this SYN or SYN-ACK before. */
static __always_inline bool has_sent_syn(const struct segment *s, const struct fq_dir *own)
{
	return own->flags & (FQ_SYN_SEEN | FQ_KNOWN) && own->isn == s->seq;
}

/* Whether both numbers of a segment without SYN and RST are acceptable, as far as the connection is known. */
static __always_inline bool is_acceptable(const struct segment *s, const struct fq_dir *own,
					  const struct fq_dir *peer)
{
	__u64 room, behind;

	if (!s->ack)
		return false;
	if (peer->flags & (FQ_ACK | FQ_KNOWN)) {
		room = tolerance(peer);
		behind = s->seq - (peer->ack - (__u32)room);
		if (behind + s->payload > 2 * room)
			return false;
	} else if (own->flags & (FQ_SEQ | FQ_SYN_SEEN)) {
		room = own->flags & FQ_SEQ ? MAX_WINDOW : SLACK;
		behind = s->seq - (own->seq_next - (__u32)room);
		if (behind > 2 * room)
			return false;
	}
	if (peer->flags & (FQ_SEQ | FQ_SYN_SEEN)) {
		/* Data that was never sent cannot be acknowledged. */
		__u32 oldest = peer->seq_next - (peer->flags & FQ_SEQ ? MAX_WINDOW : SLACK);

		if (own->flags & (FQ_ACK | FQ_KNOWN))
			oldest = own->ack - tolerance(own);
		return s->ack_seq - oldest <= peer->seq_next - oldest;
	}
	if (own->flags & FQ_ACK)
		return s->ack_seq - (own->ack - MAX_WINDOW) <= 2 * MAX_WINDOW;
	return true;
}

/*
 * Whether a RST is acceptable: its sequence number is the next one of its sender (RFC 9293 section 3.10.7.4), or
 * the one that the other side has acknowledged (it answers a segment, or a challenge ACK of RFC 5961), or it answers
 * a SYN.
 */
static __always_inline bool is_reset(const struct segment *s, const struct fq_dir *own,
				     const struct fq_dir *peer)
{
	if (peer->flags & FQ_SYN_SEEN && acknowledges_syn(s, peer))
		return true;
	if (own->flags & (FQ_SEQ | FQ_SYN_SEEN) && s->seq == own->seq_next)
		return true;
	return peer->flags & (FQ_ACK | FQ_KNOWN) && s->seq == peer->ack;
}

typedef __u64 __attribute__((may_alias)) word;
#define CONNECTION_WORDS ((sizeof(struct fq_dir) - offsetof(struct fq_dir, bytes)) / sizeof(word))

/* Clear the state of the connection in a direction; its port stays. Its priority is looked up again, with its owner. */
static __always_inline void clear_connection(struct fq_dir *d)
{
	d->owner = 0;
	__builtin_memset(&d->bytes, 0, CONNECTION_WORDS * sizeof(word));
}

/*
 * Whether a SYN, SYN-ACK or RST belongs to this connection. A SYN does if it is a retransmission of the connection's
 * own, or if there is no connection: then it starts one, and the state of an ended connection is cleared. Not
 * inlined, for the reason given at parse().
 */
__noinline int is_handshake_or_reset(const struct segment *s, struct fq_dir *own,
				     struct fq_dir *peer)
{
	if (!s || !own || !peer)
		return 0;
	if (s->rst)
		return is_reset(s, own, peer);
	if (!s->ack) {
		bool same = has_sent_syn(s, own);

		if (is_closed(own, peer) && !(same && own->flags & FQ_KNOWN)) {
			clear_connection(own);
			clear_connection(peer);
			return 1;
		}
		return same || !(is_live(own, peer) || own->flags & FQ_SYN_SEEN);
	}
	if (!(peer->flags & (FQ_SYN_SEEN | FQ_KNOWN)))
		return !is_live(own, peer);
	if (own->flags & FQ_KNOWN && own->isn == s->seq)
		return 1;
	/* With SYN cookies, a second SYN-ACK may have another number. The client has not acknowledged the first. */
	return !(peer->flags & FQ_KNOWN && peer->flags & FQ_ACK) && acknowledges_syn(s, peer);
}

static __always_inline bool is_of_connection(const struct segment *s, struct fq_dir *own,
					     struct fq_dir *peer)
{
	return s->syn || s->rst ? is_handshake_or_reset(s, own, peer) : is_acceptable(s, own, peer);
}

#endif
