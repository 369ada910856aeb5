/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a sender has under way. The switch sees what has passed it and is not acknowledged. A sender that is far from
 * the switch has more: what ACKs have released on their way to it, and what it has sent since and the switch has not
 * seen yet. Together that is what ACKs have released in one round trip between switch and sender.
 */
#ifndef FAIRQ_LAW_ROUND_H
#define FAIRQ_LAW_ROUND_H

#include <linux/types.h>

#include "../layout.h"
#include "arithmetic.h"

/*
 * Bytes that ACKs have released in the last round trip `rtt` (ns) between the switch and the sender, an eighth more
 * for what a round measures too little; `acked` is all that has been acknowledged. A near sender has little there. But
 * where the receiver is next to the switch and the queue is empty, this is all that a flow has under way, however short
 * the round trip is: without it no flow would seem to use its window, and a pool that is too small would stay so.
 */
LAW_INLINE __u32 round_released(struct fq_round *r, __u64 acked, __u32 rtt, __u64 now)
{
	__u64 elapsed = law_less(now, r->ns), bytes = law_less(acked, r->acked);

	if (!rtt)
		return 0;
	if (elapsed < rtt)
		return r->released;
	/* After a pause little was released in the round. */
	bytes = law_div(law_min(bytes, MAX_POOL) * rtt, elapsed);
	r->released = r->ns ? law_min(bytes + bytes / 8, MAX_POOL) : 0;
	r->ns = now;
	r->acked = acked;
	return r->released;
}

#endif
