/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The map layout that the eBPF programs and the agent share.
 *
 * fairq_ryu/agent/layout.py reads this file and makes ctypes structures of it, so there is no second copy
 * to keep in step. That reader knows: #define NAME number, and structs whose members are
 * __u8/__u16/__u32/__u64, structs of this file, or arrays of those. Every struct is padded by hand to the
 * same size under any compiler. queue_law_layout.h is a further part, by the same rules, and so are the structs of the
 * laws in fairq_ryu/laws/NAME/law.h.
 */
#ifndef FAIRQ_LAYOUT_H
#define FAIRQ_LAYOUT_H

/* Raised when the maps that outlive an agent (flows and their settings) change. */
#define FQ_LAYOUT_VERSION 12

/* Activity is counted in this many time buckets; together they span the activity timeout. */
#define FQ_BUCKETS   8
/* Queue histogram: 16 bins an octave, see fq_bin(). */
#define FQ_HIST_BINS 384

#define FQ_RULE_WINDOW 1
#define FQ_RULE_POOL   2
#define FQ_RULE_LAW    3

/*
 * fq_law.flags. TURNS: new connections wait until the buffer has room. FLOWS: the law keeps a state of each flow. SYNS: a
 * flow begins with its SYN, and not only with the answer to it. FLOOR: in turns too, the minimum window of a flow is
 * floor_segments, and not one segment. TENANTS: the pool is shared out among tenants first (lib/tenants.h).
 */
#define FQ_LAW_TURNS   1
#define FQ_LAW_FLOWS   2
#define FQ_LAW_SYNS    4
#define FQ_LAW_FLOOR   8
#define FQ_LAW_TENANTS 16

/* Tenants of an agent. Number 0 are all hosts that have none. */
#define FQ_TENANTS          64
/* Priority of a flow within its tenant, unless a table says another one. */
#define FQ_PRIORITY         100
/* Keys of priorities: the port of a service, or this | DSCP of the data. */
#define FQ_PRIORITY_OF_DSCP 65536
#define FQ_MOST_PRIORITIES  256
#define FQ_MOST_OWNERS      2048
/* Bits of the key of owners: of its family, and of an IPv6 address. */
#define FQ_OWNER_BITS       136

/* How a direction counts for its tenant: fq_place.counts. */
#define FQ_COUNTS_SHARING 1 /* it uses its window, or is new: fq_place.amount is its priority */
#define FQ_COUNTS_QUIET   2 /* it does not: fq_place.amount is what it uses, in FQ_QUIET_UNIT */
#define FQ_COUNTS_YOUNG   4 /* ... and has sent little */
#define FQ_QUIET_UNIT     256

/* 8-byte words for what a kind of law has of its own (laws/own.h): parameters, state of a port, state of a flow. */
#define FQ_LAW_WORDS       4
#define FQ_LAW_STATE_WORDS 22
#define FQ_LAW_FLOW_WORDS  9

/*
 * fq_law_state.mode. LIMITING: every flow has fq_law_state.window (incast or congestion). FLOORED:
 * the minimum windows of the flows exceed the pool.
 */
#define FQ_MODE_LIMITING 1
#define FQ_MODE_FLOORED  2

/*
 * What limits fq_law_state.pool. FLOWS: none uses its whole window, so that it is not raised. CAP: it is what
 * the port can hold. FLOOR: every flow has its minimum window.
 */
#define FQ_LIMITED_BY_QUEUE 0
#define FQ_LIMITED_BY_FLOWS 1
#define FQ_LIMITED_BY_CAP   2
#define FQ_LIMITED_BY_FLOOR 3

/*
 * The transmit queues of a device with several, each of which has a qdisc of its own, have ids. Wherever ports are
 * known by ifindex, they may also be known by the id of a queue (lib/tx_queue.h):
 * FQ_TX_QUEUE | ifindex << FQ_TX_QUEUE_BITS | number of the queue.
 */
#define FQ_TX_QUEUE      2147483648
#define FQ_TX_QUEUE_BITS 8

/*
 * The far queue of a port, in the switch above it (far.bpf.c), has the id FQ_FAR | ifindex, by which it is known
 * like a port. An id with FQ_TX_QUEUE is that of a transmit queue, whatever else is in it.
 */
#define FQ_FAR     1073741824
#define FQ_NO_SLOT 4294967295

