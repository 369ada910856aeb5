/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What stands in the queue that a far queue is for, and the rate at which the virtual queue drains.
 *
 *   a round trip is sampled (lib/round_trips.h) -> what it took beyond the least one from that host: hidden_sample
 *   data arrives                                -> bytes; every 10 ms or more: hidden_judge
 *
 * The least excess of an interval stood in the queue throughout: bursts, and senders that take their time, only make
 * others longer. While something stands, the line is busy, and what arrives here is all that it has left for us. So
 *
 *	stands, for a run of intervals -> the rate is that of arrivals, less what empties the queue in HIDDEN_DRAIN_NS
 *	it does not                    -> the rate rises, the faster the longer nothing has stood: to base, and beyond it
 *	                                  towards the line while data arrives at the rate and the mean is below a tenth
 *	no samples                     -> base, which it rises to; it is never above
 *	every 8 s                      -> it is less for some milliseconds, so that the least round trips are seen
 *
 * Neither map nor clock: compiles for eBPF and for the host.
 */
#ifndef FAIRQ_LAW_HIDDEN_H
#define FAIRQ_LAW_HIDDEN_H

#include <linux/types.h>
#include <stdbool.h>

#include "../layout.h"
#include "arithmetic.h"

/* An interval: so long, and so many samples, or HIDDEN_WAIT_NS. */
#define HIDDEN_NS            10000000ULL
#define HIDDEN_SAMPLES       8
#define HIDDEN_WAIT_NS       100000000ULL
/* The least round trip is that of one to two such spans, << HIDDEN_SPAN_SHIFT ns. */
#define HIDDEN_SPAN_SHIFT    33
/* What stands counts from this part of the buffer on, half of what the mean may be; without a buffer, from this delay on. */
#define HIDDEN_PART          20
#define HIDDEN_UNKNOWN_NS    500000ULL
/* ... if so many bytes would have arrived meanwhile: otherwise a single sender took its time. */
#define HIDDEN_UNKNOWN_BYTES (8 * 1514)
#define HIDDEN_DRAIN_NS \
	50000000ULL /* or 16 times as long as the longest queue needs, if that is more */
/* For so long the rate of the line is believed, and that the law will empty the queue. */
#define HIDDEN_TRUST_NS  (NS_PER_S / 2)
/*
 * As often as the least round trips may be forgotten, and soon after the first arrivals, the rate is half of what arrives
 * until the longest queue has drained: whatever stood all the time was taken for a part of the path. (BBR does the same.)
 */
#define HIDDEN_PROBE_NS  (8 * NS_PER_S)
#define HIDDEN_FIRST_NS  NS_PER_S
/* What the line has left for us is taken to be this part of it at least; the rate is at most the line less a part. */
#define HIDDEN_LEAST     16
#define HIDDEN_MOST      256
/* Part of the line by which the rate rises in a second; so much more for each second in which nothing has stood, up to a
 * quarter of the line; beyond base an eighth of that. */
#define HIDDEN_RISE      100
#define HIDDEN_FASTER    4
/* What arrives while something stands is a rate after so long, or so many bytes. */
#define HIDDEN_RUN_NS    50000000ULL
#define HIDDEN_RUN_BYTES (1 << 18)

/*
 * Of a host's address, network order, and the number of its far queue: an index below FQ_LEAST. The last byte of an address
 * is the highest of its word, where a multiplication would lose it: so the halves are mixed before Knuth's.
 */
LAW_INLINE __u32 least_index(const __u32 *words, __u32 slot)
{
	__u32 hash = words[0];

	hash = hash * 31 + words[1];
	hash = hash * 31 + words[2];
	hash = hash * 31 + words[3];
	hash += slot;
	hash ^= hash >> 16;
	hash *= 2654435761U;
	hash ^= hash >> 15;
	hash *= 2654435761U;
	return hash >> 16 & (FQ_LEAST - 1);
}

