#!/usr/bin/env python3
"""Writes what makes libcudart complete, from the headers of a CUDA toolkit.

    make_runtime.py --cc gcc --include DIR [--include DIR ...] --out DIR

reads cuda_runtime_api.h as the compiler sees it and writes into --out:

    runtime_names.h    declares rt_NAME for each public function NAME, with the parameters of the header
    runtime_names.c    defines each public name, its _ptds and _ptsz variants, and the names of the errors
    runtime.map        exports the public names with the version that NVIDIA's library gives them
    runtime.version    the major version: 12 or 13

A public function calls rt_NAME if a source file defines it. Otherwise it says so and returns
cudaErrorNotSupported. The linker decides that: rt_NAME is a weak symbol.
"""
import argparse
import pathlib
import re
import shlex
import subprocess

SOURCE = """#include <cuda_runtime_api.h>
cai_version CUDART_VERSION;
"""
# Functions whose headers need OpenGL, EGL or VDPAU are found by their names alone.
INTEROP = ("cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h")
# These do not change the last error.
QUIET = ("cudaGetLastError", "cudaPeekAtLastError")
# cuda_profiler_api.h has these, and is not always installed with the other header.
PROFILER = ("cudaProfilerStart", "cudaProfilerStop")
FUNCTION = re.compile(r"extern\s+(?:__attribute__\s*\(\([^;]*?\)\)\s*)?"
                      r"cudaError_t\s+(cuda\w+)\s*\(([^;]*)\)\s*;")
HEADER = "/* Written by make_runtime.py. */\n"


def preprocessed(compiler, includes):
    """The declarations of all variants. The macro is the header's own switch for them."""
    command = [*shlex.split(compiler), "-E", "-P", "-x", "c", "-D__CUDA_API_VERSION_INTERNAL"]
    command += [f"-I{folder}" for folder in includes] + ["-"]
    return subprocess.run(command, input=SOURCE, capture_output=True, text=True, check=True).stdout


def functions_of(text):
    """{name: parameters}, in the order of the header."""
    found = {}
    for name, parameters in FUNCTION.findall(text):
        found.setdefault(name, " ".join(parameters.split()))
    found.update({name: "void" for name in PROFILER})
    return found


def errors_of(text):
    body = re.search(r"enum\s+cudaError\s*\{(.*?)\}", text, re.S)[1]
    return re.findall(r"(cudaError\w+|cudaSuccess)\s*=\s*(\d+)", body)


def interop_of(includes, known):
    names = set()
    for folder in includes:
        for header in INTEROP:
            path = pathlib.Path(folder, header)
            if path.exists():
                names.update(re.findall(r"\bCUDARTAPI\s+(cuda\w+)\s*\(", path.read_text(errors="replace")))
    return sorted(name for name in names - set(known) if not name.startswith("cudaWGL"))


def base_of(name):
    return re.sub(r"_pt[ds][sz]$", "", name)


def arguments_of(parameters):
    if parameters == "void":
        return ""
    return ", ".join(re.search(r"(\w+)\s*(\[\w*\])?\s*$", one)[1] for one in parameters.split(","))


def wrapper(name, parameters, index):
    base, per_thread = base_of(name), int(name != base_of(name))
    arguments = arguments_of(parameters)
    head = f"RT_EXPORT cudaError_t CUDARTAPI {name}({parameters})"
    head = (head + ";\n" if name in PROFILER else "") + head + "\n{\n"
    if base in QUIET:
        return head + f"    return rt_{base}({arguments});\n}}\n"
    return (head + "    int32_t outer;\n"
            f"    if (!rt_{base}) return rt_missing(&rt_functions[{index}], RT_CALLER);\n"
            f"    outer = rt_enter(&rt_functions[{index}], RT_CALLER, {per_thread});\n"
            f"    return rt_leave(outer, rt_{base}({arguments}));\n}}\n")


def names_h(functions):
    lines = [HEADER]
    done = set()
    for name, parameters in functions.items():
        base = base_of(name)
        if base not in done:
            done.add(base)
            lines.append(f"RT_WEAK cudaError_t rt_{base}({parameters});")
    return "\n".join(lines) + "\n"


def names_c(functions, interop, errors):
    bases = list(dict.fromkeys(base_of(name) for name in functions))
    lines = [HEADER, '#include "runtime.h"\n', "rt_function rt_functions[] = {"]
    lines += [f'    {{"{base}", 0, (rt_any_function)rt_{base}}},' for base in bases]
    lines += [f'    {{"{name}", 0, NULL}},' for name in interop]
    lines += ["    {NULL, 0, NULL}};\n", "const rt_error_name rt_error_names[] = {"]
    lines += [f'    {{{number}, "{name}"}},' for name, number in errors]
    lines += ["    {-1, NULL}};\n"]
    lines += [wrapper(name, parameters, bases.index(base_of(name))) for name, parameters in functions.items()]
    for index, name in enumerate(interop, len(bases)):
        lines.append(f"RT_EXPORT cudaError_t {name}(void);\n"
                     f"RT_EXPORT cudaError_t {name}(void)\n{{\n"
                     f"    return rt_missing(&rt_functions[{index}], RT_CALLER);\n}}\n")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default="cc", help="the C compiler, with its options")
    parser.add_argument("--include", action="append", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    text = preprocessed(options.cc, options.include)
    functions = functions_of(text)
    major = int(re.search(r"cai_version (\d+)", text)[1]) // 1000
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "runtime_names.h").write_text(names_h(functions))
    interop = interop_of(options.include, functions)
    (out / "runtime_names.c").write_text(names_c(functions, interop, errors_of(text)))
    (out / "runtime.map").write_text(
        f"libcudart.so.{major} {{\n  global: cuda*; __cuda*; cai_runtime_*;\n  local: *;\n}};\n")
    (out / "runtime.version").write_text(f"{major}\n")


if __name__ == "__main__":
    main()
