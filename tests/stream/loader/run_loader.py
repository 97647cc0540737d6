#!/usr/bin/env python3
"""Runs test_loader.c on fake CUDA libraries of every kind, and on the real ones that are found.

    run_loader.py [--cc gcc] [--cxx g++] [--work DIR] [--headers DIR]... [--library FILE]... [--packages DIR]
    run_loader.py --sanitize              with -fsanitize=address,undefined
    run_loader.py --mingw CC --wine WINE [--prefix DIR]    as Windows programs; WINE: wine.sh of a build folder
    run_loader.py --self-test [--whole]   breaks cai_stream.h in many ways; the test must see each. Without --whole a
                                          defect that is seen once is not run on the other libraries

--headers: an include folder of a CUDA toolkit; --library: a libcudart to link with. Without them those of CUDA_HOME
and /usr/local/cuda are taken. --packages: a folder with more, from Python packages:
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
ROOT = HERE.parents[2]
STRICT = (
    "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align "
    "-Wdouble-promotion -Wformat=2 -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Werror"
).split()
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]  # -O1 takes twice as long to compile

# Drivers that are loaded, and runtimes that are linked with the drivers that each is run on.
# 12.9 on 12.0: minor version compatibility; 11.x on 13.0: what is in the field.
DRIVERS = (11020, 11080, 12000, 12040, 13000)
LINKED = [
    (11030, (11030, 13000)),
    (11080, (11080, 12000, 13000)),
    (12000, (12000, 13000)),
    (12040, (12040, 13000)),
    (12050, (12050, 13000)),
    (12090, (12000, 12090, 13000)),
    (13000, (13000,)),
]
RUNTIMES = [runtime for runtime, _ in LINKED]


def dotted(version):
    """13000 -> 13.0"""
    return "{}.{}".format(version // 1000, version % 1000 // 10) if version else "none"


class Failure(Exception):
    """What did not build or run."""


class Seen(Exception):
    """The self-test has seen a defect."""


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

    def __init__(self, wine, prefix):
        self.wine = wine
        self.prefix = prefix

    def shared(self, _name):
        return ["-shared"]

    def path(self, path):
        return "Z:" + str(path).replace("/", "\\")

    def install(self, folders, env):
        """The driver that these folders lead to becomes a part of the system, and no other is there."""
        system = self.prefix / "drive_c/windows/system32"
        if not system.exists():
            run([self.wine], env=env, check=True)
        installed = system / self.driver
        if installed.exists():
            installed.unlink()
        found = [folder / self.driver for folder in folders if (folder / self.driver).exists()]
        if found:
            shutil.copy(str(found[0]), str(installed))

    def start(self, program, folders, env):
        env["CAI_WINEPREFIX"] = str(self.prefix)
        self.install([folder for folder in folders if "on-path" not in folder.name], env)
        env["WINEPATH"] = ";".join(self.path(folder) for folder in folders)
        env["WINEDLLOVERRIDES"] = "nvcuda=n;mscoree=;mshtml=;winemenubuilder.exe="
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
        self.include = ["-I", str(ROOT), "-I", str(ROOT / "ext"), "-I", str(HERE.parents[1] / "support"), "-I", str(HERE)]
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
        for driver in DRIVERS:
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
        shutil.copy(str(self.folder("driver-13.0") / target.driver), str(self.folder("driver-on-path")))

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

    def slots(self, what, program, driver, runtime=0, path=None):
        """Every slot, of the driver by its name or by this path, or of the one that the linked runtime leads to."""
        known = driver if driver in DRIVERS and not runtime else 13000  # which names its library exports
        folders = ["driver-" + dotted(known)] if not path else []
        folders += ["runtime-" + dotted(runtime)] if runtime else []
        arguments = ["slots", str(runtime), *([self.target.path(path)] if path else [])]
        good, detail = self.call(program, [*folders, "no-runtime", "no-driver"], arguments, driver)
        library = dotted(runtime) if runtime else "by path" if path else "by name"
        self.say("{} x library {} on driver {}".format(what, library, dotted(driver)), good, detail)

    def loaded_slots(self, what, program):
        for driver in DRIVERS:
            self.slots(what, program, driver)
        self.slots(what, program, 13000, path=self.work / "driver-13.0" / self.target.driver)

    def linked_slots(self, what, runtimes, **how):
        """Linked with fakes, by headers of our own, whatever headers are here."""
        for runtime, drivers in LINKED:
            if runtime not in runtimes:
                continue
            flags = ["-DLOADER_LINKED", "-DFAKE_RUNTIME=%d" % runtime, "-I", str(HERE / "headers")]
            file = self.runtime_files[runtime]
            program = self.program("linked-" + dotted(runtime), *flags, libraries=[file], **how)
            for driver in drivers:
                self.slots(what, program, driver, runtime)

    def alone(self, program):
        """Nothing but the driver is loaded: (what, folders of the search, held)"""
        path = {runtime: self.target.path(file) for runtime, file in self.runtime_files.items()}
        every = ["driver-13.0", "runtime-11.8", "runtime-12.4", "runtime-13.0"]
        cases = [
            ("no runtime", ["driver-13.0"], []),
            ("runtimes 11, 12 and 13", every, []),
            ("11 held, 12 and 13", every, [path[11080]]),
            ("11 and 12 held", ["driver-13.0"], [path[11080], path[12090]]),
            ("11.2", ["driver-11.2", "runtime-11.8"], []),
            ("12.4, runtime 13", ["driver-12.4", "runtime-13.0"], []),
        ]
        for what, folders, held in cases:
            good, detail = self.call(program, [*folders, "no-runtime"], ["alone", *held])
            self.say("the driver alone, " + what, good, detail)

    def refused(self, program):
        """What must fail, and what the message then has."""
        path = {runtime: self.target.path(file) for runtime, file in self.runtime_files.items()}
        no_library = self.target.path(self.work / "no-driver" / self.target.driver)
        missing = self.target.path(self.work / "nothing" / self.target.driver)
        lacking = self.target.path(self.work / "driver-lacking" / self.target.driver)
        everything = ["driver-13.0", "runtime-13.0", "runtime-12.9", "runtime-11.8"]
        name = self.target.driver
        cases = [
            ("a path that is not there", everything, missing, missing),
            ("a file that is no library", everything, no_library, no_library),
            ("a library that is no driver", everything, "cuInit,2.0", path[13000]),
            ("a path, a driver that lacks a function", everything, "cuEventRecord", lacking),
            ("no path, nothing there", ["no-driver"], name, ""),
            ("no path, runtimes without a driver", ["no-driver", "runtime-12.9", "runtime-13.0"], name, ""),
            ("no path, a driver that lacks a function", ["driver-lacking"], "cuEventRecord", ""),
        ]
        if isinstance(self.target, Windows):  # what has its name is not it
            cases.append(("no path, a driver that is no part of the system", ["driver-on-path"], name, ""))
        for what, folders, parts, library in cases:
            good, detail = self.call(program, [*folders, "no-runtime"], ["refused", parts, library])
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
    session.loaded_slots("headers none", plain)
    for one in headers:
        name = "headers " + dotted(one.version)
        program = session.program("loader-" + dotted(one.version), "-DLOADER_HEADERS", *one.flags)
        session.loaded_slots(name, program)
    if options.cxx:
        cxx = ["-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror"]
        session.loaded_slots("C++", session.program("loader-cxx", cc=options.cxx, standard=cxx))
    session.alone(plain)
    session.refused(plain)
    return plain


def run_linked(session, headers, libraries):
    """cai_cuda_linked: our own headers and fakes of every version; real headers with a fake or real library."""
    session.linked_slots("linked", RUNTIMES)
    variants = [("", []), (" per thread", ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"])]
    for one in headers:
        runtime = fake_for(one)
        for suffix, flags in variants:
            name = "linked, headers {}{}".format(dotted(one.version), suffix)
            flags = ["-DLOADER_LINKED", *flags, *one.flags]
            file = session.runtime_files[runtime]
            program = session.program("linked" + dotted(one.version) + suffix[1:4], *flags, libraries=[file])
            for driver in sorted({runtime, 13000}):
                session.slots(name, program, driver, runtime)
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
    ("capture query of 12.3", r'(X\(stream_capture, [\s\S]*?), \d+, 1\)', r"\1, 12030, 1)"),
    ("device query of 13.0", r'(X\(context_device, [\s\S]*?), \d+, 1\)', r"\1, 13000, 1)"),
    ("context synchronization of 13.0", r'(X\(context_synchronize, [\s\S]*?), \d+, 1\)', r"\1, 13000, 1)"),
    ("context of a stream of 12.5", r'(X\(stream_context, [\s\S]*?), \d+, 1\)', r"\1, 12050, 1)"),
    ("push of 2.0", r'(X\(context_push, [\s\S]*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("pop of 2.0", r'(X\(context_pop, [\s\S]*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("destruction of 2.0", r'(X\(event_destroy, [\s\S]*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("range of 2.0", r'(X\(pointer_range, [\s\S]*?), \d+, 1\)', r"\1, 2000, 1)"),
    ("stream id is needed", r'(X\(stream_id, [\s\S]*?), \d+, 0\)', r"\1, 12000, 1)"),
    ("record is not needed", r'(X\(event_record, [\s\S]*?), \d+, 1\)', r"\1, 2000, 0)"),
    ("query waits", r'"cuEventQuery"', r'"cuEventSynchronize"'),
    ("push by name of 2.0", r'"cuCtxPushCurrent", "_v2"', r'"cuCtxPushCurrent", ""'),
    ("pop by name of 2.0", r'"cuCtxPopCurrent", "_v2"', r'"cuCtxPopCurrent", ""'),
    ("destruction by name of 2.0", r'"cuEventDestroy", "_v2"', r'"cuEventDestroy", ""'),
    ("range by name of 2.0", r'"cuMemGetAddressRange", "_v2"', r'"cuMemGetAddressRange", ""'),
    ("capture by name of 11.3", r'"cuStreamGetCaptureInfo", ""', r'"cuStreamGetCaptureInfo", "_v2"'),
    ("per-thread functions", r"LEGACY_STREAM = 1", r"LEGACY_STREAM = 2"),
    ("events with timing", r"\(&made, 2\)", r"(&made, 0)"),
    ("another device attribute", r"PAGEABLE_ACCESS = 88", r"PAGEABLE_ACCESS = 87"),
    ("allocation of 2.0", r'(X\(memory_alloc, [\s\S]*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("free of 2.0", r'(X\(memory_free, [\s\S]*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("sizes of 2.0", r'(X\(memory_info, [\s\S]*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("registration of 4.0", r'(X\(host_register, [\s\S]*?), \d+, 0\)', r"\1, 4000, 0)"),
    ("handles of 4.1", r'(X\(ipc_open, [\s\S]*?), \d+, 0\)', r"\1, 4010, 0)"),
    ("UUID of 9.2", r'(X\(device_uuid, [\s\S]*?), \d+, 0\)', r"\1, 9020, 0)"),
    ("allocation by name of 2.0", r'"cuMemAlloc", "_v2"', r'"cuMemAlloc", ""'),
    ("free by name of 2.0", r'"cuMemFree", "_v2"', r'"cuMemFree", ""'),
    ("sizes by name of 2.0", r'"cuMemGetInfo", "_v2"', r'"cuMemGetInfo", ""'),
    ("registration by name of 4.0", r'"cuMemHostRegister", "_v2"', r'"cuMemHostRegister", ""'),
    ("handles by name of 4.1", r'"cuIpcOpenMemHandle", "_v2"', r'"cuIpcOpenMemHandle", ""'),
    ("UUID by name of 9.2", r'"cuDeviceGetUuid", "_v2"', r'"cuDeviceGetUuid", ""'),
    ("allocation is needed", r'(X\(memory_alloc, [\s\S]*?), 0\)', r"\1, 1)"),
    ("copies of 2.0", r'(X\(copy_3d_async, [\s\S]*?), \d+, 0\)', r"\1, 2000, 0)"),
    ("copies by name of 2.0", r'"cuMemcpy3DAsync", "_v2"', r'"cuMemcpy3DAsync", ""'),
    ("copies between devices only", r"UNIFIED = 4", r"UNIFIED = 2"),
    ("copies with the ends changed", r"rows\.from\.device = copy->from", r"rows.from.device = copy->to"),
    ("copies with one pitch", r"= \(size_t\)copy->to_pitch", r"= (size_t)copy->from_pitch"),
    ("copies with the level in front", r"size_t x, y, z, level;", r"size_t level, x, y;"),
    ("copies of 32 bits", r"\(to, from, \(size_t\)size", r"(to, from, (uint32_t)size"),
    ("fills with width and height changed", r"\(size_t\)width, \(size_t\)height,", r"(size_t)height, (size_t)width,"),
    ("copies between devices of other versions", r'(X\(copy_3d_peer_async, [\s\S]*?), \d+, 0\)', r"\1, 3020, 0)"),
    ("copies between devices are needed", r'(X\(copy_peer_async, [\s\S]*?), 0\)', r"\1, 1)"),
    ("copies between devices of any memory", r"DEVICE = 2 \}", r"DEVICE = 4 }"),
    ("copies with the contexts changed", r"rows\.to\.context = (.*);\n(    rows\.from\.context = )(.*);",
     r"rows.to.context = \3;\n\2\1;"),
    ("lines with the contexts changed", r"\(to, cai_priv_cu_handle\(to_context\), from, cai_priv_cu_handle\(from_context\)",
     r"(to, cai_priv_cu_handle(from_context), from, cai_priv_cu_handle(to_context)"),
    ("UUID is needed", r'(X\(device_uuid, [\s\S]*?), 0\)', r"\1, 1)"),
    ("a slot without its entry", r"if \(driver->entries\[CAI_PRIV_CU_##name\]\)", r"if (driver)"),
    ("handles without peers", r"\(pointer, copy, 1\)", r"(pointer, copy, 0)"),
    ("registration without flags", r"(cai_priv_cu_handle\(pointer\), .*), flags\)", r"\1, flags & 1)"),
    ("host memory without flags", r"\(&made, \(size_t\)size, flags\)", r"(&made, (size_t)size, flags & 4)"),
    ("sizes of 32 bits", r"\(pointer, \(size_t\)size\)", r"(pointer, (uint32_t)size)"),
    ("no initialization for the UUID", r"cai_priv_driver_init\(self, &error\) \? cai_priv_cu_device_uuid.*?: ", r""),
    ("attributes in another order", r"\{2, 9, 1, 8, 17\}", r"{2, 9, 8, 1, 17}"),
    ("the address asked of all memory", r"\{2, 9, 1, 8, 17\}", r"{2, 9, 1, 8, 3}"),
    ("no address without a context", r"if \(error && error != 1 && error != 201\) return error;", r"if (error) return error;"),
    ("no address for want of a context only", r"if \(!current \|\| current != info->context\)", r"if (!current)"),
    ("its own context is not the last word", r"if \(!current \|\| current != info->context\)", r"if (1)"),
    ("no answer is an answer", r"if \(!type && !current\)", r"if (0)"),
    ("device memory has no address", r"if \(type\) info->device_pointer = pointer;\n    else error", r"if (!type) error"),
    ("a primary context is made", r"if \(error \|\| !active\) return error;", r"if (error) return error;"),
    ("the state of another context", r"error = state\(device, &flags, &active\);", r"error = state(0, &flags, &active);"),
    ("threads by their pthread_t alone", r"    more = cai_priv_system_call\(SYS_gettid\);\n", r""),
    ("attributes that 11.2 does not know", r"if \(error == 1\) error = call\(POOL,", r"if (0) error = call(POOL,"),
    ("no initialization", r"if \(\*?error != 3\) return 0;", r"if (1) return 0;"),
    ("a user object of a stream that does not capture", r"    if \(!error && !graph\) error = 401;\n", r""),
    ("the graph does not own the user object", r"NO_DESTRUCTOR_SYNC = 1, MOVE = 1", r"NO_DESTRUCTOR_SYNC = 1, MOVE = 0"),
    ("a user object without its flag", r"NO_DESTRUCTOR_SYNC = 1, MOVE", r"NO_DESTRUCTOR_SYNC = 0, MOVE"),
    ("user objects without their function", r"    if \(!driver->entries\[CAI_PRIV_CU_capture_graph\] [^;]*;\n", r""),
    ("a reference stays", r"return error \? error : cai_priv_driver_primary_release\(self, device\);", r"return error;"),
    ("a retain before the initialization", r"        if \(cai_priv_driver_init\(self, &error\)\) error = cai_priv_cu_##name\(self\) arguments; *\\\n", r""),
    ("a retain of the first device", r"\(&made, device\)\)", r"(&made, device & 0))"),
    ("a release by name of 7.0", r'"cuDevicePrimaryCtxRelease", "_v2"', r'"cuDevicePrimaryCtxRelease", ""'),
    ("the path is not used", r"path \? path : cai_priv_driver_library, RTLD_LAZY", r"path ? cai_priv_driver_library : cai_priv_driver_library, RTLD_LAZY"),
    ("a driver without the lookup", r"if \(!lookup\)", r"if (0)"),
    ("an error of the runtime stays", r"\(void\)cudaGetLastError\(\);", r"(void)0;"),
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


def run_mutant(session, number, header):
    """All lines, on libraries that are loaded first."""
    program = session.program("mutant-%d-test" % number, header=header)
    session.loaded_slots("", program)
    session.alone(program)
    session.refused(program)
    session.linked_slots("", (11080, 12090), header=header)


def self_test(session, whole):
    """Each defect must make the test fail; the header as it is must not."""
    quiet = Session.say
    for number, (name, find, replace) in enumerate([("none", "", "")] + MUTATIONS):
        seen = []

        def note(what, good, _detail, seen=seen):
            seen.append((what, good))
            if not good and not whole:
                raise Seen

        session.say = note
        try:
            run_mutant(session, number, mutate(session, number, find, replace))
        except Seen:
            pass
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
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--mingw", default="")
    parser.add_argument("--wine", default="")
    parser.add_argument("--prefix", type=pathlib.Path, help="wine's folder, which stays; without it one in --work")
    options = parser.parse_args()
    if bool(options.mingw) != bool(options.wine):
        parser.error("--mingw and --wine go together")
    return options


def everything(options):
    """Runs what the options say; the number of failures."""
    if options.mingw:
        session = Session(options, Windows(options.wine, options.prefix or options.work / "wine"), options.mingw, ["-D__USE_MINGW_ANSI_STDIO=1"])
    else:
        session = Session(options, Linux(), options.cc, SANITIZE if options.sanitize else [])
    session.build_fakes()
    if options.self_test:
        self_test(session, options.whole)
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
        session.report("the driver of this machine", plain, [], [])
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
        options.work = pathlib.Path(tempfile.mkdtemp(prefix="loader-")).resolve()
        try:
            return 1 if everything(options) else 0
        finally:
            shutil.rmtree(str(options.work), ignore_errors=True)  # wine may still write to its folder
    except Failure as failure:
        print("loader: FAILED: {}".format(failure))
        return 1


if __name__ == "__main__":
    sys.exit(main())
