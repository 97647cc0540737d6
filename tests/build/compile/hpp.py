"""Compiles ext/cai.hpp with every compiler, standard and mode; no compiler may say anything about our headers.

    hpp.py [--jobs N] [--gxx PROGRAM] [--clangxx PROGRAM] [--nvcc PROGRAM]
    hpp.py --times --python-include FOLDER --nanobind FOLDER     what its include costs, beside others

The subject is tests/ext/test_hpp.cpp, which uses all that the header has. Modes: as it is; without exceptions;
CAI_STATIC; CAI_NAMESPACE; the per-thread default stream; with CCCL's mdspan, and its code in a kernel (nvcc).
Further programs: two renamed copies in one, and what must be refused, each beside a control.
"""

from __future__ import annotations

import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

from compilers import Job, argument_parser, cpu_seconds, cuda_flags, nvcc_include, run_all
from matrix import GCC_MORE, NOT_EVERYTHING, STRICT, STRICT_CXX

ROOT = pathlib.Path(__file__).resolve().parents[3]
SUBJECT = ROOT / "tests/ext/test_hpp.cpp"
INCLUDE = [f"-I{ROOT}", f"-I{ROOT}/ext", f"-I{ROOT}/sim", f"-I{ROOT}/tests/support"]
OURS = (f"{ROOT}/ext/cai.hpp", f"{ROOT}/cai.h", f"{ROOT}/cai_stream.h", f"{SUBJECT}:")
STANDARDS = ("c++17", "c++20", "c++2b")
MODES = {
    "as it is": [],
    "without exceptions": ["-fno-exceptions"],
    "CAI_STATIC": ["-DCAI_STATIC"],
    "CAI_NAMESPACE": ["-DCAI_NAMESPACE=my_"],
    "per thread": ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"],
}
# The harness of the tests is C: what it does in the old style is no matter here.
STRICT_HPP = [flag for flag in STRICT + STRICT_CXX if flag not in ("-Werror", "-Wold-style-cast")]
HARNESS = ("-Wno-zero-as-null-pointer-constant",)
# Parts of clang's -Weverything that are no advice here, besides those of matrix.py
CLANG_MORE = ("old-style-cast", "zero-as-null-pointer-constant", "unused-template", "weak-vtables")

USES = """
#include "cai.hpp"
static cai::event_pool *pool;
void scale(cai::array y, uint64_t stream);
void scale(cai::array y, uint64_t stream)
{
    %s
}
int main() { return pool != nullptr; }
"""
THROWING = USES % "cai::exchange ex(*pool, stream, y); ex.finish();"
REFUSED = {
    "a const array": ("const cai::array c; cai::exchange ex(*pool, stream, c);", "borrow() the array that is const"),
    "a pointer as owner": ("y.own(new int);", "a pointer frees nothing"),
    "an array of the address of one": ("cai::array z(&y);", "deleted"),
    "two results": ("cai::visit(cai::floats(), y, \"y\", [](auto tag) { return typename decltype(tag)::type(); });",
                    "one result for all types"),
}  # fmt: skip
STATUSES = USES % """cai_array *list[1] = {&y};
    cai::exchange ex;
    if (!ex.begin(*pool, stream, list, 1, nullptr, nullptr)) (void)ex.finish(CAI_OK, nullptr);"""
KERNEL = """
#define CAI_IMPLEMENTATION
#include "cai.hpp"
#include <cuda/std/mdspan>
using matrix = cuda::std::mdspan<float, cuda::std::dextents<int32_t, 2>, cuda::std::layout_stride>;
__global__ void scale(float a, cai::view<float, 2> y, matrix z)
{
    const int32_t i = static_cast<int32_t>(threadIdx.x);
    if (i < y.extent(1)) z(0, i) = a * y(0, i);
}
int main()
{
    cai::event_pool pool;
    cai::array y, z;
    cai_error why;
    const cai_status status = cai::expect_as<matrix>(z, "z", CAI_ON_DEVICE, &why);
    if (!status) scale<<<1, 32>>>(2.0f, cai::unchecked_as<cai::view<float, 2>>(y), cai::unchecked_as<matrix>(z));
    return pool.open(cai_cuda_linked, 4, 0, &why) || status != CAI_ERR_ABI;
}
"""
COPY = """
#define CAI_NAMESPACE %(name)s_
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#include "cai.hpp"
int %(name)s();
int %(name)s()
{
    const cai::array a;
    return a.owned() || cai_array_check(&a, nullptr) != CAI_ERR_ABI;
}
"""
BOTH = "int alpha();\nint beta();\nint main() { return alpha() + beta(); }\n"