/* A round trip took so long, ns: what it took beyond the least one of its host. */
LAW_INLINE __u64 least_excess(struct fq_least *l, __u32 took, __u64 now)
{
	__u32 span = now >> HIDDEN_SPAN_SHIFT, least;

	/* Another processor may be ahead. */
	if ((__s32)(span - l->span) > 0) {
		l->before = span - l->span == 1 ? l->least : 0;
		l->least = 0;
		l->span = span;
	}
	if (!l->least || took < l->least)
		l->least = law_max(took, 1);
	least = l->before ? law_min(l->least, l->before) : l->least;
	return law_less(took, least);
}

/*
 * A sample. One that no queue of this size can have delayed so much is that of a sender which took its time, or the queue is
 * larger than it was configured (hidden_widen).
 */
LAW_INLINE void hidden_sample(struct fq_hidden *h, __u64 excess)
{
	if (h->bound_ns && excess > h->bound_ns) {
		__sync_fetch_and_add(&h->beyond, 1);
		return;
	}
	if (!h->least || excess < h->least - 1)
		h->least = excess + 1;
	__sync_fetch_and_add(&h->excess_ns, excess);
	__sync_fetch_and_add(&h->samples, 1);
}

/* Whether an interval ends now. This runs with every packet, and hidden_judge() only when it is so. */
LAW_INLINE bool hidden_is_due(const struct fq_hidden *h, __u64 now)
{
	__u64 elapsed = law_less(now, h->judged_ns);

	if (elapsed < HIDDEN_NS)
		return false;
	return elapsed >= HIDDEN_WAIT_NS || h->samples - h->judged_samples >= HIDDEN_SAMPLES;
}

/*
 * All samples of this interval and of those before were beyond the bound, and segments have been lost meanwhile: a queue that
 * is full, and larger than it was configured. Senders that take their time lose nothing.
 */
LAW_INLINE void hidden_widen(struct fq_hidden *h, __u64 lost)
{
	if (!h->least) {
		if (h->lost == lost || h->beyond - h->judged_beyond < HIDDEN_SAMPLES)
			return;
		if (h->bound_ns < NS_PER_S)
			h->bound_ns = law_min(2 * h->bound_ns, NS_PER_S);
	}
	h->lost = lost;
}

/*
 * The highest rate of all intervals of the last seconds. Returns the rate at which data has arrived while the queue stood,
 * bytes/s, when that is known; 0: not now.
 */
LAW_INLINE __u64 hidden_meter(struct fq_hidden *h, __u64 arrivals, __u64 elapsed, bool stands,
			      __u64 now)
{
	__u32 span = now >> 30;
	__u64 rate;

	if (h->peak_span != span) {
		h->peak_before = span - h->peak_span == 1 ? h->peak : 0;
		h->peak = 0;
		h->peak_span = span;
	}
	h->peak = law_max(h->peak, arrivals);
	if (!stands || !h->stands) {
		h->run_ns = h->run_bytes = 0;
		return 0;
	}
	h->run_ns += elapsed;
	h->run_bytes += law_min(h->bytes, 1ULL << 34);
	if (h->run_ns < HIDDEN_RUN_NS && h->run_bytes < HIDDEN_RUN_BYTES)
		return 0;
	/* The highest rate counts: a time that is cut to whole ms would make each one too high. */
	rate = h->run_bytes * 1000000 / law_max(h->run_ns / 1000, 1);
	h->served = law_max(h->served, rate);
	h->run_ns = h->run_bytes = 0;
	return rate;
}

/*
 * It has stood for a while: what is left for us, bytes/s. Whoever has more of the line gives up more, and
 * all rise alike: several far queues behind one line come near to equal parts, as flows do (AIMD).
 */
