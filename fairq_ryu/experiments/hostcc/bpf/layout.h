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

#endif