/* A law grants no window: the ACK stays as it is. */
#define FQ_NO_WINDOW 4294967295

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
#define FQ_BEGUN      4096 /* the law of its port has counted it as a flow that begins (opening.h) */
#define FQ_UNPROVEN   8192  /* ... before its handshake was complete */
#define FQ_ECN        16384 /* ECN as in RFC 3168: ECE echoes a mark, CWR answers */
#define FQ_SIGNED     32768 /* its segments are signed (TCP-MD5, TCP-AO): whoever alters one loses it */
/* FQ_BEGUN and FQ_UNPROVEN of the law of its far queue are so many bits above those of its port. */
#define FQ_FAR_FLAGS  4
#define FQ_TOLD       262144  /* its handshake was not seen, and its segments tell the scale */
#define FQ_RESETS     524288  /* the RST was its own */
#define FQ_GOES_ON    1048576 /* it went on after an end: only an acknowledged FIN ends it now */

/* How a host's shim tells the scale in segments (told_scale.h): docs/shim.md. 0: not at all. */
#define FQ_TELL_RESERVED  1 /* in the four reserved bits */
#define FQ_TELL_RESERVED3 2 /* in three of them: the lowest is AE */
#define FQ_TELL_WINDOW12  3 /* in four bits of the window, and one reserved bit says so */
#define FQ_NO_UNIFYING    255

/* Steps of a handshake at which a law may count a direction. */
#define FQ_OPENING_SYN     1 /* its SYN has left */
#define FQ_OPENING_AGAIN   2 /* once more */
#define FQ_OPENING_SYN_ACK 3 /* the SYN has been answered */
#define FQ_OPENING_PROVEN  4 /* the answer has been acknowledged */

/* fq_queue.state */
#define FQ_NOM 0
#define FQ_CNG 1

/* fq_threshold.flags */
#define FQ_REPORT_DROPS 1

/* Of fq_queue.drain: in fixed point, because a packet at 100 Gbit/s has no time for a division. */
#define FQ_DRAIN_SHIFT   24
#define FQ_WAITING_SHIFT 40

/*
 * fq_hidden.why: what the rate of a virtual queue is. UNKNOWN: none, because nobody knows that of the line. BLIND: base, and
 * no round trips show what stands. SHARE: base. RAISED: more, because hardly anything stands. FULL: base or less, because
 * something stands, and all that the line carries comes here. OTHERS: what others leave.
 */
#define FQ_HIDDEN_UNKNOWN 0
#define FQ_HIDDEN_BLIND   1
#define FQ_HIDDEN_SHARE   2
#define FQ_HIDDEN_RAISED  3
#define FQ_HIDDEN_FULL    4
#define FQ_HIDDEN_OTHERS  5
/* Hosts, by hash, whose least round trips are known (lib/round_trips.h); a power of 2. */
#define FQ_LEAST          1024

/* Part of fq_queue_check.drain_ns, for delays of the machine. */
#define FQ_MARGIN_NS 20000000

/* fq_drop.cause: the queue refused it; it was dropped before the queue could refuse it; or a queue law dropped it. */
#define FQ_DROP_REFUSED     0
#define FQ_DROP_BEFORE_FULL 1
#define FQ_DROP_BY_LAW      2

/* Bytes of a dropped packet that are handed to the agent. */
#define FQ_DROP_BYTES 2048

/* Bytes of a SYN or SYN-ACK that may wait for its turn: headers with all their options. */
#define FQ_TURN_BYTES 256

/* Bytes of a copied segment that are handed to the agent: headers with all their options. */
#define FQ_COPY_BYTES 192

/* Rules for copies, of each bridge: by flag, those of IPv6 FQ_COPY_FLAGS behind those of IPv4. */
#define FQ_COPY_SYN   0
#define FQ_COPY_FIN   1
#define FQ_COPY_RST   2
#define FQ_COPY_FLAGS 3
#define FQ_COPY_RULES 6

/* Mark of a packet that has waited: FQ_TURN_MARK << FQ_TURN_SHIFT | microseconds. */
#define FQ_TURN_MARK   4001
#define FQ_TURN_SHIFT  20
/* Likewise of one that leaves before its turn: the window of its sender is closed, so it sends nothing. */
#define FQ_TURN_CLOSED 4002
/* Likewise of one that the agent sends: its window is in steps of the scale that the other end was told. */
#define FQ_SENT_MARK   4003

