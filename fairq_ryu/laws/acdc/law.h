/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DCTCP (RFC 8257) in the switch, for hosts that do not know it: ours, after AC/DC TCP (He et al., SIGCOMM 2016). What
 * a congestion window would be at the sender is its receive window here.
 *
 *   data leaves       -> acdc_sent: counted as marked if the queue is above the threshold K
 *   ACK               -> acdc_acked: counted as marked if it echoes the mark of another switch; the window
 *   a window of data  -> alpha = (1 - g) alpha + g F, F the fraction of the marked bytes
 *   marks             -> window (1 - alpha / 2), once in a window of data
 *   loss              -> half the window
 *   otherwise         -> slow start up to the first mark or loss, then one segment in a window of data
 *
 * AC/DC sets ECT and CE on the wire, and takes both off before the receiver. Here data passes the very queue that it
 * is judged by: it is counted, no bit is needed, and the window follows at once and not a round trip later.
 */
#ifndef FAIRQ_LAW_ACDC_H
#define FAIRQ_LAW_ACDC_H

#include <linux/types.h>
#include <stdbool.h>

#include "../../agent/bpf/laws/arithmetic.h"
#include "../../agent/bpf/laws/own.h"
#include "../../agent/bpf/layout.h"

#define ACDC_SHIFT 20 /* of alpha */
#define ACDC_ONE   (1U << ACDC_SHIFT)

/* acdc_flow.used. Shifted by one: in the observation window before. */
#define ACDC_WHOLE 1
#define ACDC_HALF  4

/* acdc_flow.reduced */
#define ACDC_FOR_MARKS 1
#define ACDC_FOR_LOSS  2

struct acdc_law {
	__u32 weight_shift; /* g is 2 to the power of minus this */
	__u32 pad;
};

/*
 * A flow. The counts of the first part are raised by its data, all else is written by its ACKs: these may be on another
 * processor. Counts wrap. Bytes are those of the payload.
 */
struct acdc_flow {
	__u32 sent;   /* bytes that left by the port */
	__u32 marks;  /* of these, bytes that found a queue above the threshold */
	__u32 losses; /* segments that were sent again */

	__u32 window;    /* the congestion window, bytes; 0: it has not begun */
	__u32 threshold; /* slow start ends at this window, bytes */
	__u32 alpha;     /* mean of the marked fraction, << 20 */
	__u32 end; /* the observation window ends when something behind this is acknowledged */
	__u32 sent_then;  /* `sent` when it began */
	__u32 marks_then; /* `marks` likewise */
	__u32 acked;      /* bytes acknowledged in it */
	__u32 echoed;     /* of these, by ACKs with ECE */
	__u32 used; /* 1: the flow has used its whole window in it, 4: more than half; 2, 8: in the one before */
	__u32 marks_met;  /* `marks` at the last ACK */
	__u32 losses_met; /* `losses` likewise */
	__u32 total;      /* bytes acknowledged in all, likewise */
	__u32 reduced; /* ACDC_FOR_...: why, until something behind `recover` is acknowledged; 0: not */
	__u32 recover;
	__u32 credit; /* bytes acknowledged since the window was last raised by a segment */
};

/* A window before anything is known of the flow (RFC 6928: ten segments), bytes. */
LAW_INLINE __u32 acdc_first_window(const struct fq_law *p, __u32 mss)
{
	return (__u32)p->first_window * mss;
}

/*
 * Data leaves in a frame of `len` bytes and finds this backlog. `again`: it has left before. Of several segments in
 * one frame (segmentation offload) those are marked that make the queue longer than the threshold.
 */
LAW_INLINE void acdc_sent(const struct fq_law *p, struct fq_law_flow *flow, __u32 backlog,
			  __u32 len, __u32 payload, __u32 mss, bool again)
{
	struct acdc_flow *f = LAW_FLOW(acdc, flow);
	__u64 above = law_less((__u64)backlog + len, p->target);

	f->sent += payload;
	if (above)
		f->marks += law_min(payload, law_max(above, mss));
	if (again)
		f->losses++;
}

/* Whether a sequence number is behind another. */
LAW_INLINE bool acdc_after(__u32 number, __u32 other)
{
	return (other - number) >> 31;
}

