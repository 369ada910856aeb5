/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tenants, as ACKs and handshakes meet them: whose a flow is, how it counts, and its window (laws/tenant_share.h).
 *
 * The owner of a flow is the tenant of the host that sends its data. It is looked up once for each table of tenants.
 * Functions of their own, because the stack of their callers is full.
 */
#ifndef FAIRQ_TENANTS_H
#define FAIRQ_TENANTS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../laws/tenant_share.h"
#include "../layout.h"
#include "../verifier.h"
#include "activity.h"
#include "parse.h"
#include "places.h"
#include "port_maps.h"
#include "segment_size.h"
#include "tenant_counts.h"
#include "window_maps.h"

/* No tenants here: the law alone decides. No window is 0. */
#define NO_TENANTS 0

/* Longest prefix first. The agent writes it, and the next two. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FQ_MOST_OWNERS);
	__type(key, struct fq_owner_key);
	__type(value, __u32);
} tenant_owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FQ_TENANTS);
	__type(key, __u32);
	__type(value, struct fq_tenant);
} tenants SEC(".maps");

/* By port of a service, or FQ_PRIORITY_OF_DSCP | DSCP. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FQ_MOST_PRIORITIES);
	__type(key, __u32);
	__type(value, __u32);
} priorities SEC(".maps");

/* Of single flows, by the direction of the data. The agent writes it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FQ_MOST_ANNOUNCED);
	__type(key, struct fq_flow_key);
	__type(value, __u32);
} announced_priorities SEC(".maps");

/* By slot. The agent sets the size before it loads the program. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_port_tenants);
} port_tenants SEC(".maps");

/* What a look-up needs for a moment, for each processor: the stack has no room for it. */
struct tenant_scratch {
	struct fq_law law;
	struct fq_law_state state;
	struct fq_owner_key owner;
	struct fq_flow_key flow;
	/* Sums over the tenants of a port. */
	__u64 active; /* as in fq_port_tenants */
	__u64 one;    /* as in tenants_pool() */
	__u32 floors;
	__u32 others;
	__u32 weights;
	__u32 shortest;
	__u32 since; /* the ACK before this one, as in fq_dir.under_way_us */
	/* Found for the places of a direction, port and far queue: windows, and the slots that they are of. */
	__u32 window[2];
	__u32 slot[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tenant_scratch);
} tenant_scratch SEC(".maps");

static const struct fq_tenant_port new_tenant_port;

static __always_inline struct tenant_scratch *scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tenant_scratch, &zero);
}

/* The number of the table of tenants in force; 0: none. */
static __always_inline __u32 tenants_in_force(__u64 now)
{
	__u32 zero = 0;
	const struct fq_config *cfg = bpf_map_lookup_elem(&config, &zero);

	return cfg && cfg->tenants_ns > now ? cfg->tenants : 0;
}

static __always_inline __u32 weight_of(__u32 tenant)
{
	const struct fq_tenant *t = bpf_map_lookup_elem(&tenants, &tenant);

	return t && t->weight ? t->weight : 1;
}

static __always_inline __u32 priority_by(__u32 key)
{
	const __u32 *found = bpf_map_lookup_elem(&priorities, &key);

	return found ? *found : 0;
}

/* Priority of the flow by announcement, else by the port of the service, else by DSCP. */
static __always_inline __u32 priority_of(const struct segment *s, const struct fq_dir *d, __u32 dir,
					 struct fq_flow_key *flow)
{
	const __u32 *announced;
	__u32 found;

	__builtin_memcpy(flow, &s->key, sizeof(*flow));
	flow->dir = dir;
	announced = bpf_map_lookup_elem(&announced_priorities, flow);
	if (announced)
		return *announced;
	found = priority_by(bpf_ntohs(s->key.lo_port));
	if (!found)
		found = priority_by(bpf_ntohs(s->key.hi_port));
	if (!found)
		found = priority_by(FQ_PRIORITY_OF_DSCP | d->dscp);
	return found ? found : FQ_PRIORITY;
}