/* Settings of the window program, written by the agent; one entry, index 0. */
struct fq_config {
	__u64 bucket_ns;  /* activity timeout / FQ_BUCKETS, ns */
	__u32 flow_rules; /* number of rules in flow_rules: 0 spares every ACK a lookup */
	__u32 layout;     /* FQ_LAYOUT_VERSION, for an agent that finds the maps of a dead one */
	__u32 vlans;      /* number of ports in port_vlans: 0 spares every packet a lookup */
	__u32 flow_laws;  /* number of ports whose law has FQ_LAW_FLOWS: likewise */
	__u32 copies;     /* number of rules for copies: 0 spares SYN, FIN and RST a lookup */
	__u32 suspects; /* number of ports where others run before: 0 spares every packet a lookup */
	__u32 far;      /* number of far queues: likewise */
	__u32 tenants;  /* number of the table of tenants; 0: there is none */
	__u32 told;     /* number of ports in told_ports: 0 spares every packet a lookup */
	__u32 unify;    /* the largest scale that leaves (unify.h); 14: any */
	__u64 unify_ns; /* CLOCK_MONOTONIC: handshakes that begin earlier keep their scales */
	__u64 tenants_ns; /* lease of that table, CLOCK_MONOTONIC: from then on there are no tenants */
};

/*
 * Settings of the queue and drop programs, written by the agent, by number of the bridge: only the peaks of a bridge
 * start again without those of the others.
 */
struct fq_queue_config {
	__u32 netns;      /* inode of the network namespace the ports live in */
	__u32 peak_epoch; /* raised by the agent: peaks start again */
	__u32 thresholds; /* number of ports in thresholds: 0 spares every packet a lookup */
	__u32 laws;       /* number of ports in port_laws: likewise */
	__u32 bins;       /* number of ports whose queue law has FQ_QLAW_BINS: likewise */
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
	__u16 vlan;  /* host byte order; 0: none */
};

/* What the ACKs of a direction have released in a round trip between the switch and its sender (laws/round.h). */
struct fq_round {
	__u64 ns;       /* when the round began; 0: none yet */
	__u64 acked;    /* payload bytes that were acknowledged then */
	__u32 released; /* bytes, in the round before */
	__u32 pad;
};

/*
 * A queue that a direction of a connection passes, and where it counts there: a port or transmit queue by which it
 * leaves, or the far queue of the port by which it arrives.
 */
struct fq_place {
	__u32 ifindex;       /* of the port, or id of the queue; 0: not seen */
	__u32 slot;          /* of that; it may be out of date, or one that nobody has */
	__u32 epoch;         /* time bucket it is counted in as active; 0: not counted */
	__u32 sharing_epoch; /* likewise, as a flow that uses its window, or is new */
	__u32 young_epoch;   /* likewise, as one that has sent little (las) */
	__u32 granted; /* by the law there: bytes that this direction may have under way; 0: none yet */
	__u32 tenant_epoch; /* time bucket it is counted in for its tenant; 0: not counted */
	__u32 amount;       /* ... as what */
	__u32 credited;     /* payload bytes that its tenant has been credited with; wraps */
	__u16 tenant;       /* ... for which tenant */
	__u8 counts;        /* ... and how, FQ_COUNTS_... */
	__u8 by_receiver; /* granted is what the receiver allows, and the law would allow as much or more */
};

