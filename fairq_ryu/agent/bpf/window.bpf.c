// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The window program: where packets leave the bridge, that is at tc egress of its ports, and at tc ingress of the
 * ports that hand them to the stack of this machine.
 *
 *   frame -> parse.h -> the flow map -> sequence.h, connection.h, activity.h -> window_rule.h -> the same frame
 *                                    -> rivals.h: what does not belong to the connection
 *
 * Every TCP segment shows the port by which its flow leaves; handshakes show the window scales (RFC 7323) and
 * the MSS, or a host's shim tells the scale in each segment (told_scale.h); with unify.h no scale leaves that
 * is larger than the network's; ACKs whose data leaves by a port with a rule get a lower receive window. A
 * window is never raised, never lowered below one MSS (rounded up to a step of the scale) unless a rule says
 * 0, and never changed when the scale is not known, nor on a port that is only observed, except by a scale
 * that was told or unified. Sequence numbers, acknowledgement, window and timestamps of the last segment of
 * each direction are recorded for controllers. Controllers may ask for copies of SYN, FIN and RST
 * (segment_copy.h); only segments that are believed are copied.
 *
 * Nothing of a connection is changed whose segments are signed (TCP-MD5, TCP-AO).
 *
 * Of connections with ECN, a law with FQ_LAW_FLOWS takes ECE out of ACKs and answers it with CWR in data (law_flows.h); no other
 * field is ever changed.
 *
 * Nothing here depends on a policy. Packets are never dropped or redirected: every path ends in
 * TC_ACT_UNSPEC, which lets the filters of others run.
 */
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "lib/queue_map.h"
#include "lib/window_maps.h"

#include "lib/parse.h"

#include "lib/law_flows.h"
#include "lib/connection.h"
#include "lib/far_place.h"
#include "lib/handed_on.h"
#include "lib/on_wire.h"
#include "lib/rivals.h"
#include "lib/round_trips.h"
#include "lib/segment_copy.h"
#include "lib/told_scale.h"
#include "lib/tx_queue.h"
#include "lib/unify.h"
#include "lib/vlan.h"
#include "lib/window_rule.h"

