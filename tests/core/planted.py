#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in what cai.h does for values below 8 bits, one at a time; test_packed.c must see each of them.

    tests/core/planted.py [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first check that fails. A defect that is not found, or that does not apply to the header
any more, is a failure, and so is a failing check without a defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_each, execute_until, folders_of, judge_all, parser  # noqa: E402

TEST = "test_packed.c"

# What it is, where it is, what stands there instead
DEFECTS = [
    # dtypes
    ("a value of 2 bits has 4", r'"\\1\\2\\4\\6\\6\\4"\[row', r'"\\1\\4\\4\\6\\6\\4"[row'),
    ("an element is values of 2 bits", r"itemsize \* 8 / dtype->bits : 1;", r"itemsize * 8 / 2 : 1;"),
    ("any narrow dtype is packed", r"dtype && dtype->code & CAI_PRIV_PACKED && dtype->bits", r"dtype && dtype->bits"),
    ("values of 0 bits", r"CAI_PRIV_PACKED && dtype->bits > 0;", r"CAI_PRIV_PACKED;"),
    ("too many values for a number", r" && values <= INT32_MAX \?", r" ?"),
    ("values below 1", r"return values > 1 && values <= INT32_MAX", r"return values <= INT32_MAX"),
    ("packed dtypes of this version alone", r"packed = dtype && dtype->code & CAI_PRIV_PACKED &&", r"packed = dtype && dtype->code >> 16 > 25 && dtype->code >> 16 < 32 &&"),
    ("a narrow dtype has no bits", r"    if \(!swapped\) out->bits = .*\n", r""),
    ("any format is one", r"\(swapped \|\| cai_priv_name_of\(code\)\)", r"(1)"),
    ("swapped bytes of any format", r"const int swapped = code == CAI_SWAPPED\(plain\) && ", r"const int swapped = code > 0xffffff && "),
    ("swapped bytes of any size", r" && unit > 1 && cai_priv_code_known\(plain\);", r" && unit > 1;"),
    ("the typestr of 3 bytes has an order", r"format \? \(dtype->bits \? 1 : dtype->itemsize\)", r"format ? dtype->itemsize"),
    # arrays
    ("the values lie along the first axis", r"    return ndim - 1;", r"    return ndim ? 0 : -1;"),
    ("too many values wrap", r"    if \(axis >= 0 && cai_priv_mul\(shape\[axis\], values, &extent\)\)\n.*\n", r"    if (axis >= 0) (void)cai_priv_mul(shape[axis], values, &extent);\n"),
    ("the extent is that of elements", r"    out->packed_extent = extent;", r"    out->packed_extent = axis >= 0 ? shape[axis] : 0;"),
    ("a dtype that is not packed is taken", r"    if \(values == 1\)\n        return cai_priv_error\(err, CAI_ERR_ARGUMENT, \"cai_array_init_packed[^;]*;\n", r""),
    ("an axis before the first", r"if \(axis < \(ndim \? 0 : -1\) \|\| ", r"if (axis < -1 || "),
    ("an axis past the last", r"\? 0 : -1\) \|\| axis >= ndim\)", r"? 0 : -1) || axis > ndim)"),
    ("unused bits have no element", r"\(extent - 1\) / values \+ 1;", r"extent / values;"),
    ("a packed array has the axis of any", r"    out->packed_axis = axis;\n    out->packed_extent = extent;\n    return CAI_OK;\n\}\n\nCAI_API void", r"    return CAI_OK;\n}\n\nCAI_API void"),
    # checks
    ("bits of a later version are taken", r"    if \(array->must_understand\)\n        return [^;]*;\n", r""),
    ("packed arrays are not checked", r"if \(array->packed_axis != -1 \|\| array->dtype\.code & CAI_PRIV_NARROW\)\n", r"if (0)\n"),
    ("a packed dtype needs no axis", r"if \(array->packed_axis != -1 \|\| array->dtype\.code & CAI_PRIV_NARROW\)\n", r"if (array->packed_axis != -1)\n"),
    ("bits of packed dtypes alone are checked", r"array->dtype\.code & CAI_PRIV_NARROW\)\n", r"array->dtype.code & CAI_PRIV_PACKED)\n"),
    ("bits of an array are not checked", r"if \(bits && \(array->dtype\.bits != bits", r"if (0 && (array->dtype.bits != bits"),
    ("any bits are right", r"array->dtype\.bits != bits \|\| array", r"array"),
    ("any bytes are right", r" \|\| array->dtype\.itemsize != \(code & 0xff\)\)\)", r"))"),
    ("formats of later versions have bits", r"return format > 31 \|\| row < 0 \?", r"return row < 0 ?"),
    ("float4 has no bits", r"return format > 31 \|\| row < 0 \?", r"return format > 30 || row < 0 ?"),
    ("float8 has bits", r"row = \(format & 15\) - 10;", r"row = (format & 15) - 9;"),
    ("no axis is enough for a packed dtype", r"axis == -1 && !\(array->ndim && packed\)", r"axis == -1"),
    ("one packed element needs an axis", r"axis == -1 && !\(array->ndim && packed\)", r"axis == -1 && !packed"),
    ("a packed axis of other dtypes", r"if \(!packed \|\| axis < 0", r"if (axis < 0"),
    ("a packed axis below -1", r"!packed \|\| axis < 0 \|\|", r"!packed || axis == -1 ||"),
    ("a packed axis past the last", r"!packed \|\| axis < 0 \|\| axis >= array->ndim\)", r"!packed || axis < 0)"),
    ("a packed dtype of no values", r"if \(values < 2 \|\| array->packed_extent < 0", r"if (array->packed_extent < 0"),
    ("a refusal says no values", r"        cai_priv_put_packed\(text, array\);\n", r""),
    ("a text says no values", r"\n    cai_priv_put_packed\(text, array\);\n", r"\n"),
    ("one packed element becomes more", r"    if \(view->array\.packed_axis < 0 && view->array\.dtype\.code & CAI_PRIV_PACKED[^;]*;\n", r""),
    ("one packed element has no views", r" & CAI_PRIV_PACKED && view->array\.ndim\)", r" & CAI_PRIV_PACKED)"),
    ("an extent that does not fill the elements", r" \|\| elements != array->shape\[axis\]\)", r")"),
    ("the same shape in elements is enough", r"\(axis == b->packed_axis && a->packed_extent == b->packed_extent\)\)", r"1)"),
    ("the same values along another axis", r"\(axis == b->packed_axis && a->packed_extent", r"(a->packed_extent"),
    ("C order in elements is enough", r"    if \(array->packed_axis >= 0 && array->packed_axis != array->ndim - 1\) unmet [^;]*;\n", r""),
    ("Fortran order in elements is enough", r"    if \(array->packed_axis > 0\) unmet [^;]*;\n", r""),
    ("an order that nobody required", r"array->packed_axis != array->ndim - 1\) unmet \|= wanted & CAI_C_CONTIGUOUS", r"array->packed_axis != array->ndim - 1) unmet |= CAI_C_CONTIGUOUS"),
    ("values of other dtypes have an order", r"if \(array->packed_axis >= 0 && array->packed_axis != array->ndim - 1\)", r"if (array->packed_axis != array->ndim - 1)"),
    # views
    ("a view forgets its axis", r"    out->packed_axis = view->array\.packed_axis;\n", r""),
    ("a view forgets its extent", r"    out->packed_extent = view->array\.packed_extent;\n", r""),
    ("an axis that went leaves the number", r"    if \(array->packed_axis > axis\) --view\.array\.packed_axis;\n", r""),
    ("permuting leaves the number", r"        if \(axis == array->packed_axis\) view\.array\.packed_axis = i;\n", r""),
    ("a slice keeps the extent", r"        cai_priv_slice_packed\(array, start, count, &view\.array\);\n", r""),
    ("a slice has no unused bits", r"view->packed_extent = start \+ count < array->shape\[array->packed_axis\] \|\| !count", r"view->packed_extent = 1"),
    ("a slice without elements has some", r" < array->shape\[array->packed_axis\] \|\| !count", r" < array->shape[array->packed_axis]"),
    ("a slice may step", r"        if \(count > 1 && step != 1\) return cai_priv_reject_packed[^;]*;\n", r""),
    ("a slice of one element may not step", r"if \(count > 1 && step != 1\) return cai_priv_reject_packed", r"if (step != 1) return cai_priv_reject_packed"),
    ("an index drops a packed axis", r"    if \(axis == array->packed_axis\) return cai_priv_reject_packed\(array, \"dropped\", err\);\n    if \(index", r"    if (index"),
    ("a new axis leaves the number", r"    if \(array->packed_axis >= axis\) \+\+view\.array\.packed_axis;\n", r""),
    ("broadcasting leaves the number", r"    if \(array->packed_axis >= 0\) view\.array\.packed_axis \+= more;\n", r""),
    ("broadcasting repeats elements", r"        if \(!same && axis == view\.array\.packed_axis\) return [^;]*;\n", r""),
    ("a reshape tears elements", r"if \(packed != array->ndim - 1 \|\| last < 0\)", r"if (last < 0)"),
    ("a packed axis before the first", r"if \(packed != array->ndim - 1 \|\| last < 0\)", r"if (packed != array->ndim - 1)"),
    ("a reshape keeps the extent", r"    if \(cai_priv_mul\(view->shape\[last\], values, &view->packed_extent\)\)\n        return [^;]*;\n", r""),
    ("a reshape moves unused bits", r"    if \(array->size && array->packed_extent % values\)\n        return [^;]*;\n", r""),
    ("a reshape of other axes loses unused bits", r"    if \(view->shape\[last\] == array->shape\[packed\]\) return CAI_OK;\n", r""),
    ("bytes stay packed", r"    array->packed_axis = values > 1 \? cai_priv_packed_axis\([^;]*;\n", r""),
    ("new elements have no values", r"    if \(array->packed_axis >= 0 &&\n        cai_priv_mul\(array->shape\[array->packed_axis\], values, &array->packed_extent\)\)\n        return [^;]*;\n", r""),
    ("merging leaves the number", r"            merged->packed_axis = merged->ndim;\n", r""),
    ("merging drops a packed axis", r"        if \(axis == packed\) \{", r"        if (axis == packed && extent > 1) {"),
    ("an axis is merged into a packed one", r"\(last > merged->packed_axis && ", r"(last >= 0 && "),
]  # fmt: skip


class Packed(Subject):
    """The test."""

    def build(self, options, tree, folder):
        return compile_each(options, folder, [HERE / TEST], "-O1", *folders_of(tree))

    def run(self, options, tree, folder, environment, defect):
        status, output = execute_until([folder / TEST[:-2]], 60, rf"{TEST}:\d+: ", environment)
        first = re.search(rf"{TEST}:\d+: .*", output)
        if status == 0:
            return defect is NONE, output.splitlines()[-1] if defect is NONE else f"NOT FOUND: {output}"
        found = first.group(0) if first else f"ended with {status}"
        return defect is not NONE, found


if __name__ == "__main__":
    chosen = parser(__doc__).parse_args()
    sys.exit(judge_all(chosen, [Defect(name, "cai.h", *change) for name, *change in DEFECTS], Packed()))