/* State of one direction of a connection: of the segments that its sender sends. */
struct fq_dir {
	/* State of the addresses and ports; it stays when another connection uses them (rivals.h). */
	__u64 last_ns; /* last segment, CLOCK_MONOTONIC ns */
	__u64 ruled_until; /* it has a rule of its own until then and takes no share of its port's pool */
	struct fq_place out; /* the port by which it leaves */
	struct fq_place far; /* that by which it arrives; slot FQ_NO_SLOT: it has no far queue */
	__u32 alt_ifindex;   /* another port by which it left since it last left by that; 0: none */
	__u32 alt_from;      /* seq_next when it first left by that port */
	__u32 alt_epoch;     /* time bucket in which it first left by that port */
	__u32 owner; /* number of the table of tenants << 8 | tenant of its sender; 0: not known */
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
	__u8 wscale;  /* of this direction, 0 to 14, as the other end was told it */
	__u8 own_scale; /* in which its sender counts, + 1, if that is another one (unify.h); 0: it is not */
	__u16 passed; /* that window as it was passed on, lowered or not */
	__u32 tx_queue; /* id of the transmit queue that it was seen in, if that is not the expected one; 0: none */
	__u32 hole_from; /* what has not come by the far queue, from this byte on (lost_above.h) */
	__u32 hole_to;   /* ... to this one; the same: nothing is missing */
	__u16 priority;  /* within the tenant, valid with owner */
	__u8 dscp;       /* of its data */
	__u8 pad3;
	__u32 asked_tsval; /* TSval of the other direction, whose echo is awaited */
	__u32 asked_us;    /* when that left, ns >> 10; 0: no answer is awaited (round_trips.h) */
	__u32 under_way_us; /* what it has under way is counted for its tenant until then, ns >> 10; 0: not yet */
	__u16 port_mss; /* the largest segment that the port carries by which its SYN left, bytes; 0: not known */
	__u16 pad4;
	struct fq_round round;
};

struct fq_flow {
	struct fq_dir dir[2]; /* 0: lo to hi */
};

/*
 * The segment that has just passed tc egress of a device with several transmit queues, for each processor. The kernel
 * chooses its queue after that.
 */
struct fq_leaving {
	struct fq_flow_key key; /* dir: 0 */
	__u32 ifindex; /* of the device; 0: it is no segment of a known connection, or has reached its queue */
	__u32 id; /* of the queue in which it is expected */
	__u32 dir;
	__u32 pad;
};

/* A port, by slot: written by the programs only, except ifindex and bridge. */
struct fq_port {
	__u64 active[FQ_BUCKETS];  /* epoch << 32 | flows whose last data left in that epoch */
	__u64 sharing[FQ_BUCKETS]; /* likewise, of flows that use their windows or are new */
	__u64 young[FQ_BUCKETS];   /* likewise, of these, those that have sent little */
	__u64 acks;                /* ACKs of its data that met a live rule */
	__u64 rewritten;           /* of these, lowered */
	__u64 would_lower;         /* of these, left alone: the port is only observed */
	__u64 unknown_scale;       /* ACKs left alone: the handshake was not seen */
	__u64 scale_told; /* of those whose handshake was not seen, the ones that told their scale */
	__u64 scale_wrong; /* segments that told another scale than their handshake, as they left by the port */
	__u64 signed_acks; /* ACKs left alone: they are signed (FQ_SIGNED) */
	__u64 coarse;      /* ACKs whose window step exceeded the window asked for */
	__u64 created;     /* connections that were entered in the flow map at the port */
	__u64 handshakes;  /* SYN-ACKs that opened a flow leaving by the port */
	__u64 lost_above; /* of a far queue: segments that came late, because they were lost there */
	__u64 malformed;  /* TCP packets left alone: truncated, bad lengths, fragments */
	__u64 copies;     /* segments copied for controllers as they left by the port */
	__u64 copies_suppressed; /* those beyond the rate of the port or of the bridge */
	__u64 copy_ns;           /* token bucket: until then its copies are paid */
	__u64 seen_ns;           /* last TCP packet of any kind; written while there are suspects */
	__u32 ifindex;           /* of the port in this slot; 0: the slot is free */
	__u32 bridge; /* number of its bridge among those of the agent; written by the agent */
};

/* A rule: written by the agent only. */
struct fq_rule {
	__u64 expires_ns; /* CLOCK_MONOTONIC; from then on the programs ignore the rule */
	__u32 bytes;      /* unscaled */
	__u16 kind;       /* FQ_RULE_... */
	__u16 pad;
	__u32 slot; /* index into counters */
	__u32 pad2;
};

