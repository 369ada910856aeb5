/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The map layout that the eBPF programs and the agent share.
 *
 * fairq_ryu/agent/layout.py reads this file and makes ctypes structures of it, so there is no second copy
 * to keep in step. That reader knows: #define NAME number, and structs whose members are
 * __u8/__u16/__u32/__u64, structs of this file, or arrays of those. Every struct is padded by hand to the
 * same size under any compiler.
 */
#ifndef FAIRQ_LAYOUT_H
#define FAIRQ_LAYOUT_H

/* Raised when the maps that outlive an agent (flows and their settings) change. */
#define FQ_LAYOUT_VERSION 4

/* Activity is counted in this many time buckets; together they span the activity timeout. */
#define FQ_BUCKETS   8
/* Queue histogram: 16 bins an octave, see fq_bin(). */
#define FQ_HIST_BINS 384

#define FQ_RULE_WINDOW 1
#define FQ_RULE_POOL   2

/* fq_dir.flags */
#define FQ_SYN_SEEN   1 /* isn, wscale, mss, seq_next are those of a SYN that is not answered yet */
#define FQ_FIN_DUE    2 /* its FIN, at seq_next, is not acknowledged yet */
#define FQ_WS         4 /* its SYN carried the window scale option */
#define FQ_KNOWN      8 /* both SYNs of the connection were seen: its scale is known */
#define FQ_FIN        16 /* this direction has sent FIN */
#define FQ_RST        32 /* either side has reset the connection */
#define FQ_TS_OFFERED 64 /* the SYN that is not answered yet carried the timestamps option */
#define FQ_TS_DUE     128 /* segments carry timestamps: both SYNs did, or without them the last may */
#define FQ_TS         256 /* tsval and tsecr are those of the last segment; due and not there: unknown */
#define FQ_SEQ        512 /* seq_next is known */
#define FQ_ACK        1024 /* ack, edge, window and timestamps are known: it has acknowledged something */
#define FQ_RIVAL      2048 /* another handshake waits for its last segment (rivals.h) */

/* fq_queue.state */
#define FQ_NOM 0
#define FQ_CNG 1

/* fq_threshold.flags */
#define FQ_REPORT_DROPS 1

/* Bytes of a dropped packet that are handed to the agent. */
#define FQ_DROP_BYTES 2048

/* Settings of the window program, written by the agent; one entry, index 0. */
struct fq_config {
	__u64 bucket_ns;  /* activity timeout / FQ_BUCKETS, ns */
	__u32 flow_rules; /* number of rules in flow_rules: 0 spares every ACK a lookup */
	__u32 layout;     /* FQ_LAYOUT_VERSION, for an agent that finds the maps of a dead one */
};

/* Settings of the queue and drop programs, written by the agent; one entry, index 0. */
struct fq_queue_config {
	__u32 netns;      /* inode of the network namespace the ports live in */
	__u32 peak_epoch; /* raised by the agent: peaks start again */
	__u32 thresholds; /* number of ports in thresholds: 0 spares every packet a lookup */
	__u32 pad;
};

/* A connection, the same for both directions: the end that sorts first is "lo". */
struct fq_flow_key {
	__u8 lo_addr[16]; /* IPv4: the last 4 bytes, the rest 0 */
	__u8 hi_addr[16];
	__u16 lo_port; /* network byte order */
	__u16 hi_port;
	__u8 family; /* 4 or 6 */
	__u8 dir;    /* flows: 0. flow_rules: direction of the ACK, 0 is lo to hi */
	__u8 pad[2];
};

/* State of one direction of a connection: of the segments that its sender sends. */
struct fq_dir {
	/* State of the addresses and ports; it stays when another connection uses them (rivals.h). */
	__u64 last_ns;     /* last segment, CLOCK_MONOTONIC ns */
	__u64 ruled_until; /* it has a rule of its own until then and takes no share of the pool */
	__u32 ifindex;     /* port by which it leaves; 0: not seen */
	__u32 epoch;       /* time bucket it is counted in; 0: not counted */
	__u32 alt_ifindex; /* another port by which it left since it last left by ifindex; 0: none */
	__u32 alt_from;    /* seq_next when it first left by that port */
	/* State of the connection. */
	__u64 bytes;     /* payload bytes that left */
	__u64 packets;   /* data segments that left */
	__u64 rewritten; /* segments of this direction whose window was lowered */
	__u64 acked;     /* payload bytes of the other direction that it has acknowledged */
	__u64 syn_ns;    /* its SYN or SYN-ACK; 0: retransmitted, so its answer gives no RTT */
	__u32 isn;       /* initial sequence number, host byte order, as all such numbers here */
	__u32 seq_next;  /* behind the last byte, SYN or FIN that it has sent */
	__u32 ack;       /* last acknowledgement number */
	__u32 edge;      /* the furthest right edge of a window that it has advertised */
	__u32 tsval;     /* timestamps of the last segment that acknowledged no less than ack */
	__u32 tsecr;
	__u32 rtt_ns; /* from the other's SYN at the switch to its answer there; 0: not known */
	__u32 flags;
	__u16 mss;    /* announced by the sender of this direction, bytes; 0: no option */
	__u16 window; /* as the sender of this direction advertised it last, in steps of its scale */
	__u8 wscale;  /* announced by the sender of this direction, 0 to 14 */
	__u8 alt_epoch; /* low byte of the time bucket in which it first left by alt_ifindex */
	__u8 pad[2];
};

