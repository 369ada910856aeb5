/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The third part of layout.h, by the same rules: what the law acdc knows of a flow (laws/acdc.h). */
#ifndef FAIRQ_ACDC_LAYOUT_H
#define FAIRQ_ACDC_LAYOUT_H

/* fq_acdc.reduced */
#define FQ_ACDC_FOR_MARKS 1
#define FQ_ACDC_FOR_LOSS  2

/*
 * A flow under the law acdc, by the key of its ACKs. The counts of the first part are raised by its data, all else is
 * written by its ACKs: these may be on another processor. Counts wrap. Bytes are those of the payload.
 */
struct fq_acdc {
	__u32 isn;      /* initial sequence number of the data: another connection begins anew */
	__u32 sent;     /* bytes that left by the port */
	__u32 marks;    /* of these, bytes that found a queue above the threshold */
	__u32 losses;   /* segments that were sent again */
	__u32 answered; /* `echoes` that the receiver has been told of, with CWR */

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
	__u32 reduced; /* FQ_ACDC_...: why, until something behind `recover` is acknowledged; 0: not */
	__u32 recover;
	__u32 credit; /* bytes acknowledged since the window was last raised by a segment */
	__u32 echoes; /* ACKs with ECE */
	__u32 reductions;
};

/* An ACK of such a flow. */
struct fq_acdc_ack {
	__u32 ack;
	__u32 next;   /* behind the last byte that the sender has sent */
	__u32 total;  /* bytes that the receiver has acknowledged; wraps */
	__u32 flight; /* bytes that were under way before */
	__u32 mss;    /* of the flow, bytes */
	__u32 floor;  /* its minimum window, bytes */
	__u32 echo;   /* 1: with ECE, on a connection with ECN */
	__u32 pad;
};

#endif
