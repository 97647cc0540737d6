#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_scaled.h and ext/cai_small_view.h, one at a time; the test of the header must see each.

    tests/ext/planted_scaled.py [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first check that fails. A defect that is not found, or that does not apply to the
header any more, is a failure, and so is a failing check without a defect. Exit status 0: all found; 1: not; 77: no C
compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_with, execute_until, folders_of, judge_all, parser  # noqa: E402

# What it is, what is there, what stands there instead
SCALED = [
    # offsets
    ("tiles row by row", r"i % 32 \* 16 \+ i % 128 / 32 \* 4 \+ j % 4", r"i % 128 * 4 + j % 4"),
    ("the tile of hipBLASLt", r"i % 32 \* 16 \+ i % 128 / 32 \* 4 \+ j % 4", r"i % 16 * 32 + i % 32 / 16 + j % 4 * 4"),
    ("groups of 32 rows before rows", r"i % 32 \* 16 \+ i % 128 / 32 \* 4", r"i % 4 * 4 + i % 128 / 4 * 16"),
    ("tiles down before right", r"i / 128 \* map->row_stride \+ j / 4 \* map->block_stride", r"i / 128 * map->block_stride + j / 4 * map->row_stride"),
    ("rows of tiles of data", r"out->row_stride = blocks \* 128;", r"plan.shape[plan.ndim - 1] * 512;"),
    ("blocks of rows not counted", r"const int64_t i = row / map->rows,", r"const int64_t i = row,"),
    ("the column is a block", r"j = column / map->block;", r"j = column;"),
    ("batches without padding", r"out->batch_stride = plan\.shape\[1\] \* blocks;", r"out->batch_stride = x->data->shape[1] * blocks;"),
    ("no batches of tiles", r"        if \(plan\.ndim == 3\) out->batch_stride = plan\.shape\[1\][^\n]*\n", r""),
    ("no batches of plain scales", r"    if \(plan\.ndim == 3\) out->batch_stride = strides\[0\];\n", r""),
    ("strides of C order", r"out->block_stride = strides\[plan\.axis\];", r"out->block_stride = x->scales->dtype.itemsize;"),
    ("row and block change places", r"out->row_stride = plan\.row_axis < 0 \? 0 : strides\[plan\.row_axis\];", r"out->row_stride = strides[0];"),
    ("a map of 4 axes", r"if \(plan\.ndim > 3 \|\| ", r"if ("),
    ("a map of the first axis", r" \|\| plan\.axis < plan\.ndim - 2\)\n        return cai_priv_error\(err, CAI_ERR_VIEW", r")\n        return cai_priv_error(err, CAI_ERR_VIEW"),
    ("a map of what does not fit", r"    CAI_TRY\(cai_priv_scaled_check\(x, CAI_ANY_SCALED, CAI_ANY_SCALES, &plan, err\)\);\n", r"    CAI_TRY(cai_priv_scaled_plan(x, &plan, err));\n"),
    # shapes
    ("packed data by elements", r"axis == data->packed_axis \? data->packed_extent :", r"0 ? data->packed_extent :"),
    ("the last block is left out", r"extent / block \+ \(extent % block > 0\)", r"extent / block"),
    ("a block too many", r"extent / block \+ \(extent % block > 0\)", r"extent / block + 1"),
    ("rows are not padded", r"plan->shape\[plan->ndim - 2\] = rows \* 128;", r"plan->shape[plan->ndim - 2] = plan->shape[plan->row_axis];"),
    ("blocks are not padded", r"plan->shape\[plan->ndim - 1\] = blocks \* 4;", r"plan->shape[plan->ndim - 1] = plan->shape[plan->axis];"),
    ("blocks stay at their axis", r"plan->shape\[plan->ndim - 2\] = rows \* 128;\n    plan->shape\[plan->ndim - 1\] = blocks \* 4;", r"plan->shape[plan->row_axis] = rows * 128;\n    plan->shape[plan->axis] = blocks * 4;"),
    ("padded rows overflow", r"rows > INT64_MAX / 128 \|\| ", r""),
    ("padded blocks overflow", r" \|\| blocks > INT64_MAX / 4\)", r")"),
    ("the count overflows", r"        if \(plan->shape\[i\] > INT64_MAX / plan->count\) return 0;\n", r""),
    ("an empty array has scales", r"    if \(empty\) plan->count = 0;\n", r""),
    ("negative axes", r"x->axis < 0 \? x->axis \+ ndim : x->axis", r"x->axis"),
    ("an axis too far", r"axis < 0 \|\| axis >= ndim", r"axis < 0 || axis > ndim"),
    ("tiles of one axis", r"matrix && ndim < 2", r"matrix && ndim < 1"),
    ("tiles along the first axis", r"matrix && axis < ndim - 2", r"0 && axis < ndim - 2"),
    ("blocks of rows along the first axis", r"x->layout == CAI_SCALES_128X4 \|\| x->rows > 1;", r"x->layout == CAI_SCALES_128X4;"),
    ("a block of 0", r"x->block < 1", r"x->block < 0"),
    ("rows of 0", r"x->rows < 1 \|\|", r"x->rows < 0 ||"),
    ("tiles with blocks of rows", r" \|\| \(tiled && x->rows > 1\)", r""),
    ("any layout", r"    if \(x->layout != CAI_SCALES_PLAIN && !tiled\)\n", r"    if (0)\n"),
    ("data is not checked", r"    CAI_TRY\(cai_array_check\(x->data, err\)\);\n", r"    if (!x->data) return CAI_OK;\n"),
    # checks
    ("MXFP8 without e5m2", r"\{CAI_FLOAT8_E4M3FN, CAI_FLOAT8_E5M2\}", r"{CAI_FLOAT8_E4M3FN, CAI_FLOAT8_E4M3FN}"),
    ("NVFP4 with the scales of MX", r"CAI_FLOAT8_E4M3FN, 16, 1\}", r"CAI_FLOAT8_E8M0FNU, 16, 1}"),
    ("NVFP4 with the block of MX", r"CAI_FLOAT8_E4M3FN, 16, 1\}", r"CAI_FLOAT8_E4M3FN, 32, 1}"),
    ("MXFP4 of one value a byte", r"\{CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT4_E2M1FN_X2\}, CAI_FLOAT8_E8M0FNU", r"{CAI_FLOAT4_E2M1FN_X2, CAI_FLOAT4_E2M1FN}, CAI_FLOAT8_E8M0FNU"),
    ("rows of 128 x 1", r"CAI_FLOAT32, 128, 128\}", r"CAI_FLOAT32, 128, 1}"),
    ("the block is not compared", r"x->block == cai_priv_scaled_formats\[format\]\.block && ", r""),
    ("the rows are not compared", r" && x->rows == cai_priv_scaled_formats\[format\]\.rows\)", r")"),
    ("values of any dtype", r"    if \(code != codes\[0\] && code != codes\[1\]\)\n", r"    if (0)\n"),
    ("scales of any dtype", r"cai_priv_scaled_formats\[format\]\.scales, CAI_ANY_NDIM", r"CAI_ANY_DTYPE, CAI_ANY_NDIM"),
    ("any number of axes", r"    if \(scales->ndim != plan->ndim\)\n", r"    if (0)\n"),
    ("any shape", r"    if \(i == plan->ndim\) return CAI_OK;\n", r"    return CAI_OK;\n"),
    ("no index", r"    if \(err\) err->index = i;\n", r""),
    ("wide scales in tiles", r"    if \(scales->dtype\.itemsize != 1\)\n", r"    if (0)\n"),
    ("too few scales in tiles", r"    if \(scales->size != plan->count\)\n", r"    if (scales->size > plan->count)\n"),
    ("tiles with gaps", r"!\(scales->flags & CAI_DENSE\) \|\| ", r""),
    ("tiles backwards", r" \|\| scales->lo\)", r")"),
    ("tiles in C order alone", r"!\(scales->flags & CAI_DENSE\)", r"!(scales->flags & CAI_C_CONTIGUOUS)"),
    ("tiles at any address", r"    if \(scales->data % 16\)\n", r"    if (scales->data % 8)\n"),
    ("packed along the rows", r"packed < 0 \|\| packed == axis \|\| \(", r"packed < 0 || packed != axis || ("),
    ("packed along any axis", r"    CAI_TRY\(cai_priv_scaled_packed\([^;]*;\n", r""),
    ("plain scales of no format along the blocks alone", r" \|\| \(format == CAI_ANY_SCALED && x->layout == CAI_SCALES_PLAIN\)\)", r")"),
    ("tiles of no format packed along any axis", r"format == CAI_ANY_SCALED && x->layout == CAI_SCALES_PLAIN\)", r"format == CAI_ANY_SCALED)"),
    ("plain scales of a format packed along any axis", r"format == CAI_ANY_SCALED && x->layout == CAI_SCALES_PLAIN\)", r"x->layout == CAI_SCALES_PLAIN)"),
    ("the layout is not compared", r"layout != CAI_ANY_SCALES && layout != x->layout", r"0"),
    ("devices are not compared", r"data->device != scales->device\)", r"0)"),
    ("an unknown device is another", r"data->device >= 0 && scales->device >= 0 && ", r""),
    ("scales of bool", r" \|\| dtype->code == CAI_BOOL\)", r")"),
    ("packed scales", r"cai_dtype_values\(dtype\) > 1 \|\| ", r""),
    ("scales of 4 bits in tiles", r"    if \(!tiled \|\| !dtype->bits\) return CAI_OK;\n", r"    return CAI_OK;\n"),
    ("plain scales have 8 bits", r"if \(!tiled \|\| !dtype->bits\)", r"if (!dtype->bits)"),
    ("data on the host, scales on the device", r"data->memory == CAI_MEMORY_HOST \? data : scales;", r"scales;"),
    ("scales on the host, data on the device", r"data->memory == CAI_MEMORY_HOST \? data : scales;", r"data;"),
    ("memory of the host that a device uses", r" \|\| host->device >= 0 \|\| ", r" || "),
    ("managed memory is apart", r"other->memory != CAI_MEMORY_DEVICE\)", r"other->memory < CAI_MEMORY_MANAGED)"),
    ("unknown memory is that of the host", r"host->memory != CAI_MEMORY_HOST \|\| ", r"host->memory > CAI_MEMORY_HOST || "),
    ("the places change names", r"names\[host == scales\]", r"names[host == data]"),
    ("requirements of data alone", r"requirements & ~order, err", r"0, err"),
    ("requirements of scales alone", r"CAI_ANY_NDIM, requirements, err", r"CAI_ANY_NDIM, 0, err"),
    ("the scales have the order of the data", r"requirements & ~order, err", r"requirements, err"),
    ("blocks along any axis", r"    if \(axis == CAI_ANY_AXIS \|\| plan->axis == [^\n]*\n", r"    if (1) return CAI_OK;\n"),
    ("no axis is any axis", r"axis == CAI_ANY_AXIS \|\| plan->axis", r"plan->axis"),
    ("an axis from the end", r"\(axis < 0 \? axis \+ plan->ndim : axis\)", r"axis"),
    ("strides of no scales", r"plan\.count \? plan\.shape\[plan\.ndim - 1\] : 0;", r"plan.shape[plan.ndim - 1];"),
    ("any format", r"format < 0 \|\| format >= CAI_SCALED_COUNT", r"format < 0 || format > CAI_SCALED_COUNT"),
    ("layouts below -1", r"layout < CAI_ANY_SCALES \|\| ", r""),
]  # fmt: skip
SMALL_VIEWS = [
    ("five axes", r"array->ndim > CAI_MAX_SMALL_NDIM", r"array->ndim > CAI_MAX_SMALL_NDIM + 1"),
    ("three axes", r"array->ndim > CAI_MAX_SMALL_NDIM", r"array->ndim >= CAI_MAX_SMALL_NDIM"),
    ("no strides", r"    memcpy\(out->strides, view\.strides, sizeof out->strides\);\n", r"    memset(out->strides, 0, sizeof out->strides);\n"),
    ("the shape as strides", r"memcpy\(out->shape, view\.shape,", r"memcpy(out->shape, view.strides,"),
    ("no itemsize", r"    out->itemsize = view\.itemsize;\n", r"    out->itemsize = 0;\n"),
    ("no index of an axis", r"        if \(err\) err->index = CAI_MAX_SMALL_NDIM;\n", r""),
    ("an array is not checked", r"    CAI_TRY\(cai_array_check\(array, err\)\);\n    if \(!out\)", r"    if (!out)"),
    ("a refusal is not told", r"    CAI_TRY\(cai_kernel_view_of\(array, &view, err\)\);\n", r"    (void)!cai_kernel_view_of(array, &view, err);\n"),
    ("element in Fortran order", r"    int32_t axis = view->ndim;\n    while \(--axis > 0\) \{", r"    int32_t axis = view->ndim;\n    while (--axis > 1) {"),
    ("(i, j) without j", r"return view->data \+ i \* view->strides\[0\] \+ j \* view->strides\[1\];", r"return view->data + i * view->strides[0] + (j - j);"),
]  # fmt: skip
DEFECTS = ([Defect(name, "ext/cai_scaled.h", *change, ("test_scaled",)) for name, *change in SCALED]
           + [Defect(name, "ext/cai_small_view.h", *change, ("test_small_view",)) for name, *change in SMALL_VIEWS])  # fmt: skip


class Scaled(Subject):
    """The tests; a defect is shown to the one of its header."""

    def build(self, options, tree, folder):
        for name in ("test_scaled", "test_small_view"):
            error = compile_with(options, "-O1", *folders_of(tree), f"-I{HERE}", HERE / f"{name}.c", "-o", folder / name)
            if error:
                return error
        return None

    def run(self, options, tree, folder, environment, defect):
        mark = r"test_\w+\.c:\d+: "
        for name in ("test_scaled", "test_small_view") if defect is NONE else defect.more:
            status, output = execute_until([folder / name], 60, mark, environment)
            first = re.search(rf"({mark})[^\n]*", output)
            if defect is NONE and status != 0:
                return False, f"A FAILURE: {output}"
            if defect is not NONE and status != 0 and (first or (status or 0) < 0):
                return True, first.group(0) if first else f"{name}: signal {-status}"
        return (True, output.strip()) if defect is NONE else (False, f"NOT FOUND: {output[-300:]}")


if __name__ == "__main__":
    sys.exit(judge_all(parser(__doc__).parse_args(), DEFECTS, Scaled()))