/* The parameters of a window law. Bytes unless said. */
struct fq_law {
	__u64 rate;        /* of the port, bytes/s */
	__u32 interval_ns; /* T: minimum time between two ticks */
	__u32 base_rtt_ns; /* round-trip time with empty queues */
	__u32 limit;       /* the port's buffer */
	__u32 target;      /* length of the queue that the law aims at */
	__u32 gain_q16; /* part of the pool that one tick may move it, << 16; 0: no pool follows the queue */
	__u32 young_bytes;    /* a flow that has sent less is young; 0: none is counted as such */
	__u32 syn_allowance;  /* flows that may count before their handshakes are complete */
	__u16 kind;           /* of laws/NAME */
	__u16 flags;          /* FQ_LAW_... */
	__u16 first_window;   /* x: segments that a new flow sends at once */
	__u16 floor_segments; /* minimum window while the buffer holds that of all flows */
	__u32 pad;
	__u64 own[FQ_LAW_WORDS]; /* struct NAME_law */
};

/* The law of a port, by slot: written by the agent only. */
struct fq_port_law {
	struct fq_law law;
	__u64 expires_ns; /* CLOCK_MONOTONIC, of the rule that refers to it: from then on it does nothing */
	__u32 id;
	__u32 pad;
};

/* What a law knows at a tick. */
struct fq_law_input {
	__u64 now_ns;
	__u64 byte_ns; /* integral of the backlog up to now */
	__u32 backlog;
	__u32 flows; /* that use their windows or are new: they share the pool */
	__u32 young; /* of these, the young ones, if the law counts them */
	__u32 pad;
};

/* The state of a port's law, by slot: made by the agent, written by the programs. */
struct fq_law_state {
	__u64 pool;        /* shared by the flows, bytes << 8 */
	__u64 last_ns;     /* last tick; 0: none yet */
	__u64 byte_ns;     /* fq_law_input.byte_ns then */
	__u64 limited_ns;  /* last ACK of a flow that had used its whole window */
	__u64 calm_ns;     /* the queue has been short since then; 0: it is not */
	__u64 unproven_ns; /* when `unproven` started at 0 */
	__u64 updates;     /* changes of the pool, or windows reduced */
	__u64 late;        /* ticks that came after more than two intervals */
	__u64 proven;      /* handshakes that were completed */
	__u64 rtt_seen_ns; /* when rtt_ns was set */
	__u64 segment_ns;  /* when segment_now started at 0 */
	__u64 seen_ns;     /* last handshake or ACK of a flow */
	__u32 granted;     /* the pool in force: not below the floors, bytes */
	__u32 flows;       /* at the last tick */
	__u32 young;
	__u32 window; /* of flows with `segment`, in FQ_MODE_LIMITING and until it has opened; 0: none */
	__u32 segment;     /* the largest of the next two, bytes; what it was, if there are none */
	__u32 segment_now; /* largest MSS of the flows seen since segment_ns */
	__u32 segment_before; /* ... and in the period before */
	__u32 beta; /* flows that began in this interval, less those that ended, if the law counts them */
	__u32 queue;      /* mean of the last interval, bytes */
	__u16 mode;       /* FQ_MODE_... */
	__u16 limited_by; /* FQ_LIMITED_BY_... */
	__u32 unproven;   /* flows that count, and whose handshakes are not complete */
	__u32 rtt_ns; /* the shortest handshake of the flows that have used their whole windows; 0: not known */
	__u64 own[FQ_LAW_STATE_WORDS]; /* struct NAME_state */
};

/*
 * A flow under a law with FQ_LAW_FLOWS, by the key of its ACKs. `answered` is written by its data, all else of these by
 * its ACKs, which may be on another processor. Counts wrap.
 */
struct fq_law_flow {
	__u32 isn;        /* initial sequence number of the data: another connection begins anew */
	__u32 answered;   /* `echoes` that the receiver has been told of, with CWR */
	__u32 echoes;     /* ACKs with ECE */
	__u32 reductions; /* of its window */
	__u32 kind;       /* of the law: another one begins anew */
	__u32 pad;
	__u64 own[FQ_LAW_FLOW_WORDS]; /* struct NAME_flow */
};

/* An ACK of such a flow. */
struct fq_law_ack {
	__u32 ack;
	__u32 next;   /* behind the last byte that the sender has sent */
	__u32 total;  /* bytes that the receiver has acknowledged; wraps */
	__u32 flight; /* bytes that were under way before */
	__u32 mss;    /* of the flow, bytes */
	__u32 floor;  /* its minimum window, bytes */
	__u32 echo;   /* 1: with ECE, on a connection with ECN */
	__u32 pad;
};

