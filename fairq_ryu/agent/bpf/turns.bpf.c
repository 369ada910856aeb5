// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The turns program: tc egress on ports whose law has FQ_LAW_TURNS, before the window program.
 *
 *   SYN or SYN-ACK -> has the port room for its sender's first window?
 *       yes, or it has waited -> the first window is expected; it leaves
 *       no                    -> the ring buffer "held" -> the agent, which sends it again when there is room
 *       a flood uses up the allowance of incomplete handshakes (turns.h) -> it leaves
 *
 * A packet that has waited for long leaves before its turn (FQ_TURN_CLOSED): a rule of the agent closes its sender's
 * window until then.
 *
 * Where the port itself has no turns, those of its far queue apply: then the data that is expected arrives by the port,
 * in the other direction of the connection. Queues are known by their ids (FQ_FAR).
 *
 * It runs before the window program, so that program sees a packet once, when it leaves. The time for which a
 * SYN-ACK has waited is in the mark with which the agent sends it; the time of the SYN that it answers is shifted
 * by it, so that the round-trip time is that of the network.
 *
 * Fails open: a packet leaves if the agent is gone, the ring buffer is full, the law has no lease, or the flow has
 * a rule of its own. A signed one (TCP-MD5, TCP-AO) leaves too: no window of its connection could be closed or opened.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "layout.h"
#include "lib/queue_map.h"
#include "lib/window_maps.h"

#include "lib/parse.h"

#include "laws/turns.h"
#include "lib/activity.h"
#include "lib/captured.h"
#include "lib/own_rule.h"
#include "lib/sequence.h"
#include "lib/vlan.h"

/* By id. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_turns);
} turns SEC(".maps");

/* By id, as above. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_turn_port);
} turn_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_turn_agent);
} turn_agent SEC(".maps");

/* Room for about three thousand packets. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} held SEC(".maps");

enum { NO_ROOM, HAS_ROOM, FLOODED };

/* Whether the port has room for the first window of one more flow. Updates t->first, floor and hold_ns. */
__noinline int has_room(struct fq_turns *t, __u32 slot, __u32 id, __u64 now)
{
	struct fq_room room = {};
	struct fq_law_state *state;
	struct fq_port_law *law;
	struct fq_config *cfg;
	struct fq_port *port;
	__u32 zero = 0, epoch, young;

	if (!t)
		return HAS_ROOM;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	port = port_in(slot, id);
	cfg = bpf_map_lookup_elem(&config, &zero);
	if (!law || !state || !port || !cfg || !cfg->bucket_ns)
		return HAS_ROOM;
	epoch = now / cfg->bucket_ns;
	room.flows = counted_flows(port, SHARING, epoch);
	young = law->law.young_bytes ? counted_flows(port, YOUNG, epoch) : 0;
	t->first = turns_first_window(&law->law, state, room.flows + 1, young + 1);
	t->floor = turns_floor(&law->law, state, room.flows, young);
	t->hold_ns = turns_hold(&law->law, state);
	room.limit = law->law.limit;
	room.backlog = queue_backlog(id, now);
	/* Nothing waits in a virtual queue, which is long for long: what its law is told of stands for the one above. */
	if (id & FQ_FAR)
		room.backlog = law_min(room.backlog, state->queue);
	room.frame = turns_segment(state) + SEGMENT_HEADERS;
	room.floor = t->floor;
	room.first = t->first;
	room.expected = turns_expected(&law->law, t, now);
	room.half_open = turns_half_open(t, state, now);
	room.allowance = law->law.syn_allowance;
	if (turns_flooded(&room))
		return FLOODED;
	return turns_have_room(&room) ? HAS_ROOM : NO_ROOM;
}

/* A handshake leaves, and the first window of its flow is expected. */
__noinline int admit(struct fq_turns *t, __u32 slot, __u32 first, __u64 now)
{
	struct fq_law_state *state;
	struct fq_port_law *law;

	if (!t)
		return 0;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	if (law && state)
		turns_admit(&law->law, state, t, first, now);
	return 0;
}

/* Whether this SYN or SYN-ACK has left before. Then its flow has had its turn. */
static __always_inline bool has_left(const struct segment *s, const struct fq_flow *flow)
{
	const struct fq_dir *own;

	if (!flow)
		return false;
	own = &flow->dir[s->dir & 1];
	return own->flags & (FQ_SYN_SEEN | FQ_KNOWN) && own->isn == s->seq;
}

