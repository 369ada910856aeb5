/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Directions enter and leave the counts of the places that they pass (activity.h). */
#ifndef FAIRQ_PLACES_H
#define FAIRQ_PLACES_H

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>

#include "../layout.h"
#include "activity.h"
#include "port_maps.h"
#include "tenant_counts.h"

/* Remove a direction from the counts of a place: it is elsewhere now, or it has a rule of its own there. */
__noinline int uncount_at(struct fq_place *place, __u32 epoch)
{
	struct fq_port *port;

	if (!place)
		return 0;
	port = port_of(place);
	if (port) {
		leave_tenant(place, epoch);
		leave_bucket(port->active, &place->epoch, epoch);
		leave_bucket(port->sharing, &place->sharing_epoch, epoch);
		leave_bucket(port->young, &place->young_epoch, epoch);
	}
	place->epoch = 0;
	place->tenant_epoch = 0;
	place->sharing_epoch = 0;
	place->young_epoch = 0;
	return 0;
}

/* Remove a direction that has ended from all counts. */
static __always_inline void uncount(struct fq_dir *d, __u32 epoch)
{
	uncount_at(&d->out, epoch);
	uncount_at(&d->far, epoch);
}

/* Count a direction as active at a place in this epoch. */
__noinline int count_active(struct fq_place *place, __u32 epoch)
{
	struct fq_port *port;

	if (!place)
		return 0;
	port = port_of(place);
	if (port)
		enter_bucket(port->active, &place->epoch, epoch);
	return 0;
}

/* Count a direction as one that uses its window at a place; `young`: as one that has sent little. */
__noinline int count_sharing(struct fq_place *place, __u32 epoch, bool young)
{
	struct fq_port *port;

	if (!place)
		return 0;
	port = port_of(place);
	if (!port)
		return 0;
	if (place->sharing_epoch != epoch)
		enter_bucket(port->sharing, &place->sharing_epoch, epoch);
	if (!young)
		leave_bucket(port->young, &place->young_epoch, epoch);
	else if (place->young_epoch != epoch)
		enter_bucket(port->young, &place->young_epoch, epoch);
	return 0;
}

#endif
