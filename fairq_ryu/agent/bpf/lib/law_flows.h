/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A law that keeps a state of each flow (FQ_LAW_FLOWS), as data and ACKs meet it: its flows, and the echo of marks that
 * others have made.
 *
 *   data -> counted in the flow's state; with CWR, if the receiver is to be told that its echo was heard
 *   ACK  -> the window of the flow; ECE is taken out, so that the sender does not react as well
 *
 * A receiver after RFC 3168 repeats ECE until it gets CWR. The sender, which does not see the echo, would never send
 * it. Flags of SYNs are never changed, nor those of connections without ECN, or with AccECN.
 */
#ifndef FAIRQ_LAW_FLOWS_H
#define FAIRQ_LAW_FLOWS_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../laws/law.h"
#include "../layout.h"
#include "flow_key.h"
#include "on_wire.h"
#include "parse.h"
#include "port_maps.h"
#include "queue_map.h"
#include "segment_size.h"
#include "window_maps.h"

#define TCP_FLAGS_AT 12 /* offset of the 16 bits with data offset and flags */
#define ECE_BIT      0x0040
#define CWR_BIT      0x0080

/* Of flows whose data leaves by a port with such a law, by the key of their ACKs. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fq_flow_key);
	__type(value, struct fq_law_flow);
} law_flows SEC(".maps");

static const struct fq_law_flow new_law_flow;

/*
 * The state of the flow of this segment whose ACKs have the direction `dir`; a new one, if the state is that of another
 * connection or of another kind of law.
 */
static __always_inline struct fq_law_flow *law_flow(const struct segment *s, __u8 dir,
						    const struct fq_dir *data, __u32 kind)
{
	const struct fq_flow_key *acks = copied_key(&s->key, dir);
	struct fq_law_flow *f;

	if (!acks)
		return NULL;
	f = bpf_map_lookup_elem(&law_flows, acks);
	if (f && f->isn == data->isn && f->kind == kind)
		return f;
	bpf_map_update_elem(&law_flows, acks, &new_law_flow, BPF_ANY);
	f = bpf_map_lookup_elem(&law_flows, acks);
	if (f) {
		f->isn = data->isn;
		f->kind = kind;
	}
	return f;
}

/* Change flags of a TCP header and its checksum: both, or neither. */
static __always_inline bool change_flags(struct __sk_buff *skb, __u32 tcp_off, __u16 clear,
					 __u16 set)
{
	__be16 old, new;

	if (bpf_skb_load_bytes(skb, tcp_off + TCP_FLAGS_AT, &old, sizeof(old)))
		return false;
	new = (old & ~bpf_htons(clear)) | bpf_htons(set);
	if (new == old)
		return true;
	if (bpf_skb_store_bytes(skb, tcp_off + TCP_FLAGS_AT, &new, sizeof(new), 0))
		return false;
	if (bpf_l4_csum_replace(skb, tcp_off + offsetof(struct tcphdr, check), old, new,
				sizeof(new))) {
		bpf_skb_store_bytes(skb, tcp_off + TCP_FLAGS_AT, &old, sizeof(old), 0);
		return false;
	}
	return true;
}

/* The sender is not to see the echo: its window tells it what is to be done. */
static __always_inline void take_echo(struct __sk_buff *skb, const struct segment *s)
{
	change_flags(skb, s->tcp_off, ECE_BIT, 0);
}

/* Data leaves by the recorded port of its direction, before its numbers are followed. */
__noinline int law_flow_leaves(struct __sk_buff *skb, const struct segment *s,
			       const struct fq_dir *own, const struct fq_dir *peer)
{
	const struct fq_port_law *law;
	const __u32 *observe;
	struct fq_law_flow *f;
	__u32 slot;
	bool again;

	if (!s || !own || !peer || !(own->flags & FQ_KNOWN) || !port_of(&own->out))
		return 0;
	if (is_signed(s, own))
		return 0;
	slot = own->out.slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	if (!law || !(law->law.flags & FQ_LAW_FLOWS) || law->expires_ns <= s->now)
		return 0;
	f = law_flow(s, s->dir ^ 1, own, law->law.kind);
	if (!f)
		return 0;
	again = own->flags & FQ_SEQ && (__s32)(s->seq + s->payload - own->seq_next) <= 0;
	law_sent(&law->law, f, queue_backlog(own->out.ifindex, s->now), wire_bytes(skb), s->payload,
		 common_mss(s, peer, own), again);
	/* The answer to an echo is in new data (RFC 3168 section 6.1.2). */
	if (f->answered == f->echoes || again || !(own->flags & FQ_ECN))
		return 0;
	f->answered = f->echoes;
	observe = bpf_map_lookup_elem(&observed, &slot);
	if (!observe || !*observe)
		change_flags(skb, s->tcp_off, 0, CWR_BIT);
	return 0;
}

/*
 * What the law grants the direction `peer`, bytes, at an ACK of `own`, which is not a SYN. `flight` was under way
 * before it, and n flows share the port.
 */
__noinline __u32 law_flow_grant(struct segment *s, const struct fq_dir *own,
				const struct fq_dir *peer, __u32 flight, __u32 n)
{
	struct fq_law_ack in = {};
	struct fq_law_state *state;
	struct fq_port_law *law;
	__u32 slot, window, reductions;
	struct fq_law_flow *f;

	if (!s || !own || !peer)
		return FQ_NO_WINDOW;
	slot = peer->out.slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	if (!law || !state)
		return FQ_NO_WINDOW;
	f = law_flow(s, s->dir, peer, law->law.kind);
	if (!f)
		return FQ_NO_WINDOW;
	s->echo_met = own->flags & FQ_ECN && s->ecn & TCP_ECE;
	in.ack = own->ack;
	in.next = peer->seq_next;
	in.total = own->acked;
	in.flight = flight;
	in.mss = common_mss(s, own, peer);
	in.floor = floor_window(&law->law, state, n);
	in.echo = s->echo_met;
	f->echoes += in.echo;
	reductions = f->reductions;
	window = law_acked(&law->law, f, &in);
	if (f->reductions != reductions)
		ADD(state->updates, 1);
	return window;
}

#endif
