/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * DCTCP as a congestion control of the kernel, but for the cut of the window, in which D2TCP differs.
 * Sender: alpha from the marks of each window of data. Receiver: exact echo of marks. Both ends need it.
 */
#ifndef FAIRQ_DCTCP_OPS_H
#define FAIRQ_DCTCP_OPS_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "dctcp.h"
#include "layout.h"
#include "left_out.h"
#include "tcp_types.h"

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

/* In the socket. */
struct dctcp {
	__u32 old_delivered;
	__u32 old_delivered_ce;
	__u32 prior_rcv_nxt;
	__u32 alpha;
	__u32 next_seq;
	__u32 loss_cwnd;
	__u32 ce_state;
};

/* For user space, by the descriptor of a socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct fq_cc_alpha);
} alphas SEC(".maps");

static __always_inline void dctcp_next_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->next_seq = tp->snd_nxt;
	ca->old_delivered = tp->delivered;
	ca->old_delivered_ce = tp->delivered_ce;
}

SEC("struct_ops/dctcp_init")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = private_state(sk);
	struct fq_cc_alpha *told;
	char reno[] = "reno";

	told = bpf_sk_storage_get(&alphas, (void *)tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (told)
		told->alpha = told->previous = DCTCP_MAX_ALPHA;
	/*
	 * Called when a connection is established. A congestion control that needs ECN sends ECT whether it
	 * was agreed or not, and nobody would hear of the marks.
	 */
	if (!(tp->ecn_flags & TCP_ECN_OK)) {
		if (told)
			told->fallback = 1;
		bpf_setsockopt((void *)tp, SOL_TCP, TCP_CONGESTION, reno, sizeof(reno));
		return;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->alpha = DCTCP_MAX_ALPHA;
	ca->loss_cwnd = 0;
	ca->ce_state = 0;
	dctcp_next_window(tp, ca);
}

/* The cut that was left out, because of marks in CWR and of a loss otherwise. */
static __always_inline void dctcp_late(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = private_state(sk);

	ca->loss_cwnd = tp->prior_cwnd;
	if (BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state) == TCP_CA_CWR)
		reduce_late(sk, dctcp_window(tp->prior_cwnd, dctcp_power(ca->alpha)));
	else
		reduce_late(sk, dctcp_window_after_loss(tp->prior_cwnd));
}

SEC("struct_ops/dctcp_acked")
void BPF_PROG(dctcp_acked, struct sock *sk, __u32 flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = private_state(sk);
	__u32 delivered, marked, previous;
	struct fq_cc_alpha *told;

	if (reduction_left_out(sk))
		dctcp_late(sk);
	if (before(tp->snd_una, ca->next_seq))
		return;
	previous = ca->alpha;
	delivered = tp->delivered - ca->old_delivered;
	marked = tp->delivered_ce - ca->old_delivered_ce;
	ca->alpha = dctcp_alpha(previous, delivered, marked);
	dctcp_next_window(tp, ca);
	told = bpf_sk_storage_get(&alphas, (void *)tp, NULL, 0);
	if (told && delivered) {
		told->alpha = ca->alpha;
		told->previous = previous;
		told->delivered = delivered;
		told->marked = marked;
		told->windows++;
	}
}

/* The cut because of marks, by p in 1/32768. */
static __always_inline __u32 dctcp_cut(struct sock *sk, __u32 power)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = private_state(sk);
	struct fq_cc_alpha *told = bpf_sk_storage_get(&alphas, (void *)tp, NULL, 0);

	if (told) {
		told->cuts++;
		told->cut_alpha = ca->alpha;
		told->cut_power = power;
	}
	ca->loss_cwnd = tp->snd_cwnd;
	return dctcp_window(tp->snd_cwnd, power);
}

static __always_inline void dctcp_loss(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = private_state(sk);

	ca->loss_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = dctcp_window_after_loss(tp->snd_cwnd);
}

/* A timeout is CA_EVENT_LOSS, so that a loss is answered once. */
SEC("struct_ops/dctcp_state")
void BPF_PROG(dctcp_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_RECOVERY &&
	    BPF_CORE_READ_BITFIELD(&tcp_sk(sk)->inet_conn, icsk_ca_state) != TCP_CA_RECOVERY)
		dctcp_loss(sk);
}

static __always_inline void dctcp_echo(struct sock *sk, __u32 ce_state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (ce_state)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/*
 * The receiver's half (RFC 8257, section 3.2): when the CE codepoint of data changes, an ACK that waits is
 * sent at once with the echo of what it acknowledges, and then the echo changes.
 */
static __always_inline void dctcp_arrived(struct sock *sk, __u32 ce_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = private_state(sk);

	if (ca->ce_state != ce_state) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			dctcp_echo(sk, ca->ce_state);
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce_state = ce_state;
	dctcp_echo(sk, ce_state);
}

SEC("struct_ops/dctcp_event")
void BPF_PROG(dctcp_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		dctcp_arrived(sk, event == CA_EVENT_ECN_IS_CE);
	else if (event == CA_EVENT_LOSS)
		dctcp_loss(sk);
}

SEC("struct_ops/dctcp_undo")
__u32 BPF_PROG(dctcp_undo, struct sock *sk)
{
	const struct dctcp *ca = private_state(sk);
	__u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return cwnd > ca->loss_cwnd ? cwnd : ca->loss_cwnd;
}

SEC("struct_ops/dctcp_grow")
void BPF_PROG(dctcp_grow, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

/* The operations of both, but for ssthresh and the name. */
#define DCTCP_OPS                                                            \
	.init = (void *)dctcp_init, .in_ack_event = (void *)dctcp_acked,     \
	.cwnd_event = (void *)dctcp_event, .set_state = (void *)dctcp_state, \
	.undo_cwnd = (void *)dctcp_undo, .cong_avoid = (void *)dctcp_grow,   \
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#endif