struct fq_flow {
	struct fq_dir dir[2]; /* 0: lo to hi */
};

/* A port, by ifindex: written by the programs only. */
struct fq_port {
	__u64 active[FQ_BUCKETS]; /* epoch << 32 | flows whose last data left in that epoch */
	__u64 acks;               /* ACKs of its data that met a live rule */
	__u64 rewritten;          /* of these, lowered */
	__u64 unknown_scale;      /* ACKs left alone: the handshake was not seen */
	__u64 coarse;             /* ACKs whose window step exceeded the window asked for */
	__u64 created;            /* connections that were entered in the flow map at the port */
	__u64 handshakes;         /* SYN-ACKs that opened a flow leaving by the port */
	__u64 malformed;          /* TCP packets left alone: truncated, bad lengths, fragments */
};

/* A rule: written by the agent only. */
struct fq_rule {
	__u64 expires_ns; /* CLOCK_MONOTONIC; from then on the programs ignore the rule */
	__u32 bytes;      /* unscaled */
	__u16 kind;       /* FQ_RULE_WINDOW or FQ_RULE_POOL */
	__u16 pad;
	__u32 slot; /* index into counters */
	__u32 pad2;
};

struct fq_counter {
	__u64 matched;
	__u64 rewritten;
};

/* The queue of a port (its root qdisc), by ifindex: written by the tracepoint programs only. */
struct fq_queue {
	__u64 last_ns;       /* last enqueue or dequeue; 0: none yet */
	__u64 byte_ns;       /* integral of the backlog over time up to last_ns, byte ns */
	__u64 packets;       /* packets that left the queue */
	__u64 bytes;         /* their length */
	__u64 qdisc_packets; /* the qdisc's own counts at last_ns; they start again when it is replaced */
	__u64 qdisc_bytes;
	__u32 backlog; /* bytes now */
	__u32 peak;    /* largest backlog in peak_epoch, bytes */
	__u32 drops;   /* as the qdisc counts them; starts again when the qdisc is replaced */
	__u32 peak_epoch; /* differs from the agent's: no packet since then, so the peak is the backlog */
	__u32 state; /* FQ_CNG or FQ_NOM, by the port's thresholds */
	__u32 pad;
};

/* The thresholds of a queue, by ifindex: written by the agent only. cng 0: never congested. */
struct fq_threshold {
	__u32 cng;   /* it becomes congested at this backlog, bytes */
	__u32 nom;   /* it ceases to be congested at this backlog; less than cng */
	__u32 flags; /* FQ_REPORT_DROPS */
	__u32 limit; /* capacity of the queue, bytes; 0: not known */
};

/* In the ring buffer "threshold_events": a queue has crossed a threshold. The agent reads its state then. */
struct fq_threshold_event {
	__u64 ns;
	__u32 ifindex;
	__u32 state;
	__u32 backlog;
	__u32 pad;
};

/* Records that a ring buffer took, and those it had no room for. One entry, index 0. */
struct fq_ring_count {
	__u64 sent;
	__u64 lost;
};

/* In the ring buffer "drops": a packet that a queue refused. */
struct fq_drop {
	__u64 ns;
	__u32 ifindex;
	__u32 len;      /* of the whole packet, bytes */
	__u32 captured; /* of data */
	__u16 vlan_proto; /* tag that the kernel keeps beside the packet; 0: none; network byte order */
	__u16 vlan_tci;    /* host byte order */
	__u32 before_full; /* 1: dropped before the queue could refuse it; 0: refused */
	__u32 pad;
	__u8 data[FQ_DROP_BYTES];
};

/* A port whose packets are dropped one by one when its queue is full, by ifindex. */
struct fq_taildrop {
	__u64 packets; /* dropped */
	__u64 bytes;
	__u32 limit; /* capacity of the queue, bytes */
	__u32 pad;
};

/* Time spent at each depth, by ifindex. Not in fq_queue, which is read far more often. */
struct fq_histogram {
	__u64 ns[FQ_HIST_BINS];
};

#endif
