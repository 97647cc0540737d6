"""The symbols of cai.h, or of an extension with it: names, prefixes, visibility, what it needs, no mutable data.

    symbols.py [--tier full|exhaustive] [--header FILE] [--nm PROGRAM] [--gcc PROGRAM] ... [--jobs N]
               [--cuda-include FOLDER] [--dlpack-include FOLDER] [--python-include FOLDER]

First the rename list of the header against its CAI_API declarations, its sections against the index, and every name
that the declarations bring along. Exit status 77: the header needs one of another project, which is not there.

Tier full: names do not depend on the optimization, but for functions that an optimizer calls by itself, so
all is compiled at -O0 and one object per language at -Os; C by gcc and C++ by clang, the other two once; and
shared objects of one configuration. Exhaustive: all compilers, two levels, shared objects of all.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from typing import Any

from compilers import argument_parser, cpu_seconds, cuda_flags, name_and_root
from subjects import LIMITED, SUBJECTS, add_others, missing, other_flags, others_of, subject_of

# Plain functions of <string.h> (clang writes bcmp for some memcmp), and what compilers and linkers add by themselves.
ALLOWED = {
    "memcpy", "calloc", "memmove", "memset", "memcmp", "bcmp", "memchr", "strchr", "strlen", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_",
}  # fmt: skip
MUTABLE = "DdBbCGgSs"  # nm's letters of data that can be written
MODES = {
    "default": "",
    "namespace": "#define CAI_NAMESPACE mylib_\n",
    "shared": "#define CAI_SHARED\n#define CAI_BUILD\n",
    "shared namespace": "#define CAI_SHARED\n#define CAI_BUILD\n#define CAI_NAMESPACE mylib_\n",
    "static": "#define CAI_STATIC\n",
}
# Something that stays in a unit whose functions are all static.
KEEP = """#ifdef __cplusplus
extern "C"
#endif
const char *keep(void);
const char *keep(void) { return cai_status_name(%s); }
"""
# Names that a unit may get from the declarations besides cai_ and CAI_: what cudaStream_t, hipStream_t and DLPack's
# pointers point to.
FOREIGN = {"CUstream_st", "ihipStream_t", "DLManagedTensor", "DLManagedTensorVersioned"}


@dataclass(frozen=True)
class Configuration:
    """Switches of the implementation, and the functions from outside that it needs then, exactly."""

    name: str = ""
    macros: tuple[str, ...] = ()
    linked: bool = False  # needs CUDA's headers
    needs: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()  # functions that are not there
    keep: str = "0"
    modes: tuple[str, ...] = tuple(MODES)
    alone: frozenset[str] | None = None  # what the implementation of the extension alone needs; None: as `needs`
    before: tuple[str, ...] = ()  # headers of ours that are included before
    mutable: frozenset[str] = frozenset()  # data of each thread


LOADER = frozenset({"dlopen", "dlsym", "dlclose"})
THREAD = frozenset({"pthread_self", "syscall"})
GUARD = frozenset({"poll", "sched_yield"})
RUNTIME = frozenset({"cudaGetDriverEntryPoint*", "cudaRuntimeGetVersion", "cudaGetLastError", "cudaPeekAtLastError"})
LOADS = frozenset({"cai_cuda_load"})
LINKS = frozenset({"cai_cuda_linked"})
USE = "cai_exchange_finish(NULL, 0, NULL, 0, NULL) + cai_exchange_begin(NULL, NULL, NULL, 0, 1, NULL)"
FEW = ("default", "static")
STREAM = (
    Configuration("CAI_NO_CUDART", ("CAI_NO_CUDART",), needs=LOADER | THREAD | GUARD, without=LINKS,
                  keep=f"{USE} + cai_cuda_load(NULL, NULL, NULL)"),
    Configuration("linked", (), True, LOADER | THREAD | RUNTIME | GUARD, keep=f"{USE} + cai_cuda_linked(NULL, NULL)", modes=FEW),
    Configuration("linked, CAI_NO_LOADER", ("CAI_NO_LOADER",), True, THREAD | RUNTIME | GUARD, LOADS, f"{USE} + cai_cuda_linked(NULL, NULL)", FEW),
    Configuration("linked, CAI_NO_THREADS", ("CAI_NO_THREADS",), True, LOADER | THREAD | RUNTIME, keep=USE, modes=FEW),
    Configuration("linked per thread", ("CUDA_API_PER_THREAD_DEFAULT_STREAM",), True, LOADER | THREAD | RUNTIME | GUARD, keep=USE, modes=FEW),
    Configuration("CAI_NO_CUDART, CAI_NO_LOADER", ("CAI_NO_CUDART", "CAI_NO_LOADER"), needs=GUARD, without=LINKS | LOADS, keep=USE, modes=FEW),
    Configuration("all three", ("CAI_NO_CUDART", "CAI_NO_LOADER", "CAI_NO_THREADS"), without=LINKS | LOADS, keep=USE, modes=FEW),
)  # fmt: skip
# cai_emm.h: an owner. cai_manager.h: the default allocator of its lists too, and what the
# generations of handles begin with, so that handles of a manager that was at the same address before are not
# those of the next.
HEAP = frozenset({"malloc", "free"})
CLOCK = frozenset({"time", "clock"})
TABLE = "cai_emm_alloc(NULL, NULL, 0, 1, NULL) + cai_emm_array(NULL, NULL, NULL, 0, 0, NULL, 1, NULL)"
EMM = tuple(
    replace(row, needs=row.needs | HEAP, keep=f"{TABLE} + {row.keep}", alone=HEAP | (row.needs & GUARD))
    for row in STREAM if row.name in ("CAI_NO_CUDART", "all three")
)  # fmt: skip
MANAGE = "cai_manager_init(NULL, NULL, NULL, NULL, NULL) + cai_manager_array(NULL, NULL, 0, 0, NULL, 1, NULL)"
MANAGER = tuple(
    replace(row, needs=row.needs | HEAP | CLOCK, keep=f"{MANAGE} + {row.keep}", alone=HEAP | CLOCK | (row.needs & GUARD))
    for row in STREAM if row.name != "linked per thread"
)  # fmt: skip
# The extensions. Which functions of Python are taken is the matter of tests/python/check_abi3.py.
PROCESS = frozenset({"getpid"}) | CLOCK  # which process made a descriptor
PYTHON = frozenset({"Py*"})
HIP = frozenset({"hip*"})
MPI = frozenset({"MPI*"})  # of Open MPI the datatypes, which are objects, too
TVM = frozenset({"TVMFFI*"})
ALLOCATOR = HEAP  # for what a deleter frees, without the GIL
ON_STREAM, DLPACK_ON_STREAM = (frozenset(f"cai_python_{name}" for name in names.split()) for names in
                        ("release_after", "dlpack_ordered dlpack_offer_ordered"))  # fmt: skip
IN_ORDER = frozenset({"cai_dlpack_export_ordered", "cai_dlpack_export_ordered_versioned", "cai_dlpack_limit"})
LIMIT = LIMITED.removeprefix("-D")
CONFIGURATIONS = {
    "cai_stream.h": STREAM, "cai_emm.h": EMM, "cai_manager.h": MANAGER,
    "cai_dlpack.h": (
        Configuration(without=IN_ORDER, keep="cai_dlpack_device(NULL, NULL, NULL)"),
        Configuration("after cai_stream.h", ("CAI_NO_CUDART",), needs=LOADER | THREAD | GUARD, without=LINKS,
                      keep="cai_dlpack_device(NULL, NULL, NULL)", modes=("default", "shared namespace", "static"),
                      before=("cai_stream.h",)),
    ),
    "cai_ipc.h": tuple(
        replace(row, needs=row.needs | HEAP | PROCESS, keep="cai_ipc_init(NULL, NULL, NULL, 0, 0, NULL)",
                alone=PROCESS | GUARD, modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
    "cai_layout.h": (
        Configuration(needs=frozenset({"strcmp"}), keep="cai_layout_preset(NULL, NULL, NULL, NULL)"),
    ),
    "cai_tensor_map.h": (Configuration(keep="cai_tensor_map_of(NULL, NULL, NULL, NULL)"),),
    "cai_scaled.h": (Configuration(keep="cai_scales_shape(NULL, NULL, NULL)"),),
    "cai_small_view.h": (Configuration(keep="cai_small_view_of(NULL, NULL, NULL)"),),
    "cai_transfer.h": (
        Configuration(without=frozenset({"cai_transfer_copy", "cai_transfer_copy_peer"}),
                      keep="cai_transfer_runs(NULL, 0, NULL, 0)"),
        Configuration("after cai_stream.h", ("CAI_NO_CUDART",), needs=LOADER | THREAD | GUARD, without=LINKS,
                      keep="cai_transfer_runs(NULL, 0, NULL, 0)", modes=("default", "shared namespace", "static"),
                      before=("cai_stream.h",)),
    ),
    "cai_storage.h": tuple(
        replace(row, needs=row.needs | HEAP | {"strcmp"}, keep="cai_storage_release(NULL, NULL)",
                alone=HEAP | (row.needs & GUARD), modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
    "cai_access.h": tuple(
        replace(row, needs=row.needs | HEAP | {"strcmp"}, keep="cai_access_side(NULL, 0)",
                alone=frozenset(), modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
    "cai_place.h": tuple(
        replace(row, needs=row.needs | {"snprintf"}, keep="cai_place(NULL, 0, NULL, 0, 0, 0, NULL, NULL)",
                alone=GUARD | {"snprintf"}, modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
    "cai_move.h": tuple(
        replace(row, needs=row.needs | HEAP | {"snprintf"}, keep="cai_move(NULL, NULL, 0, NULL, NULL)",
                alone=frozenset(), modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
    "cai_mpi_type.h": (
        Configuration(needs=MPI, without=frozenset({"cai_transfer_copy", "cai_transfer_copy_peer"}),
                      keep="cai_mpi_type(NULL, NULL, NULL)"),
    ),
    "cai_mpi.h": tuple(
        replace(row, needs=row.needs | HEAP | MPI, keep="cai_mpi_close(NULL, NULL)", alone=MPI,
                modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
    "cai_hip.h": tuple(
        replace(row, needs=row.needs | HIP | THREAD, keep=f"cai_hip_table()->version + {row.keep}", alone=HIP | THREAD,
                modes=("default", "shared namespace", "static"), mutable=frozenset({"cai_priv_hip_pushed", ".tbss"}))
        for row in STREAM if row.name == "all three"
    ),
    "cai_python.h": (
        Configuration("all of the API", needs=PYTHON | ALLOCATOR | {"__assert_fail"},
                      without=ON_STREAM, keep="(int)cai_python_clear(NULL)"),
        Configuration("limited, after cai_stream.h", (LIMIT, "CAI_NO_CUDART"),
                      needs=PYTHON | LOADER | THREAD | GUARD | ALLOCATOR, without=LINKS,
                      keep="(int)cai_python_clear(NULL)", modes=("default", "shared namespace", "static"),
                      before=("cai_stream.h",)),
    ),
    "cai_python_dlpack.h": (
        Configuration("all of the API", needs=PYTHON | ALLOCATOR | {"strstr", "__assert_fail"},
                      without=ON_STREAM | DLPACK_ON_STREAM | IN_ORDER, keep="cai_python_dlpack_init(NULL)"),
        Configuration("limited, after cai_stream.h", (LIMIT, "CAI_NO_CUDART"),
                      needs=PYTHON | LOADER | THREAD | GUARD | ALLOCATOR | {"strstr"}, without=LINKS,
                      keep="cai_python_dlpack_init(NULL)", modes=("default", "shared namespace", "static"),
                      before=("cai_stream.h",)),
    ),
    "cai_tvm_ffi.h": tuple(
        replace(row, needs=row.needs | {"free"} | TVM, keep="cai_tvm_ffi_end(0, NULL, NULL)",
                alone=frozenset({"free"}) | TVM, modes=("default", "shared namespace", "static"))
        for row in STREAM if row.name == "CAI_NO_CUDART"
    ),
}  # fmt: skip


def plain_name(name: str) -> str:
    """A function by the name that the source has: fortified, MinGW's own, or one of several versions. Those of
    Python are one, those of MPI, those of TVM FFI, and those of HIP."""
    name = re.sub(r"^__(?:mingw_)?(v?snprintf)(?:_chk)?$", r"\1", name)
    name = re.sub(r"^_?Py[A-Z_]\w*$", "Py*", name)
    name = re.sub(r"^hip[A-Z]\w*$", "hip*", name)
    name = re.sub(r"^(MPI_[A-Z]|ompi_mpi_|ompi_request_null)\w*$", "MPI*", name)
    name = re.sub(r"^TVMFFI\w+$", "TVMFFI*", name)
    return re.sub(r"^(cudaGetDriverEntryPoint).*", r"\1*", name)


@dataclass
class Report:
    """Counts and failures over all objects."""

    objects: int = 0
    defined: int = 0
    exported: int = 0
    foreign: int = 0
    mutable: int = 0
    needed: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)

    def expect(self, label: str, what: str, actual: set[str], expected: set[str]) -> None:
        """Two sets of names must be equal."""
        for name in sorted(actual - expected):
            self.failures.append(f"{label}: {what}: {name} should not be there")
        for name in sorted(expected - actual):
            self.failures.append(f"{label}: {what}: {name} is missing")

    def add(self, other: Report) -> None:
        """Adds another report to this one."""
        for name in ("objects", "defined", "exported", "foreign", "mutable"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.needed |= other.needed
        self.failures += other.failures


def api_names(header: pathlib.Path, report: Report) -> set[str]:
    """The functions declared with CAI_API; they must be those of the rename list."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    renames = re.findall(r"^#define (cai_\w+) CAI_PRIV_RENAMED\((\w+)\)$", text, re.MULTILINE)
    declared = re.findall(r"^CAI_API\b[^;{]*?\b(cai_\w+)\([^;{]*\);", text, re.MULTILINE)
    listed = [name for name, _ in renames]
    report.expect("rename list", "functions", set(listed), set(declared))
    for name, target in renames:
        if name != target:
            report.failures.append(f"rename list: {name} becomes {target}")
    for names, what in ((listed, "renamed"), (declared, "declared")):
        for name in sorted({name for name in names if names.count(name) > 1}):
            report.failures.append(f"rename list: {name} is {what} twice")
    print(f"{header.name}: rename list: {len(listed)} names, {len(declared)} CAI_API declarations")
    return set(declared)


