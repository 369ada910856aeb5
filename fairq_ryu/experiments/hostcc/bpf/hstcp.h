/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The arithmetic of HighSpeed TCP (RFC 3649): a(w) and b(w) by the RFC's table, Reno's at small windows. */
#ifndef FAIRQ_HSTCP_H
#define FAIRQ_HSTCP_H

#include "dctcp.h"
#include "hstcp_table.h"

#define HSTCP_SEARCH_STEPS 7 /* 2^7 > HSTCP_ROWS */

/* The last row whose window is at most this one; the first for every smaller one. */
CC_INLINE __u32 hstcp_row(__u32 cwnd)
{
	__u32 low = 0, high = HSTCP_ROWS;

	for (int i = 0; i < HSTCP_SEARCH_STEPS; i++) {
		__u32 middle = (low + high) / 2;

		/* The bound is for the verifier. */
		if (high - low <= 1 || middle >= HSTCP_ROWS)
			break;
		if (hstcp_windows[middle] <= cwnd)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* a(w): segments that the window gains in a round trip. */
CC_INLINE __u32 hstcp_increase(__u32 cwnd)
{
	return hstcp_row(cwnd) + 1;
}

/* The window after a loss: W (1 - b(W)), at least two segments. */
CC_INLINE __u32 hstcp_window_after_loss(__u32 cwnd)
{
	__u32 row = hstcp_row(cwnd), cut;

	if (row >= HSTCP_ROWS)
		return cwnd;
	cut = cwnd - (__u32)((__u64)cwnd * hstcp_decreases[row] >> 10);
	return cut > DCTCP_MIN_CWND ? cut : DCTCP_MIN_CWND;
}

#endif
