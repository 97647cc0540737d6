# SPDX-License-Identifier: MIT
"""Builds each package of packaging/ and builds a stranger's project with it, in an empty folder.

    packages.py CASE --root FOLDER --build FOLDER --work FOLDER [--tools FOLDER] ...

Prints the sizes. Exit status 77: a tool is missing. Nothing is fetched. The list of packaging/files.txt is compared
with the tree, and each package with the list.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
STRICT = (
    "-fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wcast-align "
    "-Wdouble-promotion -Wformat=2 -Wvla -Werror -DCAI_IMPLEMENTATION -DCAI_NO_CUDART"
).split()
IN_TREE = ("cai*.h", "cai*.hpp", "ext/*.h", "ext/*.hpp", "ext/*.pxd", "sim/*.h", "sim/*.hpp", "sim/*.c")
NOT_PACKED = (".git", ".venv", ".cache", "build*", "__pycache__", "tests", "examples")
DICTIONARIES = """\
{'shape': (2, 3), 'typestr': '<f4', 'data': (139637976727552, False), 'version': 3}
{'shape': (2, 3), 'typestr': '<f4', 'data': (139637976727552, False), 'version': 3, 'stream': 0}
"""


def run(*command, cwd=None, status=0, **environment):
    """The standard output. Another exit status is an error, and ends the test with all that was printed."""
    command = [str(word) for word in command]
    environment = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    done = subprocess.run(command, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def fail_unless(right, message):
    if not right:
        sys.exit(f"FAILED: {message}")


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def listed(root):
    return set((root / "packaging" / "files.txt").read_text().split())


def in_tree(root):
    return {path.relative_to(root).as_posix() for pattern in IN_TREE for path in root.glob(pattern)}


def installed(prefix):
    """The files of a package that come from the list, by their names in the tree."""
    found = set()
    for folder, name in (("include/cai", ""), ("share/cai/sim", "sim/")):
        top = prefix / folder
        found |= {name + path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}
    return found


def differences(what, files, others):
    return [f"{what}: {name} is missing" for name in sorted(others - files)] + [
        f"{what}: {name} is too much" for name in sorted(files - others)
    ]


def check_installed(options, what, prefix):
    faults = differences(what, installed(prefix), listed(options.root))
    fail_unless(not faults, "\n".join(faults))


def check_vectors(options, documents):
    """The test vectors are among the documents, all of them and as they are."""
    wanted = {path.name: path.read_bytes() for path in (options.root / "vectors").iterdir() if path.is_file()}
    found = {path.name: path.read_bytes() for path in documents.glob("*/vectors/*")}
    fail_unless(wanted and found == wanted, f"the vectors in {documents}: {sorted(found)}")


def copy_tree(options, to):
    """cai as somebody gets it who unpacks it, without what no package needs."""
    shutil.copytree(options.root, to, ignore=shutil.ignore_patterns(*NOT_PACKED))
    return to


def project(options, name, *sources):
    """A stranger's project in an empty folder."""
    folder = options.work / "stranger"
    shutil.copytree(HERE / "projects" / name, folder) if name else folder.mkdir()
    for source in sources:
        shutil.copy(HERE / "consumer" / source, folder)
    return folder


def check_says(program, begins):
    says = run(program).strip()
    print(f"the consumer says: {says}")
    fail_unless(says.startswith(begins), f"{program} does not begin with {begins}")


def build_with_cmake(options, cmake, *arguments, folder):
    run(cmake, "-S", folder, "-B", folder / "build", f"-DCMAKE_C_COMPILER={options.cc}", *arguments)
    run(cmake, "--build", folder / "build")


def find_package_project(options, prefix):
    """A project that finds cai in a prefix, builds with the extensions and with the simulation, and runs."""
    folder = project(options, "", "emm.c", "sim.c")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(consumer LANGUAGES C)\n"
        "find_package(cai 0.2 CONFIG REQUIRED COMPONENTS ext sim)\n"
        "add_executable(consumer emm.c)\ntarget_link_libraries(consumer PRIVATE cai::ext)\n"
        "add_executable(sim_consumer sim.c)\ntarget_link_libraries(sim_consumer PRIVATE cai::sim)\n"
    )
    build_with_cmake(options, options.cmake, f"-DCMAKE_PREFIX_PATH={prefix}", folder=folder)
    check_says(folder / "build" / "consumer", "cai_manager")
    check_says(folder / "build" / "sim_consumer", "cai_sim")


