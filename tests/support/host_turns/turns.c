// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The turns program for the host: a world of one port and one connection, and one packet at a time. */
#include <string.h>

#include "turns.bpf.c"

#define PORT 7 /* ifindex */

struct world {
	struct fq_port port;
	struct fq_port_law law;
	struct fq_law_state state;
	struct fq_queue queue;
	struct fq_queue_check check;
	struct fq_config config;
	struct fq_turns turns;
	struct fq_turn_port turn_port;
	struct fq_turn_agent agent;
	struct fq_flow_key key; /* of flow and rival */
	struct fq_flow flow;
	struct fq_flow rival;
	struct fq_flow_key rule_key;
	struct fq_rule rule;
	struct fq_held held; /* the last packet that was handed over */
	__u64 now;
	__u32 slot;
	__u32 known;     /* 1: flow and rival are in the maps */
	__u32 ring_full; /* 1 */
	__u32 submitted; /* packets that were handed over */
};

static struct fq_held reserved;
static struct world *world;
static const __u8 *frame;
static __u32 frame_len;

static void *entry(__u32 key, __u32 wanted, void *value)
{
	return key == wanted ? value : NULL;
}

static void *of_flow(const void *key, const struct fq_flow_key *wanted, void *value)
{
	return memcmp(key, wanted, sizeof(*wanted)) ? NULL : value;
}

void *bpf_map_lookup_elem(const void *map, const void *key)
{
	__u32 index;

	memcpy(&index, key, sizeof(index));
	if (map == &config)
		return entry(index, 0, &world->config);
	if (map == &turn_agent)
		return entry(index, 0, &world->agent);
	if (map == &port_slots)
		return entry(index, PORT, &world->slot);
	if (map == &queues)
		return entry(index, PORT, &world->queue);
	if (map == &queue_checks)
		return entry(index, PORT, &world->check);
	if (map == &turns)
		return entry(index, PORT, &world->turns);
	if (map == &turn_ports)
		return entry(index, PORT, &world->turn_port);
	if (map == &ports)
		return entry(index, world->slot, &world->port);
	if (map == &port_laws)
		return entry(index, world->slot, &world->law);
	if (map == &law_states)
		return entry(index, world->slot, &world->state);
	if (map == &flow_rules)
		return of_flow(key, &world->rule_key, &world->rule);
	if (map == &flows && world->known)
		return of_flow(key, &world->key, &world->flow);
	if (map == &rivals && world->known)
		return of_flow(key, &world->key, &world->rival);
	return NULL;
}

long bpf_map_update_elem(const void *map, const void *key, const void *value, __u64 flags)
{
	__builtin_trap(); /* it writes no map */
}

long bpf_map_delete_elem(const void *map, const void *key)
{
	__builtin_trap();
}

__u64 bpf_ktime_get_ns(void)
{
	return world->now;
}

long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len)
{
	if ((__u64)offset + len > frame_len)
		return -1;
	memcpy(to, frame + offset, len);
	return 0;
}

void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags)
{
	return world->ring_full ? NULL : &reserved;
}

void bpf_ringbuf_submit(void *data, __u64 flags)
{
	world->held = reserved;
	world->submitted++;
}

void bpf_ringbuf_discard(void *data, __u64 flags)
{
}

/* A packet leaves by an interface. Returns the verdict, and the packet's mark afterwards. */
int host_take_turns(struct world *w, const __u8 *packet, __u32 len, __u32 ifindex, __u32 *mark)
{
	struct __sk_buff skb = {.len = len, .ifindex = ifindex, .mark = *mark};
	int verdict;

	world = w;
	frame = packet;
	frame_len = len;
	verdict = fq_take_turns(&skb);
	*mark = skb.mark;
	return verdict;
}
