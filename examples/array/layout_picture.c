/* layout_picture.c - draws how a field lies in its block: cc -I. -Iext examples/array/layout_picture.c
 * SPDX-License-Identifier: MIT
 *
 *     ./a.out > layout.svg
 *
 * One cell is one element's place in memory, in the order of addresses. A row of the picture begins where a row of the
 * field does, and is as long as the stride of J. */
#define CAI_IMPLEMENTATION
#include "cai_layout.h"

#include <stdio.h>
#include <string.h>

enum { CELL = 40, LEFT = 20, TOP = 64, BLOCK = 0x1018 }; /* BLOCK: an address that is not aligned */

static const char style[] =
    "<style>\n"
    "text {font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1f2328}\n"
    ".title {font-size:16px;font-weight:600}\n"
    ".page {fill:#ffffff}\n"
    ".domain {fill:#ddf4ff;stroke:#0969da}\n"
    ".halo {fill:#fff8c5;stroke:#9a6700}\n"
    ".padding {fill:#f6f8fa;stroke:#d1d9e0}\n"
    ".aligned {stroke:#8250df;stroke-width:3}\n"
    "</style>\n";

/* The layout: I is contiguous, one element of halo on each side, the first point of the domain at 64 bytes. */
static cai_status plan(cai_layout *layout, cai_error *err)
{
    cai_dtype dtype;
    memset(layout, 0, sizeof *layout);
    CAI_TRY(cai_dtype_of(CAI_FLOAT64, &dtype, err));
    CAI_TRY(cai_layout_preset(layout, "F", "IJ", err));
    layout->alignment = 64;
    layout->shape[0] = 10;
    layout->shape[1] = 5;
    layout->halo_low[0] = layout->halo_high[0] = layout->halo_low[1] = layout->halo_high[1] = 1;
    return cai_layout_plan(layout, &dtype, err);
}

static int is_in_domain(const cai_layout *layout, const int64_t *index)
{
    int32_t axis;
    for (axis = 0; axis < layout->ndim; ++axis) {
        if (index[axis] < layout->halo_low[axis]) return 0;
        if (index[axis] >= layout->shape[axis] - layout->halo_high[axis]) return 0;
    }
    return 1;
}

/* A cell at an address, `from` bytes behind element 0, or in front of it. */
static void draw_cell(const cai_layout *layout, uint64_t address, int64_t from)
{
    const int64_t row = layout->strides[1], item = layout->strides[0];
    const int64_t index[2] = {(from + row) % row / item, (from + row) / row - 1};
    const int64_t x = LEFT + index[0] * CELL, y = TOP + (index[1] + 1) * (CELL + 8);
    const int is_element = index[1] >= 0 && index[0] < layout->shape[0] && index[1] < layout->shape[1];
    const char *kind = !is_element ? "padding" : is_in_domain(layout, index) ? "domain" : "halo";
    printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", kind, (int)x, (int)y, CELL - 2, CELL);
    if (is_element)
        printf("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d,%d</text>\n", (int)x + CELL / 2 - 1, (int)y + 25,
               (int)index[0], (int)index[1]);
    if (address % (uint64_t)layout->alignment == 0)
        printf("<path class=\"aligned\" d=\"M%d %dv%d\"/>\n", (int)x - 1, (int)y - 4, CELL + 8);
}

static void draw_key(int x, int y, const char *kind, const char *text)
{
    printf("<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"18\" height=\"18\"/>\n", kind, x, y);
    printf("<text x=\"%d\" y=\"%d\">%s</text>\n", x + 26, y + 14, text);
}

int main(void)
{
    cai_layout layout;
    cai_error err;
    int64_t place, lead;
    int width, bottom;
    if (plan(&layout, &err)) {
        (void)fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    lead = cai_layout_offset(&layout, BLOCK);
    width = (int)(2 * LEFT + layout.strides[1] / layout.strides[0] * CELL);
    bottom = (int)(TOP + (layout.shape[1] + 2) * (CELL + 8));
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
           "aria-labelledby=\"t\">\n<title id=\"t\">A field of 10 x 5 elements with a halo of 1</title>\n%s",
           width, bottom + 50, width, bottom + 50, style);
    printf("<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n<text class=\"title\" x=\"%d\" y=\"28\">10 x 5 elements "
           "of 8 bytes, I contiguous, halo 1, alignment 64</text>\n", LEFT);
    printf("<text x=\"%d\" y=\"48\">a block of %d bytes at an address that is not aligned; element 0,0 is %d bytes "
           "behind it</text>\n", LEFT, (int)layout.nbytes, (int)lead);
    for (place = 0; place < layout.nbytes; place += layout.strides[0])
        draw_cell(&layout, (uint64_t)(BLOCK + place), place - lead);
    draw_key(LEFT, bottom + 12, "domain", "domain");
    draw_key(LEFT + 120, bottom + 12, "halo", "halo");
    draw_key(LEFT + 220, bottom + 12, "padding", "padding");
    printf("<path class=\"aligned\" d=\"M%d %dv18\"/>\n<text x=\"%d\" y=\"%d\">a multiple of 64 bytes</text>\n</svg>\n",
           LEFT + 346, bottom + 12, LEFT + 358, bottom + 26);
    return 0;
}
