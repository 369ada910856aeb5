// SPDX-License-Identifier: GPL-2.0-only
#include "program.h"

#include <string.h>

#include "window.bpf.c"

#include "laws/flow_hash.h"
#include "laws/queue_law.h"
#include "lib/law_tick.h"
#include "lib/queue_law_maps.h"

#define TCP    6
#define ALWAYS (~0ULL) /* the end of a lease */

/* Beside the maps of the window program; they are maps of the same switch. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_queue_law_state);
} queue_law_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fq_flow_table);
} flow_tables SEC(".maps");

static __u64 clock_ns;
static unsigned char *bytes;
static __u32 bytes_seen;

/* What the programs call */

__u64 bpf_ktime_get_ns(void)
{
	return clock_ns;
}

/* Only laws of tenants and bridges of several transmit queues ask, which are not simulated. */
__u32 bpf_get_prandom_u32(void)
{
	__builtin_trap();
}

__u32 bpf_get_hash_recalc(struct __sk_buff *skb)
{
	__builtin_trap();
}

long bpf_skb_load_bytes(const struct __sk_buff *skb, __u32 offset, void *to, __u32 len)
{
	if ((__u64)offset + len > bytes_seen)
		return -1;
	memcpy(to, bytes + offset, len);
	return 0;
}

long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len,
			 __u64 flags)
{
	if ((__u64)offset + len > bytes_seen)
		return -1;
	memcpy(bytes + offset, from, len);
	return 0;
}

/* Simulated segments have no checksum. */
long bpf_l4_csum_replace(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to, __u64 size)
{
	return 0;
}

/* No port bounds the segments that its hosts announce. */
long bpf_check_mtu(void *ctx, __u32 ifindex, __u32 *mtu, __s32 more, __u64 flags)
{
	return -1;
}

/* What an agent does */

void sim_switch_begin(__u64 bucket_ns)
{
	__u32 zero = 0;
	struct fq_config *cfg = bpf_map_lookup_elem(&config, &zero);

	cfg->bucket_ns = bucket_ns;
	cfg->layout = FQ_LAYOUT_VERSION;
	cfg->unify = MAX_WSCALE;
}

void sim_port_add(__u32 ifindex)
{
	struct fq_port *port = bpf_map_lookup_elem(&ports, &ifindex);
	struct fq_queue queue = {.slot = ifindex};

	if (!port)
		return;
	port->ifindex = ifindex;
	bpf_map_update_elem(&port_slots, &ifindex, &ifindex, BPF_ANY);
	bpf_map_update_elem(&queues, &ifindex, &queue, BPF_ANY);
}

int sim_law_install(__u32 ifindex, const void *law, __u32 size)
{
	struct fq_rule rule = {.expires_ns = ALWAYS, .kind = FQ_RULE_LAW, .slot = ifindex};
	struct fq_port_law made = {.expires_ns = ALWAYS};
	__u32 zero = 0;
	struct fq_config *cfg = bpf_map_lookup_elem(&config, &zero);

	if (size != sizeof(made.law))
		return -1;
	memcpy(&made.law, law, size);
	bpf_map_update_elem(&port_laws, &ifindex, &made, BPF_ANY);
	bpf_map_update_elem(&port_rules, &ifindex, &rule, BPF_ANY);
	cfg->flow_laws += !!(made.law.flags & FQ_LAW_FLOWS);
	return 0;
}

int sim_queue_law_install(__u32 ifindex, const void *law, __u32 size)
{
	struct fq_port_queue_law made = {.expires_ns = ALWAYS};

	if (size != sizeof(made.law))
		return -1;
	memcpy(&made.law, law, size);
	bpf_map_update_elem(&queue_laws, &ifindex, &made, BPF_ANY);
	return 0;
}

/* What a packet meets */

void sim_leave(__u32 ifindex, __u64 now, unsigned char *frame, __u32 seen, __u32 len)
{
	struct __sk_buff skb = {.len = len, .wire_len = len, .ifindex = ifindex};

	clock_ns = now;
	bytes = frame;
	bytes_seen = seen;
	fq_egress(&skb);
}

enum sim_verdict sim_judge(__u32 ifindex, __u64 now, __u32 len, __u32 source, __u32 destination,
			   __u32 ports_, int ect, __u32 random)
{
	const struct fq_port_queue_law *law = bpf_map_lookup_elem(&queue_laws, &ifindex);
	struct fq_queue_law_state *state = bpf_map_lookup_elem(&queue_law_states, &ifindex);
	struct fq_depth *depth = bpf_map_lookup_elem(&depths, &ifindex);
	struct fq_queue_law_input in = {
		.now_ns = now, .len = len, .random = random, .ect = ect, .segments = 1};
	struct fq_flow_table *flows_ = NULL;
	__u32 verdict;

	if (!law || !law->expires_ns || !state || !depth)
		return SIM_PASS;
	if (law->law.flags & FQ_QLAW_FLOWS)
		flows_ = bpf_map_lookup_elem(&flow_tables, &ifindex);
	in.backlog = depth->backlog;
	in.low = depth->low;
	depth->low = in.backlog;
	in.hash = flow_hash_v4(source, destination, ports_, TCP, law->law.seed);
	verdict = queue_law_judge(&law->law, state, flows_, NULL, &in);
	return verdict == FQ_DROP ? SIM_DROP : verdict == FQ_MARK ? SIM_MARK : SIM_PASS;
}

/* As the queue program at a tracepoint (queue.bpf.c). */
void sim_queue_changed(__u32 ifindex, __u64 now, __u32 backlog)
{
	struct fq_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);
	struct fq_depth *depth = bpf_map_lookup_elem(&depths, &ifindex);

	if (!queue || !depth)
		return;
	if (queue->last_ns)
		queue->byte_ns += (now - queue->last_ns) * queue->backlog;
	queue->last_ns = now;
	queue->backlog = backlog;
	depth->last_ns = now;
	depth->backlog = backlog;
	if (backlog < depth->low)
		depth->low = backlog;
	run_law(queue, ifindex);
}

struct sim_counts sim_port_counts(__u32 ifindex)
{
	const struct fq_port *port = bpf_map_lookup_elem(&ports, &ifindex);
	const struct fq_queue_law_state *state = bpf_map_lookup_elem(&queue_law_states, &ifindex);
	struct sim_counts counts = {};

	if (port) {
		counts.acks = port->acks;
		counts.lowered = port->rewritten;
		counts.handshakes = port->handshakes;
	}
	if (state) {
		counts.judged = state->counts.judged;
		counts.dropped = state->counts.dropped;
		counts.marked = state->counts.marked;
	}
	return counts;
}