def tool(options, name):
    path = options.tools / "bin" / name
    if not path.exists():
        print(f"skipped: no {name} in {options.tools} (tests/build/packaging/requirements.txt)")
        sys.exit(77)
    return path


def tools_last(options):
    return f"{os.environ['PATH']}{os.pathsep}{options.tools / 'bin'}"


# ------------------------------------------------------------------------------------------------------------- cases


def case_lists(options):
    """The list has all files of the tree, the installation has the list, and all packages have the version."""
    files = listed(options.root)
    faults = differences("packaging/files.txt", files, in_tree(options.root))
    run(options.cmake, "--install", options.build, "--prefix", options.work / "prefix")
    faults += differences("cmake --install", installed(options.work / "prefix"), files)
    version = re.search(r"v(\d+\.\d+\.\d+)", (options.root / "cai.h").read_text())[1]
    packaging = options.root / "packaging"
    places = {
        "meson/packagefiles/cai/meson.build": rf"version: '{version}'",
        "meson/cai.wrap": rf"directory = cai-{version}\nsource_filename = cai-{version}.tar.gz\n",
        "vcpkg/cai/vcpkg.json": rf'"version": "{version}"',
        "debian/changelog": rf"cai \({version}\) ",
    }
    for place, pattern in places.items():
        if not re.search(pattern.replace(".", r"\."), (packaging / place).read_text()):
            faults.append(f"packaging/{place} has not version {version}")
    fail_unless(not faults, "\n".join(faults))
    places = {path.name: size(path) for path in sorted((options.work / "prefix" / "share").iterdir())}
    print(f"{len(files)} files; include: {size(options.work / 'prefix' / 'include')} bytes; share: {places}")


def case_bundles(options):
    """Each bundle compiles alone under strict warnings, and a program of one runs."""
    made = options.work / "bundles"
    run(sys.executable, "-B", options.root / "packaging" / "make_bundles.py", made)
    headers = sorted(path.name for path in made.iterdir())
    expected = [name for name in listed(options.root) if not name.startswith("sim/") and not name.endswith(".pxd")]
    fail_unless(len(headers) == len(expected), "bundles are missing")
    includes = [word for folder in options.include if os.path.isdir(folder) for word in ("-isystem", folder)]
    needs = {"cai_python": "Python.h", "cai_mpi": "mpi.h", "cai_caster": "Python.h", "cai_nanobind": "nanobind/nanobind.h",
             "cai_pybind11": "pybind11/pybind11.h", "cai_tvm_ffi": "tvm/ffi/c_api.h", "cai_hip": "hip/hip_runtime_api.h"}
    cxx = ("cai.hpp", "cai_caster.h", "cai_nanobind.h", "cai_pybind11.h")
    compiled = 0
    for name in headers:
        needed = [header for part, header in needs.items() if part in name]
        lacks = [header for header in needed if not any(os.path.exists(f"{f}/{header}") for f in options.include)]
        if lacks:
            print(f"{name}: not compiled, no {', '.join(lacks)}")
            continue
        language = ("c++", "c++17") if name in cxx else ("c", "c99")
        unit = options.work / "unit.c"
        unit.write_text((made / name).read_text() + "\nextern int ends_here;\n")
        platform = ("-D__HIP_PLATFORM_AMD__",) if name == "cai_hip.h" else ()
        run(options.cc, "-x", language[0], f"-std={language[1]}", *STRICT, *platform, *includes, unit, cwd=options.work)
        compiled += 1
    print(f"{len(headers)} bundles, {size(made)} bytes, {compiled} compiled alone")
    program = (HERE / "consumer" / "emm.c").read_text()
    text = (made / "cai_manager.h").read_text()
    (options.work / "one.c").write_text(program.replace('#include "cai_manager.h"', text))
    run(options.cc, "one.c", "-o", "one", cwd=options.work)
    check_says(options.work / "one", "cai_manager")


