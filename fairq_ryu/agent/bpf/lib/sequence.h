/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which segments belong to a recorded connection, by their numbers.
 *
 * Whoever forges segments may know addresses and ports, but not sequence numbers. So what is not acceptable to
 * the receiver (RFC 9293 section 3.10.7.4, RFC 5961) changes nothing here either. A segment is checked in both
 * its numbers, so that one guessed at random passes once in (2^32 / window)^2 times; a reset must have one of two
 * exact numbers.
 */
#ifndef FAIRQ_SEQUENCE_H
#define FAIRQ_SEQUENCE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

#include "../layout.h"
#include "parse.h"

#define MAX_WINDOW  (1U << 30) /* RFC 7323: numbers further apart are of no one window */
#define MAX_UNKNOWN (1U << 24) /* no more is accepted if the scale is not known */
/*
 * Room on either side of a window: for the first segments, which the window of a SYN allows, for probes of a
 * closed window, and for late duplicates.
 */
#define SLACK       (1U << 16)

/* Is the connection in use: was anything seen of it but a SYN? */
static __always_inline bool is_live(const struct fq_dir *own, const struct fq_dir *peer)
{
	return (own->flags | peer->flags) & (FQ_SEQ | FQ_KNOWN);
}

/* Has the connection ended? */
static __always_inline bool is_closed(const struct fq_dir *own, const struct fq_dir *peer)
{
	return (own->flags | peer->flags) & FQ_RST || own->flags & peer->flags & FQ_FIN;
}

/* By how much the numbers of the other side may differ from what `d` has acknowledged. */
static __always_inline __u32 reach(const struct fq_dir *d)
{
	__u32 window = d->edge - d->ack;

	if (window > MAX_WINDOW)
		window = 0;
	if (!(d->flags & FQ_KNOWN) && window > MAX_UNKNOWN)
		window = MAX_UNKNOWN;
	return window + SLACK;
}

/* Does a SYN-ACK or RST acknowledge the SYN of `peer`, and no more than the SYN carried (RFC 7413)? */
static __always_inline bool answers_syn(const struct segment *s, const struct fq_dir *peer)
{
	return s->ack && s->ack_seq - (peer->isn + 1) <= peer->seq_next - (peer->isn + 1);
}

/* A segment that is neither SYN nor RST: are both its numbers acceptable? What is not known is not checked. */
static __always_inline bool fits(const struct segment *s, const struct fq_dir *own,
				 const struct fq_dir *peer)
{
	__u64 room, behind;

	if (!s->ack)
		return false;
	if (peer->flags & (FQ_ACK | FQ_KNOWN)) {
		room = reach(peer);
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
		/* What was never sent cannot be acknowledged. */
		__u32 oldest = peer->seq_next - (peer->flags & FQ_SEQ ? MAX_WINDOW : SLACK);

		if (own->flags & (FQ_ACK | FQ_KNOWN))
			oldest = own->ack - reach(own);
		return s->ack_seq - oldest <= peer->seq_next - oldest;
	}
	if (own->flags & FQ_ACK)
		return s->ack_seq - (own->ack - MAX_WINDOW) <= 2 * MAX_WINDOW;
	return true;
}

/*
 * A reset: at the number that its sender would use next (RFC 9293 section 3.10.7.4), at the one that the other side
 * has acknowledged (an answer to its segment, or to a challenge of RFC 5961), or in answer to a SYN.
 */
static __always_inline bool is_reset(const struct segment *s, const struct fq_dir *own,
				     const struct fq_dir *peer)
{
	if (peer->flags & FQ_SYN_SEEN && answers_syn(s, peer))
		return true;
	if (own->flags & (FQ_SEQ | FQ_SYN_SEEN) && s->seq == own->seq_next)
		return true;
	return peer->flags & (FQ_ACK | FQ_KNOWN) && s->seq == peer->ack;
}

typedef __u64 __attribute__((may_alias)) word;
#define CONNECTION_WORDS ((sizeof(struct fq_dir) - offsetof(struct fq_dir, bytes)) / sizeof(word))

/* Forget what is known of a direction, but not where it leaves. */
static __always_inline void forget(struct fq_dir *d)
{
	__builtin_memset(&d->bytes, 0, CONNECTION_WORDS * sizeof(word));
}

/*
 * A SYN, SYN-ACK or RST: is it of this connection? A SYN is, if it is the connection's own, or if there is no
 * connection yet or any more: then it starts one. Not inlined, as parse() is not.
 */
__noinline int is_own_handshake(const struct segment *s, struct fq_dir *own, struct fq_dir *peer)
{
	if (!s || !own || !peer)
		return 0;
	if (s->rst)
		return is_reset(s, own, peer);
	if (!s->ack) {
		bool same = own->flags & (FQ_SYN_SEEN | FQ_KNOWN) && own->isn == s->seq;

		if (is_closed(own, peer) && !(same && own->flags & FQ_KNOWN)) {
			forget(own);
			forget(peer);
			return 1;
		}
		return same || !(is_live(own, peer) || own->flags & FQ_SYN_SEEN);
	}
	if (!(peer->flags & (FQ_SYN_SEEN | FQ_KNOWN)))
		return !is_live(own, peer);
	if (own->flags & FQ_KNOWN && own->isn == s->seq)
		return 1;
	/* With SYN cookies a second SYN-ACK may have another number. The opener has taken neither yet. */
	return !(peer->flags & FQ_KNOWN && peer->flags & FQ_ACK) && answers_syn(s, peer);
}

static __always_inline bool belongs(const struct segment *s, struct fq_dir *own,
				    struct fq_dir *peer)
{
	return s->syn || s->rst ? is_own_handshake(s, own, peer) : fits(s, own, peer);
}

#endif
