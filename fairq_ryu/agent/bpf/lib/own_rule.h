/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Whether a flow has a rule of its own. */
#ifndef FAIRQ_OWN_RULE_H
#define FAIRQ_OWN_RULE_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "parse.h"
#include "window_maps.h"

/* `dir`: the direction of its ACKs. The key has no direction afterwards. */
static __always_inline bool has_own_rule(struct segment *s, __u32 dir)
{
	const struct fq_rule *rule;

	s->key.dir = dir & 1;
	rule = bpf_map_lookup_elem(&flow_rules, &s->key);
	s->key.dir = 0;
	return rule && rule->expires_ns > s->now;
}

#endif