MANUAL = """
#define CAI_IMPLEMENTATION
#include "cai.hpp"
__global__ void scale_kernel(float a, cai::view<float, 2> y) { y(blockIdx.x, threadIdx.x) *= a; }
static constexpr int blocks = 1, threads = 32;
%s
int main() { scale(2.0f, cai::array(), nullptr); }
"""


def manual_example() -> str:
    """The code in the manual of cai.hpp under WHAT IT IS."""
    text = (ROOT / "ext/cai.hpp").read_text(encoding="utf-8")
    shown = re.search(r"^WHAT IT IS\n.*\n\n((?: {8}.*\n|\n)+)", text, re.MULTILINE)
    assert shown, "cai.hpp: no code under WHAT IT IS"
    return MANUAL % shown[1]


class Folder:
    """Names of files that do not exist yet."""

    def __init__(self, path: str) -> None:
        self.path, self.count = pathlib.Path(path), 0

    def write(self, text: str, suffix: str = ".cpp") -> str:
        made = self.new(suffix)
        pathlib.Path(made).write_text(text, encoding="utf-8")
        return made

    def new(self, suffix: str) -> str:
        self.count += 1
        return str(self.path / f"{self.count}{suffix}")


def host_jobs(args, folder: Folder) -> list[Job]:
    """The subject in every mode and standard; compiled where an optimizer sees most, else syntax."""
    everything = ["-Weverything", *(f"-Wno-{name}" for name in (*NOT_EVERYTHING, *CLANG_MORE))]
    latest = shutil.which("clang++-16")
    compilers = [(args.gxx, GCC_MORE), (args.clangxx, everything)] + ([(latest, everything)] if latest else [])
    jobs = []
    for compiler, more in compilers:
        for standard in STANDARDS:
            for title, mode in MODES.items():
                command = [compiler, f"-std={standard}", *STRICT_HPP, *more, *HARNESS, *mode,
                           *INCLUDE, *cuda_flags(args), str(SUBJECT)]  # fmt: skip
                made = ["-O2", "-c", "-o", folder.new(".o")] if standard == "c++17" and not mode else ["-fsyntax-only"]
                jobs.append(Job(f"{compiler} {standard} {title}", command + made, only=OURS))
    return jobs


def nvcc_jobs(args, folder: Folder) -> list[Job]:
    """The subject with CCCL's mdspan as CUDA C++, and a kernel that takes views."""
    if not args.nvcc:
        return []
    host = ",".join(flag for flag in STRICT_HPP if flag not in ("-Wpedantic", "-Wmissing-declarations"))
    command = [args.nvcc, "-ccbin", args.gxx, "-Xcompiler", host, *INCLUDE]
    jobs = []
    for title, text in (("a kernel", KERNEL), ("the manual", manual_example())):
        for standard in ("c++17", "c++20"):
            jobs.append(Job(f"nvcc {standard} {title}", [*command, f"-std={standard}", "-c", folder.write(text, ".cu"),
                            "-o", folder.new(".o")], only=OURS))  # fmt: skip
    for title, mode in (("with mdspan", ["-DCAI_TEST_MDSPAN"]),
                        ("without exceptions", ["-Xcompiler", "-fno-exceptions"])):  # fmt: skip
        jobs.append(Job(f"nvcc c++20 {title}", [*command, "-std=c++20", "-x", "cu", *mode, "-c",
                        str(SUBJECT), "-o", folder.new(".o")], only=OURS))  # fmt: skip
    return jobs


