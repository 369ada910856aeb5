// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The exact queue of every port: two tracepoints that fire at each packet into and out of a qdisc,
 * under the lock of that qdisc, so the plain writes below do not race.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "layout.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue_config);
} queue_config SEC(".maps");

/* These are sized by the agent before it loads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_histogram);
} histograms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_threshold);
} thresholds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} doorbells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_ring_count);
} doorbell_count SEC(".maps");

#define TC_H_ROOT 0xFFFFFFFFU
/* Packets that one dequeue may hand over together; what is beyond goes without its bytes. */
#define MAX_BULK  256

/* Only the members used; CO-RE finds where they stand in the running kernel. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct net_device {
	int ifindex;
	possible_net_t nd_net;
};
struct netdev_queue {
	struct net_device *dev;
};
struct gnet_stats_queue {
	__u32 backlog;
	__u32 drops;
};
struct Qdisc {
	__u32 parent;
	struct gnet_stats_queue qstats;
};
struct sk_buff {
	struct sk_buff *next;
	unsigned int len;
};
#pragma clang attribute pop

/*
 * Bin of a depth: 16 to the octave from 16 bytes on, so a bin is never wider than 6.25 % of its
 * depth. fairq_ryu/agent/layout.py has the inverse.
 */
static __always_inline __u32 fq_bin(__u32 depth)
{
	__u32 octave = 0, rest = depth;

	if (depth < 16)
		return depth;
	if (rest >= 1U << 16) {
		octave += 16;
		rest >>= 16;
	}
	if (rest >= 1U << 8) {
		octave += 8;
		rest >>= 8;
	}
	if (rest >= 1U << 4) {
		octave += 4;
		rest >>= 4;
	}
	if (rest >= 1U << 2) {
		octave += 2;
		rest >>= 2;
	}
	if (rest >= 1U << 1)
		octave += 1;
	/* octave is now floor(log2(depth)), 4 or more */
	__u32 bin = (octave - 3) * 16 + ((depth >> (octave - 4)) & 15);
	return bin < FQ_HIST_BINS ? bin : FQ_HIST_BINS - 1;
}

/* Has the backlog crossed a threshold? Then the agent is woken; it looks for itself. */
static __always_inline void watch_thresholds(struct fq_queue *st, __u32 ifindex)
{
	const struct fq_threshold *t = bpf_map_lookup_elem(&thresholds, &ifindex);
	__u32 zero = 0, state = st->state;
	struct fq_ring_count *count;
	struct fq_doorbell *bell;

	if (!t || !t->cng)
		return;
	if (st->backlog >= t->cng)
		state = FQ_CNG;
	else if (st->backlog <= t->nom)
		state = FQ_NOM;
	if (state == st->state)
		return;
	st->state = state;
	bell = bpf_ringbuf_reserve(&doorbells, sizeof(*bell), 0);
	count = bpf_map_lookup_elem(&doorbell_count, &zero);
	if (count)
		__sync_fetch_and_add(bell ? &count->told : &count->lost, 1);
	if (!bell)
		return;
	bell->ns = st->last_ns;
	bell->ifindex = ifindex;
	bell->state = state;
	bell->backlog = st->backlog;
	bell->pad = 0;
	bpf_ringbuf_submit(bell, 0);
}

/*
 * A packet went into or out of the queue. Returns the queue's record, or NULL if it is none of ours:
 * not a root qdisc, not on a port of the bridge, or an interface of another network namespace that
 * happens to bear the same index.
 */
static __always_inline struct fq_queue *account(struct Qdisc *q, const struct netdev_queue *txq)
{
	__u32 zero = 0, ifindex, depth, bin;
	struct net_device *dev = txq->dev;
	struct fq_queue_config *cfg;
	struct fq_histogram *hist;
	struct fq_queue *st;
	__u64 now, spent;

	ifindex = dev->ifindex;
	st = bpf_map_lookup_elem(&queues, &ifindex);
	if (!st || q->parent != TC_H_ROOT)
		return NULL;
	cfg = bpf_map_lookup_elem(&queue_config, &zero);
	if (!cfg || dev->nd_net.net->ns.inum != cfg->netns)
		return NULL;

	now = bpf_ktime_get_ns();
	depth = st->backlog;
	if (st->last_ns && now > st->last_ns) {
		spent = now - st->last_ns;
		st->byte_ns += spent * depth;
		hist = bpf_map_lookup_elem(&histograms, &ifindex);
		bin = fq_bin(depth);
		if (hist && bin < FQ_HIST_BINS)
			hist->ns[bin] += spent;
	}
	st->last_ns = now;
	st->backlog = q->qstats.backlog;
	st->drops = q->qstats.drops;
	if (st->peak_epoch != cfg->peak_epoch) {
		st->peak_epoch = cfg->peak_epoch;
		st->peak = depth;
	}
	if (st->backlog > st->peak)
		st->peak = st->backlog;
	if (cfg->thresholds)
		watch_thresholds(st, ifindex);
	return st;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(fq_enqueue, struct Qdisc *q, const struct netdev_queue *txq, struct sk_buff *skb)
{
	account(q, txq);
	return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(fq_dequeue, struct Qdisc *q, const struct netdev_queue *txq, int packets,
	     struct sk_buff *skb)
{
	struct fq_queue *st = account(q, txq);

	if (!st || packets <= 0 || !skb)
		return 0;
	st->packets += packets;
	/* On a device of several queues the kernel takes out up to 8 at once, as a list. */
	for (int i = 0; i < MAX_BULK && i < packets && skb; i++) {
		st->bytes += skb->len;
		skb = skb->next;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
