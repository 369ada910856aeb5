// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The program of the queue laws: tc egress of ports that have one, after the window program and before the drop that a
 * full queue makes.
 *
 *   packet -> its slot (handed_on.h) -> its law and the depth of its queue -> laws/queue_law.h
 *       pass  -> the next filter
 *       mark  -> CE in the IP header, if the packet is ECN-capable -> the next filter
 *       drop  -> the agent, if the port reports drops
 *
 * A dropped packet has been counted and lowered by the window program like one that the queue refused. To the sender it
 * was sent: after an error, Open vSwitch in user space would lose the rest of its batch.
 *
 * Fails open: a law without a living lease does nothing.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "lib/dropped_packet.h"
#include "lib/handed_on.h"
#include "lib/ip_packet.h"
#include "lib/on_wire.h"
#include "lib/port_slots.h"
#include "lib/queue_judge.h"
#include "lib/queue_map.h"
#include "lib/threshold_maps.h"
#include "lib/tx_queue_choice.h"

/*
 * The law of a packet about which nothing was handed on: it belongs to no connection. `id` and `slot` become those of
 * its port, or of its transmit queue.
 */
static __always_inline const struct fq_port_queue_law *find_law(struct __sk_buff *skb, __u32 *id,
								__u32 *slot)
{
	const struct fq_port_queue_law *law;
	const __u32 *found;

	*id = skb->ifindex;
	found = bpf_map_lookup_elem(&port_slots, id);
	if (!found)
		return NULL;
	*slot = *found;
	law = bpf_map_lookup_elem(&queue_laws, slot);
	if (!law || !law->queues)
		return law;
	*id = chosen_tx_queue(skb, law->queues);
	found = bpf_map_lookup_elem(&port_slots, id);
	if (!found)
		return NULL;
	*slot = *found;
	return bpf_map_lookup_elem(&queue_laws, slot);
}

/* The backlog that the packet finds, and the least since the last packet. */
static __always_inline void look_at_queue(struct fq_queue_law_input *in, __u32 id, __u32 slot)
{
	struct fq_depth *depth = bpf_map_lookup_elem(&depths, &slot);

	if (!depth)
		return;
	in->backlog = depth->backlog;
	/* With a backlog that is stale, the port would drop all packets, and no event would correct it. */
	if (in->backlog && in->now_ns > depth->last_ns + FQ_MARGIN_NS)
		in->backlog = queue_backlog(id, in->now_ns);
	in->low = depth->low;
	depth->low = in->backlog;
}

/* The packet is dropped. Where no port has thresholds, the agent wants to hear of no drop. */
static __always_inline void report_drop(struct __sk_buff *skb)
{
	__u32 zero = 0, ifindex = skb->ifindex;
	const struct fq_queue_config *cfg = bpf_map_lookup_elem(&queue_config, &zero);
	const struct fq_threshold *t;
	struct fq_ring_count *count;

	if (!cfg || !cfg->thresholds)
		return;
	t = bpf_map_lookup_elem(&thresholds, &ifindex);
	if (!t || !(t->flags & FQ_REPORT_DROPS) || hand_over_dropped(skb, FQ_DROP_BY_LAW))
		return;
	count = bpf_map_lookup_elem(&drop_count, &zero);
	if (count)
		ADD(count->lost, 1);
}

SEC("classifier")
int fq_judge(struct __sk_buff *skb)
{
	const struct fq_port_queue_law *law;
	struct fq_queue_law_input in = {};
	struct ip_packet ip = {};
	__u32 slot, id, verdict;

	id = handed_on(skb, &slot, &in.now_ns);
	if (id)
		law = bpf_map_lookup_elem(&queue_laws, &slot);
	else
		law = find_law(skb, &id, &slot);
	if (!law || !law->expires_ns)
		return TC_ACT_UNSPEC;
	if (!in.now_ns)
		in.now_ns = bpf_ktime_get_ns();
	if (law->expires_ns <= in.now_ns)
		return TC_ACT_UNSPEC;
	read_ip(skb, &ip, law->law.seed, needs_flow_hash(&law->law));
	look_at_queue(&in, id, slot);
	in.len = wire_bytes(skb);
	in.segments = wire_segments(skb);
	in.hash = ip.hash;
	in.ect = ip.ecn != 0;
	verdict = judge_by(&law->law, slot, &in, true);
	if (verdict == FQ_DROP) {
		report_drop(skb);
		/* TC_ACT_SHOT would be an error to the sender. */
		return TC_ACT_STOLEN;
	}
	/* For the queue program, which counts the packets of each bin. */
	if (law->law.flags & FQ_QLAW_BINS)
		skb->mark = in.hash;
	if (verdict == FQ_MARK)
		mark_ce(skb, &ip);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
