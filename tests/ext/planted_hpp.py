#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai.hpp, one at a time; test_hpp.cpp must see each of them.

    tests/ext/planted_hpp.py [--cxx CXX] [--mdspan FOLDER] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

FOLDER has cuda/std/mdspan; without it the standard library must have <mdspan>. Prints one line per defect: the first
check that fails. A defect that is not found, or that does not apply to the header any more, is a failure, and so is a
failing check without a defect. Exit status 0: all found; 1: not.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, SUPPORT, Defect, Subject, compile_with, execute_until, judge_all, parser  # noqa: E402

# What it is, where it is, what stands there instead
DEFECTS = [
    # owners
    ("an array is not released", r"~array\(\) \{ cai_array_release\(this\); \}", "~array() {}"),
    ("an empty array is one", r"offsetof\(cai_array, shape\)\)", "0)"),
    ("an assignment does not release", r"        cai_array_release\(this\);\n(        cai_array_move)", r"\1"),
    ("an assignment to itself loses the owner", r"        if \(this == &from\) return \*this;\n", ""),
    ("an owner replaces another one", r"        if \(owned\(\)\) return.*\n", ""),
    ("an owner is not destroyed", r"        delete static_cast<Owner \*>\(self->owner\);\n", ""),
    ("a release stays set", r"        self->release = nullptr;\n", ""),
    ("a copy is owned", r"cai_array_borrow\(&made, this\);", "made = std::move(*const_cast<array *>(this));"),
    # pool
    ("a pool is opened twice", r"        if \(pool_\.cuda\) return cai_error_set.*\n", ""),
    ("an open pool looks for CUDA", r"if \(!pool_\.cuda\) CAI_TRY\(find", "CAI_TRY(find"),
    ("a pool loses its places", r"delete\[\] places_;\n    \}", "}"),
    ("a pool is not closed", r"        \(void\)close\(nullptr\);\n", ""),
    # exchange
    ("a destructor does not finish", r"if \(open_ && finish\(CAI_OK, nullptr\) == CAI_ERR_THREAD\) wait\(\);", ""),
    ("an exchange is begun twice", r"        if \(open_\) return cai_error_set.*\n", ""),
    ("what was not begun is finished", r"        if \(!open_\) return status \? status : .*\n", "        if (!open_) return status;\n"),
    ("the work's status is lost", r"return status \? status : ended;", "return ended;"),
    ("the work's error is overwritten", r"status \? nullptr : why\);", "why);"),
    ("a failed end leaves it open", r"open_ = ended == CAI_ERR_THREAD;", "open_ = ended != CAI_OK;"),
    ("another thread closes it", r"open_ = ended == CAI_ERR_THREAD;", "open_ = false;"),
    ("nobody waits after a failed end", r"if \(ended && !open_\) wait\(\);", ""),
    ("the wrong wait for stream 1", r"ex_\.stream > CAI_STREAM_PER_THREAD", "ex_.stream > 0"),
    ("a context stays pushed", r"        \(void\)cuda->context_pop\(cuda->self\);\n", ""),
    ("the second array is left out", r"listed_\[count\+\+\] = &arrays\)", "listed_[count] = &arrays, count = 1)"),
    # types
    ("signed is unsigned", r"is_signed_v<T> \? 'i' : 'u'", "is_signed_v<T> ? 'u' : 'i'"),
    ("char is a number", r" && !std::is_same_v<T, char>", ""),
    ("bool is a number", r"    if constexpr \(std::is_same_v<T, bool>\) return CAI_BOOL;\n", ""),
    ("complex integers", r"std::is_floating_point_v<decltype", "std::is_arithmetic_v<decltype"),
    # views
    ("a writable view of read-only memory", r"if \(!std::is_const_v<T>\) needs \|=.*", ""),
    ("a const view needs writable memory", r"if \(!std::is_const_v<T>\) needs \|=", "needs |="),
    ("the requirements are dropped", r"detail::expect<T>\(a, name, static_cast<int32_t>\(View::rank\(\)\), requirements",
     "detail::expect<T>(a, name, static_cast<int32_t>(View::rank()), 0"),
    ("the item size is not looked at", r"a\.dtype\.itemsize != bytes\)", "0)"),
    ("the alignment is not looked at", r" \|\| a\.data % alignof\(T\)\)", ")"),
    ("strides that are no multiple", r"has_steps\(a, axis\) && a\.strides\[axis\] % bytes", "0"),
    ("strides in bytes", r"a\.strides\[axis\] / a\.dtype\.itemsize : 1", "a.strides[axis] : 1"),
    ("strides along which nothing moves", r"a\.size && a\.shape\[axis\] > 1;", "true;"),
    ("a span of any order", r"requirements \| CAI_C_CONTIGUOUS", "requirements"),
    ("the extent of a span", r"View::extent != static_cast<size_t>\(a\.size\)", "0"),
    ("the static extent of an mdspan", r"wanted != -1 && wanted != shape", "0"),
    ("a small index type", r"typename View::index_type>\(largest\)\) != largest", "typename View::index_type>(largest)) == 77"),
    ("an index type for the shape only", r"reach > shape \? reach : shape", "shape"),
    ("an index type for the reach only", r"reach > shape \? reach : shape", "reach"),
    ("negative strides of an mdspan", r"if \(stride_of\(a, axis\) <= 0\)", "if (0)"),
    ("any layout", r"has_steps\(a, axis\) && step != wanted", "0"),
    ("interleaved axes", r"step / stride_of\(a, inner\) < a\.shape\[inner\]", "0"),
    ("the index of the axis", r"why->index = static_cast<int32_t>\(axis\);", ""),
    ("a description in elements", r" \* static_cast<int64_t>\(sizeof\(T\)\);", ";"),
    ("a const view is writable", r"cai_array_set_read_only\(out, .*", ""),
    # visit
    ("any type is visited", r"if \(\(\(a\.dtype\.code == code_of<Ts>\) \|\| \.\.\.\)\) return CAI_OK;", "return CAI_OK;"),
    ("an array that is none is visited", r"    CAI_TRY\(cai_array_check\(&a, why\)\);\n", ""),
    ("swapped bytes are named as others", r"a\.dtype\.code & CAI_SWAPPED\(0\) \? got : ", ""),
    ("always the first type", r"if \(code != code_of<T>\) return", "if (false) return"),
    ("the function's status is lost", r"return detail::choose\(list, a\.dtype\.code, function\);\n\}\n\n#if",
     "(void)detail::choose(list, a.dtype.code, function);\n    return CAI_OK;\n}\n\n#if"),
    # exceptions
    ("call throws nothing", r"&why\)\) throw error\(why\);", "&why)) {}"),
]  # fmt: skip


