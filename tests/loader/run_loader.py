#!/usr/bin/env python3
"""Runs test_loader.c on fake CUDA libraries of every kind, and on the real ones that are found.

    run_loader.py [--cc gcc] [--cxx g++] [--work DIR] [--headers DIR]... [--library FILE]... [--packages DIR]
    run_loader.py --sanitize              with -fsanitize=address,undefined
    run_loader.py --mingw CC --wine WINE  as Windows programs
    run_loader.py --self-test             breaks cai_stream.h in many ways; the test must see each

--headers: an include folder of a CUDA toolkit; --library: a libcudart. Without them those of CUDA_HOME and
/usr/local/cuda are taken. --packages: a folder with more, from Python packages:
    pip install --no-deps --target DIR/11 nvidia-cuda-runtime-cu11==11.8.89
    pip install --no-deps --target DIR/12 nvidia-cuda-runtime-cu12==12.9.79
--require 11,12,13: fail if headers of one of these are missing.
One line per combination; the exit status is 1 if one failed.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STRICT = (
    "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align "
    "-Wdouble-promotion -Wformat=2 -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Werror"
).split()
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1"]

# Runtimes as fakes, and the drivers that each is run on; 0: no runtime, the driver's library by name.
# 12.9 on 12.0: minor version compatibility; 11.x on 13.0: what is in the field.
RUNS = [
    (0, (11020, 13000)),
    (11020, (11020, 13000)),
    (11030, (11030, 13000)),
    (11080, (11080, 12000, 13000)),
    (12000, (12000, 13000)),
    (12040, (12040, 13000)),
    (12050, (12050, 13000)),
    (12090, (12000, 12090, 13000)),
    (13000, (13000,)),
]
RUNTIMES = [11000] + [runtime for runtime, _ in RUNS if runtime]


def dotted(version):
    """13000 -> 13.0"""
    return "{}.{}".format(version // 1000, version % 1000 // 10) if version else "none"


class Failure(Exception):
    """What did not build or run."""


def run(command, env=None, check=False):
    """Output and exit status of a command."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            universal_newlines=True, errors="replace", env=env, timeout=300, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure("{}\n{}".format(" ".join(command), error))
    if check and done.returncode:
        raise Failure("{}\n{}".format(" ".join(command), done.stdout))
    return done.returncode, done.stdout


class Linux:
    """Shared objects, found by LD_LIBRARY_PATH."""

    runtimes = {11: "libcudart.so.11.0", 12: "libcudart.so.12", 13: "libcudart.so.13"}
    driver = "libcuda.so.1"
    libraries = ["-ldl", "-lpthread"]
    suffix = ""

    def shared(self, name):
        return ["-fPIC", "-shared", "-Wl,-soname," + name]

    def path(self, path):
        return str(path)

    def start(self, program, folders, env):
        env["LD_LIBRARY_PATH"] = os.pathsep.join(str(folder) for folder in folders)
        return [program], env


class Windows:
    """DLLs, found by PATH, under wine."""

    runtimes = {11: "cudart64_110.dll", 12: "cudart64_12.dll", 13: "cudart64_13.dll"}
    driver = "nvcuda.dll"
    libraries = []
    suffix = ".exe"

    def __init__(self, wine):
        self.wine = wine

    def shared(self, _name):
        return ["-shared"]

    def path(self, path):
        return "Z:" + str(path).replace("/", "\\")

    def start(self, program, folders, env):
        env["WINEPATH"] = ";".join(self.path(folder) for folder in folders)
        env["WINEDLLOVERRIDES"] = "nvcuda=n"
        env.setdefault("WINEDEBUG", "-all")
        return [self.wine, program], env


