/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Coupled flows as a congestion control of the kernel, but for the base law: before this header, a source
 * defines CTRL_GROW(group, acked, rtt_us, now) and CTRL_CUT(group).
 */
#ifndef FAIRQ_CTRL_OPS_H
#define FAIRQ_CTRL_OPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "ctrl.h"
#include "layout.h"
#include "left_out.h"
#include "tcp_types.h"

#define CTRL_GROUPS  16384
#define CTRL_MEMBERS 4096

struct ctrl_group {
	struct bpf_spin_lock lock;
	__u32 unused;
	struct fq_cc_group group;
};

/* Written by user space. A namespace that is not in it is a tenant of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CTRL_MEMBERS);
	__type(key, struct fq_cc_member_key);
	__type(value, struct fq_cc_member);
} members SEC(".maps");

/* User space removes those that are not used any more. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CTRL_GROUPS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fq_cc_group_key);
	__type(value, struct ctrl_group);
} groups SEC(".maps");

static const struct ctrl_group nothing;

static __always_inline struct fq_cc_member *ctrl_member(const struct sock_common *common)
{
	struct fq_cc_member_key key = {.netns = common->skc_net.net->net_cookie};
	struct fq_cc_member *member;

	key.port = common->skc_num;
	member = bpf_map_lookup_elem(&members, &key);
	if (member)
		return member;
	key.port = bpf_ntohs(common->skc_dport);
	member = bpf_map_lookup_elem(&members, &key);
	if (member)
		return member;
	key.port = 0;
	return bpf_map_lookup_elem(&members, &key);
}

static __always_inline void ctrl_key(struct fq_cc_group_key *key, const struct sock_common *common,
				     const struct ctrl_flow *flow)
{
	key->tenant = flow->tenant;
	key->destination[0] = key->destination[1] = 0;
	key->destination[2] = key->destination[3] = 0;
	if (flow->shared)
		return;
	if (common->skc_family == AF_INET6 && bpf_core_field_exists(common->skc_v6_daddr)) {
		key->destination[0] = common->skc_v6_daddr.in6_u.u6_addr32[0];
		key->destination[1] = common->skc_v6_daddr.in6_u.u6_addr32[1];
		key->destination[2] = common->skc_v6_daddr.in6_u.u6_addr32[2];
		key->destination[3] = common->skc_v6_daddr.in6_u.u6_addr32[3];
	} else {
		key->destination[2] = bpf_htonl(0xffff);
		key->destination[3] = common->skc_daddr;
	}
}

static __always_inline struct ctrl_group *ctrl_group_of(const struct sock *sk)
{
	const struct sock_common *common = &tcp_sk(sk)->inet_conn.icsk_inet.sk.__sk_common;
	struct fq_cc_group_key key;

	ctrl_key(&key, common, private_state(sk));
	return bpf_map_lookup_elem(&groups, &key);
}

/* The flow has a window of its own from now on: there is no room for its group. */
static __always_inline void ctrl_fall_back(struct sock *sk)
{
	char reno[] = "reno";

	bpf_setsockopt((void *)tcp_sk(sk), SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
}

/* Called when a connection is established, and where that was left out. NULL: its group has no room. */
static __always_inline struct ctrl_group *ctrl_join(struct sock *sk, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	struct ctrl_flow *flow = private_state(sk);
	struct fq_cc_group_key key;
	struct fq_cc_member *member = ctrl_member(common);
	struct ctrl_group *found;
	__u32 cwnd = tp->snd_cwnd, threshold = tp->snd_ssthresh;
	__u32 una = tp->snd_una, next = tp->snd_nxt;
	__u32 rtt_us = tp->srtt_us >> 3, mss = tp->mss_cache;
	__u64 pace;

	flow->tenant = member ? member->tenant : common->skc_net.net->net_cookie;
	flow->priority = member ? member->priority : 100;
	flow->shared = member ? member->shared : 0;
	if (!flow->priority || flow->priority > CTRL_MOST_PRIORITY)
		flow->priority = 100;
	ctrl_key(&key, common, flow);
	found = bpf_map_lookup_elem(&groups, &key);
	if (!found) {
		/* Another processor may have been faster. */
		bpf_map_update_elem(&groups, &key, &nothing, BPF_NOEXIST);
		found = bpf_map_lookup_elem(&groups, &key);
	}
	if (!found)
		return NULL;
	bpf_spin_lock(&found->lock);
	cwnd = ctrl_register(&found->group, flow, cwnd, threshold, una, next, rtt_us, now);
	threshold = ctrl_told_threshold(&found->group, cwnd);
	pace = ctrl_pace(&found->group, mss, rtt_us);
	bpf_spin_unlock(&found->lock);
	/* While the kernel reduces its window, which it does not when it begins: it only falls. */
	if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) >= TCP_CA_CWR) {
		tp->snd_cwnd = ctrl_at_most(cwnd, tp->snd_cwnd);
		flow->paced = 0;
		return found;
	}
	tp->snd_cwnd = ctrl_at_most(cwnd, tp->snd_cwnd_clamp);
	tp->snd_ssthresh = threshold;
	/* The queueing discipline paces where it can; a flow that is paced already stays so. */
	if (flow->paced) {
		tp->inet_conn.icsk_inet.sk.sk_pacing_rate = pace;
		if (tp->inet_conn.icsk_inet.sk.sk_pacing_status == SK_PACING_NONE)
			tp->inet_conn.icsk_inet.sk.sk_pacing_status = SK_PACING_NEEDED;
		else
			flow->paced = 0;
	}
	return found;
}