#define UNDER_WAY_SHIFT 10 /* fq_dir.under_way_us */

/*
 * Data leaves, before its numbers are followed. It shows the DSCP of its direction, which decides its priority. What is
 * sent again begins to be under way again: waiting for a timeout is no reason for a larger share.
 */
static __always_inline void tenant_data_leaves(const struct segment *s, struct fq_dir *own,
					       const struct fq_dir *peer)
{
	if (own->seq_next == peer->ack || (__s32)(s->seq + s->payload - own->seq_next) <= 0)
		own->under_way_us = s->now >> UNDER_WAY_SHIFT;
	if (own->dscp == s->dscp)
		return;
	own->dscp = s->dscp;
	own->owner = 0; /* look both up again */
}

/* The tenant of a direction by a table; `dir`: which direction it is, 0 from lo to hi. */
__noinline __u32 owner_of(const struct segment *s, struct fq_dir *d, __u32 dir, __u32 table)
{
	struct tenant_scratch *own = scratch();
	const __u32 *found;
	__u32 tenant = 0;

	if (!s || !d || !own)
		return 0;
	if (d->owner >> 8 == (table & 0xFFFFFF))
		return d->owner & 0xFF;
	own->owner.bits = FQ_OWNER_BITS;
	own->owner.family = s->key.family;
	__builtin_memset(own->owner.addr, 0, sizeof(own->owner.addr));
	if (s->key.family == 4)
		__builtin_memcpy(own->owner.addr, dir ? s->key.hi_addr + 12 : s->key.lo_addr + 12,
				 4);
	else if (dir)
		__builtin_memcpy(own->owner.addr, s->key.hi_addr, 16);
	else
		__builtin_memcpy(own->owner.addr, s->key.lo_addr, 16);
	found = bpf_map_lookup_elem(&tenant_owners, &own->owner);
	if (found)
		tenant = *found & (FQ_TENANTS - 1);
	d->priority = priority_of(s, d, dir, &own->flow);
	d->owner = table << 8 | tenant;
	return tenant;
}

/* The entry of a tenant at a port, made if there is none; NULL: there is no room. */
static __always_inline struct fq_tenant_port *tenant_here(__u32 slot, __u32 tenant)
{
	struct fq_port_tenants *all = bpf_map_lookup_elem(&port_tenants, &slot);
	struct fq_tenant_key key = {.slot = slot, .tenant = tenant};
	struct fq_tenant_port *at = tenant_at(slot, tenant);
	__u64 bit = 1ULL << (tenant & (FQ_TENANTS - 1));

	if (!all)
		return NULL;
	if (!at && !bpf_map_update_elem(&tenant_ports, &key, &new_tenant_port, BPF_NOEXIST))
		at = tenant_at(slot, tenant);
	/* Also where the entry was made while the agent cleared the slot. */
	if (at && !(all->present & bit))
		__sync_fetch_and_or(&all->present, bit);
	if (!at)
		ADD(all->left_out, 1);
	return at;
}

/* What a tenant weighs at a port. */
__noinline __u32 weight_at(__u32 slot, __u32 tenant)
{
	const struct fq_port_tenants *all = bpf_map_lookup_elem(&port_tenants, &slot);
	const struct fq_law_state *state = bpf_map_lookup_elem(&law_states, &slot);
	const struct fq_tenant_port *at = tenant_at(slot, tenant);

	if (!all || !state || !at)
		return 1;
	return tenant_weighs(weight_of(tenant), tenant_time(state, at->under_way, at->moved),
			     all->shortest);
}

/* The tenants of a port whose flows use their windows: add one to the sums in scratch. */
__noinline int sum_weight(__u32 slot, __u32 tenant, __u32 epoch, __u64 now)
{
	const struct fq_law_state *state = bpf_map_lookup_elem(&law_states, &slot);
	struct fq_tenant_port *at = tenant_at(slot, tenant);
	struct tenant_scratch *sum = scratch();
	__u32 time;

	if (!state || !at || !sum || !tenant_count(at, TENANT_FLOWS, epoch))
		return 0;
	if (law_less(now, at->halved_ns) >= MOVED_HALF_NS) {
		at->halved_ns = now;
		at->under_way /= 2;
		at->moved /= 2;
	}
	time = tenant_time(state, at->under_way, at->moved);
	if (time && (!sum->shortest || time < sum->shortest))
		sum->shortest = time;
	sum->active |= 1ULL << (tenant & (FQ_TENANTS - 1));
	sum->weights += weight_at(slot, tenant);
	return 0;
}

