"""Compiles cai.h, or an extension of it, with every compiler, standard and mode; no compiler may say anything.

    matrix.py [gcc] [clang] [nvcc] [linkage]     all of them without arguments
              [--header FILE] [--gcc PROGRAM] ... [--jobs N]

Modes: declarations only; the implementation; CAI_STATIC, all or few functions used; CAI_SHARED with
CAI_BUILD; CAI_NAMESPACE; included twice. Family linkage: what must not compile or link (late
configuration, two versions, a misspelt switch), each beside a control that must, and programs made
of two renamed copies. At the end the diagnostic pragmas of the header.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from compilers import Job, Tally, argument_parser, name_and_root, run_all

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

# Mode -> (needs flow analysis, i.e. real compilation; the source)
SOME_USE = """
int use(const cai_array *array, cai_error *err);
int use(const cai_array *array, cai_error *err)
{
    cai_kernel_view view;
    CAI_TRY(cai_expect(array, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    return cai_kernel_view_of(array, &view, err);
}
"""
MODES: dict[str, tuple[bool, str]] = {
    "declarations": (False, '#include "cai.h"\n' + SOME_USE),
    "declarations, shared": (False, '#define CAI_SHARED\n#include "cai.h"\n' + SOME_USE),
    "implementation": (True, '#define CAI_IMPLEMENTATION\n#include "cai.h"\n'),
    "own switch": (False, '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n' + SOME_USE),
    "static": (True, '#define CAI_STATIC\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n'),
    "static, declarations first": (
        False, '#define CAI_STATIC\n#include "cai.h"\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n' + SOME_USE),
    "static, few used": (True, '#define CAI_STATIC\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n' + SOME_USE),
    "shared": (False, '#define CAI_SHARED\n#define CAI_BUILD\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n'),
    "namespace": (False, '#define CAI_NAMESPACE mylib_\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n' + SOME_USE),
    "declarations, then implementation": (
        False, '#include "cai.h"\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n#include "cai.h"\n' + SOME_USE),
    "implementation twice": (
        False, '#define CAI_IMPLEMENTATION\n#include "cai.h"\n#define CAI_IMPLEMENTATION\n#include "cai.h"\n' + SOME_USE),
}  # fmt: skip


class Sources:
    """Files in a temporary folder, written once each."""

    def __init__(self, folder: pathlib.Path, header: pathlib.Path) -> None:
        self.folder = folder
        self.header = str(header.resolve())
        self.name, root = name_and_root(header)
        self.include = f"-I{root}"
        self.count = 0

    def write(self, text: str, suffix: str) -> str:
        """The path of a new file with this text."""
        self.count += 1
        path = self.folder / f"unit{self.count}{suffix}"
        path.write_text(text.replace('"cai.h"', f'"{self.name}"'), encoding="utf-8")
        return str(path)

    def output(self, suffix: str = ".o") -> str:
        """The path of a file to be made."""
        self.count += 1
        return str(self.folder / f"made{self.count}{suffix}")


def host_jobs(sources: Sources, compiler: str, language: str, flags: list[str]) -> list[Job]:
    """Every mode and standard of one compiler and language ("c" or "c++")."""
    jobs = []
    standards = C_STANDARDS if language == "c" else CXX_STANDARDS
    for mode, (whole, text) in MODES.items():
        source = sources.write(text, ".c" if language == "c" else ".cpp")
        for standard in standards:
            command = [compiler, "-x", language, f"-std={standard}", *flags, sources.include]
            name = f"{compiler} {standard} {mode}"
            if not whole:
                jobs.append(Job(f"{name} syntax", [*command, "-fsyntax-only", source]))
                continue
            levels = ("-O0", "-O2", "-O3", "-Os") if standard in ("c99", "c++17") else ("-O0", "-O2")
            for level in levels:
                jobs.append(Job(f"{name} {level}", [*command, level, "-c", source, "-o", sources.output()]))
    return jobs


def gcc_jobs(sources: Sources, gcc: str, gxx: str) -> list[Job]:
    """gcc and g++."""
    flags = STRICT + GCC_MORE
    return host_jobs(sources, gcc, "c", flags + STRICT_C) + host_jobs(sources, gxx, "c++", flags + STRICT_CXX)


def clang_jobs(sources: Sources, clang: str, clangxx: str) -> list[Job]:
    """clang with -Weverything but for the list above, and every later clang-N beside it."""
    everything = ["-Weverything", *(f"-Wno-{name}" for name in NOT_EVERYTHING), *STRICT]
    pairs = {(clang, clangxx)}
    for number in range(15, 30):
        later, laterxx = shutil.which(f"clang-{number}"), shutil.which(f"clang++-{number}")
        if later and laterxx:
            pairs.add((later, laterxx))
    jobs = []
    for c, cxx in sorted(pairs):
        jobs += host_jobs(sources, c, "c", everything + STRICT_C)
        jobs += host_jobs(sources, cxx, "c++", everything + STRICT_CXX)
    return jobs


def nvcc_jobs(sources: Sources, nvcc: str, gxx: str) -> list[Job]:
    """nvcc. CUDA's own headers do not pass the strict flags, so only what is said of ours counts;
    -Wpedantic is about the line directives that nvcc itself writes."""
    host = ",".join(flag for flag in STRICT + STRICT_CXX if flag not in ("-Werror", "-Wpedantic"))
    jobs = []
    for mode, (whole, text) in MODES.items():
        source = sources.write(text, ".cu")
        for standard in CUDA_STANDARDS:
            for level in ("-O0", "-O2") if whole else ("-O0",):
                jobs.append(Job(
                    f"nvcc {standard} {mode} {level}",
                    [nvcc, "-ccbin", gxx, "-x", "cu", f"-std={standard}", level, "-Xcompiler", host, sources.include,
                     "-c", source, "-o", sources.output()],
                    only=(sources.header, source),
                ))  # fmt: skip
    return jobs


PROGRAM = """
int make_%(name)s(cai_array *out, const int64_t *shape, void *data, cai_error *err);
int make_%(name)s(cai_array *out, const int64_t *shape, void *data, cai_error *err)
{
    return cai_array_init(out, CAI_FLOAT32, 2, shape, NULL, data, err);
}
int32_t version_%(name)s(void);
int32_t version_%(name)s(void)
{
    return cai_version();
}
"""
MAIN = """
#include "cai.h"
#include <stdio.h>
int make_alpha(cai_array *out, const int64_t *shape, void *data, cai_error *err);
int make_beta(cai_array *out, const int64_t *shape, void *data, cai_error *err);
int32_t version_alpha(void);
int32_t version_beta(void);
int main(void)
{
    static float values[6];
    const int64_t shape[2] = {2, 3};
    const int64_t bad[2] = {2, -3};
    cai_array a, b;
    cai_error err;
    if (make_alpha(&a, shape, values, &err) || make_beta(&b, shape, values, &err)) return 1;
    if (a.size != 6 || b.size != 6 || a.data != b.data || a.strides[0] != 12) return 2;
    if (make_alpha(&a, bad, values, &err) != CAI_ERR_SHAPE || err.index != 1) return 3;
    if (version_alpha() != CAI_H_INCLUDED || version_beta() != CAI_H_INCLUDED) return 4;
    printf("two copies run\\n");
    return 0;
}
"""


def two_copies(sources: Sources, compiler: str, suffix: str, flags: list[str], first: str, second: str) -> list[str]:
    """Links a program of two copies and runs it; gives what went wrong."""
    how = {
        "namespace": "#define CAI_NAMESPACE %s_\n", "static": "#define CAI_STATIC\n", "plain": "",
    }  # fmt: skip
    files = [sources.write(MAIN, suffix)]
    for name, kind in (("alpha", first), ("beta", second)):
        configuration = how[kind] % name if "%s" in how[kind] else how[kind]
        files.append(sources.write(
            f'{configuration}#define CAI_IMPLEMENTATION\n#include "cai.h"\n#include <stddef.h>\n' + PROGRAM % {"name": name},
            suffix))  # fmt: skip
    # Across .c and .cpp the wrappers are of one language, as all files of a program here are.
    program = sources.output(".exe")
    made = subprocess.run(
        [compiler, *flags, sources.include, *files, "-o", program], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    label = f"{compiler}: copies {first} + {second}"
    if made.returncode or made.stderr.strip():
        return [f"{label}: does not link\n{made.stdout}{made.stderr}"]
    ran = subprocess.run([program], capture_output=True, text=True, check=False)
    print(f"{label}: exit status {ran.returncode}: {ran.stdout.strip()}")
    return [] if ran.returncode == 0 else [f"{label}: exit status {ran.returncode}"]


def other_version(header: pathlib.Path, folder: pathlib.Path) -> str:
    """An include flag for a copy of the header that says another version."""
    text = header.read_text(encoding="utf-8")
    number = re.search(r"^#define CAI_H_INCLUDED (\d+)", text, re.MULTILINE)
    assert number, "CAI_H_INCLUDED has no value"
    later = str(int(number[1]) + 1)
    (folder / "later.h").write_text(re.sub(rf"(CAI_H_INCLUDED (?:!= )?){number[1]}\b", rf"\g<1>{later}", text), encoding="utf-8")
    return f"-I{folder}"


def linkage_jobs(sources: Sources, header: pathlib.Path, compiler: str, language: str) -> list[Job]:
    """What must be refused, and the same thing done right."""
    use = "int main(void) { return cai_version() == CAI_H_INCLUDED ? 0 : 1; }\n"
    implement = '#define CAI_IMPLEMENTATION\n#include "cai.h"\n'
    command = [compiler, "-x", language, sources.include, other_version(header, sources.folder)]
    jobs = []

    def add(name: str, text: str, refuse: str = "", link: bool = False) -> None:
        source = sources.write(text, ".c" if language == "c" else ".cpp")
        output = [source, "-o", sources.output(".exe")] if link else ["-fsyntax-only", source]
        jobs.append(Job(f"{compiler} {language} {name}", [*command, *output], refuse))

    for macro, value in (("CAI_STATIC", ""), ("CAI_SHARED", ""), ("CAI_NAMESPACE", " mylib_")):
        define = f"#define {macro}{value}\n"
        late = f"define {macro} before the first include"
        add(f"early {macro}", define + '#include "cai.h"\n' + define + implement)
        add(f"late {macro}, implementation", '#include "cai.h"\n' + define + implement, late)
        add(f"late {macro}, declarations", '#include "cai.h"\n' + define + '#include "cai.h"\n', late)
        add(f"{macro} taken back", define + '#include "cai.h"\n' + f"#undef {macro}\n" + implement, late)
    add("other namespace", '#define CAI_NAMESPACE one_\n#include "cai.h"\n#undef CAI_NAMESPACE\n'
        "#define CAI_NAMESPACE two_\n" + implement, "error")  # fmt: skip
    add("static and shared", '#define CAI_STATIC\n#define CAI_SHARED\n#include "cai.h"\n', "exclude each other")
    add("same version twice", '#include "cai.h"\n#include "cai.h"\n')
    add("later version after", '#include "cai.h"\n#include "later.h"\n', "another version of cai.h")
    add("later version before", '#include "later.h"\n#include "cai.h"\n', "another version of cai.h")
    add("linked", implement + use, link=True)
    misspelt = implement.replace("CAI_IMPLEMENTATION", "CAI_IMPLEMENTATIOn")
    add("misspelt switch", misspelt + use, "cai_version", link=True)
    add("static without implementation", "#define CAI_STATIC\n" + misspelt + use, "cai_version", link=True)
    return jobs


def linkage(sources: Sources, header: pathlib.Path, args: object) -> tuple[list[Job], list[str]]:
    """All of the family linkage: jobs still to run, and failures so far."""
    jobs, failures = [], []
    for compiler, language in ((args.gcc, "c"), (args.gxx, "c++"), (args.clang, "c"), (args.clangxx, "c++")):
        if not compiler:
            continue
        jobs += linkage_jobs(sources, header, compiler, language)
        suffix = ".c" if language == "c" else ".cpp"
        for pair in (("namespace", "namespace"), ("namespace", "plain"), ("static", "static")):
            failures += two_copies(sources, compiler, suffix, ["-O1"], *pair)
    # Two plain copies clash: the control of the lines above, and why CAI_NAMESPACE exists.
    if args.gcc:
        clash = [sources.write('#define CAI_IMPLEMENTATION\n#include "cai.h"\n', ".c") for _ in range(2)]
        main = sources.write("int main(void) { return 0; }\n", ".c")
        jobs.append(Job("two plain copies", [args.gcc, sources.include, *clash, main, "-o", sources.output(".exe")],
                        "multiple definition"))  # fmt: skip
    return jobs, failures


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
    parser = argument_parser("Compiles cai.h with every compiler, standard and mode.")
    parser.add_argument("families", nargs="*", help="gcc, clang, nvcc, linkage; all by default")
    args = parser.parse_args()
    families = args.families or [name for name in ("gcc", "clang", "nvcc") if getattr(args, name)] + ["linkage"]
    failures = pragmas(args.header)
    with tempfile.TemporaryDirectory(prefix="cai-matrix-") as name:
        sources = Sources(pathlib.Path(name), args.header)
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
            more, wrong = linkage(sources, args.header, args)
            jobs += more
            failures += wrong
        tally: Tally = run_all(jobs, args.jobs)
    failures += tally.failures
    for failure in failures[:10]:
        print(f"\nFAILED: {failure}")
    print(f"{' '.join(families)}: {tally.compilations} compilations, {tally.diagnostics} warnings and errors, "
          f"{tally.refused} refused as they must be, {len(failures)} failures")  # fmt: skip
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