/*
 * The group of a flow, which joins it if it is in none, or if its group has been removed. NULL: it has no room, or
 * the connection is not established yet: its SYN has been lost, or the ACK that establishes it is worked on.
 */
static __always_inline struct ctrl_group *ctrl_joined(struct sock *sk, __u64 now)
{
	const struct ctrl_flow *flow = private_state(sk);
	struct ctrl_group *found = NULL;

	if (!BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_initialized))
		return NULL;
	if (flow->born_ns)
		found = ctrl_group_of(sk);
	if (!found || found->group.born_ns != flow->born_ns)
		found = ctrl_join(sk, now);
	return found;
}

SEC("struct_ops/ctrl_init")
void BPF_PROG(ctrl_init, struct sock *sk)
{
	if (!ctrl_join(sk, bpf_ktime_get_ns()))
		ctrl_fall_back(sk);
}

SEC("struct_ops/ctrl_release")
void BPF_PROG(ctrl_release, struct sock *sk)
{
	struct ctrl_flow *flow = private_state(sk);
	struct ctrl_group *found;

	if (!flow->born_ns)
		return;
	found = ctrl_group_of(sk);
	if (!found)
		return;
	bpf_spin_lock(&found->lock);
	ctrl_leave(&found->group, flow);
	bpf_spin_unlock(&found->lock);
}

/* The window of a flow that has met a loss or a mark; the first of an event cuts that of the group. */
static __always_inline __u32 ctrl_lost(struct sock *sk, __u32 cwnd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ctrl_flow *flow = private_state(sk);
	__u64 now = bpf_ktime_get_ns();
	struct ctrl_group *found = ctrl_joined(sk, now);
	__u32 una = tp->snd_una, next = tp->snd_nxt, told;

	if (!found)
		return dctcp_window_after_loss(cwnd);
	bpf_spin_lock(&found->lock);
	ctrl_turn(&found->group, now);
	if (ctrl_is_new_event(&found->group, flow, una)) {
		ctrl_before_cut(&found->group, flow, cwnd, next);
		CTRL_CUT(&found->group);
		ctrl_after_cut(&found->group);
	}
	told = ctrl_told(&found->group, flow);
	bpf_spin_unlock(&found->lock);
	return ctrl_at_least(ctrl_at_most(told, cwnd), DCTCP_MIN_CWND);
}

SEC("struct_ops/ctrl_ssthresh")
__u32 BPF_PROG(ctrl_ssthresh, struct sock *sk)
{
	return ctrl_lost(sk, tcp_sk(sk)->snd_cwnd);
}