def case_cps(options):
    """CMake 4.3 reads the CPS file, if it is told to; by itself it takes the package with cai::sim."""
    cmake = tool(options, "cmake")
    prefix = options.work / "prefix"
    run(options.cmake, "--install", options.build, "--prefix", prefix)
    print(f"cai.cps: {(prefix / 'share/cai/cps/cai.cps').stat().st_size} bytes")
    folder = project(options, "cps", "emm.c")
    build_with_cmake(options, cmake, f"-Dcai_DIR={prefix / 'share/cai/cps'}", folder=folder)
    check_says(folder / "build" / "consumer", "cai_manager")
    shutil.rmtree(folder)
    options.cmake = cmake
    find_package_project(options, prefix)


def case_meson(options):
    """The archive and the overlay in `subprojects`, as the wrap asks for them; no network."""
    meson = tool(options, "meson")
    folder = project(options, "meson", "emm.c", "sim.c")
    packaging = options.root / "packaging" / "meson"
    shutil.copytree(packaging / "packagefiles", folder / "subprojects" / "packagefiles")
    wrap = (packaging / "cai.wrap").read_text()
    (folder / "subprojects" / "cai.wrap").write_text(wrap)
    name = re.search(r"directory = (\S+)", wrap)[1]
    with tarfile.open(folder / "subprojects" / "packagefiles" / f"{name}.tar.gz", "w:gz") as archive:
        archive.add(copy_tree(options, options.work / "tree"), name)
    environment = {"PATH": tools_last(options), "CC": options.cc}
    run(meson, "setup", "build", "--wrap-mode=nodownload", cwd=folder, **environment)
    run(meson, "compile", "-C", "build", cwd=folder, **environment)
    print(f"the archive: {(folder / 'subprojects/packagefiles' / f'{name}.tar.gz').stat().st_size} bytes")
    check_says(folder / "build" / "consumer", "cai_manager")
    check_says(folder / "build" / "sim_consumer", "cai_sim")


def case_conan(options):
    """conan create, with a project of its own that it builds and runs; no remotes."""
    conan = tool(options, "conan")
    environment = {"CONAN_HOME": options.work / "home", "PATH": tools_last(options), "CC": options.cc}
    run(conan, "profile", "detect", **environment)
    (options.work / "tree").mkdir()
    tree = copy_tree(options, options.work / "tree" / "cai")
    run(conan, "create", tree / "packaging" / "conan", "-nr", "-s", "build_type=Debug", **environment)
    reference = run(conan, "list", "cai/*:*", "--format=json", **environment)
    recipe, found = next(iter(json.loads(reference)["Local Cache"].items()))
    packages = next(iter(found["revisions"].values()))["packages"]
    identity = next(iter(packages))
    folder = pathlib.Path(run(conan, "cache", "path", f"{recipe}:{identity}", **environment).strip())
    check_installed(options, "Conan", folder)
    print(f"{recipe}: {size(folder)} bytes")


def case_debian(options):
    """dpkg-buildpackage in a copy of the tree, and a project with what libcai-dev has."""
    for program in ("dpkg-buildpackage", "dh"):
        if not shutil.which(program):
            print(f"skipped: no {program}")
            sys.exit(77)
    tree = copy_tree(options, options.work / "cai")
    shutil.copytree(tree / "packaging" / "debian", tree / "debian")
    run("dpkg-buildpackage", "--unsigned-source", "--unsigned-changes", "--build=binary", cwd=tree)
    package = next(options.work.glob("libcai-dev_*_all.deb"))
    run("dpkg-deb", "--extract", package, options.work / "system")
    check_installed(options, "libcai-dev", options.work / "system" / "usr")
    check_vectors(options, options.work / "system" / "usr" / "share" / "doc")
    print(f"{package.name}: {package.stat().st_size} bytes, installed {size(options.work / 'system')} bytes")
    find_package_project(options, options.work / "system" / "usr")
    pkg_config = shutil.which("pkg-config")
    if pkg_config:
        found_by = options.work / "system/usr/share/pkgconfig"
        flags = run(pkg_config, "--cflags", "cai-ext", PKG_CONFIG_PATH=found_by).split()
        run(options.cc, *flags, HERE / "consumer" / "emm.c", "-o", options.work / "by_pkg_config")
        check_says(options.work / "by_pkg_config", "cai_manager")