/* `queues`: the device has several transmit queues. */
static __always_inline int on_leaving(struct __sk_buff *skb, const bool queues)
{
	struct segment s = {};
	__u32 zero = 0, ifindex = skb->ifindex;
	struct fq_config *cfg;
	struct fq_port *port;
	struct fq_flow *flow;
	struct fq_dir *own, *peer;
	enum parsed parsed = parse(skb, &s);
	bool copy, proves, fresh = false;

	hand_on_nothing(skb);
	if (queues)
		announce_leaving(NULL, 0, 0);
	if (parsed == NOT_TCP)
		return TC_ACT_UNSPEC;
	if (parsed == MALFORMED) {
		port = find_port(ifindex);
		if (port) {
			ADD(port->malformed, 1);
			port->seen_ns = bpf_ktime_get_ns();
		}
		return TC_ACT_UNSPEC;
	}
	cfg = bpf_map_lookup_elem(&config, &zero);
	if (!cfg || !cfg->bucket_ns)
		return TC_ACT_UNSPEC;
	if (has_more_options(skb, &s))
		read_options(skb, &s);
	if (s.syn)
		note_port_mss(skb, &s);
	s.now = bpf_ktime_get_ns();
	s.epoch = s.now / cfg->bucket_ns;
	if (cfg->suspects) {
		port = find_port(ifindex);
		if (port)
			port->seen_ns = s.now;
	}
	set_vlan(&s, cfg, ifindex);
	if (cfg->told && s.reserved && !s.syn)
		take_told_scale(skb, &s);

	flow = bpf_map_lookup_elem(&flows, &s.key);
	if (!flow)
		flow = new_connection(&ifindex, &s, &fresh);
	if (!flow)
		return TC_ACT_UNSPEC;
	own = &flow->dir[s.dir & 1];
	peer = &flow->dir[(s.dir & 1) ^ 1];
	if (s.syn)
		unify_syn(skb, &s, own, peer);
	if (!is_of_connection(&s, own, peer) ||
	    ((fresh || own->flags & FQ_RIVAL) && is_of_rival(&s, own, peer, fresh))) {
		bool replaced = match_rival(skb, &s, own, peer);

		/* The end of a rival is not the end of the recorded connection. */
		if (s.syn && !s.rst && (!s.ack || s.of_rival))
			copy_segment(skb, &s);
		if (!replaced) {
			/*
			 * The window of a SYN-ACK is never scaled, so it can be lowered safely. But anybody may have
			 * sent it: it says nothing about the connection.
			 */
			s.of_nobody = true;
			if (s.syn && s.ack && !s.rst)
				goto lower;
			return TC_ACT_UNSPEC;
		}
		if (s.syn)
			goto lower; /* open_connection() was called for the rival */
	}
	if (queues) {
		ifindex = tx_queue_of(skb, own, s.epoch);
		announce_leaving(&s, skb->ifindex, ifindex);
	}
	if (!s.syn && s.told)
		note_told_scale(skb, &s, own, peer);
	note_departure(ifindex, &s, wire_segments(skb), own, peer);
	copy = own->out.ifindex != ifindex;
	if (own->own_scale && !s.syn && !copy)
		unify_window(skb, &s, own, peer);
	if (cfg->far && !copy)
		note_arrivals(skb, s.epoch, own, peer);
	if (!copy)
		hand_on(skb, own->out.slot, s.now);
	if (s.rst) {
		/* It has gone on after one before: others would be charged for each. */
		if (own->flags & FQ_GOES_ON)
			return TC_ACT_UNSPEC;
		if (!(own->flags & FQ_RST))
			copy_segment(skb, &s);
		uncount(own, s.epoch);
		uncount(peer, s.epoch);
		if (!(own->flags & (FQ_FIN | FQ_RST)))
			law_direction_ended(own, s.now);
		if (!(peer->flags & (FQ_FIN | FQ_RST)))
			law_direction_ended(peer, s.now);
		set_flags(own, FQ_RST | FQ_RESETS);
		set_flags(peer, FQ_RST);
		return TC_ACT_UNSPEC;
	}
	/* Flooded or mirrored, it leaves by several ports; a controller gets it once. */
	if (s.syn && !(copy && has_sent_syn(&s, own)))
		copy_segment(skb, &s);
	if (!s.syn) {
		/* Without its handshake, this shows that the connection is signed. With it, the segment is forged. */
		if (s.has_signature && !(own->flags & FQ_KNOWN)) {
			set_flags(own, FQ_SIGNED);
			set_flags(peer, FQ_SIGNED);
		}

		__u16 ended = (own->flags & FQ_FIN) | (peer->flags & FQ_FIN) << 1;

		if (peer->flags & FQ_SEQ && own->flags & FQ_ACK)
			s.flight = peer->seq_next - own->ack;
		if (cfg->tenants && s.payload)
			tenant_data_leaves(&s, own, peer);
		if (cfg->flow_laws && s.payload && !copy)
			law_flow_leaves(skb, &s, own, peer);
		proves = (own->flags & (FQ_KNOWN | FQ_ACK)) == FQ_KNOWN;
		if (cfg->far && !copy)
			follow_round_trips(&s, own, peer);
		follow(&s, own, peer);
		if (proves && own->flags & FQ_ACK) {
			law_direction_opens(own, peer, FQ_OPENING_PROVEN, s.now);
			law_direction_opens(peer, own, FQ_OPENING_PROVEN, s.now);
		}
		if (own->flags & FQ_FIN && !(ended & FQ_FIN))
			law_direction_ended(own, s.now);
		if (peer->flags & FQ_FIN && !(ended & FQ_FIN << 1))
			law_direction_ended(peer, s.now);
		/* In sequence, or it ended the direction before: a retransmission. */
		if (s.fin && own->flags & FQ_FIN && s.seq + s.payload + 1 == own->seq_next &&
		    !(copy && ended & FQ_FIN))
			copy_segment(skb, &s);
	} else if (!s.ack) {
		if (own->flags & FQ_KNOWN) {
			if (!copy)
				own->syn_ns = 0; /* retransmitted: its answer gives no RTT */
			return TC_ACT_UNSPEC;
		}
		remember_syn(&s, own, copy);
		if (!copy)
			law_direction_opens(own, peer,
					    own->syn_ns ? FQ_OPENING_SYN : FQ_OPENING_AGAIN, s.now);
		return TC_ACT_UNSPEC;
	} else if (open_connection(&s, own, peer, copy)) {
		port = find_port(ifindex);
		if (port)
			ADD(port->handshakes, 1);
		direction_began(&s, own, peer, cfg, s.dir ^ 1);
		direction_began(&s, peer, own, cfg, s.dir);
	}
lower:
	if (s.ack && peer->out.ifindex)
		lower_window(skb, &s, queues ? ifindex : skb->ifindex, cfg, own, peer);
	return TC_ACT_UNSPEC;
}

SEC("classifier")
int fq_egress(struct __sk_buff *skb)
{
	return on_leaving(skb, false);
}

SEC("classifier")
int fq_egress_queues(struct __sk_buff *skb)
{
	return on_leaving(skb, true);
}

/* The bridge floods frames of others to such a port as well: they leave it by another one. */
SEC("classifier")
int fq_delivered(struct __sk_buff *skb)
{
	return skb->pkt_type == PACKET_OTHERHOST ? TC_ACT_UNSPEC : on_leaving(skb, false);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