/* Take the time for which a SYN-ACK has waited out of the round-trip time that it will show. */
static __always_inline void shift_syn(const struct segment *s, struct fq_flow *flow, __u64 waited)
{
	struct fq_dir *peer;

	if (!flow || has_left(s, flow))
		return;
	peer = &flow->dir[(s->dir & 1) ^ 1];
	if (peer->syn_ns && acknowledges_syn(s, peer))
		peer->syn_ns += waited;
}

/* The direction of the data that waits for its turn with a packet. */
static __always_inline __u32 data_dir(const struct segment *s, __u32 id)
{
	return (s->dir ^ (id & FQ_FAR ? 1 : 0)) & 1;
}

/* Hand a packet to the agent. Returns whether the agent will have it. */
static __always_inline bool hand_over(struct __sk_buff *skb, struct segment *s, struct fq_turns *t,
				      __u32 id)
{
	struct fq_held *packet = bpf_ringbuf_reserve(&held, sizeof(*packet), 0);

	if (!packet) {
		ADD(t->full, 1);
		return false;
	}
	packet->ns = s->now;
	packet->ifindex = id;
	packet->pad = 0;
	packet->vlan_proto = skb->vlan_present ? skb->vlan_proto : 0;
	packet->vlan_tci = skb->vlan_present ? skb->vlan_tci : 0;
	s->key.dir = data_dir(s, id);
	__builtin_memcpy(&packet->key, &s->key, sizeof(packet->key));
	packet->captured = capture(skb, packet->data, FQ_TURN_BYTES);
	if (!packet->captured) {
		bpf_ringbuf_discard(packet, 0);
		return false;
	}
	bpf_ringbuf_submit(packet, 0);
	ADD(t->held, 1);
	return true;
}

SEC("classifier")
int fq_take_turns(struct __sk_buff *skb)
{
	__u32 zero = 0, id = skb->ifindex, mark = skb->mark, slot;
	struct fq_turn_agent *agent;
	const __u32 *found;
	struct fq_turn_port *port;
	struct segment s = {};
	struct fq_port_law *law;
	struct fq_config *cfg;
	struct fq_flow *flow;
	struct fq_turns *t;
	int room;

	/* A SYN without data is not longer. */
	if (skb->len > FQ_TURN_BYTES)
		return TC_ACT_UNSPEC;
	t = bpf_map_lookup_elem(&turns, &id);
	if (!t) {
		id |= FQ_FAR;
		t = bpf_map_lookup_elem(&turns, &id);
	}
	found = bpf_map_lookup_elem(&port_slots, &id);
	if (!t || !found)
		return TC_ACT_UNSPEC;
	slot = *found;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	if (!law || !(law->law.flags & FQ_LAW_TURNS))
		return TC_ACT_UNSPEC;
	if (parse(skb, &s) != OK || !s.syn || s.rst || s.fin || s.payload)
		return TC_ACT_UNSPEC;
	if (has_more_options(skb, &s))
		read_options(skb, &s);
	s.now = bpf_ktime_get_ns();
	cfg = bpf_map_lookup_elem(&config, &zero);
	if (cfg)
		set_vlan(&s, cfg, skb->ifindex);
	flow = bpf_map_lookup_elem(&flows, &s.key);
	if (mark >> FQ_TURN_SHIFT == FQ_TURN_MARK || mark >> FQ_TURN_SHIFT == FQ_TURN_CLOSED) {
		__u64 waited = (mark & ((1 << FQ_TURN_SHIFT) - 1)) * 1000ULL;

		skb->mark = 0;
		if (s.ack) {
			shift_syn(&s, flow, waited);
			shift_syn(&s, bpf_map_lookup_elem(&rivals, &s.key), waited);
		}
		if (has_room(t, slot, id, s.now) != FLOODED)
			admit(t, slot, mark >> FQ_TURN_SHIFT == FQ_TURN_MARK ? t->first : 0, s.now);
		return TC_ACT_UNSPEC;
	}
	if (law->expires_ns <= s.now || has_left(&s, flow))
		return TC_ACT_UNSPEC;
	room = has_room(t, slot, id, s.now);
	if (room == FLOODED) {
		ADD(t->full, 1);
		return TC_ACT_UNSPEC;
	}
	port = bpf_map_lookup_elem(&turn_ports, &id);
	agent = bpf_map_lookup_elem(&turn_agent, &zero);
	if ((room == NO_ROOM || (port && port->waiting)) && !s.has_signature && agent &&
	    agent->until_ns > s.now && !has_own_rule(&s, data_dir(&s, id) ^ 1) &&
	    hand_over(skb, &s, t, id))
		return TC_ACT_STOLEN;
	admit(t, slot, t->first, s.now);
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
