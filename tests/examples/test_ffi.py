"""docs/ffi.md: its commands, run as they stand there, print what it shows.

    test_ffi.py rust|fortran|go|python --libraries FOLDER [--tool PROGRAM]
    test_ffi.py tables [--libraries FOLDER] [--cc PROGRAM] [--nm PROGRAM] [--libcuda FILE] [--others PROGRAM...]

A language: the first program of the page and the exchange; lines of the exchange; and that a struct whose members
are in another order is found before the first call. `tables`: the generated files are what the headers say, and a
number that was changed is found; other compilers have the same numbers, and the same types of functions;
libcai.so exports exactly the functions of the declarations, and orders an exchange on a driver that it loads. Without
--libraries the commands of the page build it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "ffi.md").read_text()
BINDINGS = ROOT / "examples" / "bindings"
LINES = 150  # of an exchange
NAMES = {"rust": "Rust", "fortran": "Fortran", "go": "Go", "python": "Python"}
PROGRAMS = {"rust": "rust/exchange.rs", "fortran": "fortran/exchange.f90", "go": "go/exchange.go",
            "python": "shared/exchange.py"}  # fmt: skip
# Two neighbours of cai_array, of one type: no compiler minds if they change places.
PLANTED = {
    "rust": ("rust/cai_abi.rs", "    pub flags: u32,\n    pub version: i32,\n",
             "    pub version: i32,\n    pub flags: u32,\n"),
    "fortran": ("fortran/cai_abi.f90", "    integer(c_int32_t) :: flags\n    integer(c_int32_t) :: version\n",
                "    integer(c_int32_t) :: version\n    integer(c_int32_t) :: flags\n"),
    "python": ("shared/cai_abi.py", '    ("flags", c_uint32),\n    ("version", c_int32),\n',
               '    ("version", c_int32),\n    ("flags", c_uint32),\n'),
}  # fmt: skip

failures: list[str] = []


def fail(what: str) -> None:
    failures.append(what)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def shell(text: str, cwd: pathlib.Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-ec", text], cwd=cwd, env={**os.environ, **more}, capture_output=True, text=True)


# ----------------------------------------------------------------------------------- a language


def commands(language: str) -> str:
    """The paragraph of commands of the page for a language."""
    (block,) = [text for text in blocks("sh") if PROGRAMS["rust"] in text]
    (found,) = [part for part in block.split("\n\n") if PROGRAMS[language].split(".")[0].split("/")[0] + "/" in part]
    return found


def environment(folder: pathlib.Path, tool: str | None, cache: str | None) -> dict[str, str]:
    path = os.environ.get("PATH", "")
    return {
        "LD_LIBRARY_PATH": str(folder), "PATH": f"{pathlib.Path(tool).parent}:{path}" if tool else path,
        "GO111MODULE": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOPROXY": "off", "CGO_ENABLED": "1",
        "GOCACHE": cache or str(folder / "go-cache"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


def run_exchange(language: str, sources: pathlib.Path, folder: pathlib.Path, more: dict[str, str]):
    text = commands(language).replace("$PWD/build", str(folder))
    text = re.sub(r"(?<!go )\bbuild\b", str(folder), text)
    text = text.replace("examples/bindings", str(sources)).replace("python3", f'"{sys.executable}"')
    return shell(text, ROOT, **more)


def check_exchange(language: str, folder: pathlib.Path, more: dict[str, str]) -> None:
    run = run_exchange(language, BINDINGS, folder, more)
    (shown,) = [text for text in blocks("text") if "released by Rust" in text]
    if run.returncode or run.stderr or run.stdout != shown.replace("by Rust", f"by {NAMES[language]}"):
        fail(f"{PROGRAMS[language]}: exit status {run.returncode}\n{run.stdout}{run.stderr}")
    lines = (BINDINGS / PROGRAMS[language]).read_text().count("\n")
    if lines > LINES or f"(../examples/bindings/{PROGRAMS[language]}) | {lines} |" not in PAGE:
        fail(f"{PROGRAMS[language]} has {lines} lines: at most {LINES}, and as docs/ffi.md says")


def check_planted(language: str, folder: pathlib.Path, more: dict[str, str]) -> None:
    """Members in another order: the program ends, and says where."""
    name, old, new = PLANTED[language]
    sources = folder / "planted"
    shutil.copytree(BINDINGS, sources, ignore=shutil.ignore_patterns("__pycache__"))
    text = (sources / name).read_text()
    if text.count(old) != 1:
        return fail(f"{name} does not have the members to plant in")
    (sources / name).write_text(text.replace(old, new))
    run = run_exchange(language, sources, folder, more)
    if run.returncode == 0 or run.stdout or "cai_array.flags" not in run.stderr:
        fail(f"{name} with members in another order: exit status {run.returncode}\n{run.stdout}{run.stderr}")


def check_first(language: str, folder: pathlib.Path, more: dict[str, str]) -> None:
    """The first program of the page, beside the declarations."""
    (source,) = blocks(language)
    (shown,) = [text for text in blocks("text") if text.startswith("x: ")]
    work = folder / "first"
    work.mkdir()
    suffix, build = {
        "rust": ("rs", f"cp {BINDINGS}/rust/cai_abi.rs . && rustc --edition 2021 -L .. first.rs"),
        "fortran": ("f90", f"gfortran {BINDINGS}/fortran/cai_abi.f90 first.f90 -L .. -lcai -o first"),
        "go": ("go", f"CGO_CFLAGS=-I{ROOT} CGO_LDFLAGS=-L{folder} go build first.go"),
        "python": ("py", f"cp {BINDINGS}/shared/cai_abi.py ."),
    }[language]
    (work / f"first.{suffix}").write_text(source)
    run = shell(f"{build}\n" + (f'"{sys.executable}" first.py' if language == "python" else "./first"), work, **more)
    if run.returncode or run.stderr or run.stdout != shown:
        fail(f"the first program in {NAMES[language]}: exit status {run.returncode}\n{run.stdout}{run.stderr}")


def check_language(language: str, libraries: pathlib.Path, tool: str | None, cache: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="cai-ffi-") as name:
        folder = pathlib.Path(name)
        for library in ("libcai.so", "libcai_sim.so"):
            (folder / library).symlink_to(libraries / library)
        more = environment(folder, tool, cache)
        check_exchange(language, folder, more)
        check_first(language, folder, more)
        if language in PLANTED:
            check_planted(language, folder, more)
    print(f"{NAMES[language]}: programs 2, planted {int(language in PLANTED)}, failures {len(failures)}")


# ----------------------------------------------------------------------------------- the tables


def make_ffi(root: pathlib.Path, cc: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(root / "tools" / "make_ffi.py"), "--cc", cc, *more]
    return subprocess.run(command, capture_output=True, text=True)


GENERATED = [f"examples/bindings/{name}" for name in (
    "rust/cai_abi.rs", "rust/cai_sim_abi.rs", "fortran/cai_abi.f90", "fortran/cai_sim_abi.f90", "shared/cai_abi.py")]


def plant_numbers(folder: pathlib.Path, cc: str) -> int:
    """A copy of the tree: each generated file with a wrong number, then a header with another order of members."""
    headers = ("cai.h", "cai_stream.h", "cai_emm.h", "sim/cai_sim.h", "sim/cai_check.h")
    for name in (*headers, "tools/make_ffi.py", *GENERATED):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in GENERATED:
        path = folder / name
        size = 48 if "sim" in name else 1216  # of a cai_check_race, of a cai_array
        changed, count = re.subn(rf"\b{size}\b", f"{size + 8}", path.read_text(), count=1)
        if not count:
            fail(f"{name} has no number to change")
        path.write_text(changed)
    run = make_ffi(folder, cc)
    for name in GENERATED:
        if f"{name} is not what the headers say" not in run.stdout:
            fail(f"a wrong number in {name} is not found:\n{run.stdout}{run.stderr}")
    make_ffi(folder, cc, "--write")
    header = folder / "cai_stream.h"
    members = re.compile(r"    uint64_t thread;[^\n]*\n    uint64_t capture;\n")
    header.write_text(members.sub("    uint64_t capture;\n    uint64_t thread;\n", header.read_text(), 1))
    if make_ffi(folder, cc).returncode != 1:
        fail("members in another order in cai_stream.h are not found")
    return len(GENERATED) + 1


def build_libraries(folder: pathlib.Path) -> None:
    """Both, by the commands of the page."""
    (block,) = [text for text in blocks("sh") if "cai_shared.c" in text]
    run = shell(re.sub(r"\bbuild\b", str(folder), block), ROOT)
    if run.returncode or run.stderr or len(list(folder.glob("lib*.so"))) != 2:
        fail(f"{block}{run.stdout}{run.stderr}")


def check_driver(cai: ctypes.CDLL, abi, libcuda: str) -> None:
    """What the page says of a GPU, on the simulated driver: the table is the driver, streams are those of CUDA."""
    cuda, error = ctypes.CDLL(libcuda), abi.cai_error()
    driver, pool, hooks, exchange, x = (getattr(abi, f"cai_{name}")() for name in (
        "cuda_driver", "event_pool", "emm_hooks", "exchange", "array"))
    context, streams, table = ctypes.c_void_p(), [ctypes.c_void_p(), ctypes.c_void_p()], ctypes.addressof(driver)
    made = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
    made += [cuda.cuStreamCreate(ctypes.byref(stream), 1) for stream in streams]
    io, shape = (ctypes.POINTER(abi.cai_array) * 1)(ctypes.pointer(x)), (ctypes.c_int64 * 1)(256)
    steps = [
        lambda: cai.cai_cuda_load(driver, libcuda.encode(), error),
        lambda: cai.cai_event_pool_init(pool, table, None, 0, 0, error),
        lambda: cai.cai_emm_hooks_async(hooks, table, None, error),
        lambda: cai.cai_emm_array(x, pool, hooks, abi.CAI_FLOAT32, 1, shape, streams[0].value, error),
        lambda: cai.cai_locate(x, b"x", table, abi.CAI_LOCATE_BOUNDS, None, error),
        lambda: cai.cai_exchange_begin(exchange, pool, io, 1, streams[1].value, error),
        lambda: cai.cai_cuda_status(cuda.cuMemsetD32Async(ctypes.c_uint64(x.data), 0, 256, streams[1]), b"set", error),
        lambda: cai.cai_exchange_finish(exchange, abi.CAI_OK, io, 1, error),
        lambda: cai.cai_event_pool_destroy(pool, error),
    ]
    if any(made) or any(step() for step in steps) or x.release:  # stops at the first error
        fail(f"an exchange on the simulated driver: {made}, {error.message.decode()}")


def check_library(folder: pathlib.Path, nm: str | None, libcuda: str | None) -> int:
    """What libcai.so exports; the driver that it loads, if there is one."""
    sys.path.insert(0, str(BINDINGS / "shared"))
    sys.dont_write_bytecode = True
    import cai_abi

    cai = ctypes.CDLL(str(folder / "libcai.so"))
    cai_abi.declare(cai, cai_abi.FUNCTIONS)
    if nm:
        listed = subprocess.run([nm, "-D", "--defined-only", str(folder / "libcai.so")], capture_output=True, text=True)
        exported = {line.split()[-1] for line in listed.stdout.splitlines()}
        if exported != set(cai_abi.FUNCTIONS):
            fail(f"only exported or only declared: {sorted(exported ^ set(cai_abi.FUNCTIONS))}")
    driver, error = cai_abi.cai_cuda_driver(), cai_abi.cai_error()
    status = cai.cai_cuda_load(driver, b"./no-such-library", error)
    if status != cai_abi.CAI_ERR_UNAVAILABLE or not error.message:
        fail(f"cai_cuda_load of no library: {status}")
    if libcuda:
        check_driver(cai, cai_abi, libcuda)
    return len(cai_abi.FUNCTIONS)


def check_tables(options: argparse.Namespace) -> None:
    run = make_ffi(ROOT, options.cc)
    if run.returncode:
        fail(run.stdout + run.stderr)
    with tempfile.TemporaryDirectory(prefix="cai-ffi-") as name:
        folder = pathlib.Path(name)
        make_ffi(ROOT, options.cc, "--asserts", str(folder / "asserts.c"))
        if not options.libraries:
            build_libraries(folder)
        for cc in options.others:
            run = subprocess.run([cc, "-std=c99", f"-I{ROOT}", "-fsyntax-only", str(folder / "asserts.c")],
                                 capture_output=True, text=True)
            if run.returncode:
                fail(f"{cc} has other numbers:\n{run.stderr}")
        planted = plant_numbers(folder / "planted", options.cc) if options.libraries else 0
        functions = check_library(options.libraries or folder, options.nm, options.libcuda)
    print(f"other compilers {len(options.others)}, planted {planted}, functions {functions}, "
          f"failures {len(failures)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=[*NAMES, "tables"])
    parser.add_argument("--libraries", type=pathlib.Path, help="the folder of libcai.so and libcai_sim.so")
    parser.add_argument("--tool", help="the compiler of the language")
    parser.add_argument("--cache", help="a folder for what Go compiles")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--nm")
    parser.add_argument("--libcuda", help="the simulated driver")
    parser.add_argument("--others", nargs="*", default=[], help="compilers of other 64-bit targets")
    options = parser.parse_args()
    if options.tool and subprocess.run([options.tool, "version" if options.what == "go" else "--version"],
                                       capture_output=True).returncode:
        print(f"skipped: {options.tool} does not run")
        return 77
    if options.what == "tables":
        check_tables(options)
    else:
        check_language(options.what, options.libraries.resolve(), options.tool, options.cache)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