def ast_names(node: dict[str, Any]) -> set[str]:
    """Names at file scope of clang's tree: functions, types, tags, objects, enumerators."""
    names = set()
    for child in node.get("inner", ()):
        if child["kind"] in ("LinkageSpecDecl", "EnumDecl"):
            names |= ast_names(child)
        if child["kind"].endswith("Decl") and child.get("name"):
            names.add(child["name"])
    return names


def check_declarations(args: argparse.Namespace, compiler: str, language: str, folder: pathlib.Path, report: Report) -> None:
    """Every name that including the header brings along, macros too, without those of <stddef.h>,
    <stdint.h> and the headers of other projects."""
    standard = "-std=c99" if language == "c" else "-std=c++11"
    command = [compiler, "-x", language, standard, f"-I{name_and_root(args.header)[1]}", *other_flags(args)]

    def brought(text: str) -> tuple[set[str], set[str]]:
        source = folder / "declared.h"
        source.write_text(text, encoding="utf-8")
        tree = subprocess.run([*command, "-fsyntax-only", "-Xclang", "-ast-dump=json", str(source)], capture_output=True, text=True, check=True)
        macros = subprocess.run([*command, "-E", "-dM", str(source)], capture_output=True, text=True, check=True)
        return ast_names(json.loads(tree.stdout)), set(re.findall(r"^#define (\w+)", macros.stdout, re.MULTILINE))

    include = f'#include "{name_and_root(args.header)[0]}"\n'
    known = subject_of(args.header).brought + "#include <stddef.h>\n#include <stdint.h>\n"
    names, macros = (now - before for now, before in zip(brought(include), brought(known)))
    wrong = {name for name in names | macros if not name.startswith(("cai_", "CAI_"))}
    report.expect(f"{compiler} {language} declarations", "names", wrong - FOREIGN, set())
    report.expect(f"{compiler} {language} declarations", "names of CUDA", {n for n in names | macros if re.match("cu|CU|__cu", n)} - FOREIGN, set())
    print(f"{pathlib.Path(compiler).name} {language}: declarations bring {len(names)} names and {len(macros)} macros, "
          f"without cai_: {', '.join(sorted(wrong)) or 'none'}")  # fmt: skip


