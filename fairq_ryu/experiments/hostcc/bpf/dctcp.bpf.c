// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DCTCP (RFC 8257) for kernels without it. */
#include "dctcp_ops.h"

SEC("struct_ops/dctcp_ssthresh")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	const struct dctcp *ca = private_state(sk);

	return dctcp_cut(sk, dctcp_power(ca->alpha));
}

SEC(".struct_ops")
struct tcp_congestion_ops control = {
	DCTCP_OPS,
	.ssthresh = (void *)dctcp_ssthresh,
	.name = "fairq_dctcp",
};