def other_jobs(args, folder: Folder) -> list[Job]:
    """What must be refused, and two copies in one program."""
    later = (ROOT / "ext/cai.hpp").read_text(encoding="utf-8")
    later = later.replace("CAI_HPP_INCLUDED 200 ", "CAI_HPP_INCLUDED 201 ").replace("!= 200\n", "!= 201\n")
    pathlib.Path(folder.path / "later.hpp").write_text(later, encoding="utf-8")
    two = folder.write('#include "later.hpp"\n#include "cai.hpp"\n')
    one = folder.write('#include "later.hpp"\n#include "later.hpp"\n')
    throwing, statuses = folder.write(THROWING), folder.write(STATUSES)
    jobs = []
    for compiler in (args.gxx, args.clangxx):
        command = [compiler, "-fsyntax-only", "-DCAI_NO_CUDART", f"-I{folder.path}", *INCLUDE]
        strict = ["-std=c++17", *STRICT, *STRICT_CXX]  # also what the harness of the subject does not pass
        form = "without exceptions, use the form that takes a cai_error"
        jobs += [
            Job(f"{compiler} C++14", [*command, "-std=c++14", statuses], "needs C++17"),
            Job(f"{compiler} throwing", [*command, *strict, throwing]),
            Job(f"{compiler} throwing without exceptions", [*command, *strict, "-fno-exceptions", throwing], form),
            Job(f"{compiler} statuses without exceptions", [*command, *strict, "-fno-exceptions", statuses]),
            Job(f"{compiler} two versions", [*command, *strict, two], "another version of it was included first"),
            Job(f"{compiler} one version twice", [*command, *strict, one]),
        ]
        for title, (use, said) in REFUSED.items():
            jobs.append(Job(f"{compiler} {title}", [*command, *strict, folder.write(USES % use)], said))
        files = [folder.write(COPY % {"name": "alpha"}), folder.write(COPY % {"name": "beta"}), folder.write(BOTH)]
        made = folder.new(".exe")
        jobs.append(Job(f"{compiler} two copies", [compiler, *strict, *INCLUDE, *files, "-o", made], runs=made))
    return jobs


def seconds(command: list[str], rounds: int = 7) -> float:
    """The median of the CPU seconds of a compilation."""
    spent = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(spent)


def print_times(args, folder: Folder) -> None:
    """What one #include costs each compiler, in CPU seconds: the syntax alone of a unit with nothing else."""
    mdspan = pathlib.Path(nvcc_include(args.nvcc) or "", "cccl")
    rows = {
        "nothing": ("", []),
        '"cai.h"': ('#include "cai.h"\n', []),
        '"cai_stream.h"': ('#include "cai_stream.h"\n', []),
        '"cai.hpp"': ('#include "cai.hpp"\n', []),
        "<vector>": ("#include <vector>\n", []),
        "<span>": ("#include <span>\n", []),
        "<cuda/std/mdspan>": ("#include <cuda/std/mdspan>\n", ["-isystem", str(mdspan)]),
        "<nanobind/ndarray.h>": ("#include <nanobind/ndarray.h>\n",
                                 ["-isystem", args.python_include, "-isystem", args.nanobind]),
    }  # fmt: skip
    print(f"| include | {args.gxx}, ms | {args.clangxx}, ms |\n|---|---|---|")
    for name, (text, flags) in rows.items():
        source = folder.write(text)
        spent = [seconds([compiler, "-std=c++20", "-fsyntax-only", *INCLUDE, *flags, source])
                 for compiler in (args.gxx, args.clangxx)]  # fmt: skip
        print(f"| `{name}` | " + " | ".join(f"{1000 * one:.0f}" for one in spent) + " |")


def main() -> int:
    parser = argument_parser(__doc__.splitlines()[0])
    parser.add_argument("--times", action="store_true", help="print what the include costs, and end")
    parser.add_argument("--python-include", default="", help="the folder of Python.h")
    parser.add_argument("--nanobind", default="", help="the include folder of nanobind")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        if args.times:
            print_times(args, folder)
            return 0
        tally = run_all(host_jobs(args, folder) + nvcc_jobs(args, folder) + other_jobs(args, folder), args.jobs)
    print("\n".join(tally.failures))
    print(f"cai.hpp: {tally.compilations} compilations, {tally.diagnostics} diagnostics, {tally.refused} refused, "
          f"{tally.ran} programs ran, {len(tally.failures)} failures; {cpu_seconds()}")  # fmt: skip
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
