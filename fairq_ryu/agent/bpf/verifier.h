/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the verifiers of older kernels and the code of newer compilers need, so that every object loads with clang 14
 * and newer on Linux 6.1 and newer. lib/flow_key.h and lib/captured.h are about the same.
 */
#ifndef FAIRQ_VERIFIER_H
#define FAIRQ_VERIFIER_H

/*
 * From here on `x` is one value in one register. Otherwise a compiler may test a copy of it, or compute it again after
 * the test, and the verifier knows the bounds of no register but the tested one. So an index is a 64-bit variable with
 * this between its assignment and the test of its bounds: a conversion after the test would again be a copy.
 */
#define ONE_REGISTER(x) asm volatile("" : "+r"(x))

#endif