def symbols(nm: str, path: pathlib.Path, *flags: str) -> list[tuple[str, str]]:
    """(letter, name) of each symbol that nm lists."""
    done = subprocess.run([nm, "-P", *flags, str(path)], capture_output=True, text=True, check=True)
    return [(row.split()[1], row.split()[0]) for row in done.stdout.splitlines() if len(row.split()) > 1]


def writable_sections(path: pathlib.Path) -> set[str]:
    """Sections of an ELF object that have bytes and can be written: data without a symbol, thread-local data."""
    data = path.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return set()  # nm's letters must do
    order = "<" if data[5] == 1 else ">"
    at, _, _, _, _, size, count, index = struct.unpack_from(order + "QI6H", data, 40)
    rows = [struct.unpack_from(order + "IIQQQQ", data, at + i * size) for i in range(count)]
    names = data[rows[index][4] :]
    write, allocate = 1, 2
    return {
        names[row[0] : names.index(b"\0", row[0])].decode()
        for row in rows if row[2] & write and row[2] & allocate and row[5]
    }  # fmt: skip


def compile_unit(compiler: str, source: pathlib.Path, header: pathlib.Path, output: pathlib.Path, *flags: str) -> None:
    """Compiles one unit; a failure ends the program."""
    subprocess.run([compiler, *flags, f"-I{name_and_root(header)[1]}", str(source), "-o", str(output)], check=True)