/* ... and what one of these needs, with the weights of all. */
__noinline int sum_need(__u32 slot, __u32 tenant, __u32 epoch)
{
	const struct fq_law_state *state = bpf_map_lookup_elem(&law_states, &slot);
	struct fq_tenant_port *at = tenant_at(slot, tenant);
	struct tenant_scratch *sum = scratch();
	__u32 n, weight = weight_at(slot, tenant);
	__u64 need;

	if (!state || !at || !sum)
		return 0;
	n = tenant_count(at, TENANT_FLOWS, epoch);
	need = tenant_need(state, 1, n, weight, sum->weights);
	sum->one = law_max(sum->one, need);
	if (need > state->pool >> POOL_SHIFT)
		sum->floors += n;
	else
		sum->others += weight;
	return 0;
}

/* Work out which tenants share a port, and what: once in an interval of its law. */
__noinline int share_out(__u32 slot, __u32 epoch, __u64 now)
{
	struct fq_port_tenants *all = bpf_map_lookup_elem(&port_tenants, &slot);
	const struct fq_law_state *state = bpf_map_lookup_elem(&law_states, &slot);
	const struct fq_port_law *law = bpf_map_lookup_elem(&port_laws, &slot);
	struct tenant_scratch *sum = scratch();
	__u64 wanted;

	if (!all || !state || !law || !sum)
		return 0;
	if (all->worked_ns && law_less(now, all->worked_ns) < law->law.interval_ns)
		return 0;
	all->worked_ns = now;
	sum->active = sum->one = 0;
	sum->weights = sum->floors = sum->others = sum->shortest = 0;
	wanted = all->present;
	for (__u32 i = 0; i < FQ_TENANTS; i++)
		if (wanted >> i & 1)
			sum_weight(slot, i, epoch, now);
	wanted = sum->active;
	for (__u32 i = 0; i < FQ_TENANTS; i++)
		if (wanted >> i & 1)
			sum_need(slot, i, epoch);
	all->active = sum->active;
	all->weights = sum->weights;
	all->pool =
		tenants_pool(&law->law, state, sum->one, sum->floors, sum->weights, sum->others);
	all->shortest = sum->shortest;
	return 0;
}

/*
 * How a direction counts for its tenant at this ACK. `flight`: what it had under way; `uses`: it uses its window, or is
 * new. One that did so lately still counts as one that does.
 */
static __always_inline void count_for_tenant(struct fq_place *place, const struct fq_dir *d,
					     __u32 tenant, bool uses, bool young, __u32 flight,
					     __u32 epoch)
{
	bool known = place->tenant == tenant && is_recent(place->tenant_epoch, epoch);
	__u32 counts = FQ_COUNTS_SHARING | (young ? FQ_COUNTS_YOUNG : 0), amount = d->priority;

	if (!uses) {
		if (known && place->counts & FQ_COUNTS_SHARING)
			return;
		counts = FQ_COUNTS_QUIET;
		amount = law_min(flight / FQ_QUIET_UNIT, 1 << 20);
	}
	if (known && place->counts == counts && place->amount == amount &&
	    place->tenant_epoch == epoch)
		return;
	enter_tenant(place, tenant, counts, amount, epoch);
}

