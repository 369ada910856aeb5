/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reductions of the window that the kernel has made without asking its congestion control. One kernel was
 * seen to do that: Linux 6.18 with a change that is in no release, by which it leaves out programs of
 * struct_ops while it interrupts process 1. Then the threshold is what was on the stack, and a window grows
 * to millions of segments at once.
 */
#ifndef FAIRQ_LEFT_OUT_H
#define FAIRQ_LEFT_OUT_H

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "left_out_sign.h"
#include "tcp_types.h"

/* How many, of all connections. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} left_out SEC(".maps");

/* Whether there has been one. For in_ack_event, which an ACK calls before it changes a window. */
static __always_inline int reduction_left_out(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	__u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	__u32 only = 0;
	__u64 *count;

	if (!threshold_is_impossible(state, tp->snd_ssthresh, tp->prior_cwnd))
		return 0;
	count = bpf_map_lookup_elem(&left_out, &only);
	if (count)
		__sync_fetch_and_add(count, 1);
	return 1;
}

/* Make it late: what a burst has done is done. */
static __always_inline void reduce_late(struct sock *sk, __u32 window)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = window;
	if (tp->snd_cwnd > tp->prior_cwnd)
		tp->snd_cwnd = tp->prior_cwnd;
}

#endif