SEC("struct_ops/ctrl_ack")
void BPF_PROG(ctrl_ack, struct sock *sk, __u32 flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct ctrl_flow *flow = private_state(sk);
	__u32 una = tp->snd_una, next = tp->snd_nxt, cwnd = tp->snd_cwnd, rtt_us = tp->srtt_us >> 3;
	__u32 mss = tp->mss_cache, segments;
	__u32 want =
		ctrl_want(tp->max_packets_out, cwnd, BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited));
	__u64 now = bpf_ktime_get_ns();
	struct ctrl_group *found = ctrl_joined(sk, now);

	if (!found) {
		if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_initialized))
			ctrl_fall_back(sk);
		return;
	}
	if (reduction_left_out(sk))
		reduce_late(sk, ctrl_lost(sk, tp->prior_cwnd));
	/* A receiver's acknowledgements come with the data of the other end, and do not advance. */
	if (una == flow->una)
		return;
	segments = mss ? (una - flow->una) / mss : 0;
	bpf_spin_lock(&found->lock);
	ctrl_seen(&found->group, flow, want, cwnd, rtt_us, now);
	ctrl_acked(&found->group, flow, una, next, segments);
	bpf_spin_unlock(&found->lock);
	/* Not if the application has asked for a pace meanwhile. */
	if (ctrl_stops_pacing(flow, una, next) &&
	    tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate == ~0UL)
		tcp_sk(sk)->inet_conn.icsk_inet.sk.sk_pacing_status = SK_PACING_NONE;
}

SEC("struct_ops/ctrl_grow")
void BPF_PROG(ctrl_grow, struct sock *sk, __u32 ack, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ctrl_flow *flow = private_state(sk);
	__u32 cwnd = tp->snd_cwnd, clamp = tp->snd_cwnd_clamp;
	__u32 limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	__u32 twice = 2 * tp->max_packets_out, told, threshold, most = CTRL_INITIAL;
	int after_timeout = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_LOSS;
	__u64 now = bpf_ktime_get_ns();
	struct ctrl_group *found = ctrl_joined(sk, now);

	if (!found)
		return;
	/* Slow start after a timeout, whose ACK clock has stopped. */
	if (after_timeout)
		most = ctrl_at_most(acked, CTRL_INITIAL);
	bpf_spin_lock(&found->lock);
	/* As in tcp_is_cwnd_limited(): in slow start, a window is used by what doubles it. */
	if (found->group.window < found->group.threshold && cwnd < twice)
		limited = 1;
	if (limited && ctrl_fills(&found->group, flow, cwnd)) {
		acked = ctrl_slow_start(&found->group, acked);
		if (acked)
			CTRL_GROW(&found->group, acked, tp->srtt_us >> 3, now);
	}
	told = ctrl_window(&found->group, flow, cwnd, most);
	threshold = ctrl_told_threshold(&found->group, told);
	bpf_spin_unlock(&found->lock);
	tp->snd_cwnd = ctrl_at_most(told, clamp);
	if (!after_timeout)
		tp->snd_ssthresh = threshold;
}

/* A flow sends for the first time, or after a silence: it is one of the group again. */
SEC("struct_ops/ctrl_event")
void BPF_PROG(ctrl_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct ctrl_flow *flow = private_state(sk);
	__u32 cwnd = tp->snd_cwnd, rtt_us = tp->srtt_us >> 3, told;
	__u64 now = bpf_ktime_get_ns();
	struct ctrl_group *found;

	if (event != CA_EVENT_TX_START || !flow->born_ns)
		return;
	found = ctrl_group_of(sk);
	if (!found || found->group.born_ns != flow->born_ns)
		return;
	bpf_spin_lock(&found->lock);
	ctrl_sends(&found->group, flow, cwnd, rtt_us, now);
	told = ctrl_told(&found->group, flow);
	bpf_spin_unlock(&found->lock);
	tp->snd_cwnd = ctrl_at_most(cwnd, told);
}

SEC("struct_ops/ctrl_undone")
__u32 BPF_PROG(ctrl_undone, struct sock *sk)
{
	struct ctrl_flow *flow = private_state(sk);
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;
	struct ctrl_group *found = ctrl_joined(sk, bpf_ktime_get_ns());

	if (!found)
		return cwnd;
	bpf_spin_lock(&found->lock);
	cwnd = ctrl_undo(&found->group, flow, cwnd);
	bpf_spin_unlock(&found->lock);
	return cwnd;
}

#define CTRL_OPS                                                            \
	.init = (void *)ctrl_init, .release = (void *)ctrl_release,         \
	.ssthresh = (void *)ctrl_ssthresh, .cong_avoid = (void *)ctrl_grow, \
	.in_ack_event = (void *)ctrl_ack, .cwnd_event = (void *)ctrl_event, \
	.undo_cwnd = (void *)ctrl_undone, .flags = TCP_CONG_NON_RESTRICTED

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
