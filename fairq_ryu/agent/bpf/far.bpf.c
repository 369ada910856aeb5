// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program of far queues: tc ingress of ports whose data has waited in a queue of the switch above, which nobody here
 * can see. It keeps a virtual queue of what arrives (virtual_queue.h), whatever protocol that is, and runs the ticks of
 * its law. The window program asks that law when ACKs leave by the port.
 *
 * It looks at packets only: every path ends in TC_ACT_UNSPEC, which lets the filters of others run.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "laws/arrivals.h"
#include "layout.h"
#include "lib/arrived.h"
#include "lib/histogram.h"
#include "lib/law_tick.h"
#include "lib/queue_map.h"
#include "lib/threshold_events.h"
#include "lib/virtual_queue.h"
#include "verifier.h"

/* fq_far_queue of the layout, with the lock as the kernel knows it: packets arrive on several processors at once. */
struct far_queue {
	struct bpf_spin_lock lock;
	__u32 limit;
	__u64 rate;
	struct fq_arrivals arrivals;
};

/* By slot. Not in the map of queues, which tracing programs have as well: those may not have locks. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct far_queue);
} far_queues SEC(".maps");

/* The law in a slot; NULL: it has none. */
static __always_inline const struct fq_law *law_in(__u32 slot, __u64 now)
{
	const struct fq_port_law *law = bpf_map_lookup_elem(&port_laws, &slot);

	return law && law->expires_ns > now ? &law->law : NULL;
}

/* Add the time since the last packet to the histogram: that in which it has drained, at the depth between. */
static __always_inline void spread_time(struct fq_histogram *hist, const struct fq_queue *q,
					__u64 byte_ns, __u64 now)
{
	__u64 spent = law_less(now, q->last_ns), drained = spent, bin;
	__u32 after = virtual_backlog(q, now);

	if (!q->last_ns)
		return;
	if (!after)
		drained = law_min(spent, law_div(2 * byte_ns, q->backlog));
	bin = fq_bin((q->backlog + after) / 2);
	ONE_REGISTER(bin);
	if (bin < FQ_HIST_BINS)
		hist->ns[bin] += drained;
	hist->ns[0] += spent - drained;
}

SEC("classifier")
int fq_arrives(struct __sk_buff *skb)
{
	__u32 id = FQ_FAR | skb->ifindex, slot, bridge, segments, bytes;
	struct fq_queue *q = bpf_map_lookup_elem(&queues, &id);
	struct fq_queue_config *cfg;
	struct fq_histogram *hist;
	struct far_queue *far;
	const struct fq_law *law;
	__u64 now, byte_ns = 0;

	if (!q)
		return TC_ACT_UNSPEC;
	slot = q->slot;
	bridge = q->bridge;
	far = bpf_map_lookup_elem(&far_queues, &slot);
	cfg = bpf_map_lookup_elem(&queue_config, &bridge);
	hist = bpf_map_lookup_elem(&histograms, &id);
	if (!far || !far->rate || !cfg || !hist)
		return TC_ACT_UNSPEC;
	segments = wire_segments(skb);
	bytes = arrived_bytes(skb, segments);
	now = bpf_ktime_get_ns();
	law = cfg->laws ? law_in(slot, now) : NULL;

	bpf_spin_lock(&far->lock);
	spread_time(hist, q, virtual_byte_ns(q, now), now);
	virtual_arrival(q, far->rate, far->limit, bytes, segments, now);
	if (q->peak_epoch != cfg->peak_epoch) {
		q->peak_epoch = cfg->peak_epoch;
		q->peak = 0;
	}
	if (q->backlog > q->peak)
		q->peak = q->backlog;
	arrivals_count(&far->arrivals, bytes);
	if (law && law_less(now, far->arrivals.ns) >= law->interval_ns) {
		arrivals_tick(law, &far->arrivals, q->backlog, now);
		byte_ns = law->gain_q16 ? far->arrivals.length_ns : q->byte_ns;
	}
	bpf_spin_unlock(&far->lock);

	if (cfg->thresholds)
		report_crossing(q, id);
	if (byte_ns)
		run_law(q, id, byte_ns);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