/* The first ACK: a flow that began before the law keeps what it has under way. */
LAW_INLINE void acdc_begin(const struct fq_law *p, struct acdc_flow *f, const struct fq_law_ack *in)
{
	__u64 first = law_max(acdc_first_window(p, in->mss), in->flight);

	f->window = law_max(law_min(first, MAX_POOL), 1);
	f->threshold = MAX_POOL;
	f->alpha = ACDC_ONE; /* as Linux: a mark at once halves the window */
	f->end = in->next;
	f->total = in->total;
}

/* A window of data has been acknowledged: F is that of the bottleneck that marks more. */
LAW_INLINE void acdc_observe(const struct fq_law *p, struct acdc_flow *f, __u32 next)
{
	__u32 sent = f->sent - f->sent_then, marked = f->marks - f->marks_then;
	__u64 here = law_div((__u64)marked << ACDC_SHIFT, sent);
	__u64 elsewhere = law_div((__u64)f->echoed << ACDC_SHIFT, f->acked);
	__u32 fraction = law_min(law_max(here, elsewhere), ACDC_ONE);
	__u32 g = LAW_OWN(acdc, p)->weight_shift & 31;

	f->alpha = f->alpha - (f->alpha >> g) + (fraction >> g);
	f->end = next;
	f->sent_then = f->sent;
	f->marks_then = f->marks;
	f->acked = f->echoed = 0;
	f->used = (f->used & (ACDC_WHOLE | ACDC_HALF)) << 1;
}

LAW_INLINE void acdc_reduce(struct acdc_flow *f, __u32 next, bool lost)
{
	__u64 part = lost ? ACDC_ONE : f->alpha;

	f->window -= f->window * part >> (ACDC_SHIFT + 1);
	f->threshold = f->window;
	f->reduced = lost ? ACDC_FOR_LOSS : ACDC_FOR_MARKS;
	f->recover = next;
	f->credit = 0;
}

/* Bytes were acknowledged that met no mark. A window that the flow does not use says nothing, and is not raised. */
LAW_INLINE void acdc_grow(struct acdc_flow *f, const struct fq_law_ack *in, __u32 fresh)
{
	if (f->window < f->threshold) {
		if (f->used & (ACDC_HALF | ACDC_HALF << 1))
			f->window = law_min((__u64)f->window + fresh, f->threshold);
		return;
	}
	if (!(f->used & (ACDC_WHOLE | ACDC_WHOLE << 1)))
		return;
	f->credit += fresh;
	if (f->credit < f->window)
		return;
	f->credit = law_min(f->credit - f->window, f->window);
	f->window = law_min((__u64)f->window + in->mss, MAX_POOL);
}

/* An ACK. Returns the window of the flow, bytes. */
LAW_INLINE __u32 acdc_acked(const struct fq_law *p, struct fq_law_flow *flow,
			    const struct fq_law_ack *in)
{
	struct acdc_flow *f = LAW_FLOW(acdc, flow);
	bool marked = f->marks != f->marks_met || in->echo, lost = f->losses != f->losses_met;
	__u32 fresh = in->total - f->total;

	f->marks_met = f->marks;
	f->losses_met = f->losses;
	if (!f->window) {
		acdc_begin(p, f, in);
		fresh = 0;
	}
	if (fresh >
	    MAX_POOL) /* the count went back: another state of the connection was restored */
		fresh = 0;
	f->total = in->total;
	f->acked += fresh;
	if (in->echo)
		f->echoed += fresh;
	if (in->flight > f->window / 2)
		f->used |= ACDC_HALF;
	if ((__u64)in->flight + in->mss > f->window)
		f->used |= ACDC_WHOLE;
	if (fresh && acdc_after(in->ack, f->end))
		acdc_observe(p, f, in->next);
	if (f->reduced && acdc_after(in->ack, f->recover))
		f->reduced = 0;
	if (lost ? f->reduced != ACDC_FOR_LOSS : marked && !f->reduced) {
		acdc_reduce(f, in->next, lost);
		flow->reductions++;
	} else if (!marked && !f->reduced)
		acdc_grow(f, in, fresh);
	f->window = law_max(f->window, law_min(in->floor, MAX_POOL));
	return f->window;
}

LAW_INLINE __u32 acdc_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			     __u32 young, __u64 sent, __u32 mss)
{
	return acdc_first_window(p, mss);
}

#endif