/* The hosts of tenants: the longest prefix that fits. Written by the agent only, as the next. */
struct fq_owner_key {
	__u32 bits;    /* of family and address */
	__u8 family;   /* 4 or 6 */
	__u8 addr[16]; /* IPv4: the first 4 bytes */
	__u8 pad[3];
};

/* A tenant, by number. */
struct fq_tenant {
	__u32 weight; /* 0: there is none with this number */
	__u32 pad;
};

#define FQ_MOST_ANNOUNCED 16384 /* flows with priorities of their own */

/* A tenant at a port or far queue. */
struct fq_tenant_key {
	__u32 slot;
	__u32 tenant;
};

/*
 * Likewise: written by the programs only. Its counts are in time buckets, as those of fq_port: of flows that use their
 * windows or are new, of their priorities, of those that are young, and of what the other flows use, in FQ_QUIET_UNIT.
 */
struct fq_tenant_port {
	__u64 flows[FQ_BUCKETS];
	__u64 shares[FQ_BUCKETS];
	__u64 young[FQ_BUCKETS];
	__u64 quiet[FQ_BUCKETS];
	__u64 acks;    /* that met a share of this tenant */
	__u64 bytes;   /* payload that these ACKs have acknowledged */
	__u64 floored; /* of these, ACKs at which one segment for each flow was more than the share */
	__u64 under_way; /* of late: bytes of flows that use their windows, times how long each was under way, ns >> 10 */
	__u64 moved;     /* ... and how many these bytes are */
	__u64 halved_ns; /* when both were halved last */
	__u64 last_ns;   /* of the ACKs, the last */
	__u32 part_q16;  /* its share of the pool then, << 16 */
	__u32 pool;      /* ... bytes */
};

/* The tenants of a port or far queue, by slot: written by the programs only. */
struct fq_port_tenants {
	__u64 present; /* bit n: tenant n has, or had, an fq_tenant_port here; the agent clears it with the port */
	__u64 worked_ns; /* when the next were worked out */
	__u64 active;    /* bit n: tenant n has flows that use their windows */
	__u32 weights;   /* W: sum of what these weigh */
	__u32 pool;      /* that the tenants share, bytes */
	__u32 shortest; /* of these, the least time that bytes are under way, ns >> 10; 0: not known */
	__u32 left_out; /* handshakes and ACKs of tenants for whose fq_tenant_port there was no room; wraps */
};

/* The settings of a host's shim (shim.bpf.c), written by its process; one entry, index 0. */
struct fq_shim_config {
	__u64 until_ns; /* CLOCK_MONOTONIC; from then on the programs do nothing */
	__u64 unify_ns; /* handshakes that begin earlier keep their scales: an earlier SYN may have left without change */
	__u32 mode;  /* FQ_TELL_... */
	__u32 unify; /* the largest scale that leaves; FQ_NO_UNIFYING: any */
};

/* What the shim knows of a connection: the end on its side. */
struct fq_shim_flow {
	__u32 isn;
	__u8 dir;   /* of what it sends */
	__u8 flags; /* FQ_SHIM_... */
	__u8 scale; /* in which it counts */
	__u8 wire;  /* which the other end was told */
};
#define FQ_SHIM_OPTION 1 /* its SYN had the option */
#define FQ_SHIM_KNOWN  2 /* the answer has been seen */
#define FQ_SHIM_SCALED 4 /* both SYNs had the option */
#define FQ_SHIM_ACCECN 8 /* AccECN was agreed: the bit AE is in use */

struct fq_shim_counts {
	__u64 told;      /* segments that left with their scale */
	__u64 untold;    /* ... without: no room for it, or AccECN */
	__u64 unknown;   /* ... without: the handshake was not seen */
	__u64 unified;   /* SYNs and SYN-ACKs that left with a smaller scale */
	__u64 converted; /* segments whose windows were converted to it */
};

struct fq_counter {
	__u64 matched;
	__u64 rewritten;
};

/* What arrives for a virtual queue, between the ticks of its law (laws/arrivals.h). */
struct fq_arrivals {
	__u64 ns;        /* of the last tick */
	__u64 length_ns; /* integral of the queue that the law is told of, byte ns */
	__u64 bytes;     /* that have arrived since then */
	__u32 load_q16;  /* rate of arrivals over that of the virtual queue, << 16 */
	__u32 pad;
};

