/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The hash of a flow, by addresses, ports and protocol: Bob Jenkins' (lookup3), as jhash_3words() of the kernel. Never
 * 0. The words are as in memory, in network byte order.
 */
#ifndef FAIRQ_FLOW_HASH_H
#define FAIRQ_FLOW_HASH_H

#include "queue_law_common.h"

#define HASH_START  0xDEADBEEFU
#define HASH_LENGTH 12 /* bytes, of three words */

LAW_INLINE __u32 rotated(__u32 word, __u32 by)
{
	return (__u32)((__u64)word << by) | word >> (32 - by);
}

LAW_INLINE __u32 hash_words(__u32 a, __u32 b, __u32 c, __u32 seed)
{
	a += HASH_START + HASH_LENGTH + seed;
	b += HASH_START + HASH_LENGTH + seed;
	c += HASH_START + HASH_LENGTH + seed;
	c = (c ^ b) - rotated(b, 14);
	a = (a ^ c) - rotated(c, 11);
	b = (b ^ a) - rotated(a, 25);
	c = (c ^ b) - rotated(b, 16);
	a = (a ^ c) - rotated(c, 4);
	b = (b ^ a) - rotated(a, 14);
	return (c ^ b) - rotated(b, 24);
}

LAW_INLINE __u32 flow_hash_v4(__u32 source, __u32 destination, __u32 ports, __u32 protocol,
			      __u32 seed)
{
	__u32 hash = hash_words(source, destination, ports, seed + protocol);

	return hash ? hash : 1;
}

LAW_INLINE __u32 flow_hash_v6(const __u32 *source, const __u32 *destination, __u32 ports,
			      __u32 protocol, __u32 seed)
{
	__u32 hash = hash_words(source[0], source[1], source[2], seed + protocol);

	hash = hash_words(source[3], destination[0], destination[1], hash);
	hash = hash_words(destination[2], destination[3], ports, hash);
	return hash ? hash : 1;
}

#endif
