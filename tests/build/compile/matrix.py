"""Compiles cai.h, or an extension of it, with every compiler, standard and mode; no compiler may say anything.

    matrix.py [gcc] [clang] [nvcc] [linkage]     all of these without arguments
    matrix.py [m32] [mingw]                      32-bit and Windows, strict, without CUDA's headers
              [--tier full|exhaustive] [--header FILE] [--gcc PROGRAM] ... [--cuda-include FOLDER] [--jobs N]
              [--dlpack-include FOLDER] [--python-include FOLDER]

Modes (subjects.py): declarations only; the implementation; CAI_STATIC, all or few functions used; CAI_SHARED
with CAI_BUILD; CAI_NAMESPACE; included twice; of cai_stream.h and cai_manager.h also the backends, the switches
and the orders of headers. Family linkage: what must not compile or link (late configuration, two versions, a
misspelt switch), each beside a control that must, and programs made of two renamed copies. First the
diagnostic pragmas of the header. Exit status 77: the header needs one of another project, which is not
there. Tier full takes the syntax of every mode in the oldest and the newest standard, that of the main modes in
all standards, and compiles a dozen (MAIN); exhaustive takes every mode in every standard, and compiles each mode, the
main ones at four optimizations.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import sys
import tempfile

from compilers import HEADER, Job, Tally, argument_parser, cpu_seconds, cuda_flags, name_and_root, run_all
from subjects import (
    ALL, DEFAULT_STREAM, HOST, IMPLEMENT, LIMITED, LINKED, LINKED_MAIN, NVCC, ONE, OTHERS, RUNTIME_HEADER,
    SUBJECTS, SYNTAX, USUAL, Mode, add_others, missing, modes_of, other_flags, others_of, subject_of,
)  # fmt: skip

MAX_IGNORED = 3  # diagnostic pragmas that the header may contain

STRICT = """-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align
 -Wdouble-promotion -Wformat=2 -Wvla -Werror""".split()
STRICT_C = "-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wc++-compat".split()
STRICT_CXX = "-Wold-style-cast -Wzero-as-null-pointer-constant -Wmissing-declarations -Wextra-semi".split()
GCC_MORE = """-Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wnull-dereference
 -Walloca -Wtrampolines -Wredundant-decls""".split()

# Parts of clang's -Weverything that are no advice for this header, with the reason.
NOT_EVERYTHING = {
    "padded": "reports every struct with padding; the ABI structs are checked by layout.txt",
    "c++98-compat-pedantic": "C++11 is the least",
    "unsafe-buffer-usage": "reports pointer arithmetic and indexing as such (clang 16)",
    "unknown-warning-option": "this list serves several versions",
    "used-but-marked-unused": "CAI_STATIC marks all functions unused, and some are used",
    "unused-macros": "the switches that a unit defines and the header only tests",
    "disabled-macro-expansion": "CAI_NAMESPACE renames by #define name PASTE(name)",
}

C_STANDARDS = ("c99", "c11", "c17", "c2x")
CXX_STANDARDS = ("c++11", "c++14", "c++17", "c++20")
CUDA_STANDARDS = ("c++17", "c++20")
# Of subjects that are light; the first of each language is the one in which all is compiled.
LIGHT = {"c": ("c99", "c11"), "c++": ("c++11", "c++17"), "cuda": ("c++17",)}

# Tier full: what is compiled, by mode and standard; all else is syntax. What a parser sees (conversions,
# shadowing, casts, names, keywords of a standard) shows in the syntax. What needs the flow of data (array-bounds,
# maybe-uninitialized, null-dereference, stringop-overflow, format-overflow) needs an optimizer, and
# sees most where functions come together: one user of static functions. Neither depends on the standard, but
# for what a language has of its own. gcc says of the flow of control (return-type, implicit-fallthrough,
# unused-function) only when it compiles; clang says it of the syntax, so it is seen in every mode.
#
# What the jobs of exhaustive would see besides: a warning of an optimizer in code that only one combination
# of switches has, or that only -O3 of C++ or nvcc at another level shows. No such one is known. The last
# warning that showed at -O2 alone, maybe-uninitialized in cai_ipc.h, showed in "static, few used". Planted
# in cai.h and found: a variable that a failing function leaves uninitialized and a copy past the end of an
# array, which gcc says from -O1 on, each in 9 of the 10 jobs that compile; a sign conversion that only C23,
# only C++11 or only C++20 sees, in all modes with the implementation.
EVERY_SWITCH = "CAI_NO_CUDART, CAI_NO_LOADER, CAI_NO_THREADS"
MAIN: dict[str, dict[str, tuple[str, ...]]] = {
    "implementation": {"c99": ("-O0", "-O2", "-O3", "-Os"), "c++11": ("-O2",), "c++20": ("-Os",)},
    "static, few used": {"c99": ("-O2",), "c2x": ("-O2",), "c++11": ("-O2",), "c++20": ("-O3",)},
    "linked": {"c99": ("-O2",), "c++11": ("-O2",)},
    f"alone, {EVERY_SWITCH}": {"c99": ("-O2",)},
    f"all, {EVERY_SWITCH}": {"c99": ("-O2",)},
}
# Of light subjects; "after cai_stream.h, limited" is all of cai_python.h, or of cai_python_dlpack.h.
MAIN_LIGHT: dict[str, dict[str, tuple[str, ...]]] = {
    "implementation": {"c99": ("-O2",)},
    "static, few used": {"c99": ("-O2",), "c++11": ("-O2",)},
    "after cai_stream.h, limited": {"c99": ("-O2",)},
    "after cai_stream.h": {"c++11": ("-O2",)},
}
# Of another version of clang; what nvcc compiles.
MAIN_LATER = {"static, few used": {"c99": ("-O2",), "c++11": ("-O2",)}}
LATEST_KNOWN = 16
LATER_STANDARDS = {"c": ("c99", "c2x"), "c++": ("c++20", "c++11")}  # only the first, but for the main modes
MAIN_NVCC: dict[str, dict[str, tuple[str, ...]]] = {
    "implementation": {"c++17": ("-O0",)},
    "static, few used": {"c++20": ("-O2",)},
    "headers of CUDA first": {"c++17": ("-O0",)},
    "per thread": {"c++17": ("-O0",)},
    f"alone in a .cu, {EVERY_SWITCH}": {"c++17": ("-O0",)},
}


class Sources:
    """Files in a temporary folder, written once each."""

    def __init__(self, folder: pathlib.Path, args: argparse.Namespace, cuda: list[str]) -> None:
        self.folder = folder
        self.subject = subject_of(args.header)
        self.full = args.tier == "full"
        self.name, self.root = name_and_root(args.header)
        self.include = f"-I{self.root}"
        self.cuda = cuda
        self.others = set(others_of(args))
        self.other = other_flags(args)
        self.count = 0

    def write(self, text: str, suffix: str) -> str:
        """The path of a new file with this text."""
        self.count += 1
        path = self.folder / f"unit{self.count}{suffix}"
        path.write_text(text.replace("@header", self.name), encoding="utf-8")
        return str(path)

    def output(self, suffix: str = ".o") -> str:
        """The path of a file to be made."""
        self.count += 1
        return str(self.folder / f"made{self.count}{suffix}")


def backend_flags(sources: Sources, mode: Mode) -> list[str] | None:
    """What a host compiler needs for the backend and the headers of a mode; None where those are missing."""
    if set(mode.others) - sources.others:
        return None
    if mode.backend == LINKED:
        return [*sources.cuda, *mode.flags, *sources.other] if sources.cuda else None
    return [*(sources.subject.host_flags if mode.backend == USUAL else ()), *mode.flags, *sources.other]


def standards_of(sources: Sources, mode: Mode, language: str) -> tuple[str, ...]:
    """The standards in which a mode is compiled. What a standard between the oldest and the newest one has of its own,
    all modes with the implementation see."""
    if sources.subject.light:
        return LIGHT[language][: 2 if mode.levels == ALL else 1]
    every = {"c": C_STANDARDS, "c++": CXX_STANDARDS, "cuda": CUDA_STANDARDS}[language]
    return (every[0], every[-1]) if sources.full and mode.levels != ALL else every


def optimizations(title: str, mode: Mode, standard: str, sources: Sources,
                  later: bool = False) -> tuple[str, ...]:
    """The levels at which a mode is compiled in a standard; none: its syntax alone. Warnings that need an optimizer
    do not depend on the standard, so one of each language has the levels. later: of a compiler that has another
    version beside it, which has them all."""
    light = sources.subject.light
    if sources.full:
        main = MAIN_LATER if later else MAIN_LIGHT if light else MAIN
        return main.get(title, {}).get(standard, ())
    if light:
        return ("-O2",) if mode.levels in (ALL, ONE) and standard in ("c99", "c++11") else ()
    if standard not in ("c99", "c++17"):
        return ()
    if mode.levels == ALL:
        return ("-O2",) if later else ("-O0", "-O2", "-O3", "-Os")
    return ("-O2",) if mode.levels == ONE and not later else ()


def host_jobs(sources: Sources, compiler: str, language: str, flags: list[str],
              standards: tuple[str, ...] = (), few: bool = False, later: bool = False) -> list[Job]:
    """Every mode and standard of one compiler and language ("c" or "c++"). few: the modes that have all levels,
    in one standard. later: see optimizations."""
    jobs = []
    standards = standards or (LIGHT[language][:1] if few else ())
    for title, mode in modes_of(sources.subject).items():
        backend = backend_flags(sources, mode)
        if mode.where == NVCC or backend is None or (few and mode.levels != ALL):
            continue
        source = sources.write(mode.text, ".c" if language == "c" else ".cpp")
        of_mode = standards if mode.levels == ALL or not later else standards[:1]
        for standard in of_mode or standards_of(sources, mode, language):
            command = [compiler, "-x", language, f"-std={standard}", *flags, *backend, sources.include]
            name = f"{compiler} {standard} {title}"
            levels = optimizations(title, mode, standard, sources, later)
            if not levels:
                jobs.append(Job(f"{name} syntax", [*command, "-fsyntax-only", source]))
            for level in levels:
                jobs.append(Job(f"{name} {level}", [*command, level, "-c", source, "-o", sources.output()]))
    return jobs


def gcc_jobs(sources: Sources, gcc: str, gxx: str) -> list[Job]:
    """gcc and g++."""
    flags = STRICT + GCC_MORE
    return host_jobs(sources, gcc, "c", flags + STRICT_C) + host_jobs(sources, gxx, "c++", flags + STRICT_CXX)


def other_machine_jobs(sources: Sources, family: str, args: argparse.Namespace) -> list[Job]:
    """32-bit and Windows: other widths of long, size_t and pointers. CUDA has no headers for the first."""
    flags = STRICT + GCC_MORE
    if family == "mingw":
        return host_jobs(sources, args.mingw, "c", flags + STRICT_C, ("c99", "c11"))
    flags = args.m32_flags.split() + flags
    return (host_jobs(sources, args.gcc, "c", flags + STRICT_C, ("c99",))
            + host_jobs(sources, args.gxx, "c++", flags + STRICT_CXX, ("c++11", "c++17")))  # fmt: skip


def clang_jobs(sources: Sources, clang: str, clangxx: str) -> list[Job]:
    """clang with -Weverything but for the list above, and later ones, clang-N, beside it: those that are known to have
    nothing to say; of the tier exhaustive all."""
    everything = ["-Weverything", *(f"-Wno-{name}" for name in NOT_EVERYTHING), *STRICT]
    pairs = {(clang, clangxx)}
    for number in range(15, LATEST_KNOWN + 1 if sources.full else 30):
        later, laterxx = shutil.which(f"clang-{number}"), shutil.which(f"clang++-{number}")
        if later and laterxx:
            pairs.add((later, laterxx))
    jobs = []
    for c, cxx in sorted(pairs):
        later = c != clang
        few = sources.subject.light and later
        for compiler, language, more in ((c, "c", STRICT_C), (cxx, "c++", STRICT_CXX)):
            standards = LATER_STANDARDS[language] if later and sources.full else ()
            jobs += host_jobs(sources, compiler, language, everything + more, standards, few, later)
    return jobs


def nvcc_levels(title: str, mode: Mode, standard: str, sources: Sources) -> tuple[str, ...]:
    """The levels at which nvcc compiles a mode in a standard; the host compilers see what is syntax alone."""
    if sources.full:
        return MAIN_NVCC.get(title, {}).get(standard, ())
    light, first = sources.subject.light, standard == CUDA_STANDARDS[0]
    if (light and mode.levels != ALL) or (mode.levels == SYNTAX and mode.where != NVCC):
        return ()
    if not first and mode.levels != ALL:
        return ()
    return ("-O0", "-O2") if first and mode.levels == ALL and not light else ("-O0",)


def nvcc_jobs(sources: Sources, nvcc: str, gxx: str) -> list[Job]:
    """nvcc. CUDA's own headers do not pass the strict flags, so only what is said of ours counts;
    -Wpedantic is about the line directives that nvcc itself writes."""
    host = ",".join(flag for flag in STRICT + STRICT_CXX if flag not in ("-Werror", "-Wpedantic"))
    jobs = []
    for title, mode in modes_of(sources.subject).items():
        if mode.where == HOST or set(mode.others) - sources.others:
            continue
        source = sources.write(mode.text, ".cu")
        for standard in standards_of(sources, mode, "cuda"):
            for level in nvcc_levels(title, mode, standard, sources):
                jobs.append(Job(
                    f"nvcc {standard} {title} {level}",
                    [nvcc, "-ccbin", gxx, "-x", "cu", f"-std={standard}", level, "-Xcompiler", host, *mode.flags,
                     *sources.other, sources.include, "-c", source, "-o", sources.output()],
                    only=(str(sources.root), source),
                ))  # fmt: skip
    return jobs + stream_jobs_nvcc(sources, nvcc, gxx)


def program(sources: Sources, name: str, compiler: list[str], texts: list[str], suffix: str, refuse: str = "") -> Job:
    """Compiles and links units to a program and runs it; or must fail to."""
    made = sources.output(".exe")
    files = [sources.write(text, suffix) for text in texts]
    runs = made if not refuse and "-r" not in compiler else ""
    return Job(name, [*compiler, *sources.other, sources.include, *files, "-o", made], refuse, runs=runs)


def stream_jobs_nvcc(sources: Sources, nvcc: str, gxx: str) -> list[Job]:
    """What a NULL stream means, and cai_cuda_linked, in programs made by nvcc; neither needs a GPU."""
    if sources.name != "cai_stream.h":
        return []
    jobs = []
    per_thread, define = ["--default-stream", "per-thread"], "#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n"
    cases = (
        ("legacy", [], "", 1), ("--default-stream per-thread", per_thread, "", 2),
        ("--default-stream legacy", ["--default-stream", "legacy"], "", 1),
        ("-D", ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"], "", 2),
        ("defined in the unit, too late for nvcc", [], define, 1),
        ("defined before, and the core there", per_thread, '#include "cai.h"\n', 2),
    )  # fmt: skip
    for title, flags, first, expected in cases[:2] if sources.full else cases:
        text = first + DEFAULT_STREAM % {"decorated": "__CUDART_API_PTSZ(cudaMemcpyAsync)", "expected": expected}
        jobs.append(program(sources, f"nvcc CAI_STREAM(0), {title}", [nvcc, "-ccbin", gxx, *flags], [text], ".cu"))
    for title, flags in (("per-thread", per_thread), ("legacy", []))[: 1 if sources.full else 2]:
        command = [nvcc, "-ccbin", gxx, *flags]
        jobs.append(program(sources, f"nvcc cai_cuda_linked, {title}", command, [LINKED_MAIN], ".cu"))
    core = '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n'
    jobs.append(program(sources, "nvcc core in another unit", [nvcc, "-ccbin", gxx],
                        [core, LINKED_MAIN.replace("CAI_IMPLEMENTATION", "CAI_STREAM_IMPLEMENTATION")], ".cu"))  # fmt: skip
    return jobs


def two_copies(sources: Sources, compiler: str, suffix: str, flags: list[str], first: str, second: str) -> Job:
    """A program of two copies."""
    how = {
        "namespace": "#define CAI_NAMESPACE %s_\n", "static": "#define CAI_STATIC\n", "plain": "",
    }  # fmt: skip
    copy, main = sources.subject.copies
    texts = [main]
    for name, kind in (("alpha", first), ("beta", second)):
        configuration = how[kind] % name if "%s" in how[kind] else how[kind]
        texts.append(f"{configuration}{IMPLEMENT}#include <stddef.h>\n" + copy % {"name": name})
    return program(sources, f"{compiler}: copies {first} + {second}", [compiler, *flags], texts, suffix)


def other_versions(sources: Sources, header: pathlib.Path) -> str:
    """An include flag for a folder with copies that say other versions: later.h of the header, and for each
    header below it a folder of that name: the header as later.h, beside one below that it does not know."""

    def copy(path: pathlib.Path, guard: str, by: int, to: pathlib.Path) -> None:
        text = path.read_text(encoding="utf-8")
        number = re.search(rf"^#define {guard} (\d+)", text, re.MULTILINE)
        assert number, f"{guard} has no value"
        text = re.sub(rf"\b({guard} (?:!= )?){number[1]}\b", rf"\g<1>{int(number[1]) + by}", text)
        to.write_text(text, encoding="utf-8")

    copy(header, sources.subject.guard, 1, sources.folder / "later.h")
    for unknown in sources.subject.below:
        folder = sources.folder / pathlib.Path(unknown).stem
        folder.mkdir(exist_ok=True)
        shutil.copy(header, folder / "later.h")
        for name in sources.subject.below:
            path = sources.root / name
            copy(path, SUBJECTS[path.name].guard, 100 if name == unknown else 0, folder / path.name)
    return f"-I{sources.folder}"


def linkage_jobs(sources: Sources, header: pathlib.Path, compiler: str, language: str) -> list[Job]:
    """What must be refused, and the same thing done right."""
    subject = sources.subject
    use = f"#include <stddef.h>\nint main(void) {{ return {subject.link}; }}\n"
    command = [compiler, "-x", language, *subject.host_flags, *sources.other, sources.include, other_versions(sources, header)]
    command.append(f"-I{sources.root}/ext")  # for a copy of cai_ipc.h
    jobs = []

    def add(name: str, text: str, refuse: str = "", link: bool = False, flags: tuple[str, ...] = ()) -> None:
        source = sources.write(text, ".c" if language == "c" else ".cpp")
        output = [source, "-o", sources.output(".exe")] if link else ["-fsyntax-only", source]
        jobs.append(Job(f"{compiler} {language} {name}", [*command, *flags, *output], refuse))

    first = '#include "@header"\n'
    for macro, value in (("CAI_STATIC", ""), ("CAI_SHARED", ""), ("CAI_NAMESPACE", " mylib_")):
        define = f"#define {macro}{value}\n"
        late = f"define {macro} before the first include"
        add(f"early {macro}", define + first + define + IMPLEMENT)
        add(f"late {macro}, implementation", first + define + IMPLEMENT, late)
        add(f"late {macro}, declarations", first + define + first, late)
        add(f"{macro} taken back", define + first + f"#undef {macro}\n" + IMPLEMENT, late)
        for name in subject.below:
            below = f'#include "{name}"\n'
            add(f"{macro} between {name} and header", below + define + first, late)
            add(f"{macro} before {name} and header", define + below + first)
    add("other namespace", "#define CAI_NAMESPACE one_\n" + first + "#undef CAI_NAMESPACE\n"
        "#define CAI_NAMESPACE two_\n" + IMPLEMENT, "error")  # fmt: skip
    add("static and shared", "#define CAI_STATIC\n#define CAI_SHARED\n" + first, "exclude each other")
    add("same version twice", first + first)
    add("later version after", first + '#include "later.h"\n', subject.other_version)
    add("later version before", '#include "later.h"\n' + first, subject.other_version, flags=(f"-I{sources.root / 'ext'}",))
    for name in subject.below:
        file, folder = pathlib.Path(name).name, pathlib.Path(name).stem
        add(f"another {name}", f'#include "{folder}/later.h"\n', f"needs {file} 0.2", flags=(f"-I{sources.folder}/{folder}",))
    if not subject.link:
        return jobs
    add("linked", IMPLEMENT + use, link=True)
    misspelt = IMPLEMENT.replace("CAI_IMPLEMENTATION", "CAI_IMPLEMENTATIOn")
    add("misspelt switch", misspelt + use, subject.linked, link=True)
    add("static without implementation", "#define CAI_STATIC\n" + misspelt + use, subject.linked, link=True)
    return jobs


def stream_linkage_jobs(sources: Sources, compiler: str, language: str) -> list[Job]:
    """What of cai_stream.h each switch leaves out, units of its own, runtimes, and what a NULL stream means."""
    suffix = ".c" if language == "c" else ".cpp"
    alone = '#define CAI_STREAM_IMPLEMENTATION\n#include "@header"\n'
    core = '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n'
    use = "static cai_cuda_driver driver;\nint main(void) { return %s; }\n"
    load = use % "cai_cuda_load(&driver, NULL, NULL) && driver.library"
    linked = use % "cai_cuda_linked(&driver, NULL) && driver.library"
    jobs = []

    def add(name: str, texts: list[str], flags: list[str], refuse: str = "") -> None:
        jobs.append(program(sources, f"{compiler} {language} {name}", [compiler, *flags], texts, suffix, refuse))

    no_cudart = ["-DCAI_NO_CUDART"]
    link = ["-ldl", "-pthread"]  # nothing of glibc 2.34 and later, which has both in itself
    copy, main = sources.subject.copies
    units = [main, copy % {"name": "alpha"}, copy % {"name": "beta"}]
    declared = [f'#include "@header"\n#include <stddef.h>\n{text}' for text in units]
    add("core in another unit", [core, alone, *declared], [*no_cudart, *link])
    add("core missing", [alone, *declared], [*no_cudart, *link], "cai_array_check")
    add("stream missing", [core, *declared], [*no_cudart, *link], "cai_exchange_begin")
    add("CAI_IMPLEMENTATION is both", [IMPLEMENT, *declared], [*no_cudart, *link])
    add("with the loader", [IMPLEMENT + load], [*no_cudart, *link])
    add("CAI_NO_LOADER", [IMPLEMENT + load], [*no_cudart, "-DCAI_NO_LOADER"], "cai_cuda_load")
    add("CAI_NO_CUDART", [IMPLEMENT + linked], [*no_cudart, *link], "cai_cuda_linked")
    add("CAI_NO_CUDART and CAI_NO_LOADER need no library", [IMPLEMENT, *declared], [*no_cudart, "-DCAI_NO_LOADER"])
    if sources.cuda:
        add("linked without the runtime", [IMPLEMENT + linked], [*sources.cuda, *link], "cudaGetDriverEntryPoint")
    for version in (11020, 11030, 12000, 12050, 13000):
        folder = sources.folder / f"runtime{version}"
        folder.mkdir(exist_ok=True)
        (folder / "cuda_runtime_api.h").write_text(RUNTIME_HEADER % {"version": version}, encoding="utf-8")
        unit = sources.write(IMPLEMENT, suffix)
        jobs.append(Job(f"{compiler} {language} runtime {version}",
                        [compiler, "-Wall", "-Wextra", f"-I{folder}", sources.include, "-fsyntax-only", unit],
                        "needs CUDA 11.3" if version < 11030 else ""))  # fmt: skip
    define = "#define CUDA_API_PER_THREAD_DEFAULT_STREAM\n"
    runtime = "#include <cuda_runtime_api.h>\n"
    plain = [("legacy", "", "x", 1, no_cudart), ("per thread", define, "x_ptsz", 2, no_cudart)]
    named = "__CUDART_API_PTSZ(cudaMemcpyAsync)"
    with_headers = [
        ("legacy, runtime first", runtime, named, 1, sources.cuda),
        ("per thread, runtime first", define + runtime, named, 2, sources.cuda),
        ("defined too late for the runtime", runtime + define, named, 1, sources.cuda),
        ("per thread by cuda.h", define + "#include <cuda.h>\n", "__CUDA_API_PTSZ(cuMemcpyAsync)", 2, sources.cuda),
        ("defined too late for cuda.h", "#include <cuda.h>\n" + define, "__CUDA_API_PTSZ(cuMemcpyAsync)", 1, sources.cuda),
    ]
    for title, text, decorated, expected, flags in plain + (with_headers if sources.cuda else []):
        text += DEFAULT_STREAM % {"decorated": decorated, "expected": expected}
        add(f"CAI_STREAM(0), {title}", [text], list(flags))
    return jobs


# What is missed where the implementation of a header is left out
MISSED = {
    "cai_emm.h": {"cai.h": "cai_array_init", "cai_stream.h": "cai_cuda_status", "cai_emm.h": "cai_emm_array"},
    "cai_manager.h": {"cai.h": "cai_array_check", "cai_stream.h": "cai_keepalive_poll", "cai_emm.h": "cai_emm_hooks_check",
                      "cai_manager.h": "cai_manager_init"},
    "cai_storage.h": {"cai.h": "cai_array_check", "cai_stream.h": "cai_exchange_begin", "cai_emm.h": "cai_emm_alloc",
                      "cai_layout.h": "cai_layout_plan", "cai_transfer.h": "cai_transfer_plan",
                      "cai_storage.h": "cai_storage_init"},
}  # fmt: skip


def unit_linkage_jobs(sources: Sources, header: pathlib.Path, compiler: str, language: str) -> list[Job]:
    """Units of its own for each of the headers, and which of them is missed where it is not there."""
    suffix = ".c" if language == "c" else ".cpp"
    names = (*sources.subject.below, sources.name)
    units = {name: f'#define {SUBJECTS[pathlib.Path(name).name].switch}\n#include "{name}"\n' for name in names}
    for name in units:
        if name.endswith("cai_transfer.h"):  # cai_transfer_copy needs it
            units[name] = '#include "cai_stream.h"\n' + units[name]
    copy, main = sources.subject.copies
    declared = [f'#include "@header"\n#include <stddef.h>\n{text}' for text in (main, copy % {"name": "alpha"}, copy % {"name": "beta"})]
    jobs = []

    def add(name: str, texts: list[str], refuse: str = "", flags: tuple[str, ...] = ()) -> None:
        command = [compiler, "-DCAI_NO_CUDART", "-DCAI_NO_LOADER", *flags]
        jobs.append(program(sources, f"{compiler} {language} {name}", command, [*texts, *declared], suffix, refuse))

    add("a unit for each", list(units.values()))
    add("CAI_IMPLEMENTATION is all of them", [IMPLEMENT])
    add("CAI_NO_THREADS", [IMPLEMENT], flags=("-DCAI_NO_THREADS",))
    *below, own = units.values()
    add("those below in one unit", ["".join(below), own])
    for name, function in MISSED[header.name].items():
        add(f"{name} missing", [text for unit, text in units.items() if pathlib.Path(unit).name != name], function)
    return jobs


def other_header_jobs(sources: Sources, compiler: str, language: str) -> list[Job]:
    """Versions of the header of another project that are refused, each beside one that is taken."""
    first = '#include "@header"\n'
    units = {
        "cai_hip.h": (
            ("no platform", "#undef __HIP_PLATFORM_AMD__\n" + IMPLEMENT, "define __HIP_PLATFORM_AMD__"),
            ("per-thread streams", "#define HIP_API_PER_THREAD_DEFAULT_STREAM\n" + IMPLEMENT, "without per-thread default streams"),
        ),
        "cai_python.h": (
            ("limited API of 3.11", f"#define {LIMITED[2:].replace('=', ' ')}\n" + first, ""),
            ("limited API of 3.10", "#define Py_LIMITED_API 0x030a0000\n" + first, "0x030b0000 or above"),
            ("limited API without a version", "#define Py_LIMITED_API\n" + first, "0x030b0000 or above"),
            ("limited API of 3", "#define Py_LIMITED_API 3\n" + first, "0x030b0000 or above"),
            ("Python 3.10", "#include <Python.h>\n#undef PY_VERSION_HEX\n#define PY_VERSION_HEX 0x030a00f0\n" + first, "Python 3.11"),
        ),
    }  # fmt: skip
    jobs = []
    for name, text, refuse in units.get(pathlib.Path(sources.name).name, ()):
        source = sources.write(text, ".c" if language == "c" else ".cpp")
        command = [compiler, "-x", language, *sources.subject.host_flags, *sources.other, sources.include]
        jobs.append(Job(f"{compiler} {language} {name}", [*command, "-fsyntax-only", source], refuse))
    return jobs


def linkage(sources: Sources, header: pathlib.Path, args: argparse.Namespace) -> list[Job]:
    """All of the family linkage. Tier full: C by gcc and C++ by clang, and what is linked is at -O0."""
    jobs = []
    flags = ["-O0" if sources.full else "-O1", *sources.subject.host_flags]
    if not sources.subject.link:  # one object of several then, which is what clashes, too
        flags += ["-r", "-nostdlib"]
    compilers = ((args.gcc, "c"), (args.gxx, "c++"), (args.clang, "c"), (args.clangxx, "c++"))
    few = sources.full or sources.subject.light
    for compiler, language in (compilers[0], compilers[3]) if few else compilers:
        if not compiler:
            continue
        jobs += linkage_jobs(sources, header, compiler, language)
        suffix = ".c" if language == "c" else ".cpp"
        for pair in (("namespace", "namespace"), ("namespace", "plain"), ("static", "static")):
            jobs.append(two_copies(sources, compiler, suffix, flags, *pair))
        jobs += other_header_jobs(sources, compiler, language)
        if header.name == "cai_stream.h":
            jobs += stream_linkage_jobs(sources, compiler, language)
        if header.name in MISSED:
            jobs += unit_linkage_jobs(sources, header, compiler, language)
    # Two plain copies clash: the control of the lines above, and why CAI_NAMESPACE exists.
    if args.gcc:
        jobs.append(program(sources, "two plain copies", [args.gcc, *flags],
                            [IMPLEMENT, IMPLEMENT, "int main(void) { return 0; }\n"], ".c", "multiple definition"))  # fmt: skip
    return jobs


def pragmas(header: pathlib.Path) -> list[str]:
    """Prints every diagnostic pragma with its comment; gives what is wrong with them."""
    failures: list[str] = []
    ignored = depth = 0
    lines = header.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if not re.search(r"#\s*pragma\b|_Pragma\s*\(|__pragma\s*\(", line):
            continue
        before = next((text for text in reversed(lines[max(0, number - 4) : number - 1])
                       if "/*" in text or text.startswith(" *")), "")  # fmt: skip
        reason = line if "/*" in line else before
        print(f"{header.name}:{number}: {line.strip()}" + ("" if "/*" in line else f"    {before.strip()}"))
        depth += len(re.findall(r"\bpush\b", line)) - len(re.findall(r"\bpop\b", line))
        if re.search(r"\bignored\b|\bdisable\b|\bdiag_suppress\b", line):
            ignored += 1
            if not reason:
                failures.append(f"{header.name}:{number}: a pragma without a reason")
    if depth:
        failures.append(f"{header.name}: {depth:+d} diagnostic pushes without pop")
    if ignored > MAX_IGNORED:
        failures.append(f"{header.name}: {ignored} pragmas ignore a warning, at most {MAX_IGNORED} may")
    print(f"diagnostic pragmas that ignore a warning: {ignored} (at most {MAX_IGNORED})")
    return failures


def main() -> int:
    """Runs the families asked for."""
    parser = argument_parser("Compiles cai.h, or an extension of it, with every compiler, standard and mode.")
    parser.add_argument("families", nargs="*", help="gcc, clang, nvcc, linkage, m32, mingw; the first four by default")
    add_others(parser)
    args = parser.parse_args()
    if missing(args):
        print(f"skipped: {args.header.name}: {missing(args)}")
        return 77
    families = args.families or [name for name in ("gcc", "clang", "nvcc") if getattr(args, name)] + ["linkage"]
    failures = pragmas(args.header)
    cuda = cuda_flags(args)
    with tempfile.TemporaryDirectory(prefix="cai-matrix-") as name:
        sources = Sources(pathlib.Path(name), args, cuda)
        if any(mode.backend == LINKED for mode in sources.subject.modes.values()):
            print(f"CUDA's headers: {cuda[-1]}" if cuda else "no headers of CUDA here: the linked backend is left to nvcc")
        lacking = sorted({other for mode in sources.subject.modes.values() for other in mode.others} - sources.others)
        for other in lacking:
            print(f"left out: what needs {OTHERS[other]} (--{other}-include FOLDER)")
        jobs: list[Job] = []
        if "gcc" in families:
            jobs += gcc_jobs(sources, args.gcc, args.gxx)
        if "clang" in families:
            jobs += clang_jobs(sources, args.clang, args.clangxx)
            for name, reason in NOT_EVERYTHING.items():
                print(f"clang -Weverything without {name}: {reason}")
        if "nvcc" in families:
            jobs += nvcc_jobs(sources, args.nvcc, args.gxx)
        if "linkage" in families:
            jobs += linkage(sources, args.header, args)
        sources.cuda = []
        for family in ("m32", "mingw"):
            if family in families:
                jobs += other_machine_jobs(sources, family, args)
        tally: Tally = run_all(jobs, args.jobs)
    failures += tally.failures
    for failure in failures[:10]:
        print(f"\nFAILED: {failure}")
    print(f"{' '.join(families)}: {tally.compilations} compilations, {tally.diagnostics} warnings and errors, "
          f"{tally.refused} refused as they must be, {tally.ran} programs run, {len(failures)} failures, "
          f"{cpu_seconds()}")  # fmt: skip
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
