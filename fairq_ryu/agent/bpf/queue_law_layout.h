/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The map layout of queue laws, which judge each packet that is about to enter the queue of a port. Part of layout.h,
 * and read by the same reader.
 *
 * Suffixes are units: _ns (CLOCK_MONOTONIC or a time), _bytes, _packets; _q16 and _q32: times 1 << 16 and 1 << 32.
 */
#ifndef FAIRQ_QUEUE_LAW_LAYOUT_H
#define FAIRQ_QUEUE_LAW_LAYOUT_H

/* fq_sharing.variant: as the paper, as its authors' code, or ours. */
#define FQ_VARIANT_PAPER   1
#define FQ_VARIANT_AUTHORS 2
#define FQ_VARIANT_OURS    3

/*
 * fq_queue_law.flags. ECN: packets that are ECN-capable are marked where others are dropped. FLOWS, BINS: the law has a
 * flow table, or bins, and the hash of each flow.
 */
#define FQ_QLAW_ECN   1
#define FQ_QLAW_FLOWS 2
#define FQ_QLAW_BINS  4

/* 8-byte words for what a kind of law has of its own (laws/own.h): parameters, and state of a port. */
#define FQ_QLAW_WORDS       5
#define FQ_QLAW_STATE_WORDS 3

/* What a law decides about a packet. MARK: only of packets that are ECN-capable. */
#define FQ_PASS 0
#define FQ_DROP 1
#define FQ_MARK 2

/* Flow tables of afq and afcd. */
#define FQ_FLOW_SLOTS 2048
#define FQ_SHADOW     2000

/* Bins of sfb: FQ_SFB_LEVELS levels of FQ_SFB_WIDTH. */
#define FQ_SFB_LEVELS 8
#define FQ_SFB_WIDTH  16
#define FQ_SFB_BINS   128

/* The parameters of a queue law. */
struct fq_queue_law {
	__u64 rate;               /* C, of the port, bytes/s */
	__u32 limit_bytes;        /* B, the port's buffer */
	__u32 seed;               /* of the hash of flows */
	__u32 table;              /* index of its flow table or bins */
	__u32 unit;               /* of its state: with another, a law begins anew */
	__u32 flags;              /* FQ_QLAW_... */
	__u32 kind;               /* of laws/NAME */
	__u64 own[FQ_QLAW_WORDS]; /* struct NAME_law */
};

/* The parameters of laws with a fair share (queue_flows.h). */
struct fq_sharing {
	__u64 update_ns;      /* time between two updates of the fair share */
	__u32 target_bytes;   /* Q_t, the length of the queue aimed at */
	__u32 shadow_packets; /* b, samples in the shadow buffer, 1 to FQ_SHADOW */
	__u32 sample_every;   /* s, one packet of so many is sampled */
	__u32 variant;        /* FQ_VARIANT_... */
};

/* The queue law of a port, by slot: written by the agent only. */
struct fq_port_queue_law {
	struct fq_queue_law law;
	__u64 expires_ns; /* CLOCK_MONOTONIC: from then on it does nothing; 0: the port has none */
	__u32 id;
	__u32 queues; /* transmit queues of the device, each with a law of its own; 0: one queue for all */
};

/*
 * What a law knows about a packet. With segmentation offload a packet is several segments, which pass, are dropped or
 * marked together.
 */
struct fq_queue_law_input {
	__u64 now_ns;
	__u32 backlog;  /* of the queue, without this packet, bytes */
	__u32 low;      /* its least since the last packet that was judged, bytes */
	__u32 len;      /* of all its segments on the wire, bytes */
	__u32 hash;     /* of the flow */
	__u32 random;   /* uniform */
	__u32 ect;      /* 1: the packet is ECN-capable */
	__u32 segments; /* 1 or more */
	__u32 pad;
};

/* What a law has done: segments. They only grow. */
struct fq_queue_law_counts {
	__u64 judged;
	__u64 dropped; /* of these */
	__u64 dropped_bytes;
	__u64 marked;  /* likewise, with CE; those that had it before included */
	__u64 not_ect; /* of those judged: not ECN-capable */
	__u64 unmarked; /* of these, those that would have been marked if they were: dropped (mark: left alone) */
	__u64 sampled; /* afq, afcd: entered in the shadow buffer */
	__u64 updates; /* afq, afcd: of the fair share */
};

/* The variables of CoDel (RFC 8289): of a port or of a flow. */
struct fq_codel {
	__u64 first_above_ns; /* when the delay will have been above the target for an interval; 0: it is below */
	__u64 drop_next_ns;
	__u32 count;        /* drops since it entered the dropping state */
	__u32 last_count;   /* count when it entered it */
	__u32 inv_sqrt_q32; /* 1 / sqrt(count) */
	__u32 dropping;
};

/* Samples that count less as they age (queue_recent.h): of a flow, or the mean of several. */
struct fq_recent {
	__u32 samples_q16; /* as they counted then */
	__u32 at;          /* CLOCK_MONOTONIC >> 20 */
};

/* The state of a port's queue law, by slot: cleared by the agent, written by the program. */
struct fq_queue_law_state {
	struct fq_queue_law_counts counts;
	__u64 last_ns; /* last packet judged; 0: none yet */
	__u64 backlog; /* that it found, bytes */
	/* afq, afcd */
	__u64 update_at_ns; /* the fair share is updated from then on */
	__u32 fair_q16; /* m_f, samples; 0: not known, and nothing is dropped because of its share */
	__u32 old_bytes; /* the queue at the last update */
	__u32 flows;     /* with samples in the shadow buffer */
	__u32 filled;    /* samples in it */
	__u32 next;      /* place of the next sample */
	__u32 skipped;   /* packets since the last sample */
	/* codel, afcd */
	struct fq_codel codel;
	/* afq, afcd: ours */
	struct fq_recent mean;          /* over packets, of what their flows have sent */
	__u64 own[FQ_QLAW_STATE_WORDS]; /* struct NAME_state */
};

/* The same with the lock under which the programs write it: see queue_law.bpf.c. */
struct fq_locked_queue_law {
	__u32 lock;
	__u32 pad;
	struct fq_queue_law_state state;
};

/* The flow table and shadow buffer of afq and afcd, by fq_queue_law.table: cleared by the agent. */
struct fq_flow_table {
	__u16 samples[FQ_FLOW_SLOTS];           /* m_i: of each slot in the shadow buffer */
	__u16 shadow[FQ_SHADOW];                /* ring of slots, each plus 1; 0: empty */
	__u64 first_above_ns[FQ_FLOW_SLOTS];    /* afcd (not ours): as fq_codel's, of each flow */
	struct fq_recent recent[FQ_FLOW_SLOTS]; /* ours: of each flow, without its drops */
};

/* The bins of sfb, level by level, by fq_queue_law.table: cleared by the agent. */
struct fq_sfb_bins {
	__u32 queued[FQ_SFB_BINS]; /* packets in the queue: written by the queue program */
	__u32 p_q16[FQ_SFB_BINS];  /* probability of a mark or drop, at most 65535 */
};

/* The backlog of a port's queue, by slot: written by the queue program; `low` is reset by the law's. */
struct fq_depth {
	__u64 last_ns;
	__u32 backlog;
	__u32 low; /* least since the law read it */
};

#endif
