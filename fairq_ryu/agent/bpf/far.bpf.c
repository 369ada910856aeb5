// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program of far queues: tc ingress of ports whose data has waited in a queue of the switch above, which nobody here
 * can see. It keeps a virtual queue of what arrives (virtual_queue.h), whatever protocol that is, and runs the ticks of
 * its law. The window program asks that law when ACKs leave by the port, and samples round trips; from these and from what
 * arrives follows the rate of the virtual queue (laws/hidden.h).
 *
 * It looks at packets only: every path ends in TC_ACT_UNSPEC, which lets the filters of others run.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "laws/arrivals.h"
#include "laws/hidden.h"
#include "layout.h"
#include "lib/arrived.h"
#include "lib/hidden_map.h"
#include "lib/law_tick.h"
#include "lib/port_maps.h"
#include "lib/queue_map.h"
#include "lib/threshold_events.h"
#include "lib/virtual_queue.h"

/* By slot. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_far_queue);
} far_queues SEC(".maps");

#define WAITING_BYTES ((1ULL << FQ_WAITING_SHIFT) - 1)

/*
 * Packets arrive on several processors at once. One of them writes the queue at a time; what the others have is added by
 * the next that does. That costs half as much as a lock, and nobody waits. What the last one has left behind is added
 * with the next packet, and has drained until then as what stood in the queue.
 */
static __always_inline bool begin(struct fq_queue *q, __u32 bytes, __u32 segments)
{
	if (!__sync_val_compare_and_swap(&q->busy, 0, 1))
		return true;
	ADD(q->waiting, (__u64)segments << FQ_WAITING_SHIFT | bytes);
	return false;
}

static __always_inline void end(struct fq_queue *q)
{
	__sync_lock_test_and_set(&q->busy, 0);
}

/* What has arrived on other processors meanwhile. */
static __always_inline __u64 take_waiting(struct fq_queue *q)
{
	return *(volatile __u64 *)&q->waiting ? __sync_lock_test_and_set(&q->waiting, 0) : 0;
}

/* The law in a slot; NULL: it has none. */
static __always_inline const struct fq_law *law_in(__u32 slot, __u64 now)
{
	const struct fq_port_law *law = bpf_map_lookup_elem(&port_laws, &slot);

	return law && law->expires_ns > now ? &law->law : NULL;
}

/* An interval of arrivals may have ended. Not inlined: few packets get here. */
__noinline int judge(__u32 slot, __u64 now)
{
	const struct fq_far_queue *far = bpf_map_lookup_elem(&far_queues, &slot);
	const struct fq_port *port = bpf_map_lookup_elem(&ports, &slot);
	struct fq_hidden *h = bpf_map_lookup_elem(&hidden, &slot);

	if (far && far->is_kept && port && h)
		hidden_judge(far, h, port->lost_above, now);
	return 0;
}

SEC("classifier")
int fq_arrives(struct __sk_buff *skb)
{
	__u32 id = FQ_FAR | skb->ifindex, slot, bridge, segments, bytes;
	struct fq_queue *q = bpf_map_lookup_elem(&queues, &id);
	struct fq_queue_config *cfg;
	const struct fq_law *law;
	struct fq_hidden *h;
	__u64 now, waiting, earlier = 0;

	if (!q)
		return TC_ACT_UNSPEC;
	slot = q->slot;
	bridge = q->bridge;
	h = bpf_map_lookup_elem(&hidden, &slot);
	cfg = bpf_map_lookup_elem(&queue_config, &bridge);
	if (!h || !cfg)
		return TC_ACT_UNSPEC;
	segments = wire_segments(skb);
	bytes = arrived_bytes(skb, segments);
	if (!begin(q, bytes, segments))
		return TC_ACT_UNSPEC;
	waiting = take_waiting(q);
	if (waiting) {
		earlier = waiting & WAITING_BYTES;
		virtual_arrival(q, q->drain, h->limit, earlier, waiting >> FQ_WAITING_SHIFT,
				q->last_ns);
	}
	now = bpf_ktime_get_ns();
	law = cfg->laws ? law_in(slot, now) : NULL;
	h->bytes += earlier + bytes;
	if (hidden_is_due(h, now))
		judge(slot, now);
	virtual_arrival(q, h->drain, h->limit, bytes, segments, now);
	arrivals_count(&q->arrivals, earlier + bytes);
	if (q->peak_epoch != cfg->peak_epoch) {
		q->peak_epoch = cfg->peak_epoch;
		q->peak = 0;
	}
	if (q->backlog > q->peak)
		q->peak = q->backlog;
	if (law && law_less(now, q->arrivals.ns) >= law->interval_ns) {
		arrivals_tick(law, &q->arrivals, h->probes ? h->probe_rate : h->rate, q->backlog,
			      now);
		run_law(q, id);
	}
	if (cfg->thresholds)
		report_crossing(q, id);
	end(q);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
