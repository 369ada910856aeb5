// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* DCTCP with thresholds as they are where a kernel leaves out the program: what was on the stack. */
#include "dctcp_ops.h"

SEC("struct_ops/left_out_ssthresh")
__u32 BPF_PROG(left_out_ssthresh, struct sock *sk)
{
	return 2165326096U;
}

SEC(".struct_ops")
struct tcp_congestion_ops control = {
	DCTCP_OPS,
	.ssthresh = (void *)left_out_ssthresh,
	.name = "fairq_left_out",
};
