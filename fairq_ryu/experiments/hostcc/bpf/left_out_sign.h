/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sign of a reduction that was left out (left_out.h), as plain C for eBPF and for the host. */
#ifndef FAIRQ_LEFT_OUT_SIGN_H
#define FAIRQ_LEFT_OUT_SIGN_H

#include <linux/types.h>

#define TCP_CA_CWR 2

/*
 * While a window is reduced (the states CWR, Recovery and Loss, from 2 on), its threshold is what the
 * congestion control has made of the window before, so not more than that; two segments are the least.
 */
static inline __attribute__((always_inline)) int
threshold_is_impossible(__u32 state, __u32 threshold, __u32 window_before)
{
	return state >= TCP_CA_CWR && threshold > 2 && threshold > window_before;
}

#endif
