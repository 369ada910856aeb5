/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a kind of law has of its own, beside what all have: the structs NAME_law (parameters), NAME_state (of a port) and
 * NAME_flow (of a flow) of its law.h, in the place that the common structs have for it. The generated header checks that
 * they fit.
 */
#ifndef FAIRQ_LAW_OWN_H
#define FAIRQ_LAW_OWN_H

#define LAW_OWN(name, p)    ((const struct name##_law *)(p)->own)
#define LAW_STATE(name, st) ((struct name##_state *)(st)->own)
#define LAW_FLOW(name, f)   ((struct name##_flow *)(f)->own)

/*
 * The calls of the laws: comparisons, one after the other. Of a switch clang may make a jump table, which eBPF refuses.
 * `p` is the law.
 */
#define LAW_CALL(number, ...)      \
	if (p->kind == (number)) { \
		__VA_ARGS__;       \
	} else

#endif