class Hpp(Subject):
    """The test with an mdspan and the sanitizers, one program per defect: templates cannot be switched at run time."""

    def build(self, options, tree, folder):
        objects = []
        for source in (SUPPORT / "tested.c", options.root / "sim/cai_sim.c"):
            made = options.objects / f"{source.stem}.o"
            error = None if made.exists() else compile_with(options, "-c", source, "-o", made)
            if error:
                return error
            objects.append(made)
        folders = [f"-I{at}" for at in (tree, tree / "ext", tree / "sim", options.root, SUPPORT)]
        mdspan = ["-isystem", options.mdspan] if options.mdspan else []
        command = [options.cxx, "-std=c++20", "-w", "-fsanitize=address,undefined", "-DCAI_TESTS_LINKED",
                   "-DCAI_TEST_MDSPAN", *folders, *mdspan, str(HERE / "test_hpp.cpp"), *map(str, objects), "-pthread",
                   "-o", str(folder / "test")]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        return f"{' '.join(command)}\n{done.stderr}" if done.returncode else None

    def run(self, options, tree, folder, environment, defect):
        status, output = execute_until([folder / "test"], 60, r"test_hpp\.cpp:\d+: |ERROR: |runtime error: ")
        first = re.search(r"(test_hpp\.cpp:\d+: |ERROR: |runtime error: ).*", output)
        if defect is NONE:
            return status == 0, output.strip().splitlines()[-1]
        if status == 0:
            return False, f"NOT FOUND: {output.strip()}"
        return bool(first) or (status or 0) < 0, first.group(0) if first else f"status {status}: {output[-300:]}"


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--cxx", default="c++")
    arguments.add_argument("--mdspan", default="", help="a folder with cuda/std/mdspan")
    options = arguments.parse_args()
    options.alone = True
    with tempfile.TemporaryDirectory() as folder:
        options.objects = pathlib.Path(folder)
        return judge_all(options, [Defect(name, "ext/cai.hpp", *change) for name, *change in DEFECTS], Hpp())


if __name__ == "__main__":
    sys.exit(main())