def check_object(
    nm: str, label: str, path: pathlib.Path, wanted: set[str], allowed: set[str], report: Report, of_threads: frozenset[str] = frozenset()
) -> set[str]:
    """One object: what it defines, what it needs, and whether it has data that can be written. Gives what it
    needs from outside besides plain functions."""
    found = symbols(nm, path)
    defined = {name for letter, name in found if letter.isupper() and letter != "U"}
    undefined = {plain_name(name) for letter, name in found if letter == "U"}
    mutable = {re.sub(r"^_ZL\d+", "", name) for letter, name in found if letter in MUTABLE} | writable_sections(path)
    report.objects += 1
    report.defined += len(defined)
    report.foreign += len(defined - wanted) + len(undefined - ALLOWED - allowed)
    report.mutable += len(mutable)
    report.needed |= undefined
    report.expect(label, "defined", defined, wanted)
    report.expect(label, "undefined", undefined - ALLOWED - allowed, set())
    report.expect(label, "mutable data", mutable, set(of_threads))
    return undefined - ALLOWED


@dataclass(frozen=True)
class Task:
    """A compiler, a language, a configuration and a mode."""

    compiler: str
    suffix: str
    configuration: Configuration
    mode: str
    number: int
    levels: tuple[str, ...]  # of the object, and of the shared object; without the latter
    library: str

    @property
    def label(self) -> str:
        """What stands before a failure."""
        return " ".join(filter(None, (pathlib.Path(self.compiler).name, self.suffix, self.configuration.name, self.mode)))


