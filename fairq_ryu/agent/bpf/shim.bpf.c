// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The scale shim of a host, at its uplink. tc egress keeps the window scale of each SYN and SYN-ACK that leaves, and
 * tells it in every later segment of the connection, where bridges read it (lib/told_scale.h). tc ingress looks at
 * SYN-ACKs: without the option in the answer there is no scale.
 *
 * Unifying: a SYN or SYN-ACK leaves with a scale of at most that of the network, and later windows are converted to it.
 * Never to a larger scale: should the shim die, the windows of its connections are read smaller than they are.
 *
 * Nothing is changed of segments that are signed (TCP-MD5, TCP-AO). Packets are never dropped: every path ends in
 * TC_ACT_UNSPEC, which lets the filters of others run.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "lib/parse.h"
#include "lib/port_maps.h"
#include "lib/tcp_bytes.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_shim_config);
} shim_config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_shim_counts);
} shim_counts SEC(".maps");

/* The shim sets the size before it loads the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_shim_flow);
} shim_flows SEC(".maps");

/* Data in a SYN (RFC 7413), at most. */
#define MAX_SYN_DATA 65535

static __always_inline const struct fq_shim_config *settings(void)
{
	__u32 zero = 0;
	const struct fq_shim_config *cfg = bpf_map_lookup_elem(&shim_config, &zero);

	return cfg && cfg->until_ns > bpf_ktime_get_ns() ? cfg : NULL;
}

/* A SYN or SYN-ACK that leaves. Those of a retransmission have the scale that the first one had. */
static __always_inline void syn_leaves(struct __sk_buff *skb, const struct segment *s,
				       const struct fq_shim_config *cfg,
				       struct fq_shim_counts *counts)
{
	struct fq_shim_flow *known = bpf_map_lookup_elem(&shim_flows, &s->key);
	bool again = known && known->isn == s->seq && known->dir == s->dir;
	struct fq_shim_flow flow = {
		.isn = s->seq,
		.dir = s->dir,
		.flags = s->offers & FQ_WS ? FQ_SHIM_OPTION : 0,
		.scale = s->wscale,
		.wire = s->wscale,
	};

	if (again)
		flow.wire = known->wire < s->wscale ? known->wire : s->wscale;
	else if (cfg->unify < s->wscale && s->now >= cfg->unify_ns)
		flow.wire = cfg->unify;
	if (s->has_signature)
		flow.wire = s->wscale;
	if (s->ack) {
		/* It has the option only if the SYN had. */
		flow.flags |= FQ_SHIM_KNOWN;
		if (flow.flags & FQ_SHIM_OPTION)
			flow.flags |= FQ_SHIM_SCALED;
		if (s->ecn & (TCP_CWR | TCP_AE))
			flow.flags |= FQ_SHIM_ACCECN;
	} else if (again) {
		flow.flags |= known->flags;
	}
	/* Kept before it leaves: who is not known is not converted, and his windows are read smaller. */
	if (bpf_map_update_elem(&shim_flows, &s->key, &flow, BPF_ANY))
		return;
	if (flow.wire == s->wscale)
		return;
	if (write_scale(skb, s, flow.wire)) {
		ADD(counts->unified, 1);
		return;
	}
	bpf_map_delete_elem(&shim_flows, &s->key);
}

/* Where the scale is written; the word as it was if there is no room for it. */
static __always_inline __u32 tell(const struct fq_shim_config *cfg, const struct fq_shim_flow *flow,
				  __u32 word, __u32 scale)
{
	__u32 window = word & TCP_WINDOW_MASK;

	if (cfg->mode == FQ_TELL_RESERVED && !(word & TCP_RESERVED_MASK) &&
	    !(flow->flags & FQ_SHIM_ACCECN))
		return word | scale << TCP_RESERVED_SHIFT;
	if (cfg->mode == FQ_TELL_RESERVED3 && scale < 8 && !(word & (14U << TCP_RESERVED_SHIFT)))
		return word | scale << (TCP_RESERVED_SHIFT + 1);
	/* A small window would become none, for ever. */
	if (cfg->mode == FQ_TELL_WINDOW12 && scale <= 11 && (window >= 16 || !window) &&
	    !(word & (8U << TCP_RESERVED_SHIFT)))
		return (word & ~TCP_WINDOW_MASK) | 8U << TCP_RESERVED_SHIFT | (scale + 4) << 12 |
		       window >> 4;
	return word;
}

SEC("classifier")
int fq_shim_leaves(struct __sk_buff *skb)
{
	const struct fq_shim_config *cfg = settings();
	struct fq_shim_counts *counts;
	struct fq_shim_flow *flow;
	__u32 zero = 0, word, window, scale;
	struct segment s = {};
	__be32 before;
	__u32 told;

	counts = bpf_map_lookup_elem(&shim_counts, &zero);
	if (!cfg || !counts || parse(skb, &s) != OK || s.rst)
		return TC_ACT_UNSPEC;
	if (has_more_options(skb, &s))
		read_options(skb, &s);
	if (s.syn) {
		s.now = bpf_ktime_get_ns();
		syn_leaves(skb, &s, cfg, counts);
		return TC_ACT_UNSPEC;
	}
	if (!s.ack || s.has_signature)
		return TC_ACT_UNSPEC;
	flow = bpf_map_lookup_elem(&shim_flows, &s.key);
	if (!flow || !(flow->flags & FQ_SHIM_KNOWN) || flow->dir != s.dir) {
		ADD(counts->unknown, 1);
		return TC_ACT_UNSPEC;
	}
	if (bpf_skb_load_bytes(skb, s.tcp_off + TCP_WORD, &before, sizeof(before)))
		return TC_ACT_UNSPEC;
	word = bpf_ntohl(before);
	window = word & TCP_WINDOW_MASK;
	scale = flow->flags & FQ_SHIM_SCALED ? flow->wire & 15 : 0;
	if (flow->flags & FQ_SHIM_SCALED && flow->wire < flow->scale) {
		window = converted_window(window, flow->scale, scale);
		word = (word & ~TCP_WINDOW_MASK) | window;
		ADD(counts->converted, 1);
	}
	told = tell(cfg, flow, word, scale);
	if (write_tcp_word(skb, &s, before, told) && told != word)
		ADD(counts->told, 1);
	else
		ADD(counts->untold, 1);
	return TC_ACT_UNSPEC;
}

SEC("classifier")
int fq_shim_arrives(struct __sk_buff *skb)
{
	struct fq_shim_flow *flow;
	struct segment s = {};

	if (!settings() || parse(skb, &s) != OK || !s.syn || !s.ack || s.rst)
		return TC_ACT_UNSPEC;
	read_options(skb, &s);
	flow = bpf_map_lookup_elem(&shim_flows, &s.key);
	if (!flow || flow->flags & FQ_SHIM_KNOWN || flow->dir == s.dir ||
	    s.ack_seq - (flow->isn + 1) > MAX_SYN_DATA)
		return TC_ACT_UNSPEC;
	if (flow->flags & FQ_SHIM_OPTION && s.offers & FQ_WS)
		flow->flags |= FQ_SHIM_SCALED;
	if (s.ecn & (TCP_CWR | TCP_AE))
		flow->flags |= FQ_SHIM_ACCECN;
	flow->flags |= FQ_SHIM_KNOWN;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
