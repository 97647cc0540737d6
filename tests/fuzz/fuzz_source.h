/* fuzz_source.h - takes choices, numbers and blocks of exact sizes from the fuzzer's bytes.
 *
 * When the bytes are used up, each choice is 0, which is valid wherever a target chooses.
 */

#ifndef CAI_FUZZ_SOURCE_H_INCLUDED
#define CAI_FUZZ_SOURCE_H_INCLUDED

#include "fuzz.h"

enum {
    MAX_BLOCKS = 4096 /* of one input */
};

/** The input, and the blocks that were made of it. */
typedef struct source {
    const uint8_t *bytes;
    size_t left;
    void *blocks[MAX_BLOCKS];
    int32_t block_count;
} source;

static uint32_t take(source *in)
{
    if (in->left == 0) return 0;
    in->left--;
    return *in->bytes++;
}

static int32_t pick(source *in, uint32_t choices)
{
    return (int32_t)(take(in) % choices);
}

static uint64_t take_u64(source *in)
{
    uint64_t value = 0;
    int32_t i;
    for (i = 0; i < 8; i++) value = value << 8 | take(in);
    return value;
}

/** A block of exactly `size` bytes with a copy of `from` (NULL: unset); freed with the input. */
static void *keep(source *in, const void *from, size_t size)
{
    void *block = malloc(size ? size : 1);
    if (!block || in->block_count == MAX_BLOCKS) abort();
    if (size && from) memcpy(block, from, size);
    in->blocks[in->block_count++] = block;
    return block;
}

static void free_blocks(source *in)
{
    while (in->block_count > 0) free(in->blocks[--in->block_count]);
}

/** Numbers at which arithmetic goes wrong. */
static int64_t edge_number(source *in)
{
    static const int64_t edges[] = {
        -1, 0, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT32_MAX, INT32_MIN, UINT32_MAX,
        INT64_MAX / 2, INT64_MAX / 4, INT64_MAX / 8, -(INT64_MAX / 8), (int64_t)1 << 62,
        (int64_t)1 << 31, (int64_t)1 << 32, 65536, INT64_MAX - 7,
    };
    return edges[take(in) % (sizeof edges / sizeof edges[0])];
}

static int64_t any_number(source *in)
{
    switch (pick(in, 4)) {
    case 0: return (int8_t)take(in);
    case 1: return edge_number(in);
    case 2: return edge_number(in) / ((int64_t)take(in) + 1);
    default: return (int64_t)take_u64(in);
    }
}

#endif /* CAI_FUZZ_SOURCE_H_INCLUDED */
