// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue program: the exact backlog of every port. Two tracepoints fire at each packet into and out of
 * a qdisc, under the lock of that qdisc, so the plain writes below do not race.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "laws/queue_law.h"
#include "layout.h"
#include "lib/core_types.h"
#include "lib/flow_map.h"
#include "lib/histogram.h"
#include "lib/law_tick.h"
#include "lib/queue_law_maps.h"
#include "lib/queue_map.h"
#include "lib/threshold_events.h"
#include "lib/traced_packet.h"
#include "lib/tx_queue_id.h"
#include "verifier.h"

/* By ifindex. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_histogram);
} histograms SEC(".maps");

#define TC_H_ROOT     0xFFFFFFFFU
#define TC_H_MINOR    0xFFFFU
/* The qdisc counts per CPU (pfifo_fast, without a lock): its sums are not to be read here. */
#define QDISC_PER_CPU 0x20U
/* Packets that one dequeue may hand over together; further ones are not counted. */
#define MAX_BULK      256

/*
 * Take over what the qdisc has counted since the last event. Counting events instead loses packets: the kernel
 * calls no tracing program for some milliseconds while another one is attached or detached, and it has no
 * event for a packet that bypasses an empty queue.
 */
static __always_inline void count_left(struct fq_queue *st, const struct Qdisc *q)
{
	const __u64 *counts = (const void *)&q->bstats;
	__u64 bytes, packets;

	/* One relocation of the address: one of a load would compare the sizes of the two kernels' types. */
	ONE_REGISTER(counts);
	bytes = counts[0];
	packets = counts[1];
	if (st->last_ns) {
		bool replaced = packets < st->qdisc_packets || bytes < st->qdisc_bytes;

		st->bytes += replaced ? bytes : bytes - st->qdisc_bytes;
		st->packets += replaced ? packets : packets - st->qdisc_packets;
	}
	st->qdisc_bytes = bytes;
	st->qdisc_packets = packets;
}

/*
 * Add the time since the last event to the integral and the histogram. The backlog becomes that at its end, before
 * this event: another one than at its beginning if events were missed.
 */
static __always_inline void count_time(struct fq_queue *st, __u32 ifindex, __u64 now)
{
	__u32 depth = st->backlog;
	__u64 spent = now - st->last_ns, stood = spent, byte_ns, bin = fq_bin(depth);
	const struct fq_queue_check *check = NULL;
	struct fq_histogram *hist;

	byte_ns = spent * depth;
	/* No drain_ns is shorter. */
	if (depth && spent > FQ_MARGIN_NS)
		check = bpf_map_lookup_elem(&queue_checks, &ifindex);
	if (check) {
		byte_ns = believed_byte_ns(st, check, now);
		stood = law_min(law_div(byte_ns, depth), spent);
		st->backlog = believed_backlog(st, check, now);
	}
	st->byte_ns += byte_ns;
	hist = bpf_map_lookup_elem(&histograms, &ifindex);
	ONE_REGISTER(bin);
	if (hist && bin < FQ_HIST_BINS) {
		hist->ns[bin] += stood;
		if (stood < spent)
			hist->ns[0] += spent - stood;
	}
}

/* Tell the programs at tc egress, by slot. */
static __always_inline void publish_depth(const struct fq_queue *st)
{
	__u32 slot = st->slot;
	struct fq_depth *depth = bpf_map_lookup_elem(&depths, &slot);

	if (!depth)
		return;
	depth->last_ns = st->last_ns;
	depth->backlog = st->backlog;
	if (st->backlog < depth->low)
		depth->low = st->backlog;
}

/*
 * A packet of so many segments with this mark, the hash of its flow, has entered or left the queue in a slot: count it if
 * its law has bins. A global function is verified once, and not at each of its calls: those in a loop would be too much.
 */
__noinline int count_in_bins(__u32 slot, __u32 hash, __u32 segments, __u32 entered)
{
	struct fq_port_queue_law *law;
	struct fq_sfb_bins *bins;
	__u32 table;

	if (!hash)
		return 0;
	law = bpf_map_lookup_elem(&queue_laws, &slot);
	if (!law || !(law->law.flags & FQ_QLAW_BINS))
		return 0;
	table = law->law.table;
	bins = bpf_map_lookup_elem(&sfb_bins, &table);
	if (!bins)
		return 0;
	if (entered)
		queue_law_entered(&law->law, bins, hash, segments);
	else
		queue_law_left(&law->law, bins, hash, segments);
	return 0;
}

