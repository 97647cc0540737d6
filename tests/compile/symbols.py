"""The symbols of cai.h, or of an extension with it: names, prefixes, visibility, what it needs, no mutable data.

    symbols.py [--header FILE] [--nm PROGRAM] [--gcc PROGRAM] ... [--jobs N]

First the rename list of the header against its CAI_API declarations.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from compilers import HEADER, argument_parser, name_and_root

# Plain functions of <string.h> (clang writes bcmp for some memcmp), and what compilers and linkers add by themselves.
ALLOWED = {
    "memcpy", "memmove", "memset", "memcmp", "bcmp", "memchr", "strchr", "strlen", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_",
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
const char *keep(void) { return cai_status_name(0); }
"""


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
    print(f"rename list: {len(listed)} names, {len(declared)} CAI_API declarations")
    return set(declared)


def symbols(nm: str, path: pathlib.Path, *flags: str) -> list[tuple[str, str]]:
    """(letter, name) of each symbol that nm lists."""
    done = subprocess.run([nm, "-P", *flags, str(path)], capture_output=True, text=True, check=True)
    return [(row.split()[1], row.split()[0]) for row in done.stdout.splitlines() if len(row.split()) > 1]


def compile_unit(compiler: str, source: pathlib.Path, header: pathlib.Path, output: pathlib.Path, *flags: str) -> None:
    """Compiles one unit; a failure ends the program."""
    subprocess.run([compiler, *flags, f"-I{name_and_root(header)[1]}", str(source), "-o", str(output)], check=True)


def check_object(nm: str, label: str, path: pathlib.Path, wanted: set[str], report: Report) -> None:
    """One object: what it defines, what it needs, and whether it has data that can be written."""
    found = symbols(nm, path)
    defined = {name for letter, name in found if letter.isupper() and letter != "U"}
    undefined = {name for letter, name in found if letter == "U"}
    mutable = {name for letter, name in found if letter in MUTABLE}
    report.objects += 1
    report.defined += len(defined)
    report.foreign += len(defined - wanted) + len(undefined - ALLOWED)
    report.mutable += len(mutable)
    report.needed |= undefined
    report.expect(label, "defined", defined, wanted)
    report.expect(label, "undefined", undefined - ALLOWED, set())
    report.expect(label, "mutable data", mutable, set())


def check_mode(args: argparse.Namespace, compiler: str, suffix: str, mode: str, folder: pathlib.Path, api: set[str], report: Report) -> None:
    """One mode with one compiler: an object at two levels and a shared object."""
    label = f"{pathlib.Path(compiler).name} {suffix} {mode}"
    source = folder / f"unit{suffix}"
    text = f'{MODES[mode]}#define CAI_IMPLEMENTATION\n#include "{name_and_root(args.header)[0]}"\n'
    source.write_text(text + (KEEP if mode == "static" else ""), encoding="utf-8")
    prefix = "mylib_" if "namespace" in mode else ""
    wanted = {"keep"} if mode == "static" else {prefix + name for name in api}
    for level in ("-O0", "-O2"):
        unit = folder / "unit.o"
        # Not position-independent: constant tables of pointers then lie in read-only data.
        compile_unit(compiler, source, args.header, unit, level, "-c", "-fno-pic")
        check_object(args.nm, f"{label} {level}", unit, wanted, report)
    library = folder / "unit.so"
    compile_unit(compiler, source, args.header, library, "-O2", "-shared", "-fPIC", "-nostdlib")
    exported = {name for letter, name in symbols(args.nm, library, "-D", "--defined-only") if letter != "A"}
    report.objects += 1
    report.exported += len(exported)
    report.expect(label, "exported", exported, wanted if "shared" in mode or mode == "static" else set())


def main() -> int:
    """Every compiler, language and mode."""
    parser = argument_parser(__doc__ or "")
    parser.add_argument("--nm", default=shutil.which("nm"))
    args = parser.parse_args()
    args.header = args.header.resolve()
    report = Report()
    api = api_names(args.header, report)
    if args.header.parent.name == "ext":  # an extension comes with the header that it extends
        api |= api_names(HEADER, report)
    with tempfile.TemporaryDirectory(prefix="cai-symbols-") as name:
        for compiler, suffix in ((args.gcc, ".c"), (args.gxx, ".cpp"), (args.clang, ".c"), (args.clangxx, ".cpp")):
            for mode in MODES if compiler else ():
                check_mode(args, compiler, suffix, mode, pathlib.Path(name), api, report)
    for failure in report.failures[:40]:
        print(f"FAILED: {failure}")
    print(f"{report.objects} objects, {report.defined} global symbols defined, {report.exported} exported; "
          f"needed from outside: {', '.join(sorted(report.needed)) or 'nothing'}")  # fmt: skip
    print(f"foreign symbols {report.foreign}, mutable data {report.mutable}, failures {len(report.failures)}")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