def check_mode(args: argparse.Namespace, task: Task, folder: pathlib.Path, api: set[str]) -> Report:
    """One mode with one compiler: objects, and a shared object."""
    report, configuration, mode = Report(), task.configuration, task.mode
    flags = [f"-D{macro}" for macro in configuration.macros] + (cuda_flags(args) if configuration.linked else [])
    flags += other_flags(args)
    source = folder / f"unit{task.number}{task.suffix}"
    names = (*configuration.before, name_and_root(args.header)[0])
    text = f"{MODES[mode]}#define CAI_IMPLEMENTATION\n" + "".join(f'#include "{name}"\n' for name in names)
    source.write_text(text + (KEEP % configuration.keep if mode == "static" else ""), encoding="utf-8")
    prefix = "mylib_" if "namespace" in mode else ""
    wanted = {"keep"} if mode == "static" else {prefix + name for name in api - configuration.without}
    for level in task.levels:
        unit = source.with_suffix(".o")
        label = f"{task.label} {level}"
        # Not position-independent: constant tables of pointers then lie in read-only data.
        compile_unit(task.compiler, source, args.header, unit, *flags, level, "-c", "-fno-pic")
        needed = check_object(args.nm, label, unit, wanted, set(configuration.needs), report, configuration.mutable)
        # Static functions that nobody calls are dropped, with what they need; clang -Os makes calloc of malloc.
        if mode != "static" and level != "-Os":
            report.expect(label, "needed", needed & configuration.needs, set(configuration.needs))
    if not task.library:
        return report
    library = source.with_suffix(".so")
    flags += [task.library, "-shared", "-fPIC", "-nostdlib"]
    compile_unit(task.compiler, source, args.header, library, *flags)
    exported = {name for letter, name in symbols(args.nm, library, "-D", "--defined-only") if letter != "A"}
    report.objects += 1
    report.exported += len(exported)
    report.expect(task.label, "exported", exported, wanted if "shared" in mode or mode == "static" else set())
    return report


