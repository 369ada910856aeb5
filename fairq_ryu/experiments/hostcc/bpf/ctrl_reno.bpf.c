// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Coupled flows that behave together as one flow of Reno. */
#define CTRL_GROW(group, acked, rtt_us, now) ctrl_reno_grow(group, acked)
#define CTRL_CUT(group)                      ctrl_reno_cut(group)

#include "ctrl_ops.h"

SEC(".struct_ops")
struct tcp_congestion_ops control = {
	CTRL_OPS,
	.name = "ctrl_reno",
};
