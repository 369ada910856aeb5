/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program of the switch (fairq_ryu/agent/bpf/window.bpf.c), its window laws and its queue laws, compiled for the
 * simulator. What an agent does for them is done here: it gives each port a slot, and installs rules and laws.
 *
 * Times are ns, and never 0. A port has an ifindex from 1 on, which is its slot as well.
 */
#ifndef SIMULATOR_PROGRAM_H
#define SIMULATOR_PROGRAM_H

#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sim_verdict { SIM_PASS, SIM_DROP, SIM_MARK };

struct sim_counts {
	__u64 acks;       /* whose data leaves by the port, and that met its law */
	__u64 lowered;    /* of these, lowered */
	__u64 handshakes; /* that the port has seen */
	__u64 judged;     /* packets, by the queue law */
	__u64 dropped;    /* of these */
	__u64 marked;
};

/* Of the switch whose maps are in use (maps.h). `bucket_ns`: an eighth of the agent's active_timeout. */
void sim_switch_begin(__u64 bucket_ns);
void sim_port_add(__u32 ifindex);
/* An fq_law or an fq_queue_law of `size` bytes, as an agent puts it into the maps. 0; -1: it has another size. */
int sim_law_install(__u32 ifindex, const void *law, __u32 size);
int sim_queue_law_install(__u32 ifindex, const void *law, __u32 size);

/*
 * A frame leaves by a port, at tc egress: it has `len` bytes, the first `seen` of which are at `frame`. They may be
 * changed.
 */
void sim_leave(__u32 ifindex, __u64 now, unsigned char *frame, __u32 seen, __u32 len);
/* The verdict of the port's queue law on it, as it is about to enter the queue. */
enum sim_verdict sim_judge(__u32 ifindex, __u64 now, __u32 len, __u32 source, __u32 destination,
			   __u32 ports, int ect, __u32 random);
/* A packet has entered or left the queue of the port, which has this backlog now, bytes: its law may tick. */
void sim_queue_changed(__u32 ifindex, __u64 now, __u32 backlog);

struct sim_counts sim_port_counts(__u32 ifindex);

#ifdef __cplusplus
}
#endif

#endif
