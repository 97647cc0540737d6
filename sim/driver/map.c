/* map.c - numbers to what belongs to them
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <stdlib.h>

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a key, or the free place where it belongs. The map is never full. */
static size_t map_place(const driver_map *map, uint64_t key)
{
    size_t place = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & (map->capacity - 1);
    while (map->keys[place] && map->keys[place] != key)
        place = (place + 1) & (map->capacity - 1);
    return place;
}

static void map_grow(driver_map *map)
{
    driver_map old = *map;
    size_t i;
    map->capacity = old.capacity ? 2 * old.capacity : 64;
    map->used = 0;
    map->keys = (uint64_t *)calloc(map->capacity, sizeof *map->keys);
    map->values = (void **)calloc(map->capacity, sizeof *map->values);
    if (!map->keys || !map->values)
        abort();
    for (i = 0; i < old.capacity; ++i) {
        size_t place;
        if (!old.keys[i] || !old.values[i])
            continue;
        place = map_place(map, old.keys[i]);
        map->keys[place] = old.keys[i];
        map->values[place] = old.values[i];
        ++map->used;
    }
    free(old.keys);
    free(old.values);
}

void *driver_map_set(driver_map *map, uint64_t key, void *value)
{
    size_t place;
    void *before;
    pthread_mutex_lock(&map_lock);
    if (2 * (map->used + 1) > map->capacity)
        map_grow(map);
    place = map_place(map, key);
    before = map->values[place];
    if (!map->keys[place])
        ++map->used;
    map->keys[place] = key;
    map->values[place] = value;
    pthread_mutex_unlock(&map_lock);
    return before;
}

void *driver_map_get(driver_map *map, uint64_t key)
{
    void *value = NULL;
    pthread_mutex_lock(&map_lock);
    if (map->capacity && key)
        value = map->values[map_place(map, key)];
    pthread_mutex_unlock(&map_lock);
    return value;
}
