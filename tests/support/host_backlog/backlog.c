// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What of a queue's backlog is believed, and a virtual queue, for the host: to compare with the twin in Python. */
#include "lib/backlog.h"

__u32 host_backlog(const struct fq_queue *q, const struct fq_queue_check *c, __u64 now)
{
	return believed_backlog(q, c, now);
}

__u64 host_byte_ns(const struct fq_queue *q, const struct fq_queue_check *c, __u64 now)
{
	return believed_byte_ns(q, c, now);
}

void host_virtual_arrival(struct fq_queue *q, __u64 drain, __u32 limit, __u64 bytes, __u32 segments,
			  __u64 now)
{
	virtual_arrival(q, drain, limit, bytes, segments, now);
}
