"""Compiles the casters (ext/cai_caster.h, cai_nanobind.h, cai_pybind11.h) with every compiler, standard and mode.

    casters.py [--python-include FOLDER] [--jobs N] [--gxx PROGRAM] [--clangxx PROGRAM] [--nvcc PROGRAM]

No compiler may say anything about our headers. The tools are those of the Python that runs this. A tool that it lacks
is left out with a word; cai_caster.h needs none. cai.pxd is compiled strictly by tests/examples/test_cython.py. Modes:
as it is; of cai_caster.h also a file without the implementation, CAI_NAMESPACE, Python's limited API. Then two
files of one module. C++14, CAI_STATIC and another version of a header must be refused. Exit status 77: no Python.h.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
import sysconfig
import tempfile

from compilers import Job, argument_parser, cpu_seconds, cuda_flags, run_all
from hpp import CLANG_MORE, Folder
from matrix import GCC_MORE, NOT_EVERYTHING, STRICT, STRICT_CXX

ROOT = pathlib.Path(__file__).resolve().parents[3]
INCLUDE = [f"-I{ROOT}", f"-I{ROOT}/ext"]
OURS = tuple(f"{ROOT}/{name}" for name in ("ext/cai", "cai"))
STRICT_CASTER = [flag for flag in STRICT + STRICT_CXX if flag != "-Werror"]  # the tools' macros are theirs
# Parts of clang's -Weverything that are no advice here, besides those of hpp.py
CLANG_CASTER = (*CLANG_MORE, "exit-time-destructors", "global-constructors", "missing-prototypes", "weak-template-vtables")

CASTER = """
#include "cai_caster.h"
using matrix = cai_caster::typed<const float, 2>;
PyObject *use(PyObject *x, PyObject *s);
PyObject *use(PyObject *x, PyObject *s)
{
    cai_caster::stream stream;
    cai_caster::basic_array<CAI_PYTHON_HOST> host;
    const cai_caster::in_call call(stream);
    std::vector<cai::array> list;
    cai::array made;
    matrix in;
    if (cai_caster::take(s, stream) <= 0 || cai_caster::take(x, in) <= 0 || cai_caster::take(x, host) < 0 ||
        cai_caster::take(x, list) < 0)
        return nullptr;
    cai::exchange ex(cai_caster::pool(), stream.number, in.expect("x"));
    ex.finish();
    made = std::move(in.expect("x"));
    cai_caster::drop(in);
    cai_caster::drop(list);
    return cai_caster::give(&made);
}
PyTypeObject *open(const cai_cuda *cuda);
PyTypeObject *open(const cai_cuda *cuda)
{
    return cai_caster::open("caster", cuda);
}
"""
TOOL = """
#include "@header"
#include <@stl>
namespace {
cai::array give(@ns::typed<const float, 2> in, @ns::typed<double> out, const cai::array &, @ns::stream s)
{
    cai::array &x = in.expect("x"), &y = out.expect("y", CAI_ON_DEVICE | CAI_NO_SELF_OVERLAP), made;
    cai::exchange ex(@ns::pool(), s.number, x, y);
    ex.finish();
    made = std::move(x);
    return made;
}
int64_t more(cai::array *x, @ns::basic_array<CAI_PYTHON_HOST> y, std::optional<@ns::stream> s, std::vector<cai::array> all)
{
    return (x ? x->size : 0) + y.size + static_cast<int64_t>(all.size()) + (s ? 1 : 0);
}
void bind(@module &m)
{
    @ns::open(m, static_cast<const cai_cuda *>(nullptr));
    m.def("give", give);
    m.def("more", more);
}
}
@define(casters, m)
{
    bind(m);
}
"""
TOOLS = {
    "nanobind": {"@header": "cai_nanobind.h", "@ns": "cai_nb", "@stl": "nanobind/stl/optional.h", "@module": "nanobind::module_",
                 "@define": "NB_MODULE"},
    "pybind11": {"@header": "cai_pybind11.h", "@ns": "cai_py", "@stl": "pybind11/stl.h", "@module": "pybind11::module_",
                 "@define": "PYBIND11_MODULE"},
}  # fmt: skip
IMPLEMENT = "#define CAI_IMPLEMENTATION\n#define CAI_NO_CUDART\n"
AS_IT_IS = {"as it is": ([], IMPLEMENT)}
MODES = {
    **AS_IT_IS,
    "without the implementation": ([], ""),
    "CAI_NAMESPACE": (["-DCAI_NAMESPACE=my_"], IMPLEMENT),
    "limited API": (["-DPy_LIMITED_API=0x030b0000"], IMPLEMENT),
}


def subjects() -> dict[str, tuple[str, list[str]]]:
    """Units by header, with the flags of the tool that each needs."""
    found = {"cai_caster.h": (CASTER, [])}
    for tool, words in TOOLS.items():
        spec = importlib.util.find_spec(tool)
        if not spec or not spec.origin:
            print(f"without {words['@header']}: this Python has no {tool}")
            continue
        text, home = TOOL, pathlib.Path(spec.origin).parent
        for word, value in words.items():
            text = text.replace(word, value)
        found[words["@header"]] = text, ["-isystem", str(home / "include")]
    return found


def host_jobs(args, folder: Folder) -> list[Job]:
    everything = ["-Weverything", *(f"-Wno-{name}" for name in (*NOT_EVERYTHING, *CLANG_CASTER))]
    python = ["-isystem", args.python_include, "-fvisibility=hidden"]  # else a class with members of the tool's is less hidden
    jobs = []
    for header, (unit, flags) in subjects().items():
        modes = MODES if header == "cai_caster.h" else AS_IT_IS
        for compiler, more, standards in ((args.gxx, GCC_MORE, ("c++17", "c++20")), (args.clangxx, everything, ("c++17", "c++2b"))):
            common = [compiler, *STRICT_CASTER, *more, *INCLUDE, *flags, *python, *cuda_flags(args)]
            for title, (mode, first) in modes.items():
                source = folder.write(first + unit)
                for standard in standards if title == "as it is" else standards[:1]:
                    compiled = title == "as it is" and standard == "c++20"
                    made = ["-O2", "-fPIC", "-c", "-o", folder.new(".o")] if compiled else ["-fsyntax-only"]
                    jobs.append(Job(f"{compiler} {standard} {header}, {title}", [*common, f"-std={standard}", *mode, source, *made],
                                    only=OURS))  # fmt: skip
            jobs += refused_jobs(compiler, header, common, folder)
        two = [folder.write(IMPLEMENT + unit), folder.write(f'#include "{header}"\nextern int other;\nint other = CAI_CASTER_H_INCLUDED;\n')]
        jobs.append(Job(f"{header}: two files", [args.gxx, "-std=c++17", "-r", "-nostdlib", *INCLUDE, *flags, *python, *two,
                         "-o", folder.new(".o")], only=OURS))  # fmt: skip
    return jobs


def refused_jobs(compiler: str, header: str, common: list[str], folder: Folder) -> list[Job]:
    guard = header.upper().replace(".", "_") + "_INCLUDED"
    old, other = folder.write(f'#include "{header}"\n'), folder.write(f'#define {guard} 101\n#include "{header}"\n')
    said = "needs C++17" if header == "cai_caster.h" else ""
    jobs = [Job(f"{compiler} {header}, C++14", [*common, "-std=c++14", "-fsyntax-only", old], said)] if said else []
    jobs.append(Job(f"{compiler} {header}, CAI_STATIC", [*common, "-std=c++17", "-DCAI_STATIC", "-fsyntax-only", old], "the files of a module share its state"))
    return [*jobs, Job(f"{compiler} {header}, two versions", [*common, "-std=c++17", "-fsyntax-only", other], "another version of it")]


def nvcc_jobs(args, folder: Folder) -> list[Job]:
    """nvcc gives the host compiler code with casts in the old style and zeros for nullptr. 550: `dropped` in
    cai_dlpack.h, which is set for the attribute of its call alone."""
    if not args.nvcc:
        return []
    host = ",".join(flag for flag in STRICT_CASTER if flag not in ("-Wpedantic", "-Wmissing-declarations", "-Wold-style-cast", "-Wzero-as-null-pointer-constant"))
    command = [args.nvcc, "-ccbin", args.gxx, "-diag-suppress", "550", "-Xcompiler", host + ",-fvisibility=hidden,-fPIC", *INCLUDE, "-isystem", args.python_include]
    return [Job(f"nvcc {header}", [*command, *flags, "-std=c++17", "-c", folder.write(IMPLEMENT + unit, ".cu"),
                "-o", folder.new(".o")], only=OURS)
            for header, (unit, flags) in subjects().items()]  # fmt: skip


def main() -> int:
    parser = argument_parser(__doc__.splitlines()[0])
    parser.add_argument("--python-include", default=sysconfig.get_path("include"), help="the folder of Python.h")
    args = parser.parse_args()
    if not pathlib.Path(args.python_include, "Python.h").exists():
        print(f"skipped: no Python.h in {args.python_include}")
        return 77
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(path)
        tally = run_all(host_jobs(args, folder) + nvcc_jobs(args, folder), args.jobs)
    print("\n".join(tally.failures))
    print(f"casters: {tally.compilations} compilations, {tally.diagnostics} diagnostics, {tally.refused} refused, "
          f"{len(tally.failures)} failures; {cpu_seconds()}")  # fmt: skip
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