class Headers:
    """An include folder of CUDA."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        text = (self.folder / "cuda_runtime_api.h").read_text(errors="replace")
        found = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", text)
        if not found:
            raise Failure("no CUDART_VERSION in " + str(self.folder))
        self.version = int(found.group(1))
        self.flags = ["-isystem", str(self.folder)]

    def complete(self, others):
        """Some packages leave out crt/, which every toolkit has alike."""
        if not (self.folder / "crt/host_defines.h").exists():
            for other in others:
                if (other.folder / "crt/host_defines.h").exists():
                    self.flags += ["-idirafter", str(other.folder)]
                    return


class Session:
    """Builds and runs, and counts."""

    def __init__(self, options, target, cc, flags):
        self.work = options.work
        self.target = target
        self.cc = cc
        self.flags = flags
        self.include = ["-I", str(ROOT), "-I", str(HERE.parent), "-I", str(HERE)]
        self.failures = 0
        self.lines = 0

    def say(self, what, good, detail):
        self.lines += 1
        self.failures += not good
        print("loader: {}: {}".format(what, "ok ({})".format(detail) if good else "FAILED\n" + detail), flush=True)

    # ------------------------------------------------------------------ building
    def folder(self, name):
        path = self.work / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def fake(self, folder, name, source, *defines):
        """One fake library in a folder of its own."""
        path = self.folder(folder) / name
        command = [self.cc, *STRICT, *self.flags, *defines, *self.target.shared(name), "-o", path, HERE / source]
        run(command + self.target.libraries, check=True)
        return path

    def build_fakes(self):
        """All fakes, and files in place of those that shall not be found, whatever the machine has."""
        target = self.target
        for driver in (11020, 13000):
            self.fake("driver-" + dotted(driver), target.driver, "fake_libcuda.c", "-DFAKE_DRIVER=%d" % driver)
        self.fake("driver-lacking", target.driver, "fake_libcuda.c", "-DFAKE_WITHOUT_EVENT_RECORD")
        self.runtime_files = {}
        for runtime in RUNTIMES:
            self.runtime_files[runtime] = self.fake(
                "runtime-" + dotted(runtime), target.runtimes[runtime // 1000], "fake_cudart.c",
                "-DFAKE_RUNTIME=%d" % runtime,
            )  # fmt: skip
        for name in target.runtimes.values():
            (self.folder("no-runtime") / name).write_text("no library\n")
        (self.folder("no-driver") / target.driver).write_text("no library\n")

    def program(self, name, *flags, cc=None, standard=STRICT, header=None, libraries=()):
        """test_loader.c with these flags."""
        path = self.work / (name + self.target.suffix)
        include = (["-I", str(header)] if header else []) + self.include
        command = [cc or self.cc, *standard, *self.flags, *flags, *include, HERE / "test_loader.c", "-o", path]
        run([*command, *libraries, *self.target.libraries], check=True)
        return path

    # ------------------------------------------------------------------- running
    def call(self, program, folders, arguments, driver=0):
        """One run: how it went, and its last line or all it said."""
        env = dict(os.environ)
        env.pop("FAKE_CUDA_DRIVER", None)
        if driver:
            env["FAKE_CUDA_DRIVER"] = str(driver)
        command, env = self.target.start(program, [self.work / folder for folder in folders], env)
        status, output = run([*command, *arguments], env=env)
        found = re.search(r"^(\d+ checks)\s*$", output, re.M)
        good = status == 0 and found is not None
        return good, found.group(1) if good else "exit status {}\n{}".format(status, output)

    def slots(self, what, program, runtime, driver, linked=False):
        """Every slot, by the library of a given path, or linked with it."""
        driver_folder = "driver-11.2" if driver == 11020 else "driver-13.0"
        folders = [driver_folder, "runtime-" + dotted(runtime) if linked else "no-runtime", "no-runtime"]
        arguments = ["slots", str(runtime)]
        if runtime and not linked:
            arguments.append(self.target.path(self.runtime_files[runtime]))
        good, detail = self.call(program, folders, arguments, driver)
        library = dotted(runtime) if runtime else "by name"
        self.say("{} x library {} on driver {}".format(what, library, dotted(driver)), good, detail)
        return good

    def all_slots(self, what, program):
        good = True
        for runtime, drivers in RUNS:
            for driver in drivers:
                good = self.slots(what, program, runtime, driver) and good
        return good

    def search(self, program):
        """Which library is taken: (what, folders of the search, version found, whether it stays, held, driver)"""
        path = {runtime: self.target.path(file) for runtime, file in self.runtime_files.items()}
        every = ["driver-13.0", "runtime-11.8", "runtime-12.4", "runtime-13.0"]
        cases = [
            ("11 alone", ["driver-13.0", "runtime-11.8"], 11080, 1, [], 0),
            ("12 alone", ["driver-13.0", "runtime-12.9"], 12090, 1, [], 0),
            ("13 alone", ["driver-13.0", "runtime-13.0"], 13000, 1, [], 0),
            ("11, 12 and 13", every, 13000, 1, [], 0),
            ("11 and 12", ["driver-13.0", "runtime-11.3", "runtime-12.5"], 12050, 1, [], 0),
            ("11 held, 12 and 13", ["driver-13.0", "runtime-12.9", "runtime-13.0"], 11080, 0, [path[11080]], 0),
            ("12 held, all", every, 12090, 0, [path[12090]], 0),
            ("12 held from elsewhere", ["driver-13.0"], 12000, 0, [path[12000]], 0),
            ("11 and 12 held, 13", ["driver-13.0", "runtime-13.0"], 12090, 0, [path[11080], path[12090]], 0),
            ("the driver alone", ["driver-13.0"], 0, 0, [], 0),
            ("11.2, driver by name", ["driver-11.2", "runtime-11.2"], 11020, 0, [], 0),
            ("11.8 on 11.2, driver by name", ["driver-11.2", "runtime-11.8"], 11080, 0, [], 0),
            ("13 on 12.4, driver by name", every, 13000, 0, [], 12040),
        ]
        for what, folders, runtime, stays, held, driver in cases:
            arguments = ["search", str(runtime), str(stays), *held]
            good, detail = self.call(program, [*folders, "no-runtime"], arguments, driver)
            self.say("search, " + what, good, detail)

    def refused(self, program):
        """What must fail, and what the message then has."""
        path = {runtime: self.target.path(file) for runtime, file in self.runtime_files.items()}
        driver_path = self.target.path(self.work / "driver-13.0" / self.target.driver)
        no_library = self.target.path(self.work / "no-runtime" / self.target.runtimes[13])
        missing = self.target.path(self.work / "nothing" / self.target.runtimes[13])
        everything = ["driver-13.0", "runtime-13.0", "runtime-12.9", "runtime-11.8"]
        name = self.target.driver
        cases = [
            ("a path that is not there", everything, missing, missing, 0),
            ("a file that is no library", everything, no_library, no_library, 0),
            ("a library that is no runtime", everything, "cudaRuntimeGetVersion", driver_path, 0),
            ("a runtime of 11.0", everything, "11.0,11.2", path[11000], 0),
            ("13 on a driver of 12.4", ["driver-13.0"], "35,insufficient driver", path[13000], 12040),
            ("13 without a driver", ["no-driver"], "35,insufficient driver", path[13000], 0),
            ("12 without a driver", ["no-driver"], "35,insufficient driver", path[12040], 0),
            ("11 without a driver", ["no-driver"], "35,insufficient driver", path[11080], 0),
            ("no path, 13 without a driver", ["no-driver", "runtime-13.0"], name, "", 0),
            ("no path, nothing there", ["no-driver"], "13,12,11," + name, "", 0),
            ("no path, a driver that lacks a function", ["driver-lacking"], "cuEventRecord", "", 0),
        ]
        for what, folders, parts, library, driver in cases:
            good, detail = self.call(program, [*folders, "no-runtime"], ["refused", parts, library], driver)
            self.say("refused, " + what, good, detail)

    def report(self, what, program, folders, library):
        """What a real library leads to on this machine."""
        env = dict(os.environ)
        env["LD_LIBRARY_PATH"] = os.pathsep.join([*folders, env.get("LD_LIBRARY_PATH", "")])
        status, output = run([program, "report", *library], env=env)
        self.say(what, status == 0, output.strip())


# ----------------------------------------------------------------------------- what is found
def find_headers(given, packages):
    """Each version once, in order."""
    folders = list(given)
    if not folders:
        homes = [os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
        folders = [os.path.join(home, "include") for home in homes if home]
    if packages:
        folders += sorted(packages.glob("*/nvidia/cuda_runtime/include"))
    found = {}
    for folder in folders:
        if (pathlib.Path(folder) / "cuda_runtime_api.h").exists():
            headers = Headers(folder)
            found.setdefault(headers.version, headers)
        elif given:
            raise Failure("no cuda_runtime_api.h in " + str(folder))
    headers = [found[version] for version in sorted(found)]
    for one in headers:
        one.complete(headers)
    return headers


def find_libraries(given, headers):
    """Real runtimes: those given, else the one beside the headers."""
    if given:
        return [pathlib.Path(path).resolve() for path in given]
    found = []
    for one in headers:
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib"):
            found += sorted((one.folder.parent / folder).glob("libcudart.so.*"))
    return sorted({path.resolve() for path in found})


def fake_for(headers):
    """The fake that a program with these headers links with: of its major, not older."""
    same = [runtime for runtime in RUNTIMES if runtime // 1000 == headers.version // 1000 and runtime >= 11030]
    return next((runtime for runtime in same if runtime >= headers.version), same[-1])


# --------------------------------------------------------------------------------- the parts
def check_signatures(session, headers):
    """The fakes against the real headers: a signature of theirs that is wrong does not compile."""
    for one in headers:
        flags = ["-D__CUDA_API_VERSION_INTERNAL", "-DFAKE_REAL_HEADERS", *one.flags, "-c"]
        output = session.work / "signatures.o"
        sources = [("fake_libcuda.c", []), ("fake_cudart.c", ["-DFAKE_RUNTIME=%d" % fake_for(one)])]
        for source, defines in sources:
            command = [session.cc, *STRICT, *session.flags, *flags, *defines, "-o", output, HERE / source]
            status, text = run(command)
            name = "{} against the headers of {}".format(source, dotted(one.version))
            session.say(name, status == 0, text if status else "compiles")


def run_loaded(session, options, headers):
    """cai_cuda_load: no headers, headers of each major, and as C++."""
    plain = session.program("loader")
    session.all_slots("headers none", plain)
    for one in headers:
        name = "headers " + dotted(one.version)
        program = session.program("loader-" + dotted(one.version), "-DLOADER_HEADERS", *one.flags)
        session.all_slots(name, program)
    if options.cxx:
        cxx = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror"]
        session.all_slots("C++", session.program("loader-cxx", cc=options.cxx, standard=cxx))
    session.search(plain)
    session.refused(plain)
    return plain


def run_linked(session, headers, libraries):
    """cai_cuda_linked: headers and library of one major, fake or real."""
    variants = [("", []), (" per thread", ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"])]
    for one in headers:
        runtime = fake_for(one)
        for suffix, flags in variants:
            name = "linked, headers {}{}".format(dotted(one.version), suffix)
            flags = ["-DLOADER_LINKED", *flags, *one.flags]
            file = session.runtime_files[runtime]
            program = session.program("linked" + dotted(one.version) + suffix[1:4], *flags, libraries=[file])
            for driver in sorted({runtime, 13000}):
                session.slots(name, program, runtime, driver, linked=True)
            for library in libraries:
                if real_major(library) != one.version // 1000:
                    continue
                program = session.program("real" + dotted(one.version) + suffix[1:4], *flags, libraries=[library])
                what = "{} x real {}".format(name, library.name)
                session.report(what, program, [str(library.parent)], [str(library)])


def real_major(library):
    """13 of libcudart.so.13.0.48"""
    found = re.search(r"libcudart\.so\.(\d+)", library.name)
    return int(found.group(1)) if found else 0


# --------------------------------------------------------------------------------- self-test
MUTATIONS = [
    ("capture query of 12.3", r'(X\(STREAM_CAPTURE, .*?), \d+, 1\)', r"\1, 12030, 1)"),
    ("device query of 13.0", r'(X\(CTX_DEVICE, .*?), \d+, 1\)', r"\1, 13000, 1)"),
    ("context synchronization of 13.0", r'(X\(CTX_SYNCHRONIZE, .*?), \d+, 1\)', r"\1, 13000, 1)"),
    ("context of a stream of 12.5", r'(X\(STREAM_CTX, .*?), \d+, 1\)', r"\1, 12050, 1)"),
    ("push of 2.0", r'(X\(CTX_PUSH, .*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("pop of 2.0", r'(X\(CTX_POP, .*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("destruction of 2.0", r'(X\(EVENT_DESTROY, .*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("range of 2.0", r'(X\(POINTER_RANGE, .*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("stream id is needed", r'(X\(STREAM_ID, .*?), \d+, 0\)', r"\1, 12000, 1)"),
    ("record is not needed", r'(X\(EVENT_RECORD, .*?), \d+, 1\)', r"\1, 2000, 0)"),
    ("query waits", r'X\(EVENT_QUERY, "cuEventQuery", "cuEventQuery"', r'X(EVENT_QUERY, "cuEventSynchronize", ""'),
    ("push by name of 2.0", r'"cuCtxPushCurrent_v2"', r'"cuCtxPushCurrent"'),
    ("pop by name of 2.0", r'"cuCtxPopCurrent_v2"', r'"cuCtxPopCurrent"'),
    ("destruction by name of 2.0", r'"cuEventDestroy_v2"', r'"cuEventDestroy"'),
    ("range by name of 2.0", r'"cuMemGetAddressRange_v2"', r'"cuMemGetAddressRange"'),
    ("capture by name of 11.3", r'"cuStreamGetCaptureInfo", 10010', r'"cuStreamGetCaptureInfo_v2", 10010'),
    ("per-thread functions", r"LEGACY_STREAM = 1", r"LEGACY_STREAM = 2"),
    ("events with timing", r"call\(&handle, 2\)", r"call(&handle, 0)"),
    ("another device attribute", r"\(yes, 88, device\)", r"(yes, 89, device)"),
    ("allocation of 2.0", r'(X\(MEM_ALLOC, .*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("free of 2.0", r'(X\(MEM_FREE, .*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("sizes of 2.0", r'(X\(MEM_INFO, .*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("registration of 4.0", r'(X\(HOST_REGISTER, .*?), \d+, 0\)', r"\1, 4000, 0)"),
    ("handles of 4.1", r'(X\(IPC_OPEN, .*?), \d+, 0\)', r"\1, 4010, 0)"),
    ("UUID of 9.2", r'(X\(DEVICE_UUID, .*?), \d+, 0\)', r"\1, 9020, 0)"),
    ("allocation by name of 2.0", r'"cuMemAlloc_v2"', r'"cuMemAlloc"'),
    ("free by name of 2.0", r'"cuMemFree_v2"', r'"cuMemFree"'),
    ("sizes by name of 2.0", r'"cuMemGetInfo_v2"', r'"cuMemGetInfo"'),
    ("registration by name of 4.0", r'"cuMemHostRegister_v2"', r'"cuMemHostRegister"'),
    ("handles by name of 4.1", r'"cuIpcOpenMemHandle_v2"', r'"cuIpcOpenMemHandle"'),
    ("UUID by name of 9.2", r'"cuDeviceGetUuid_v2"', r'"cuDeviceGetUuid"'),
    ("allocation is needed", r'(X\(MEM_ALLOC, .*?), 0\)', r"\1, 1)"),
    ("UUID is needed", r'(X\(DEVICE_UUID, .*?), 0\)', r"\1, 1)"),
    ("a slot without its entry", r"CAI_PRIV_FILL\(ipc_export, IPC_EXPORT", r"CAI_PRIV_FILL(ipc_export, IPC_CLOSE"),
    ("handles without peers", r"call\(pointer, copy, 1\)", r"call(pointer, copy, 0)"),
    ("registration without flags", r"(cai_priv_handle\(pointer\), .*), flags\)", r"\1, flags & 1)"),
    ("host memory without flags", r"call\(&made, \(size_t\)size, flags\)", r"call(&made, (size_t)size, flags & 4)"),
    ("sizes of 32 bits", r"\(pointer, \(size_t\)size\)", r"(pointer, (uint32_t)size)"),
    ("no initialization for the UUID", r"cai_priv_driver_init\(self, &error\) \? call\(uuid.*?: ", r""),
    ("attributes in another order", r"\{2, 9, 1, 8, 3, 17\}", r"{2, 9, 3, 1, 8, 17}"),
    ("attributes that 11.2 does not know", r"if \(error == 1\) error = call\(POOL,", r"if (0) error = call(POOL,"),
    ("no initialization", r"if \(\*?error != 3\) return 0;", r"if (1) return 0;"),
    ("a reference stays", r"return release\(device\);", r"return 0;"),
    ("12 before 13", r'\{"libcudart\.so\.13", "libcudart\.so\.12"', r'{"libcudart.so.12", "libcudart.so.13"'),
    ("what is in the process is not asked", r"cai_priv_open_any\(1\)", r"NULL"),
    ("a path that fails is no error", r"if \(path && !out->library\)", r"if (0)"),
    ("nothing is closed", r"\(void\)dlclose\(library\);", r"(void)library;"),
]  # fmt: skip


def mutate(session, number, find, replace):
    """A folder with a cai_stream.h that has one defect."""
    text = (ROOT / "cai_stream.h").read_text()
    changed, count = re.subn(find, replace, text, count=1)
    if not count:
        raise Failure("the self-test does not apply any more: " + find)
    folder = session.folder("mutant-%d" % number)
    (folder / "cai_stream.h").write_text(changed)
    shutil.copy(str(ROOT / "cai.h"), str(folder / "cai.h"))
    return folder


def self_test(session):
    """Each defect must make the test fail; the header as it is must not."""
    quiet = Session.say
    for number, (name, find, replace) in enumerate([("none", "", "")] + MUTATIONS):
        seen = []
        session.say = lambda what, good, detail, seen=seen: seen.append((what, good))
        program = session.program("mutant-%d-test" % number, header=mutate(session, number, find, replace))
        session.all_slots("", program)
        session.search(program)
        session.refused(program)
        session.say = quiet.__get__(session)
        failed = [what.strip(" x") for what, good in seen if not good]
        detail = "{} of {} runs fail".format(len(failed), len(seen))
        session.say("defect: " + name, bool(failed) == bool(find), detail)


# -------------------------------------------------------------------------------------- main
def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--cxx", default="")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--headers", action="append", default=[])
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("--packages", type=pathlib.Path)
    parser.add_argument("--require", default="")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--mingw", default="")
    parser.add_argument("--wine", default="")
    options = parser.parse_args()
    if bool(options.mingw) != bool(options.wine):
        parser.error("--mingw and --wine go together")
    return options


def everything(options):
    """Runs what the options say; the number of failures."""
    if options.mingw:
        session = Session(options, Windows(options.wine), options.mingw, ["-D__USE_MINGW_ANSI_STDIO=1"])
    else:
        session = Session(options, Linux(), options.cc, SANITIZE if options.sanitize else [])
    session.build_fakes()
    if options.self_test:
        self_test(session)
    elif options.mingw:
        run_loaded(session, options, [])
    else:
        headers = find_headers(options.headers, options.packages)
        for major in options.require.split(",") if options.require else []:
            if not any(one.version // 1000 == int(major) for one in headers):
                raise Failure("the headers of CUDA {} are required and missing".format(major))
        libraries = find_libraries(options.library, headers)
        check_signatures(session, headers)
        plain = run_loaded(session, options, headers)
        run_linked(session, headers, libraries)
        for library in libraries:
            session.report("real {}".format(library.name), plain, [], [str(library)])
    print("loader: {} lines, {} failed".format(session.lines, session.failures))
    return session.failures


def main():
    options = parse()
    if not sys.platform.startswith("linux"):
        print("skipped: the fakes are built for Linux, and for Windows by a cross compiler")
        return 77
    try:
        if options.work:
            options.work = options.work.resolve()
            shutil.rmtree(str(options.work), ignore_errors=True)
            options.work.mkdir(parents=True)
            return 1 if everything(options) else 0
        with tempfile.TemporaryDirectory(prefix="loader-") as folder:
            options.work = pathlib.Path(folder).resolve()
            return 1 if everything(options) else 0
    except Failure as failure:
        print("loader: FAILED: {}".format(failure))
        return 1


if __name__ == "__main__":
    sys.exit(main())
