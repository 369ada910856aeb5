/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tenants above a law with a pool: each has its part of the port, w / W of pool, buffer, rate and target, and the law
 * shares that out among the flows of the tenant as it would on a port of this size. So no law knows of tenants.
 *
 *   P_g = P * w_g t_g / W                 W: the sum of w t over the tenants with flows that use their windows
 *                                         S: one segment, the least window: so priorities change no part
 *   flow f of g: S + (law(P_g - what the quiet flows of g use, n_g) - S) * p_f / (mean of p over g)
 *
 * t_g is how long bytes of the tenant are under way, because windows are not rates: a rate is a window over that time.
 * It differs between tenants of one queue by their paths, and by what receivers do. Two segments in a window of 3,072
 * bytes leave room for a small third one; the receiver then acknowledges one segment when the next comes, a round later.
 *
 * A window is at least one segment. Where P is so small that this breaks the share of a tenant with many flows, P is
 * raised as far as the buffer holds it: every other tenant has more then, too, and the shares stand. Beyond that the
 * shares are broken, which is counted.
 */
#ifndef FAIRQ_TENANT_SHARE_H
#define FAIRQ_TENANT_SHARE_H

#include "law.h"

#define WEIGHT_SHIFT 8
#define MOST_TIMES   2         /* as long as the shortest */
#define MOST_TIME    (1 << 20) /* ns >> 10: longer is a pause, such as one of the lease of the table */
#define LEAST_MOVED  8         /* segments: fewer say nothing */
#define MOVED_HALF_NS \
	NS_PER_S /* long, so that a pause of a host moves no share before the windows of others follow */

/* How long each of `moved` bytes was under way on average, by the sum of these times; 0: not known. */
LAW_INLINE __u32 tenant_time(const struct fq_law_state *st, __u64 under_way, __u64 moved)
{
	return moved < LEAST_MOVED * st->segment ? 0
						 : law_min(law_div(under_way, moved), MOST_TIME);
}

/* What a tenant weighs at a port, << WEIGHT_SHIFT, by this time and the shortest one of all its tenants. */
LAW_INLINE __u32 tenant_weighs(__u32 weight, __u32 time, __u32 shortest)
{
	__u64 times = law_div((__u64)time << WEIGHT_SHIFT, shortest);

	times = law_min(law_max(times, 1 << WEIGHT_SHIFT), MOST_TIMES << WEIGHT_SHIFT);
	return weight * times;
}

/*
 * The pool that gives each of n flows of a tenant `segments`, in proportion, bytes. With a sixteenth more, because windows
 * on the wire are rounded up to a step, 512 bytes with the usual scale of 9.
 */
LAW_INLINE __u64 tenant_need(const struct fq_law_state *st, __u32 segments, __u64 n, __u32 weight,
			     __u32 weights)
{
	__u64 segment = st->segment + st->segment / 16;

	return law_min(law_div(n * segments * segment * weights, weight), MAX_POOL);
}

/*
 * The pool that tenants share. `one`: what one segment for each flow needs, in proportion; `floors`: the segments of
 * the tenants whose floors exceed their parts of the law's pool; `others`: the weights of the other ones.
 */
LAW_INLINE __u32 tenants_pool(const struct fq_law *p, const struct fq_law_state *st, __u64 one,
			      __u64 floors, __u32 weights, __u32 others)
{
	__u64 pool = st->pool >> POOL_SHIFT, several = one * p->floor_segments;
	__u64 held = law_div((__u64)p->limit * st->segment, st->segment + SEGMENT_HEADERS);
	__u64 rest = law_less(held, floors * st->segment), wanted = several <= held ? several : one;

	/* What the others may have beside the floors, so that all of it fits. */
	if (wanted > held)
		wanted = others ? law_min(wanted, law_div(rest * weights, others)) : 0;
	return law_max(pool, law_min(wanted, MAX_POOL));
}

/*
 * The law on the part of the port that a tenant with n flows has; `part` << 16, the rest in bytes. Changes the copies of
 * both. A floor of several segments would break the share as one does: it applies only where the share holds it.
 */
LAW_INLINE void tenant_port(struct fq_law *p, struct fq_law_state *st, __u32 part, __u32 pool,
			    __u64 quiet, __u32 n)
{
	p->limit = (__u64)p->limit * part >> 16;
	p->target = (__u64)p->target * part >> 16;
	p->rate = p->rate * part >> 16;
	st->pool = law_less((__u64)pool * part >> 16, quiet) << POOL_SHIFT;
	/* The part is rounded down, so a byte for each flow may be missing. */
	if ((__u64)n * p->floor_segments * st->segment > (st->pool >> POOL_SHIFT) + n)
		p->floor_segments = 1;
}

/* So many segments as a window on the wire: in whole steps, not less. */
LAW_INLINE __u64 in_steps(__u64 segments, __u32 mss, __u32 step)
{
	__u64 bytes = segments * mss + step - 1;

	return bytes - bytes % law_max(step, 1);
}

/*
 * A window in whole segments, whose rest is drawn: `draw` (<< 16, below 1) decides between the two numbers of segments
 * whose windows on the wire, in steps of `step` bytes, are next to it, so that over time the flow has what it is to have.
 * Otherwise a tenant with many flows would lose or win half a segment, or half a step, for each of them. Where a step is
 * longer than a segment, in whole steps. Never less than one.
 */
LAW_INLINE __u32 whole_segments(__u32 window, __u32 mss, __u32 draw, __u32 step)
{
	__u64 unit = law_max(law_max(mss, step), 1), k = law_max(window / unit, 1), less, more;

	if (k > 1 && in_steps(k, unit, step) > window)
		k--;
	less = in_steps(k, unit, step);
	more = in_steps(k + 1, unit, step);
	if (window > less && (window - less) << 16 > (more - less) * draw)
		k++;
	return k * unit;
}

/*
 * The window of a flow of a tenant, bytes. p and st are those of tenant_port(); n of its flows use their windows, this
 * one among them, of which `young` are young; `shares` is the sum of their priorities.
 */
LAW_INLINE __u32 tenant_window(const struct fq_law *p, const struct fq_law_state *st, __u32 n,
			       __u32 young, __u32 priority, __u32 shares, __u64 sent, __u32 mss)
{
	__u64 window = law_window(p, st, n, young, sent, mss);

	if (window == FQ_NO_WINDOW)
		return FQ_NO_WINDOW;
	if ((__u64)priority * n != shares && window > mss)
		window = mss + law_div((window - mss) * priority * n, shares);
	return law_min(law_max(window, mss), MAX_POOL);
}

#endif