def check_alone(args: argparse.Namespace, task: Task, folder: pathlib.Path, own: set[str], core: set[str]) -> Report:
    """The implementation of an extension without that of the core, of which it needs functions then."""
    report = Report()
    source = folder / f"alone{task.number}{task.suffix}"
    source.write_text(f'#define {subject_of(args.header).switch}\n#include "{name_and_root(args.header)[0]}"\n', encoding="utf-8")
    unit = source.with_suffix(".o")
    flags = [f"-D{macro}" for macro in task.configuration.macros] + other_flags(args)
    compile_unit(task.compiler, source, args.header, unit, *flags, task.levels[0], "-c", "-fno-pic")
    needs = set(task.configuration.needs if task.configuration.alone is None else task.configuration.alone)
    root = name_and_root(args.header)[1]
    own = own.union(*(api_names(root / name, report) for name in subject_of(args.header).together))
    needed = check_object(args.nm, f"{task.label} alone", unit, own - task.configuration.without, needs | core, report,
                          task.configuration.mutable)
    report.needed -= core
    below = " and ".join(subject_of(args.header).below)
    print(f"{task.label} alone: needs of {below}: {', '.join(sorted(needed & core))}")
    return report


def check_sections(header: pathlib.Path, report: Report) -> None:
    """The declarations have sections. The index of the implementation names its sections, in their order."""
    declared, _, rest = header.read_text().partition(">>implementation")
    index, _, implementation = rest.partition("*/")
    banner = re.compile(r"^/\* -+ >>(.+) \*/$", re.MULTILINE)
    named = [name.strip(" *") for name in index.replace("\n", "").split(">>")[1:]]
    sections = banner.findall(implementation)
    if named != sections:
        report.failures.append(f"{header.name}: the index names {named}, the sections are {sections}")
    if not banner.search(declared):
        report.failures.append(f"{header.name}: the declarations have no >>section")