/*
 * The queue of a port (its root qdisc), by ifindex: written by the tracepoint programs only. A far queue, by its id, is
 * virtual (lib/virtual_queue.h): the program at tc ingress writes it, and its packets and bytes are those that arrived.
 */
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
	__u16 state;  /* FQ_CNG or FQ_NOM, by the port's thresholds */
	__u16 bridge; /* number of the port's bridge among those of the agent */
	__u32 slot;   /* of the port */
	__u64 drain; /* of a far queue: bytes that drain in a ns, << FQ_DRAIN_SHIFT; 0: of a real one, no event, no change */
	__u32 rest;  /* ... what has drained beyond its backlog, less than a byte, likewise */
	__u32 busy;  /* ... 1: a processor writes it */
	__u64 waiting; /* ... packets << FQ_WAITING_SHIFT | bytes that have arrived meanwhile on others */
	struct fq_arrivals arrivals; /* ... for its law */
};

/* A far queue, by slot: written by the agent only. */
struct fq_far_queue {
	__u64 line; /* rate of the line, bytes/s; 0: nobody knows it, and there is no virtual queue yet */
	__u64 base;    /* rate of the virtual queue while nothing else is known: a share of that */
	__u32 limit;   /* bytes that it holds, as the queue before the line; 0: not known */
	__u32 is_kept; /* 0: there is none in this slot */
};

/*
 * The queue that a far queue stands for, as sampled round trips and arrivals show it (laws/hidden.h), by slot. Samples are
 * the window program's, the rest is that of far queues.
 */
struct fq_hidden {
	__u64 excess_ns; /* sum over the samples of what they took beyond the least */
	__u64 samples;
	__u64 least;         /* the smallest of this interval, ns, and 1; 0: no sample yet */
	__u64 bound_ns;      /* a sample of more is none of the queue; 0: each is */
	__u64 beyond;        /* samples of more */
	__u64 judged_ns;     /* end of the last interval */
	__u64 judged_excess; /* excess_ns and samples then */
	__u64 judged_samples;
	__u64 judged_beyond; /* likewise, beyond */
	__u64 lost;          /* fq_port.lost_above, when a sample within the bound came last */
	__u64 bytes;         /* that have arrived since */
	__u64 line;          /* of which far queue all this is: as in fq_far_queue */
	__u64 base;
	__u64 rate;       /* of the virtual queue, bytes/s */
	__u64 drain;      /* likewise, as in fq_queue; for an interval it may be less */
	__u64 probed_ns;  /* when the rate was lowered last, to see the least round trips */
	__u64 probe_rate; /* ... to this, bytes/s */
	__u64 since_ns;   /* since when it has stood, or has not */
	__u64 run_ns;     /* of these intervals, those that `served` does not have yet */
	__u64 run_bytes;  /* ... and what arrived in them */
	__u64 served; /* the highest rate at which data came while the queue stood, bytes/s; 0: it never did */
	__u64 peak;        /* the highest rate of an interval in this span of 1.07 s, bytes/s */
	__u64 peak_before; /* ... in the one before */
	__u32 peak_span;
	__u32 standing; /* in the last interval: what stood throughout, bytes */
	__u32 mean;     /* ... on average */
	__u32 stands;   /* something has stood in the last interval */
	__u32 why;      /* FQ_HIDDEN_... */
	__u32 probes;   /* it is lowered now */
	__u32 limit;    /* of the virtual queue, bytes; 0: there is none yet */
	__u32 pad;
};

/* The least round trip from hosts with one hash, ns: written by the window program. */
struct fq_least {
	__u32 least;  /* in this span; 0: none yet */
	__u32 before; /* ... in the one before */
	__u32 span;
	__u32 pad;
};

/*
 * How long the backlog of a queue is believed, and what the agent has found in the qdisc after that (backlog.h), by
 * ifindex: written by the agent only.
 */
struct fq_queue_check {
	__u64 drain_ns; /* in which the queue drains from full to empty, and FQ_MARGIN_NS */
	__u64 event_ns; /* fq_queue.last_ns when the qdisc was read: the reading holds until the next event */
	__u64 ns;      /* when it was read, CLOCK_MONOTONIC; 0: never */
	__u64 byte_ns; /* integral of the backlog from event_ns to ns */
	__u32 backlog; /* as read, bytes */
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
	__u16 vlan_tci; /* host byte order */
	__u32 cause;    /* FQ_DROP_... */
	__u32 pad;
	__u8 data[FQ_DROP_BYTES];
};