LAW_INLINE __u64 hidden_left(const struct fq_far_queue *far, const struct fq_hidden *h,
			     __u64 arrivals, __u64 much)
{
	__u64 above = law_less(h->standing, much / 2);
	__u64 empties = law_min(above * (NS_PER_S / HIDDEN_DRAIN_NS),
				law_div((far->line >> 10) * above, far->limit) << 6);
	__u64 part_q10 = law_div(arrivals << 10, far->line);

	empties = empties * 4 * law_min(part_q10, 1 << 10) >> 10;
	return law_max(arrivals - law_min(empties, arrivals / 8), far->line / HIDDEN_LEAST);
}

/* By how much the rate rises in an interval, bytes/s. */
LAW_INLINE __u64 hidden_rise(const struct fq_far_queue *far, const struct fq_hidden *h,
			     __u64 elapsed, __u64 now)
{
	__u64 clear = law_min(law_less(now, h->since_ns), 32 * NS_PER_S);
	__u64 step = far->line / HIDDEN_RISE;

	step += law_bytes(step * HIDDEN_FASTER, clear);
	return law_bytes(law_min(step, far->line / 4), elapsed);
}

/* The rate of the virtual queue from now on, bytes/s. */
LAW_INLINE __u64 hidden_rate(const struct fq_far_queue *far, struct fq_hidden *h, __u64 arrivals,
			     __u64 served, __u64 elapsed, bool known, bool stands, __u64 now)
{
	__u64 much = far->limit / HIDDEN_PART, rate = h->rate, step;
	__u64 top = law_max(far->base, far->line - far->line / HIDDEN_MOST);
	bool others = served < far->base - far->base / 16;

	step = hidden_rise(far, h, elapsed, now);
	if (!known) {
		if (rate >= far->base)
			h->why = FQ_HIDDEN_BLIND;
		else if (h->why != FQ_HIDDEN_FULL)
			h->why = FQ_HIDDEN_OTHERS;
		return law_min(rate + step, far->base);
	}
	if (stands) {
		if (!served)
			return rate;
		h->why = others ? FQ_HIDDEN_OTHERS : FQ_HIDDEN_FULL;
		/* All that the line carries comes here: the virtual queue has it, and the law lowers windows. */
		if (!others && now - h->since_ns < HIDDEN_TRUST_NS)
			return far->base;
		return law_min(hidden_left(far, h, served, much), far->base);
	}
	if (rate < far->base) {
		/* What has come was left for us. */
		rate = law_max(rate + step, arrivals - arrivals / 8);
		rate = law_min(rate, far->base);
		if (rate == far->base)
			h->why = FQ_HIDDEN_SHARE;
		return rate;
	}
	if (h->mean >= 2 * much)
		rate = law_max(law_less(rate, step), far->base);
	else if (arrivals >= rate - rate / 8)
		rate = law_min(rate + step / 8, top);
	h->why = rate == far->base ? FQ_HIDDEN_SHARE : FQ_HIDDEN_RAISED;
	return rate;
}

/* Whether the rate is lowered so that the queue is empty for a moment. */
LAW_INLINE bool hidden_probes(struct fq_hidden *h, __u64 now)
{
	if (now - h->probed_ns >= HIDDEN_PROBE_NS)
		h->probed_ns = now;
	return now - h->probed_ns < law_min(law_max(2 * h->bound_ns, 1), HIDDEN_WAIT_NS);
}

/* A rate as in fq_queue.drain; at least the smallest, unless it is 0. */
LAW_INLINE __u64 hidden_drain(__u64 rate)
{
	return rate ? law_max(((rate << FQ_DRAIN_SHIFT) + NS_PER_S / 2) / NS_PER_S, 1) : 0;
}

/* No queue of this size delays a sample longer, ns; 0: nobody knows. */
LAW_INLINE __u64 hidden_bound(__u64 line, __u32 limit)
{
	return law_div((__u64)2 * limit * NS_PER_S, line);
}

/* Nothing is known of the queue: at the beginning, and when nothing has arrived for long. */
LAW_INLINE void hidden_begin(const struct fq_far_queue *far, struct fq_hidden *h)
{
	h->line = far->line;
	h->base = far->base;
	h->limit = far->line ? far->limit : 0;
	h->rate = far->base;
	h->drain = hidden_drain(far->base);
	h->bound_ns = hidden_bound(far->line, far->limit);
	h->why = far->line ? FQ_HIDDEN_BLIND : FQ_HIDDEN_UNKNOWN;
}

