/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Types of the kernel that a congestion control sees: only the members used here. CO-RE replaces their
 * offsets by those of the running kernel, and libbpf finds the members of tcp_congestion_ops by name.
 */
#ifndef FAIRQ_TCP_TYPES_H
#define FAIRQ_TCP_TYPES_H

#include <linux/types.h>

#define TCP_ECN_OK         1
#define TCP_ECN_DEMAND_CWR 4

#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW   16

#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN      2

#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS     4
#define TCP_CA_NAME_MAX 16

#define AF_INET  2
#define AF_INET6 10

#define SK_PACING_NONE   0
#define SK_PACING_NEEDED 1

#define SOL_TCP        6
#define TCP_CONGESTION 13

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net {
	__u64 net_cookie;
};
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	struct {
		struct net *net;
	} skc_net;
	struct {
		union {
			__be32 u6_addr32[4];
		} in6_u;
	} skc_v6_daddr;
};
struct sock {
	struct sock_common __sk_common;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;     /* bytes/s */
	unsigned long sk_max_pacing_rate; /* that the application has asked for; all bits: none */
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u8 icsk_ca_initialized : 1; /* the connection is established */
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 max_packets_out; /* in the last window */
	__u8 is_cwnd_limited : 1;
	__u32 snd_ssthresh;
	__u32 prior_cwnd; /* when the reduction began */
	__u32 srtt_us;    /* times 8 */
	__u32 mss_cache;
	__u32 delivered;
	__u32 delivered_ce;
	__u64 bytes_acked;
	__u8 ecn_flags;
};
#pragma clang attribute pop

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	char name[TCP_CA_NAME_MAX];
	__u32 flags;
};

static inline __attribute__((always_inline)) struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline __attribute__((always_inline)) void *private_state(const struct sock *sk)
{
	return (void *)tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

/* a is before b in a space of sequence numbers that wraps. */
static inline __attribute__((always_inline)) int before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

#endif