/* A token bucket: a copy pays for gap_ns, at most burst_ns ahead of the clock. */
struct fq_copy_limit {
	__u64 gap_ns;
	__u64 burst_ns;
};

/* A rule for copies, by FQ_COPY_RULES * bridge + FQ_COPY_...: written by the agent only. */
struct fq_copy_rule {
	__u64 expires_ns; /* CLOCK_MONOTONIC; from then on nothing is copied; 0: there is no rule */
	struct fq_copy_limit port;
	struct fq_copy_limit bridge;
};

/* What a rule for copies has matched, likewise: written by the program, reset by the agent. */
struct fq_copy_count {
	__u64 matched;
	__u64 copied;
};

/* All copies of a bridge, by its number: written by the program only. */
struct fq_copy_state {
	__u64 copy_ns;    /* token bucket, as in fq_port */
	__u64 suppressed; /* not copied: beyond the rate of a port or of the bridge */
	__u64 lost;       /* not copied: no room in the ring buffer */
};

/* In the ring buffer "copies": a SYN, FIN or RST. */
struct fq_copy {
	__u64 ns;
	__u32 ifindex;
	__u32 len;        /* of the whole packet, bytes */
	__u32 captured;   /* of data */
	__u16 vlan_proto; /* as in fq_drop */
	__u16 vlan_tci;
	__u32 rule; /* FQ_COPY_... */
	__u32 pad;
	__u8 data[FQ_COPY_BYTES];
};

/* A port whose packets are dropped one by one when its queue is full, by ifindex. */
struct fq_taildrop {
	__u64 packets; /* dropped */
	__u64 bytes;
	__u32 limit; /* capacity of the queue, or of the memory that the ports of its group share, bytes */
	__u32 group; /* of ports that share a memory; 0: its queue has its own */
};

/* What decides whether a port has room for the first window of one more flow. Bytes as in the queue, with headers. */
struct fq_room {
	__u32 limit; /* the port's buffer */
	__u32 backlog;
	__u32 flows; /* that share the pool */
	__u32 frame; /* a segment */
	__u32 floor; /* the minimum window of each flow */
	__u32 first; /* the first window of the next flow */
	__u32 expected; /* first windows of flows that have begun, as far as they may not have come yet */
	__u32 half_open; /* handshakes that have had their turn and are not complete */
	__u32 allowance; /* nobody waits while there are so many of them */
};

/* A port whose new connections take turns, by ifindex: made by the agent, written by the program. */
struct fq_turns {
	__u64 expected_ns; /* when `expected` started at 0 */
	__u64 hold_ns;     /* for so long, at least, a first window is expected */
	__u64 held;        /* packets handed to the agent */
	__u64 full;        /* packets that did not wait: no room in the ring buffer, or a flood */
	__u64 begun_ns;    /* when `begun` started at 0 */
	__u64 proven;      /* fq_law_state.proven then */
	__u32 expected;    /* first windows, since expected_ns */
	__u32 earlier;     /* likewise, in hold_ns before that */
	__u32 first;       /* as in fq_room */
	__u32 floor;
	__u32 begun; /* handshakes that have had their turn */
	__u32 pad;
};

/* Likewise, written by the agent only. */
struct fq_turn_port {
	__u32 waiting; /* packets that wait: later ones wait as well */
	__u32 pad;
};

/* The agent, as the turns program knows it: from until_ns on it counts as gone. One entry, index 0. */
struct fq_turn_agent {
	__u64 until_ns; /* CLOCK_MONOTONIC */
};

/* In the ring buffer "held": a SYN or SYN-ACK that waits for its turn. */
struct fq_held {
	__u64 ns;
	__u32 ifindex;
	__u32 captured;   /* of data: the whole packet */
	__u16 vlan_proto; /* as in fq_drop */
	__u16 vlan_tci;
	__u32 pad;
	struct fq_flow_key key; /* dir: of the packet */
	__u8 data[FQ_TURN_BYTES];
};

/* Time spent at each depth, by ifindex. Not in fq_queue, which is read far more often. */
struct fq_histogram {
	__u64 ns[FQ_HIST_BINS];
};

#include "queue_law_layout.h"

#endif
