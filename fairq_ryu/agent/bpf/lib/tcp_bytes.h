/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Bytes of a TCP header, changed together with the checksum. */
#ifndef FAIRQ_TCP_BYTES_H
#define FAIRQ_TCP_BYTES_H

#include <linux/bpf.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "parse.h"

/* The word of length, reserved bits, flags and window, in host byte order. */
#define TCP_WORD           12
#define TCP_RESERVED_SHIFT 24
#define TCP_RESERVED_MASK  0x0F000000U
#define TCP_WINDOW_MASK    0xFFFFU

/*
 * Write `size` bytes, 2 or 4, at an even place of the TCP header and mend the checksum: both, or neither, because one
 * alone would corrupt the packet. A checksum that the device is to finish (CHECKSUM_PARTIAL) covers the addresses only so
 * far: the helper leaves it.
 */
static __always_inline bool write_tcp(struct __sk_buff *skb, const struct segment *s, __u32 at,
				      const void *before, const void *after, __be32 from, __be32 to,
				      const __u32 size)
{
	if (bpf_skb_store_bytes(skb, s->tcp_off + at, after, size, 0))
		return false;
	if (bpf_l4_csum_replace(skb, s->tcp_off + offsetof(struct tcphdr, check), from, to, size)) {
		bpf_skb_store_bytes(skb, s->tcp_off + at, before, size, 0);
		return false;
	}
	return true;
}

/* Change the word of reserved bits and window. */
static __always_inline bool write_tcp_word(struct __sk_buff *skb, const struct segment *s,
					   __be32 before, __u32 after)
{
	__be32 word = bpf_htonl(after);

	return word == before ||
	       write_tcp(skb, s, TCP_WORD, &before, &word, before, word, sizeof(word));
}

/* Let a SYN leave with the scale of the network. Returns whether it does. */
static __always_inline bool write_scale(struct __sk_buff *skb, const struct segment *s, __u8 scale)
{
	__u32 at = s->scale_at & ~1U;
	__u8 before[2], after[2];
	__u16 from, to;

	if (bpf_skb_load_bytes(skb, s->tcp_off + at, before, sizeof(before)))
		return false;
	after[0] = s->scale_at & 1 ? before[0] : scale;
	after[1] = s->scale_at & 1 ? scale : before[1];
	__builtin_memcpy(&from, before, sizeof(from));
	__builtin_memcpy(&to, after, sizeof(to));
	return write_tcp(skb, s, at, before, after, from, to, sizeof(to));
}

/* A window in steps of another scale, which is smaller. It is never larger. */
static __always_inline __u32 converted_window(__u32 window, __u32 scale, __u32 smaller)
{
	window = window << (scale & 15) >> (smaller & 15);
	return window < TCP_WINDOW_MASK ? window : TCP_WINDOW_MASK;
}

#endif
