#!/usr/bin/env python3
"""The loader of plugins on shared objects with every defect that it names, and in a setuid program.

    test_plugin.py --cc gcc [--sanitize]
    test_plugin.py --mingw x86_64-w64-mingw32-gcc --wine wine

The setuid program needs root, and a folder where setuid counts; else that part is skipped, and says so.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARNINGS = """-std=gnu99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes
 -Wmissing-prototypes -Werror""".split()

PLUGIN = """
#include "cai_emm.h"
#if defined(_WIN32)
__declspec(dllexport)
#endif
const cai_emm_hooks *NAME(void);
static int take(void *ctx, void **ptr, size_t size, struct CUstream_st *s)
{
    (void)ctx; (void)ptr; (void)size; (void)s;
    return 2;
}
static int give(void *ctx, void *ptr, size_t size, struct CUstream_st *s)
{
    (void)ctx; (void)ptr; (void)size; (void)s;
    return 0;
}
static cai_emm_hooks table = {sizeof table, CAI_EMM_VERSION, 0, CAI_MEMORY_HOST, NULL, take, give, "defect",
                              NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                              NULL, NULL};
const cai_emm_hooks *NAME(void)
{
    CHANGE;
    return RESULT;
}
"""

# file: entry, change, result, status, what the message says after the path
DEFECTS = {
    "symbol": ("cai_emm_plugins", "", "&table", "CAI_ERR_ABI", "it has no function cai_emm_plugin"),
    "null": ("cai_emm_plugin", "", "table.flags ? &table : NULL", "CAI_ERR_UNAVAILABLE", "its cai_emm_plugin() gave NULL"),
    "version": ("cai_emm_plugin", "table.version = 2", "&table", "CAI_ERR_ABI",
                "hooks: version = 2, but version 1 is required"),
    "short": ("cai_emm_plugin", "table.struct_size = 16", "&table", "CAI_ERR_ABI", "hooks: struct_size = 16 must be at least"),
    "hook": ("cai_emm_plugin", "table.device_free = NULL", "&table", "CAI_ERR_ARGUMENT",
             "hooks: device_free is NULL"),
    "pair": ("cai_emm_plugin", "table.unpin = give", "&table", "CAI_ERR_ARGUMENT",
             "hooks: pin is NULL, but unpin is not"),
}

failures: list[str] = []


def expect(what: str, good: bool, run: subprocess.CompletedProcess[str]) -> None:
    if not good:
        failures.append(f"{what}: exit status {run.returncode}: {run.stdout}{run.stderr}")


class Machine:
    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.folder = folder
        self.cc = options.mingw or options.cc
        self.runner = [options.wine] if options.mingw else []
        self.windows = bool(options.mingw)
        self.sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if options.sanitize else []
        self.environment = {k: v for k, v in os.environ.items() if k != "CAI_EMM_PLUGIN"}
        if self.windows:
            # no prefix in this folder: wine's server writes to it after the program, while the folder is removed
            self.environment.update(WINEDLLOVERRIDES="mscoree=;mshtml=;winemenubuilder.exe=")
        self.program = self.build("plugin_program.exe" if self.windows else "plugin_program",
                                  [ROOT / "tests" / "examples" / "plugin_program.c"], [])

    def build(self, name: str, sources: list[pathlib.Path], flags: list[str]) -> pathlib.Path:
        output = self.folder / name
        shared = ["-shared"] + ([] if self.windows else ["-fPIC"]) if flags else []
        libraries = [] if flags or self.windows else ["-ldl"]
        windows = ["-D__USE_MINGW_ANSI_STDIO=1"] if self.windows else []
        command = [self.cc, "-O1", "-g", *WARNINGS, *windows, *self.sanitize, *shared, *flags, f"-I{ROOT}",
                   f"-I{ROOT}/tests/support", *map(str, sources), "-o", str(output), *libraries]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{' '.join(command)}\n{run.stderr}")
        return output

    def plugin(self, name: str, sources: list[pathlib.Path]) -> str:
        built = self.build(f"{name}.dll" if self.windows else f"{name}.so", sources, ["-DSHARED_OBJECT"])
        return "Z:" + str(built).replace("/", "\\") if self.windows else str(built)

    def run(self, *arguments: str, program: pathlib.Path | None = None, **variables: str):
        environment = {**self.environment, **variables}
        return subprocess.run([*self.runner, str(program or self.program), *arguments], capture_output=True, text=True,
                              env=environment, cwd=self.folder)


def check_good(machine: Machine) -> str:
    path = machine.plugin("good", [ROOT / "examples" / "memory" / "plugin_example.c"])
    used = "plugin_example: used"
    for what, run in (("a path", machine.run("load", path)),
                      ("the variable", machine.run("load", "-", CAI_EMM_PLUGIN=path)),
                      ("a path and a variable", machine.run("load", path, CAI_EMM_PLUGIN="nonsense"))):
        expect(what, run.returncode == 0 and run.stdout.strip() == used, run)
    relative = pathlib.Path(path.replace("\\", "/")).name
    run = machine.run("load", "./" + relative)  # what the program itself says may be relative
    expect("a relative path", run.returncode == 0 and run.stdout.strip() == used, run)
    run = machine.run("load", "-", CAI_EMM_PLUGIN="./" + relative)
    expect("a relative path in the variable", run.returncode == 1 and run.stdout.strip() ==
           f"CAI_ERR_ARGUMENT: ./{relative}: CAI_EMM_PLUGIN is not an absolute path", run)
    for value in ({}, {"CAI_EMM_PLUGIN": ""}):
        run = machine.run("load", "-", **value)
        expect(f"variable {value}", run.returncode == 1 and
               run.stdout.startswith("CAI_ERR_UNAVAILABLE: CAI_EMM_PLUGIN: it is not set"), run)
    return path


def check_defects(machine: Machine) -> None:
    for name, (entry, change, result, status, message) in DEFECTS.items():
        source = machine.folder / f"{name}.c"
        source.write_text(PLUGIN.replace("NAME", entry).replace("CHANGE;", change + ";" if change else "")
                          .replace("RESULT", result))
        path = machine.plugin("plugin_" + name, [source])
        for run in (machine.run("load", path), machine.run("load", "-", CAI_EMM_PLUGIN=path)):
            expect(name, run.returncode == 1 and run.stdout.startswith(f"{status}: {path[:90]}: {message}") and
                   run.stdout.count("\n") == 1, run)
    (machine.folder / "text.so").write_text("not a shared object\n" * 100)
    missing = "LoadLibrary: error" if machine.windows else "cannot open shared object file: No such file"
    text = "LoadLibrary: error" if machine.windows else ""
    for path, message in (("/nowhere/plugin.so", missing), (str(machine.folder / "text.so"), text),
                          ("/" + 400 * "x" + ".so", missing if machine.windows else "cannot open shared object file")):
        run = machine.run("load", path)
        expect(path, run.returncode == 1 and run.stdout.count("\n") == 1 and
               run.stdout.startswith(f"CAI_ERR_UNAVAILABLE: {path[:90]}: {message}"), run)


def check_setuid(machine: Machine, path: str) -> str:
    """A copy of the program that belongs to another user. Returns why that could not be tried."""
    if machine.windows or machine.sanitize:
        return "not in this build"
    run = machine.run("elevated")
    expect("a common program", run.stdout == "0 0\n", run)
    if not hasattr(os, "geteuid") or os.geteuid():
        return "this is not root"
    program = machine.folder / "plugin_program_setuid"
    shutil.copy(machine.program, program)
    machine.folder.chmod(0o755)
    try:
        os.chown(program, 65534, -1)
    except OSError as error:  # in a container of one user
        return f"no program of another user: {error.strerror}"
    program.chmod(0o4755)
    run = machine.run("elevated", program=program)
    if run.stdout == "0 0\n":
        raised = subprocess.run(["stat", "-f", "-c", "%T", str(machine.folder)], capture_output=True, text=True)
        return f"setuid does not count here ({raised.stdout.strip()})"
    expect("a setuid program", run.stdout == "1 1\n", run)
    run = machine.run("load", "-", program=program, CAI_EMM_PLUGIN=path)
    expect("a setuid program, the variable", run.returncode == 1 and run.stdout.strip() ==
           "CAI_ERR_UNAVAILABLE: CAI_EMM_PLUGIN: not used in a program that has more rights than its user", run)
    run = machine.run("load", path, program=program)  # the program itself names it
    expect("a setuid program, a path", run.returncode == 0, run)
    program.chmod(0o2755)
    os.chown(program, -1, 65534)
    program.chmod(0o2755)
    run = machine.run("load", "-", program=program, CAI_EMM_PLUGIN=path)
    expect("a setgid program, the variable", "more rights than its user" in run.stdout, run)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--mingw")
    parser.add_argument("--wine")
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(options, pathlib.Path(folder))
        run = machine.run()
        expect("without a file", run.returncode == 0, run)
        path = check_good(machine)
        check_defects(machine)
        skipped = check_setuid(machine, path)
    print("\n".join(failures) or f"{len(DEFECTS)} defective plugins; setuid: {skipped or 'refused'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
