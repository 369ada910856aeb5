/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ticks of the window law of a queue, which the programs run that keep the queue. */
#ifndef FAIRQ_LAW_TICK_H
#define FAIRQ_LAW_TICK_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../laws/law.h"
#include "../layout.h"
#include "activity.h"
#include "port_maps.h"

/* Run the law of a port if it is due. One with a pool is told of a virtual queue as laws/arrivals.h says. */
static __noinline int run_law(struct fq_queue *st, __u32 ifindex)
{
	struct fq_law_input in = {};
	struct fq_law_state *state;
	struct fq_port_law *law;
	struct fq_config *cfg;
	struct fq_port *port;
	__u32 zero = 0, slot, epoch;

	if (!st)
		return 0;
	slot = st->slot;
	law = bpf_map_lookup_elem(&port_laws, &slot);
	state = bpf_map_lookup_elem(&law_states, &slot);
	in.now_ns = st->last_ns;
	if (!law || !state || law->expires_ns <= in.now_ns)
		return 0;
	if (state->last_ns && in.now_ns - state->last_ns < law->law.interval_ns)
		return 0;
	cfg = bpf_map_lookup_elem(&config, &zero);
	port = port_in(slot, ifindex);
	if (!cfg || !port || !cfg->bucket_ns)
		return 0;
	epoch = in.now_ns / cfg->bucket_ns;
	in.byte_ns = st->drain && law->law.gain_q16 ? st->arrivals.length_ns : st->byte_ns;
	in.backlog = st->backlog;
	in.flows = counted_flows(port, SHARING, epoch);
	in.young = counted_flows(port, YOUNG, epoch);
	law_tick(&law->law, state, &in);
	return 0;
}

#endif
