/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the congestion controls share with user space; Python reads this file (../layout.py). */
#ifndef FAIRQ_HOSTCC_LAYOUT_H
#define FAIRQ_HOSTCC_LAYOUT_H

#include <linux/types.h>

/* A connection, as its sender sees it. IPv4 only: addresses in network byte order, ports in the host's. */
struct fq_cc_flow {
	__u32 saddr;
	__u32 daddr;
	__u16 sport;
	__u16 dport;
};

/* What D2TCP is told of a flow before it starts. */
struct fq_cc_deadline {
	__u64 bytes;       /* its size */
	__u64 deadline_ns; /* CLOCK_MONOTONIC */
};

/* What a sender's DCTCP has computed, for whoever has the socket. */
struct fq_cc_alpha {
	__u32 alpha;     /* 0..1048576 */
	__u32 previous;  /* before the last window of data */
	__u32 delivered; /* segments of the last window */
	__u32 marked;    /* of these, with CE */
	__u32 windows;
	__u32 cuts;      /* of the congestion window, because of marks */
	__u32 cut_alpha; /* alpha at the last one */
	__u32 cut_power; /* and p = alpha^d, 0..32768 */
	__u32 fallback;  /* 1: no ECN was agreed, the connection uses Reno */
};

/* Whose the connections of a network namespace are, to or from a port; port 0: all others. */
struct fq_cc_member_key {
	__u64 netns; /* its cookie */
	__u32 port;
	__u32 unused;
};

struct fq_cc_member {
	__u64 tenant;
	__u32 priority; /* 1..1000 */
	__u32 shared; /* 1: one bottleneck for all destinations; 0: each destination has its own */
};

/* The connections that are coupled. destination: an IPv6 address, or an IPv4 one mapped into IPv6; 0: all. */
struct fq_cc_group_key {
	__u64 tenant;
	__u32 destination[4];
};

/* Sums over the flows that were last seen in one epoch. */
struct fq_cc_sums {
	__u64 want; /* segments, of flows that are limited by their application */
	__u32 all;  /* priorities of all */
	__u32 busy; /* and of those that are not limited by their application */
};

/* What CUBIC remembers; windows in segments, times in ms. */
struct fq_cc_cubic {
	__u32 last_max;
	__u32 origin;
	__u32 k;
	__u32 began; /* of the present curve; 0: none */
	__u32 least_rtt;
	__u32 reno; /* the window that Reno would have */
	__u32 acked;
	__u32 followed; /* the last time that the window has followed the curve */
};

/* A group. It has the window of one flow, and each of its flows a share. Windows in 1/65536 segments. */
struct fq_cc_group {
	__u64 born_ns; /* 0: not yet */
	__u64 window;
	__u64 threshold;        /* of slow start */
	__u64 window_before;    /* before the last cut */
	__u64 threshold_before; /* 0: the last cut was taken back */
	__u64 used_ns;          /* the last time that a flow was seen */
	__u64 epoch_ns;         /* when the epoch began */
	__u32 epoch;
	__u32 rtt_us;
	__u32 flows;               /* that are open */
	__u32 opened;              /* that were ever */
	__u32 cuts;                /* loss events */
	__u32 credit;              /* segments by which windows may have risen; it wraps */
	struct fq_cc_sums sums[2]; /* of the present epoch and the one before, by epoch & 1 */
	struct fq_cc_cubic cubic;
};

#endif