def with_headers(
    args: argparse.Namespace, configurations: tuple[Configuration, ...], report: Report
) -> tuple[tuple[Configuration, ...], dict[Configuration, set[str]]]:
    """Those whose headers can be compiled here, and the functions of these."""
    root = name_and_root(args.header)[1]
    lacks = {name: set(SUBJECTS[pathlib.Path(name).name].others) - set(others_of(args))
             for row in configurations for name in row.before}  # fmt: skip
    rows = tuple(row for row in configurations if not any(lacks[name] for name in row.before))
    for row in configurations:
        if row not in rows:
            print(f"left out: {row.name}, which needs {' and '.join(sorted(set().union(*map(lacks.get, row.before))))}")
    functions = {name: api_names(root / name, report) for name in sorted({name for row in rows for name in row.before})}
    return rows, {row: set().union(*(functions[name] for name in row.before)) for row in rows}


def tasks_of(args: argparse.Namespace, configurations: tuple[Configuration, ...]) -> list[Task]:
    """Every compiler, language, configuration and mode of the tier."""
    light = subject_of(args.header).light
    main = [(args.gcc, ".c"), (args.clangxx, ".cpp")]
    compilers = main + ([] if light else [(args.gxx, ".cpp"), (args.clang, ".c")])
    tasks = []
    for compiler, suffix in compilers:
        for configuration in configurations if compiler else ():
            for mode in configuration.modes:
                first = configuration is configurations[0]
                once = first and mode == "default"
                levels: tuple[str, ...] = ("-O1",) if light else ("-O0", "-O2")
                library = levels[-1]
                if args.tier == "full":
                    if (compiler, suffix) not in main and not once:
                        continue
                    levels = ("-O0", "-Os") if once and (compiler, suffix) in main else ("-O0",)
                    library = "-O0" if first and (once or "shared" in mode) else ""
                tasks.append(Task(compiler, suffix, configuration, mode, len(tasks), levels, library))
    return tasks


def main() -> int:
    """Every compiler, language, configuration and mode."""
    parser = argument_parser(__doc__ or "")
    parser.add_argument("--nm", default=shutil.which("nm"))
    add_others(parser)
    args = parser.parse_args()
    if missing(args):
        print(f"skipped: {args.header.name}: {missing(args)}")
        return 77
    args.header = args.header.resolve()
    report = Report()
    own = api_names(args.header, report)
    check_sections(args.header, report)
    # An extension comes with the headers that it extends.
    core: set[str] = set()
    for name in subject_of(args.header).below:
        core |= api_names(name_and_root(args.header)[1] / name, report)
    configurations = CONFIGURATIONS.get(args.header.name, (Configuration(),))
    configurations, before = with_headers(args, configurations, report)
    if not cuda_flags(args):
        skipped = [configuration.name for configuration in configurations if configuration.linked]
        print(f"no headers of CUDA here, so not: {'; '.join(skipped)}" if skipped else "no headers of CUDA here")
        configurations = tuple(configuration for configuration in configurations if not configuration.linked)
    tasks = tasks_of(args, configurations)
    with tempfile.TemporaryDirectory(prefix="cai-symbols-") as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = pathlib.Path(name)
        for compiler, language in ((args.clang, "c"), (args.clangxx, "c++")):
            if compiler:
                check_declarations(args, compiler, language, folder, report)
        done = list(pool.map(lambda task: check_mode(args, task, folder, own | core | before[task.configuration]), tasks))
        if core:
            first = [task for task in tasks if task.configuration is configurations[0] and task.mode == "default"]
            done += pool.map(lambda task: check_alone(args, task, folder, own, core), first)
    for part in done:
        report.add(part)
    for failure in report.failures[:40]:
        print(f"FAILED: {failure}")
    print(f"{report.objects} objects, {report.defined} global symbols defined, {report.exported} exported; "
          f"needed from outside: {', '.join(sorted(report.needed)) or 'nothing'}")  # fmt: skip
    print(f"foreign symbols {report.foreign}, mutable data {report.mutable}, "
          f"failures {len(report.failures)}, {cpu_seconds()}")  # fmt: skip
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
