/* cai_plan.h - the pieces of a copy, drawn as text
 * SPDX-License-Identifier: MIT
 * Include after ext/cai_transfer.h and <stdio.h>.
 *
 *     cai_plan_print(stdout, &plan, to.data, from.data);
 *
 * Each piece has a strip of memory on either side. A character stands for one byte, or for equally many: '#'
 * if one of them is copied, '.' if none is. */

#ifndef CAI_PLAN_H_INCLUDED
#define CAI_PLAN_H_INCLUDED

enum { CAI_PLAN_COLUMNS = 64, CAI_PLAN_PIECES = 8 /* that are drawn */ };

/* One side of a piece. */
typedef struct cai_plan_side {
    int64_t width, height, depth, pitch, slice;
} cai_plan_side;

/* The first byte from `x` on that is copied, or -1. */
static int64_t cai_plan_next(const cai_plan_side *side, int64_t x)
{
    const int64_t plane = x / side->slice, row = x % side->slice / side->pitch;
    if (plane >= side->depth) return -1;
    if (row < side->height && x % side->slice % side->pitch < side->width) return x;
    if (row + 1 < side->height) return plane * side->slice + (row + 1) * side->pitch;
    return plane + 1 < side->depth ? (plane + 1) * side->slice : -1;
}

static void cai_plan_strip(FILE *file, const char *name, const cai_plan_side *side, int64_t offset)
{
    const int64_t extent = (side->depth - 1) * side->slice + (side->height - 1) * side->pitch + side->width;
    const int64_t each = (extent + CAI_PLAN_COLUMNS - 1) / CAI_PLAN_COLUMNS;
    int64_t at;
    (void)fprintf(file, "  %-4s at %+lld  ", name, (long long)offset);
    for (at = 0; at < extent; at += each) {
        const int64_t next = cai_plan_next(side, at);
        (void)fputc(next >= 0 && next < at + each ? '#' : '.', file);
    }
    if (each > 1) (void)fprintf(file, "  (%lld bytes a character)", (long long)each);
    (void)fputc('\n', file);
}

/* "3 planes of 4 rows of 8 bytes" */
static void cai_plan_piece(FILE *file, const cai_piece *piece, int64_t index, int64_t to, int64_t from)
{
    cai_plan_side side;
    (void)fprintf(file, "piece %lld: ", (long long)index);
    if (piece->depth > 1) (void)fprintf(file, "%lld planes of ", (long long)piece->depth);
    if (piece->height > 1) (void)fprintf(file, "%lld rows of ", (long long)piece->height);
    (void)fprintf(file, "%lld bytes\n", (long long)piece->width);
    side.width = piece->width;
    side.height = piece->height;
    side.depth = piece->depth;
    side.pitch = piece->to_pitch;
    side.slice = piece->to_slice;
    cai_plan_strip(file, "to", &side, to);
    side.pitch = piece->from_pitch;
    side.slice = piece->from_slice;
    cai_plan_strip(file, "from", &side, from);
}

/* Offsets count from `to` and `from`, the addresses of the first elements. */
static void cai_plan_print(FILE *file, const cai_transfer *plan, uint64_t to, uint64_t from)
{
    int64_t i;
    cai_piece piece;
    (void)fprintf(file, "%lld bytes: %lld run%s of %lld, in %lld piece%s, aligned to %d\n",
                  (long long)plan->nbytes, (long long)plan->runs, plan->runs == 1 ? "" : "s",
                  (long long)plan->run, (long long)plan->pieces, plan->pieces == 1 ? "" : "s",
                  (int)plan->alignment);
    for (i = 0; i < CAI_PLAN_PIECES && cai_transfer_piece(plan, i, &piece); i++)
        cai_plan_piece(file, &piece, i, (int64_t)(piece.to - to), (int64_t)(piece.from - from));
    if (i < plan->pieces) (void)fprintf(file, "and %lld pieces more\n", (long long)(plan->pieces - i));
}

#endif
