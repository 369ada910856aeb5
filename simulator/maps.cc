// SPDX-License-Identifier: GPL-2.0-only
#include "maps.h"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <linux/bpf.h>

namespace
{

/* Entries of an array, as many as a switch has ports and an agent has hosts: the agent sets the size of the real one. */
constexpr __u32 ENTRIES = 1024;

using Bytes = std::unique_ptr<unsigned char[]>;

struct Map {
	std::vector<Bytes> places;
	std::unordered_map<std::string, Bytes> entries;
};

Bytes zeros(__u32 size)
{
	/* As a map of the kernel: aligned for whatever it holds. */
	return std::make_unique<unsigned char[]>(size);
}

bool is_array(__u32 kind)
{
	return kind == BPF_MAP_TYPE_ARRAY || kind == BPF_MAP_TYPE_PERCPU_ARRAY;
}

bool is_hash(__u32 kind)
{
	return kind == BPF_MAP_TYPE_HASH || kind == BPF_MAP_TYPE_LRU_HASH;
}

} // namespace

struct sim_maps {
	std::unordered_map<const void *, Map> maps;
};

static sim_maps *in_use;

sim_maps *sim_maps_new()
{
	return new sim_maps;
}

void sim_maps_free(sim_maps *maps)
{
	delete maps;
}

void sim_maps_use(sim_maps *maps)
{
	in_use = maps;
}

void *sim_map_lookup(const void *map, __u32 kind, __u32 key_size, __u32 value_size, const void *key)
{
	Map &found = in_use->maps[map];

	if (is_array(kind)) {
		__u32 index;

		std::memcpy(&index, key, sizeof(index));
		if (index >= ENTRIES)
			return nullptr;
		if (found.places.empty())
			found.places.resize(ENTRIES);
		if (!found.places[index])
			found.places[index] = zeros(value_size);
		return found.places[index].get();
	}
	auto entry = found.entries.find(std::string(static_cast<const char *>(key), key_size));
	return entry == found.entries.end() ? nullptr : entry->second.get();
}

long sim_map_update(const void *map, __u32 kind, __u32 key_size, __u32 value_size, const void *key,
		    const void *value, __u64 flags)
{
	void *there = sim_map_lookup(map, kind, key_size, value_size, key);

	if (!there && !is_hash(kind))
		return -1;
	if (there && flags == BPF_NOEXIST)
		return -1;
	if (!there) {
		Bytes &made =
			in_use->maps[map]
				.entries[std::string(static_cast<const char *>(key), key_size)];

		made = zeros(value_size);
		there = made.get();
	}
	std::memcpy(there, value, value_size);
	return 0;
}

long sim_map_delete(const void *map, __u32 key_size, const void *key)
{
	return in_use->maps[map].entries.erase(
		       std::string(static_cast<const char *>(key), key_size))
		       ? 0
		       : -1;
}
