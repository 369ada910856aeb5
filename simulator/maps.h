/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of the eBPF programs, of one simulated switch at a time: each has its own. */
#ifndef SIMULATOR_MAPS_H
#define SIMULATOR_MAPS_H

#include <linux/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_maps;

struct sim_maps *sim_maps_new(void);
void sim_maps_free(struct sim_maps *maps);
/* The maps that the programs see from now on. */
void sim_maps_use(struct sim_maps *maps);

/* `kind` is BPF_MAP_TYPE_..., sizes are in bytes. NULL: there is no such entry. Entries stay where they are. */
void *sim_map_lookup(const void *map, __u32 kind, __u32 key_size, __u32 value_size,
		     const void *key);
long sim_map_update(const void *map, __u32 kind, __u32 key_size, __u32 value_size, const void *key,
		    const void *value, __u64 flags);
long sim_map_delete(const void *map, __u32 key_size, const void *key);

#ifdef __cplusplus
}
#endif

#endif
