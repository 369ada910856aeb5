// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* D2TCP: DCTCP whose cut depends on the deadline of the flow. */
#include "dctcp_ops.h"

#include <bpf/bpf_endian.h>

#include "d2tcp.h"

/* Written by `fairq run` before a flow starts. The oldest are forgotten when it is full. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct fq_cc_flow);
	__type(value, struct fq_cc_deadline);
} deadlines SEC(".maps");

SEC("struct_ops/d2tcp_ssthresh")
__u32 BPF_PROG(d2tcp_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	const struct dctcp *ca = private_state(sk);
	struct fq_cc_flow flow = {
		.saddr = common->skc_rcv_saddr,
		.daddr = common->skc_daddr,
		.sport = common->skc_num,
		.dport = bpf_ntohs(common->skc_dport),
	};
	struct fq_cc_deadline *wanted = NULL;
	__u64 now = bpf_ktime_get_ns(), left_bytes = 0, left_ns = 0;
	__u32 alpha = ca->alpha;

	if (common->skc_family == AF_INET)
		wanted = bpf_map_lookup_elem(&deadlines, &flow);
	if (wanted && wanted->bytes > tp->bytes_acked && wanted->deadline_ns > now) {
		left_bytes = wanted->bytes - tp->bytes_acked;
		left_ns = wanted->deadline_ns - now;
	}
	return dctcp_cut(sk,
			 d2tcp_power(alpha, d2tcp_imminence(left_bytes, left_ns, tp->srtt_us >> 3,
							    tp->snd_cwnd, tp->mss_cache)));
}

SEC(".struct_ops")
struct tcp_congestion_ops control = {
	DCTCP_OPS,
	.ssthresh = (void *)d2tcp_ssthresh,
	.name = "fairq_d2tcp",
};