/*
 * The agent has changed what is known of the line: a lease has moved, or the rate was found. What others have of the line
 * they still have.
 */
LAW_INLINE void hidden_change(const struct fq_far_queue *far, struct fq_hidden *h)
{
	bool others = h->line && far->line && h->rate < h->base;
	__u64 kept = law_div((h->rate >> 10) * (far->line >> 10), h->line >> 10) << 10;
	__u64 bound = h->bound_ns, own = hidden_bound(h->line, h->limit);
	__u32 why = h->why;

	hidden_begin(far, h);
	h->served = 0;
	/* A lease has moved: it is the same queue, and if that was found to be larger, it still is. */
	if (law_less(h->bound_ns, own) + law_less(own, h->bound_ns) <= own / 16)
		h->bound_ns = law_max(h->bound_ns, bound);
	if (!others || kept >= far->base)
		return;
	h->rate = law_max(kept, far->line / HIDDEN_LEAST);
	h->drain = hidden_drain(h->rate);
	h->why = why;
}

/* It is due: judge the interval that ends now. `lost`: segments that the queue has dropped, all in all, as gaps show. */
LAW_INLINE void hidden_judge(const struct fq_far_queue *far, struct fq_hidden *h, __u64 lost,
			     __u64 now)
{
	__u64 elapsed = law_less(now, h->judged_ns), samples = h->samples - h->judged_samples;
	__u64 arrivals, served, speed, least = h->least, force;
	bool stands;

	if (h->line != far->line || h->base != far->base || (far->line && h->limit != far->limit))
		hidden_change(far, h);
	/* Nothing arrived for long: neither is that a rate, nor are the samples those of now. */
	if (elapsed > NS_PER_S) {
		hidden_begin(far, h);
		h->stands = h->probes = 0;
		h->since_ns = now;
		h->probed_ns = now - HIDDEN_PROBE_NS + HIDDEN_FIRST_NS;
		h->lost = lost;
		goto restart;
	}
	hidden_widen(h, lost);
	/* Of an interval of a second at most: it fits. */
	arrivals = law_min(h->bytes, 1ULL << 34) * NS_PER_S / elapsed;
	speed = far->line ? far->line : arrivals;
	h->standing = law_min(least ? law_bytes(speed, law_min(least - 1, NS_PER_S)) : 0, MAX_POOL);
	h->mean = law_min(law_bytes(speed, law_div(h->excess_ns - h->judged_excess, samples)),
			  MAX_POOL);
	stands = least &&
		 (far->limit ? h->standing > far->limit / HIDDEN_PART
			     : least > HIDDEN_UNKNOWN_NS && h->standing > HIDDEN_UNKNOWN_BYTES);
	/* What arrived while the rate was lowered says nothing about what is left for us. */
	if (h->probes) {
		h->run_ns = h->run_bytes = 0;
		if (h->stands)
			h->since_ns = now;
		stands = h->stands = 0;
	}
	served = hidden_meter(h, arrivals, elapsed, stands, now);
	if (stands != h->stands) {
		h->stands = stands;
		h->since_ns = now;
	}
	if (far->line) {
		if (!h->probes)
			h->rate =
				hidden_rate(far, h, arrivals, served, elapsed, least, stands, now);
		force = h->rate;
		if (!h->probes)
			h->probe_rate = law_max(law_min(force, arrivals) / 2, 1);
		h->probes = hidden_probes(h, now);
		if (h->probes)
			force = h->probe_rate;
		h->drain = hidden_drain(force);
	}
restart:
	h->judged_ns = now;
	h->judged_samples = h->samples;
	h->judged_excess = h->excess_ns;
	h->judged_beyond = h->beyond;
	h->least = 0;
	h->bytes = 0;
}

#endif