/* A direction begins, and shares its places from now on: with the SYN-ACK. `dir`: as in owner_of(). */
__noinline int tenant_direction_began(const struct segment *s, struct fq_dir *d, __u32 dir)
{
	__u32 table, tenant;

	if (!s || !d)
		return 0;
	table = tenants_in_force(s->now);
	if (!table)
		return 0;
	tenant = owner_of(s, d, dir, table);
	for (int far = 0; far < 2; far++) {
		struct fq_place *place = far ? &d->far : &d->out;
		const struct fq_port_law *law;
		__u32 slot = place->slot;

		law = port_of(place) ? bpf_map_lookup_elem(&port_laws, &slot) : NULL;
		if (!law || law->expires_ns <= s->now || !(law->law.flags & FQ_LAW_TENANTS) ||
		    !tenant_here(slot, tenant))
			continue;
		place->credited = 0;
		count_for_tenant(place, d, tenant, true, d->bytes < law->law.young_bytes, 0,
				 s->epoch);
	}
	return 0;
}

/* A number that differs between flows, and every few milliseconds; << 16, below 1. */
static __always_inline __u32 draw_of(const struct fq_dir *d, __u64 now)
{
	__u32 mixed = (d->isn + (__u32)(now >> 23)) * 0x9E3779B1U;

	return mixed >> 16;
}

/* The direction `peer` counts at a place with a law for tenants, at an ACK. Returns whether it has one. */
__noinline int tenant_counts(const struct segment *s, struct fq_dir *peer, struct fq_place *place,
			     __u32 table)
{
	const struct fq_port_law *law;
	__u32 slot, tenant;
	bool uses;

	if (!s || !peer || !place)
		return 0;
	slot = place->slot;
	law = port_of(place) ? bpf_map_lookup_elem(&port_laws, &slot) : NULL;
	if (!law || law->expires_ns <= s->now || !(law->law.flags & FQ_LAW_TENANTS))
		return 0;
	tenant = owner_of(s, peer, s->dir ^ 1, table);
	if (!tenant_here(slot, tenant))
		return 0;
	/* As the law has counted it at the ACK before this one. */
	uses = !place->granted || is_recent(place->sharing_epoch, s->epoch);
	if (!(peer->flags & (FQ_FIN | FQ_RST)))
		count_for_tenant(place, peer, tenant, uses, peer->bytes < law->law.young_bytes,
				 s->flight, s->epoch);
	return 1;
}

/*
 * What an ACK of `own` acknowledges, and how long it and the rest were under way, count for the tenant of `peer`. Only
 * between here and the receiver: of the way to the sender there is its handshake, which it may answer as late as it likes.
 */
__noinline int credit_tenant(const struct segment *s, const struct fq_dir *own,
			     const struct fq_dir *peer, const struct fq_place *place)
{
	const struct tenant_scratch *found = scratch();
	struct fq_tenant_port *at;
	__u32 moved, time = 0;

	if (!s || !own || !peer || !place || !found)
		return 0;
	at = tenant_at(place->slot, peer->owner & (FQ_TENANTS - 1));
	if (!at)
		return 0;
	/*
	 * Not what was acknowledged while nobody counted for tenants, and no FIN that is taken back after it was credited:
	 * an ACK acknowledges no more than was under way.
	 */
	moved = law_min((__u32)own->acked - place->credited, s->flight);
	if (moved)
		ADD(at->bytes, moved);
	if (!(place->counts & FQ_COUNTS_SHARING))
		return 0;
	if (found->since)
		time = law_min((__u32)(s->now >> UNDER_WAY_SHIFT) - found->since, MOST_TIME);
	ADD(at->under_way, (__u64)s->flight * time);
	ADD(at->moved, moved);
	return 0;
}

/*
 * What the tenant of the direction `peer` leaves it at a place, where tenant_counts() has counted it, at an ACK of
 * `own`: bytes, or FQ_NO_WINDOW; NO_TENANTS: what the law grants alone.
 */
