/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When a flow counts as one that begins: once, as early as possible.
 *
 *   its SYN leaves (FQ_LAW_SYNS) -> it counts, if the allowance is not used up
 *   its SYN leaves once more     -> it counts again with the SYN-ACK: its data comes in a later interval
 *   the SYN-ACK answers it       -> it counts, if it has not, and if the allowance is not used up
 *   the SYN-ACK is acknowledged  -> it counts, if it has not, and no longer uses the allowance
 *
 * Against floods of SYNs: at most `syn_allowance` flows count before their handshakes are complete. A forged SYN
 * never gets further, so after UNPROVEN_NS all of them are forgotten. One number for the port, and not one for
 * each address, because addresses may be forged: an allowance for each would be no limit. While a flood uses up
 * the allowance, the flows of others count when their handshakes are complete: before the ACK that completes them
 * is lowered, which is in time for the data of servers, but not for the first windows of clients.
 */
#ifndef FAIRQ_LAW_OPENING_H
#define FAIRQ_LAW_OPENING_H

#include <linux/types.h>
#include <stdbool.h>

#include "../layout.h"
#include "arithmetic.h"

/* Linux has retransmitted its SYN after 1, 3 and 7 s by then. */
#define UNPROVEN_NS (10 * NS_PER_S)

/* Whether one more flow may count before its handshake is complete. */
LAW_INLINE bool law_allows(const struct fq_law *p, struct fq_law_state *st, __u64 now)
{
	if (law_less(now, st->unproven_ns) >= UNPROVEN_NS) {
		st->unproven = 0;
		st->unproven_ns = now;
	}
	if (st->unproven >= p->syn_allowance)
		return false;
	st->unproven++;
	return true;
}

/*
 * Whether a flow with these flags (FQ_BEGUN, FQ_UNPROVEN) counts at this step of its handshake. Updates the flags.
 */
LAW_INLINE bool law_counts(const struct fq_law *p, struct fq_law_state *st, __u32 step,
			   __u32 *flags, __u64 now)
{
	bool counted = *flags & FQ_BEGUN, unproven = *flags & FQ_UNPROVEN;

	if (step == FQ_OPENING_AGAIN) {
		*flags &= ~FQ_BEGUN;
		return false;
	}
	if (step == FQ_OPENING_PROVEN) {
		/* If it was forgotten, it takes the place of another off: never more than there are. */
		if (unproven && st->unproven)
			st->unproven--;
		*flags &= ~FQ_UNPROVEN;
	} else if (!counted && !unproven) {
		if ((step == FQ_OPENING_SYN && !(p->flags & FQ_LAW_SYNS)) ||
		    !law_allows(p, st, now))
			return false;
		*flags |= FQ_UNPROVEN;
	}
	*flags |= FQ_BEGUN;
	return !counted;
}

#endif
