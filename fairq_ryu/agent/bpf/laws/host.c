// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The laws for the host: a shared library for tests and for models of a network. */
#include "arrivals.h"
#include "hidden.h"
#include "law.h"
#include "tenant_share.h"
#include "turns.h"

int fq_host_tick(const struct fq_law *p, struct fq_law_state *st, const struct fq_law_input *in)
{
	return law_tick(p, st, in);
}

void fq_host_segment(struct fq_law_state *st, __u32 one, __u32 other, __u64 now)
{
	law_segment(st, one, other, now);
	st->seen_ns = now;
}

void fq_host_flow_began(const struct fq_law *p, struct fq_law_state *st, __u32 backlog, __u64 now)
{
	law_flow_began(p, st, backlog, now);
}

__u32 fq_host_opening(const struct fq_law *p, struct fq_law_state *st, __u32 step, __u32 flags,
		      __u32 backlog, __u64 now)
{
	return law_opening(p, st, step, flags, backlog, now);
}

void fq_host_flow_ended(const struct fq_law *p, struct fq_law_state *st)
{
	law_flow_ended(p, st);
}

__u32 fq_host_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n, __u32 young,
		     __u64 sent, __u32 mss)
{
	return law_window(p, st, n, young, sent, mss);
}

void fq_host_limited(struct fq_law_state *st, __u32 flight, __u32 granted, __u64 rtt, __u64 now)
{
	law_limited(st, flight, granted, rtt, now);
}

__u32 fq_host_released(struct fq_round *r, __u64 acked, __u32 rtt, __u64 now)
{
	return round_released(r, acked, rtt, now);
}

int fq_host_has_room(const struct fq_room *r)
{
	return turns_have_room(r);
}

__u32 fq_host_first_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			   __u32 young)
{
	return turns_first_window(p, st, n, young);
}

__u32 fq_host_floor(const struct fq_law *p, const struct fq_law_state *st, __u32 n, __u32 young)
{
	return turns_floor(p, st, n, young);
}

__u64 fq_host_hold(const struct fq_law *p, const struct fq_law_state *st)
{
	return turns_hold(p, st);
}

__u32 fq_host_expected(const struct fq_law *p, const struct fq_turns *t, __u64 now)
{
	return turns_expected(p, t, now);
}

void fq_host_admit(const struct fq_law *p, const struct fq_law_state *st, struct fq_turns *t,
		   __u64 now)
{
	turns_admit(p, st, t, t->first, now);
}

__u32 fq_host_half_open(const struct fq_turns *t, const struct fq_law_state *st, __u64 now)
{
	return turns_half_open(t, st, now);
}

void fq_host_sent(const struct fq_law *p, struct fq_law_flow *f, __u32 backlog, __u32 len,
		  __u32 payload, __u32 mss, int again)
{
	law_sent(p, f, backlog, len, payload, mss, again);
}

__u32 fq_host_acked(const struct fq_law *p, struct fq_law_flow *f, const struct fq_law_ack *in)
{
	return law_acked(p, f, in);
}

void fq_host_arrivals_count(struct fq_arrivals *a, __u64 bytes)
{
	arrivals_count(a, bytes);
}

void fq_host_arrivals_tick(const struct fq_law *p, struct fq_arrivals *a, __u64 rate, __u32 backlog,
			   __u64 now)
{
	arrivals_tick(p, a, rate, backlog, now);
}

__u32 fq_host_least_index(const __u32 *words, __u32 slot)
{
	return least_index(words, slot);
}

__u64 fq_host_least_excess(struct fq_least *l, __u32 took, __u64 now)
{
	return least_excess(l, took, now);
}

void fq_host_hidden_sample(struct fq_hidden *h, __u64 excess)
{
	hidden_sample(h, excess);
}

int fq_host_hidden_is_due(const struct fq_hidden *h, __u64 now)
{
	return hidden_is_due(h, now);
}

void fq_host_hidden_arrival(const struct fq_far_queue *far, struct fq_hidden *h, __u64 bytes,
			    __u64 lost, __u64 now)
{
	h->bytes += bytes;
	if (hidden_is_due(h, now))
		hidden_judge(far, h, lost, now);
}

/* The window of a flow of a tenant, as tenant_grant() works it out of the parts that it has counted. */
__u32 fq_host_tenant_window(const struct fq_law *p, const struct fq_law_state *st, __u32 part,
			    __u32 pool, __u64 quiet, __u32 n, __u32 young, __u32 priority,
			    __u32 shares, __u64 sent, __u32 mss)
{
	struct fq_law law = *p;
	struct fq_law_state state = *st;

	tenant_port(&law, &state, part, pool, quiet, n);
	return tenant_window(&law, &state, n, young, priority, shares, sent, mss);
}

__u32 fq_host_tenants_pool(const struct fq_law *p, const struct fq_law_state *st, __u64 one,
			   __u64 floors, __u32 weights, __u32 others)
{
	return tenants_pool(p, st, one, floors, weights, others);
}

__u64 fq_host_tenant_need(const struct fq_law_state *st, __u32 segments, __u64 n, __u32 weight,
			  __u32 weights)
{
	return tenant_need(st, segments, n, weight, weights);
}

__u32 fq_host_tenant_time(const struct fq_law_state *st, __u64 under_way, __u64 moved)
{
	return tenant_time(st, under_way, moved);
}

__u32 fq_host_tenant_weighs(__u32 weight, __u32 time, __u32 shortest)
{
	return tenant_weighs(weight, time, shortest);
}

__u32 fq_host_whole_segments(__u32 window, __u32 mss, __u32 draw, __u32 step)
{
	return whole_segments(window, mss, draw, step);
}