__noinline __u32 tenant_grant(const struct segment *s, const struct fq_dir *own,
			      const struct fq_dir *peer, struct fq_place *place)
{
	struct tenant_scratch *copy = scratch();
	const struct fq_port_tenants *all;
	const struct fq_law_state *state;
	const struct fq_port_law *law;
	struct fq_tenant_port *at;
	__u32 slot, tenant, weight, weights, n, shares, young = 0, part, mss, window;
	__u64 quiet;

	if (!s || !own || !peer || !place || !copy)
		return NO_TENANTS;
	tenant = peer->owner & (FQ_TENANTS - 1);
	slot = place->slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	all = bpf_map_lookup_elem(&port_tenants, &slot);
	at = tenant_at(slot, tenant);
	if (!law || !state || !all || !at)
		return NO_TENANTS;
	__builtin_memcpy(&copy->law, &law->law, sizeof(copy->law));
	__builtin_memcpy(&copy->state, state, sizeof(copy->state));
	n = tenant_count(at, TENANT_FLOWS, s->epoch);
	shares = tenant_count(at, TENANT_SHARES, s->epoch);
	if (copy->law.young_bytes)
		young = tenant_count(at, TENANT_YOUNG, s->epoch);
	quiet = tenant_count(at, TENANT_QUIET, s->epoch);
	if (!is_recent(place->tenant_epoch, s->epoch) || !(place->counts & FQ_COUNTS_SHARING)) {
		n++;
		shares += peer->priority;
		young += peer->bytes < copy->law.young_bytes;
		if (is_recent(place->tenant_epoch, s->epoch))
			quiet = law_less(quiet, place->amount);
	}
	weight = weight_at(slot, tenant);
	weights = all->weights;
	if (!(all->active >> tenant & 1))
		weights += weight;
	part = law_min(law_div((__u64)weight << 16, weights), 1 << 16);
	at->part_q16 = part;
	at->pool = (__u64)all->pool * part >> 16;
	at->last_ns = s->now;
	ADD(at->acks, 1);
	if (place->granted)
		credit_tenant(s, own, peer, place);
	place->credited = own->acked;
	mss = common_mss(s, own, peer);
	tenant_port(&copy->law, &copy->state, part, all->pool, quiet * FQ_QUIET_UNIT, n);
	window = tenant_window(&copy->law, &copy->state, n, young, peer->priority, shares,
			       peer->bytes, mss);
	if (window == FQ_NO_WINDOW)
		return window;
	if ((__u64)n * mss > law_less(at->pool, quiet * FQ_QUIET_UNIT))
		ADD(at->floored, 1);
	return whole_segments(window, mss, draw_of(peer, s->now), 1U << scale_of(s, own, peer));
}

/* Places of a direction, as bits. */
#define AT_OUT 1
#define AT_FAR 2

/*
 * Work out what the tenant of the direction `peer` leaves it at these places, at an ACK of `own`, before the laws of the
 * places are asked (tenant_window_at()). Here, because below place_steps() the stack has no room for it.
 */
__noinline int tenant_shares(const struct segment *s, const struct fq_dir *own, struct fq_dir *peer,
			     __u32 places)
{
	struct tenant_scratch *found = scratch();
	__u32 table;

	if (!s || !own || !peer || !found)
		return 0;
	found->window[0] = found->window[1] = NO_TENANTS;
	table = tenants_in_force(s->now);
	/* What no rule can lower takes no share, as place_steps() has it. */
	if (!table || is_signed(s, own) || has_unknown_scale(s, own))
		return 0;
	found->since = peer->under_way_us;
	peer->under_way_us = s->now >> UNDER_WAY_SHIFT;
	for (int far = 0; far < 2; far++) {
		struct fq_place *place = far ? &peer->far : &peer->out;

		if (!(places & (far ? AT_FAR : AT_OUT)) || !tenant_counts(s, peer, place, table))
			continue;
		share_out(place->slot, s->epoch, s->now);
		found->slot[far] = place->slot;
		found->window[far] = tenant_grant(s, own, peer, place);
	}
	return 0;
}

/* What tenant_shares() has found for the place in a slot. */
static __always_inline __u32 tenant_window_at(__u32 slot)
{
	const struct tenant_scratch *found = scratch();

	if (!found)
		return NO_TENANTS;
	for (int far = 0; far < 2; far++)
		if (found->window[far] != NO_TENANTS && found->slot[far] == slot)
			return found->window[far];
	return NO_TENANTS;
}

#endif
