// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* HighSpeed TCP (RFC 3649) for kernels without it. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "hstcp.h"
#include "left_out.h"
#include "tcp_types.h"

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("struct_ops/hstcp_ssthresh")
__u32 BPF_PROG(hstcp_ssthresh, struct sock *sk)
{
	return hstcp_window_after_loss(tcp_sk(sk)->snd_cwnd);
}

/* Reno's growth, as if a(w) times as many segments were acknowledged; slow start as it is. */
SEC("struct_ops/hstcp_grow")
void BPF_PROG(hstcp_grow, struct sock *sk, __u32 ack, __u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_cwnd >= tp->snd_ssthresh)
		acked *= hstcp_increase(tp->snd_cwnd);
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/hstcp_acked")
void BPF_PROG(hstcp_acked, struct sock *sk, __u32 flags)
{
	if (reduction_left_out(sk))
		reduce_late(sk, hstcp_window_after_loss(tcp_sk(sk)->prior_cwnd));
}

SEC("struct_ops/hstcp_undo")
__u32 BPF_PROG(hstcp_undo, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops control = {
	.ssthresh = (void *)hstcp_ssthresh,
	.cong_avoid = (void *)hstcp_grow,
	.in_ack_event = (void *)hstcp_acked,
	.undo_cwnd = (void *)hstcp_undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "fairq_hstcp",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
