/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The VLAN of a connection. Its two directions may leave by ports of different kinds: by a trunk with a tag, by an
 * access port without one. Both have the key of the same VLAN.
 */
#ifndef FAIRQ_VLAN_H
#define FAIRQ_VLAN_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"
#include "window_maps.h"

/* A segment without a tag is in the VLAN of the port by which it leaves. */
static __always_inline void set_vlan(struct segment *s, const struct fq_config *cfg, __u32 ifindex)
{
	const __u32 *vlan;

	if (!cfg->vlans || s->key.vlan)
		return;
	vlan = bpf_map_lookup_elem(&port_vlans, &ifindex);
	if (vlan)
		s->key.vlan = *vlan;
}

#endif