def case_vcpkg(options):
    """Not vcpkg itself: the port runs with functions of the same names. Its JSON is read, its options must exist."""
    port = options.root / "packaging" / "vcpkg" / "cai"
    manifest = json.loads((port / "vcpkg.json").read_text())
    fail_unless({"name", "version", "license", "dependencies"} <= set(manifest), "vcpkg.json lacks a field")
    fail_unless(manifest["name"] == "cai", "vcpkg.json has another name")
    prefix = options.work / "prefix"
    stand_in = HERE / "vcpkg_stand_in.cmake"
    run(options.cmake, f"-DPORT_FOLDER={port}", f"-DPREFIX={prefix}", f"-DWORK={options.work}", "-P", stand_in)
    check_installed(options, "vcpkg", prefix)
    print(f"the prefix: {size(prefix)} bytes")
    find_package_project(options, prefix)


def install_wheel(options, project_folder, site, **environment):
    """pip install into an own folder, from the machine alone."""
    target = options.work / "install"
    pip = [options.tools / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    alone = ("--quiet", "--no-index", "--no-deps")
    run(*pip, "wheel", *alone, "--no-build-isolation", "-w", target, project_folder, **environment)
    wheel = max(target.glob("*.whl"), key=lambda path: path.stat().st_mtime_ns)
    run(*pip, "install", *alone, "--upgrade", "--target", site, wheel)
    print(f"{wheel.name}: {wheel.stat().st_size} bytes")
    return wheel


def case_wheel(options):
    """The wheel of the headers judges as cai_inspect does, and two strangers build extensions with it."""
    python = tool(options, "python")
    (options.work / "tree").mkdir()
    tree = copy_tree(options, options.work / "tree" / "cai")
    site = options.work / "site"
    environment = {"PATH": tools_last(options), "PYTHONPATH": site, "CC": options.cc}
    wheel = install_wheel(options, tree / "packaging" / "python", site, **environment)
    names = set(zipfile.ZipFile(wheel).namelist())
    fail_unless("cai_headers/share/cai/LICENSE" in names, "no LICENSE")
    check_installed(options, "the wheel", site / "cai_headers")
    ask = "import cai_headers as c; print(c.get_include(), c.get_ext_include(), c.get_sim_dir(), c.get_cmake_dir())"
    folders = run(python, "-c", ask, PYTHONPATH=site).split()
    for folder, file in zip(folders, ("cai.h", "cai_manager.h", "cai_sim.c", "caiConfig.cmake"), strict=True):
        fail_unless(os.path.exists(f"{folder}/{file}"), f"no {folder}/{file}")
    judged = options.work / "dictionaries.txt"
    judged.write_text(DICTIONARIES)
    for arguments, status in (((judged,), 1), (("--table", judged), 1), (("--help",), 0), (("--none",), 2)):
        says = [run(*program, *arguments, status=status, PYTHONPATH=site)
                for program in ((python, "-m", "cai_headers"), (options.inspect,))]
        fail_unless(says[0] == says[1], f"python -m cai_headers {arguments} prints\n{says[0]}not\n{says[1]}")
    for script, argument, status, wanted in (("cai_inspect", "--help", 0, "usage: cai_inspect"),
                                             ("cai_conform", "math:pi", 2, "math:pi: 0 rules checked"),
                                             ("cai_conform", "--consumer=", 2, "MODULE:EXPRESSION")):
        says = run(python, site / "bin" / script, argument, status=status, PYTHONPATH=site)
        fail_unless(wanted in says, f"{script} of the wheel prints {says}")
    consumed = run(site / "bin" / "cai_conform", "--consumer", "math:sqrt", status=2, PYTHONPATH=site)
    fail_unless("math:sqrt: 0 producers" in consumed, f"cai_conform --consumer prints {consumed}")
    asked = "from cai_headers.cai_conform import check; print(check(1))"
    fail_unless(run(python, "-c", asked, PYTHONPATH=site) == "[]\n", "cai_headers.cai_conform is no module")
    environment["SKBUILD_CMAKE_BUILD_TYPE"] = "Debug"  # compiles in half the time
    for name in ("scikit", "nanobind"):
        folder = project(options, name)
        install_wheel(options, folder, site, **environment)
        shutil.rmtree(folder)
        module = "stranger" if name == "scikit" else "stranger_nb"
        use = f"""import {module}
class A: __cuda_array_interface__ = {DICTIONARIES.splitlines()[0]}
print({module}.text(A()))
A.__cuda_array_interface__['stream'] = 0
try: {module}.text(A())
except ValueError as error: print(error)"""
        says = run(python, "-c", use, PYTHONPATH=site)
        print(says, end="")
        fail_unless("float32 (2, 3)" in says and "stream = 0 is ambiguous" in says, f"{name} says {says}")


OTHERS = {"other.patch": "BSD-3-Clause", "exception.patch": "Apache-2.0 WITH LLVM-exception"}


def check_spdx(tree, document, whole):
    """The list has each file of the archive once, with its sums and its license."""
    says = json.loads(document.read_text())
    package, found = says["packages"][0], []
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        data = path.read_bytes()
        license_ = OTHERS.get(path.name, "MIT")
        found.append((f"./{path.relative_to(tree).as_posix()}", hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest(), license_))
    listed = sorted((one["fileName"], *(sum_["checksumValue"] for sum_ in one["checksums"]), one["licenseConcluded"]) for one in says["files"])
    fail_unless(listed == sorted(found), f"{document.name} differs: {sorted(set(listed) ^ set(found))[:4]}")
    code = hashlib.sha1("".join(sorted(one[1] for one in found)).encode()).hexdigest()
    fail_unless(package["packageVerificationCode"]["packageVerificationCodeValue"] == code, "the verification code")
    fail_unless(package["checksums"] == [{"algorithm": "SHA256", "checksumValue": whole}], "the sum of the archive")
    kinds = {one["relationshipType"] for one in says["relationships"]}
    fail_unless(kinds == {"DESCRIBES", "CONTAINS"}, f"relationships: {kinds}")


def case_release(options):
    """A checkout gives the same bytes twice, sums that are right, and an archive from which cai is installed."""
    if not shutil.which("git"):
        print("skipped: no git")
        sys.exit(77)
    tree = copy_tree(options, options.work / "tree")  # what is not committed, too
    for name, says in OTHERS.items():
        (tree / name).write_text(f"+ * SPDX-License-Identifier: {says}\n")
    git = ["git", "-c", "user.name=cai", "-c", "user.email=cai@example.invalid", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--no-verify", "--message", "all"]):
        run(*git, *words, cwd=tree)
    script = tree / "packaging" / "make_release.py"
    print(run(sys.executable, "-B", script, options.work / "first"), end="")
    run(sys.executable, "-B", script, options.work / "again", TZ="Asia/Tokyo", LC_ALL="C")
    names = sorted(path.name for path in (options.work / "first").iterdir())
    for name in names:
        first, again = ((options.work / folder / name).read_bytes() for folder in ("first", "again"))
        fail_unless(first == again, f"{name} has other bytes")
    lines = (options.work / "first" / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split("  ")) for line in lines)
    fail_unless(sorted([*sums, "SHA256SUMS"]) == names, "SHA256SUMS has other files")
    for name, value in sums.items():
        data = (options.work / "first" / name).read_bytes()
        fail_unless(hashlib.sha256(data).hexdigest() == value, f"the sum of {name}")
    archive = next((options.work / "first").glob("*.tar.gz"))
    wrap = (options.work / "first" / "cai.wrap").read_text()
    fail_unless(f"source_hash = {sums[archive.name]}" in wrap, "the wrap has another hash")
    shutil.unpack_archive(archive, options.work / "unpacked")
    tree = next((options.work / "unpacked").iterdir())
    check_spdx(tree, next((options.work / "first").glob("*.spdx.json")), sums[archive.name])
    run(options.cmake, "-S", tree, "-B", options.work / "build", "-DCAI_BUILD_TESTS=OFF", "-DCAI_BUILD_EXAMPLES=OFF",
        f"-DCMAKE_INSTALL_PREFIX={options.work / 'prefix'}", f"-DCMAKE_C_COMPILER={options.cc}")
    run(options.cmake, "--build", options.work / "build", "--target", "install")
    faults = differences("the archive", installed(options.work / "prefix"), listed(tree))
    fail_unless(not faults, "\n".join(faults))
    check_vectors(options, options.work / "prefix" / "share" / "doc")


def main():
    cases = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=cases)
    for name in ("root", "build", "work", "tools"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--inspect", default="cai_inspect")
    parser.add_argument("--include", nargs="*", default=[], help="folders of Python.h and mpi.h")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    cases[options.case](options)


if __name__ == "__main__":
    main()