static __always_inline bool has_bins(void)
{
	__u32 zero = 0;
	struct fq_queue_config *cfg = bpf_map_lookup_elem(&queue_config, &zero);

	return cfg && cfg->bins;
}

/*
 * Account for a packet that went into or out of the queue. Returns the queue's record, or NULL if the queue
 * is not to be watched: neither a root qdisc nor that of a transmit queue, not on a port of the bridge, or on an
 * interface of another network namespace that has the same index.
 */
static __always_inline struct fq_queue *account(struct Qdisc *q, const struct netdev_queue *txq)
{
	__u32 bridge, ifindex, known, depth;
	struct net_device *dev = txq->dev;
	struct fq_queue_config *cfg;
	struct fq_queue *st;
	__u64 now;

	ifindex = dev->ifindex;
	st = bpf_map_lookup_elem(&queues, &ifindex);
	if (!st)
		return NULL;
	/* The qdisc of a transmit queue: the kernel calls the tracepoints for no other than it and the root. */
	if (q->parent != TC_H_ROOT) {
		ifindex = tx_queue_id(ifindex, (q->parent & TC_H_MINOR) - 1);
		st = bpf_map_lookup_elem(&queues, &ifindex);
		if (!st)
			return NULL;
	}
	bridge = st->bridge;
	cfg = bpf_map_lookup_elem(&queue_config, &bridge);
	if (!cfg || dev->nd_net.net->ns.inum != cfg->netns)
		return NULL;

	now = bpf_ktime_get_ns();
	if (!(q->flags & QDISC_PER_CPU))
		count_left(st, q);
	known = st->backlog;
	if (st->last_ns && now > st->last_ns)
		count_time(st, ifindex, now);
	st->last_ns = now;
	depth = st->backlog;
	if (depth != known && cfg->thresholds)
		report_crossing(st, ifindex);
	st->backlog = q->qstats.backlog;
	st->drops = q->qstats.drops;
	if (st->peak_epoch != cfg->peak_epoch) {
		st->peak_epoch = cfg->peak_epoch;
		st->peak = depth;
	}
	if (st->backlog > st->peak)
		st->peak = st->backlog;
	publish_depth(st);
	if (cfg->thresholds)
		report_crossing(st, ifindex);
	if (cfg->laws)
		run_law(st, ifindex);
	return st;
}

/* The segment that has just passed tc egress here has reached the qdisc of a transmit queue: is it the expected one? */
static __noinline int note_tx_queue(__u32 ifindex, __u32 id)
{
	__u32 zero = 0;
	struct fq_leaving *segment = bpf_map_lookup_elem(&leaving, &zero);
	struct fq_flow *flow;

	if (!segment || segment->ifindex != ifindex)
		return 0;
	segment->ifindex = 0;
	if (segment->id == id)
		return 0;
	flow = bpf_map_lookup_elem(&flows, &segment->key);
	if (flow)
		flow->dir[segment->dir & 1].tx_queue = id;
	return 0;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(fq_enqueue, struct Qdisc *q, const struct netdev_queue *txq, struct sk_buff *skb)
{
	struct fq_queue *st = account(q, txq);
	__u32 ifindex, parent;

	if (!st)
		return 0;
	if (has_bins() && skb)
		count_in_bins(st->slot, skb->mark, traced_segments(skb), 1);
	parent = q->parent;
	if (parent != TC_H_ROOT) {
		ifindex = txq->dev->ifindex;
		note_tx_queue(ifindex, tx_queue_id(ifindex, (parent & TC_H_MINOR) - 1));
	}
	return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(fq_dequeue, struct Qdisc *q, const struct netdev_queue *txq, int packets,
	     struct sk_buff *skb)
{
	struct fq_queue *st = account(q, txq);
	bool bins, own;

	if (!st || packets <= 0 || !skb)
		return 0;
	bins = has_bins();
	own = q->flags & QDISC_PER_CPU; /* the qdisc does not count them */
	if (!bins && !own)
		return 0;
	/* On a device of several queues the kernel takes out up to 8 at once, as a list. */
	for (int i = 0; i < MAX_BULK && i < packets && skb; i++) {
		__u32 segments = traced_segments(skb);

		if (bins)
			count_in_bins(st->slot, skb->mark, segments, 0);
		if (own) {
			st->packets += segments;
			st->bytes += traced_bytes(skb);
		}
		skb = skb->next;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
