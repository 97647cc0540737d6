#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the stand-ins of cuBLAS, cuBLASLt, cuRAND, cuFFT and cuDNN without these libraries.

    check_libraries.py [--cc COMPILER]

Small libraries of the same names and symbols are built where pip puts the real ones. Programs that call them run by
`python -m cai_sim`, which this Python must have. Each function of theirs that is called itself returns 77. Exit status 0:
all is right; 1: not; 77: no compiler, no package cai_sim, or another machine than x86-64.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

NAMES = {
    "cublas.so.13": "cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasGetStream_v2 cublasSetPointerMode_v2 cublasSgemm_v2 "
    "cublasSgemm_v2_64 cublasDgemmStridedBatched cublasGemmEx cublasSgemv_v2 cublasSaxpy_v2 cublasSdot_v2 cublasStrsm_v2 "
    "cublasXtCreate cublasSetWorkspace_v2 cublasGetVersion_v2 cublasSgetrfBatched cublasSgemmBatched",
    "cublasLt.so.13": "cublasLtCreate cublasLtMatmul cublasLtMatmulDescCreate cublasLtMatrixLayoutCreate "
    "cublasLtMatmulDescSetAttribute cublasLtMatmulAlgoGetHeuristic",
    "curand.so.10": "curandCreateGenerator curandSetStream curandGenerateUniform curandGenerateNormal curandGenerateBinomial",
    "cufft.so.12": "cufftPlan1d cufftPlanMany cufftSetStream cufftExecC2C cufftExecR2C cufftSetWorkArea cufftXtSetJITCallback",
    "cupti.so.13": "cuptiSubscribe cuptiActivityEnable",
    "cudnn.so.9": "cudnnCreate cudnnSetStream cudnnGetVersion cudnnBackendCreateDescriptor cudnnBackendSetAttribute "
    "cudnnBackendGetAttribute cudnnBackendFinalize cudnnBackendExecute cudnnRNNForward",
}  # fmt: skip

# Two streams, three arrays of 16 x 16 floats, and the libraries. With `order` the second stream waits for the first.
BEGIN = """
import ctypes, sys
from ctypes import byref, c_double, c_float, c_int, c_int64, c_longlong, c_size_t, c_uint64, c_void_p

cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments, of=cuda, status=0):
    error = getattr(of, name)(*arguments)
    assert error == status, (name, error)
context, one, two, event = c_void_p(), c_void_p(), c_void_p(), c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuStreamCreate", byref(one), 1)
call("cuStreamCreate", byref(two), 1)
call("cuEventCreate", byref(event), 2)
def array(bytes=1024):
    made = c_uint64()
    call("cuMemAlloc_v2", byref(made), c_size_t(bytes))
    return made
def order():
    if "ordered" in sys.argv:
        call("cuEventRecord", event, one)
        call("cuStreamWaitEvent", two, event, 0)
a, b, c, d = array(), array(), array(), array()
"""
BLAS = """
blas = ctypes.CDLL("libcublas.so.13")
first, second, version = c_void_p(), c_void_p(), c_int()
for handle, stream in ((first, one), (second, two)):
    call("cublasCreate_v2", byref(handle), of=blas)
    call("cublasSetStream_v2", handle, stream, of=blas)
call("cublasGetVersion_v2", first, byref(version), of=blas)
assert version.value == 130401, version.value
scale = c_float(1)
def product(handle, left, right, out, m=16, n=16, k=16, ld=16):
    call("cublasSgemm_v2", handle, 0, 0, m, n, k, byref(scale), left, ld, right, 16, byref(scale), out, ld, of=blas)
"""
# name: (program, its race, what else the report says). The race goes if the second stream waits.
PROGRAMS = {
    "gemm": (
        BEGIN + BLAS + "product(first, a, b, c)\norder()\nproduct(second, c, b, d)\n",
        r'race 1 on m3\[0, 1024\).*kernel "cublasSgemm" writes on s1.*"cublasSgemm" reads on s2.*cublasSgemm of ctypes',
        "",
    ),
    "destroyed": (  # the end of a handle waits for the device
        BEGIN + BLAS + "product(first, a, b, c)\ncall('cublasDestroy_v2', first, of=blas)\nproduct(second, c, b, d)\n", "", "",
    ),
    "rows": (  # two products into the upper and the lower half of the columns
        BEGIN + BLAS + "product(first, a, b, c, m=8)\nproduct(second, a, b, c_uint64(c.value + 32), m=8)\n", "", "",
    ),
    "rows_overlap": (
        BEGIN + BLAS + "product(first, a, b, c, m=8)\norder()\nproduct(second, a, b, c_uint64(c.value + 28), m=8)\n",
        r'race 1 on m3\[28, 32\)', "",
    ),
    "wide": (
        BEGIN + BLAS + """
L = c_int64
blas.cublasSgemm_v2_64.argtypes = [c_void_p, c_int, c_int, L, L, L, c_void_p, c_uint64, L, c_uint64, L, c_void_p, c_uint64, L]
call("cublasSgemm_v2_64", first, 1, 0, 8, 16, 4, byref(scale), a, 4, b, 4, byref(scale), c, 8, of=blas)
order()
call("cuMemsetD8Async", a, 1, c_size_t(1024), two)
call("cuMemsetD8Async", b, 1, c_size_t(1024), two)
call("cuMemsetD8Async", c, 1, c_size_t(1024), two)
""",
        r"race 1 on m1\[0, 128\).*race 2 on m2\[0, 256\).*race 3 on m3\[0, 512\)", "",
    ),
    "level1": (
        BEGIN + BLAS + """
call("cublasSaxpy_v2", first, 16, byref(scale), a, 2, b, 1, of=blas)
order()
call("cublasSaxpy_v2", second, 16, byref(scale), c_uint64(a.value + 4), 2, b, 1, of=blas)
result = c_float(3)
call("cublasSdot_v2", second, 16, a, 1, b, 1, byref(result), of=blas)
assert result.value == 0
""",
        r'race 1 on m2\[0, 64\).*"cublasSaxpy" writes on s1', "",
    ),
    "not_served": (
        BEGIN + BLAS + """
call("cublasStrsm_v2", first, 0, 0, 0, 0, 16, 16, byref(scale), a, 16, b, 16, of=blas)
call("cublasSgemmBatched", first, of=blas)
call("cublasXtCreate", byref(c_void_p()), of=blas, status=15)
call("cublasSgetrfBatched", first, of=blas, status=15)
""",
        "",
        r"not judged: 2 launches of kernels whose accesses are not known: cublasStrsm_v2 \(1\), cublasSgemmBatched \(1\); by ctypes.*"
        r"called, and not served \(they returned an error\): .*cublasXtCreate, cublasSgetrfBatched",
    ),
    "by_path": (
        BEGIN + BLAS.replace('"libcublas.so.13"', "sys.argv[1]") + "product(first, a, b, c)\norder()\nproduct(second, c, b, d)\n",
        r"race 1 on m3\[0, 1024\)", "",
    ),
    "versioned": (  # a library that was linked with the real one
        BEGIN + 'user = ctypes.CDLL(sys.argv[2])\nuser.use(a, b, c, one)\norder()\ncall("cuMemsetD8Async", c, 1, c_size_t(4), two)\n',
        r'race 1 on m3\[0, 4\).*cublasSgemm of libuser.so', "",
    ),
    "lt": (
        BEGIN + """
lt = ctypes.CDLL("libcublasLt.so.13")
handle, product, layout, narrow, count = c_void_p(), c_void_p(), c_void_p(), c_void_p(), c_int()
call("cublasLtCreate", byref(handle), of=lt)
call("cublasLtMatmulDescCreate", byref(product), 68, 0, of=lt)
for made, rows in ((layout, 16), (narrow, 8)):
    call("cublasLtMatrixLayoutCreate", byref(made), 0, c_uint64(rows), c_uint64(16), c_int64(16), of=lt)
call("cublasLtMatmulDescSetAttribute", product, 7, byref(c_int(4)), c_size_t(4), of=lt)  # with a bias
call("cublasLtMatmulDescSetAttribute", product, 8, byref(d), c_size_t(8), of=lt)
results = (c_uint64 * 64)()
call("cublasLtMatmulAlgoGetHeuristic", handle, product, layout, layout, layout, layout, None, 4, results, byref(count), of=lt)
assert count.value == 1
one_, zero = c_float(1), c_float(0)
call("cuMemsetD8Async", d, 0, c_size_t(1024), one)
order()
call("cublasLtMatmul", handle, product, byref(one_), a, narrow, b, layout, byref(zero), c, narrow, c, narrow, results, None, c_size_t(0), two, of=lt)
""",
        r'race 1 on m4\[0, 32\).*kernel "cublasLtMatmul" reads on s2', "",
    ),
    "rand": (
        BEGIN + """
rand, generator = ctypes.CDLL("libcurand.so.10"), c_void_p()
call("curandCreateGenerator", byref(generator), 100, of=rand)
call("curandSetStream", generator, one, of=rand)
call("curandGenerateNormal", generator, a, c_size_t(16), c_float(0), c_float(1), of=rand)
order()
call("cuMemcpyDtoDAsync_v2", b, a, c_size_t(1024), two)
call("curandGenerateBinomial", generator, of=rand, status=999)
""",
        r'race 1 on m1\[0, 64\).*"curandGenerateNormal" writes on s1', "curandGenerateBinomial",
    ),
    "fft": (
        BEGIN + """
fft, plan = ctypes.CDLL("libcufft.so.12"), c_int()
call("cufftPlan1d", byref(plan), 16, 0x2a, 2, of=fft)  # 2 times 16 real numbers to 9 complex ones
call("cufftSetStream", plan, one, of=fft)
call("cufftExecR2C", plan, a, b, of=fft)
order()
call("cuMemsetD8Async", a, 0, c_size_t(1024), two)
call("cuMemsetD8Async", b, 0, c_size_t(1024), two)
""",
        r'race 1 on m1\[0, 128\).*"cufftExecR2C" reads.*race 2 on m2\[0, 144\)', "",
    ),
    "cupti": (  # nothing of it is served
        BEGIN + 'call("cuptiSubscribe", None, of=ctypes.CDLL("libcupti.so.13"), status=27)\n' + 'call("cuMemsetD8Async", a, 0, c_size_t(4), one)\n',
        "", r"called, and not served \(they returned an error\): cuptiSubscribe",
    ),
    "fft_work": (  # one plan, with a work area, in two streams
        BEGIN + """
fft, plan = ctypes.CDLL("libcufft.so.12"), c_int()
call("cufftPlan1d", byref(plan), 16, 0x29, 1, of=fft)
call("cufftSetWorkArea", plan, d, of=fft)
call("cufftSetStream", plan, one, of=fft)
call("cufftExecC2C", plan, a, a, -1, of=fft)
order()
call("cufftSetStream", plan, two, of=fft)
call("cufftExecC2C", plan, b, b, -1, of=fft)
""",
        r"possible race 1 on m4\[0, 128\)", "",
    ),
    "dnn": (  # a convolution by descriptors: 1 x 4 x 4, filter 2 x 1 x 3 x 3, to 2 x 2 x 2
        BEGIN + """
dnn, handle = ctypes.CDLL("libcudnn.so.9"), c_void_p()
assert dnn.cudnnGetVersion() == 92600, dnn.cudnnGetVersion()
call("cudnnCreate", byref(handle), of=dnn)
call("cudnnSetStream", handle, one, of=dnn)
def descriptor(kind, **attributes):
    made = c_void_p()
    call("cudnnBackendCreateDescriptor", kind, byref(made), of=dnn)
    for name, (type, of, values) in attributes.items():
        call("cudnnBackendSetAttribute", made, int(name[1:]), type, c_int64(len(values)), (of * len(values))(*values), of=dnn)
    call("cudnnBackendFinalize", made, of=dnn)
    return made
def tensor(id, sizes, strides):
    return descriptor(17, _901=(1, c_int, [0]), _902=(3, c_int64, sizes), _903=(3, c_int64, strides), _906=(3, c_int64, [id]))
def those(*all):
    return (15, c_void_p, [one.value for one in all])
x, w, y = tensor(1, [1, 1, 4, 4], [16, 16, 4, 1]), tensor(2, [2, 1, 3, 3], [9, 9, 3, 1]), tensor(3, [1, 2, 2, 2], [8, 4, 2, 1])
graph = descriptor(15, _801=those(descriptor(10, _703=those(w), _704=those(x), _705=those(y))))
config, count = descriptor(3), c_int64()
call("cudnnBackendGetAttribute", descriptor(4, _201=those(graph)), 202, 15, c_int64(1), byref(count), byref(config), of=dnn)
assert count.value == 1
pack = descriptor(16, _1000=(3, c_int64, [1, 2, 3]), _1001=(6, c_uint64, [a.value, b.value, c.value]))
call("cudnnBackendExecute", handle, descriptor(5, _401=those(config)), pack, of=dnn)
order()
call("cuMemsetD8Async", a, 0, c_size_t(1024), two)
call("cuMemsetD8Async", b, 0, c_size_t(1024), two)
call("cuMemsetD8Async", c, 0, c_size_t(1024), two)
call("cudnnRNNForward", handle, of=dnn, status=3000)
""",
        r'race 1 on m1\[0, 64\).*"cuDNN convolution forward" reads on s1.*race 2 on m2\[0, 72\).*race 3 on m3\[0, 32\)',
        "cudnnRNNForward",
    ),
}  # fmt: skip
USER_C = """
int cublasCreate_v2(void **);
int cublasSetStream_v2(void *, void *);
int cublasSgemm_v2(void *, int, int, int, int, int, const float *, const void *, int, const void *, int, const float *, void *, int);
int use(const void *a, const void *b, void *c, void *stream);
int use(const void *a, const void *b, void *c, void *stream)
{
    const float one = 1;
    void *handle;
    int status = cublasCreate_v2(&handle);
    if (!status) status = cublasSetStream_v2(handle, stream);
    if (!status) status = cublasSgemm_v2(handle, 0, 0, 16, 16, 16, &one, a, 16, b, 16, &one, c, 16);
    return status;
}
"""


def build(cc: str, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """The small libraries, and one that is linked with a small cuBLAS."""
    place = folder / "site-packages" / "nvidia" / "cu13" / "lib"
    place.mkdir(parents=True)
    for name, functions in NAMES.items():
        source, script, file = folder / "made.c", folder / "made.map", place / f"lib{name}"
        source.write_text("".join(f"int {one}(void) {{ return 77; }}\n" for one in functions.split()))
        script.write_text(f"lib{name} {{ global: *; }};\n")
        subprocess.run([cc, "-shared", "-fPIC", f"-Wl,-soname,lib{name},--version-script,{script}", str(source), "-o", str(file)], check=True)
    (folder / "user.c").write_text(USER_C)
    user = folder / "libuser.so"
    subprocess.run([cc, "-shared", "-fPIC", str(folder / "user.c"), str(place / "libcublas.so.13"), "-o", str(user)], check=True)
    for package, version in (("nvidia_cublas", "13.4.1.3"), ("nvidia_cudnn_cu13", "9.26.0.51")):
        metadata = folder / "site-packages" / f"{package}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        library = "libcublas.so.13" if "cublas" in package else "libcudnn.so.9"
        (metadata / "RECORD").write_text(f"nvidia/cu13/lib/{library},,\nnvidia/cu13/lib/libcublasLt.so.13,,\n")
    return place / "libcublas.so.13", user


def run(folder: pathlib.Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = folder / f"{name}.py"
    program.write_text(PROGRAMS[name][0])
    path = os.pathsep.join([str(folder / "site-packages"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run([sys.executable, "-m", "cai_sim", str(program), *arguments], capture_output=True, text=True, cwd=folder,
                          env={**os.environ, "PYTHONPATH": path}, timeout=60)  # fmt: skip


def wrong_with(folder: pathlib.Path, name: str, libraries: list[str]) -> list[str]:
    """What is not as it should be."""
    _, race, more = PROGRAMS[name]
    wrong = []
    for ordered in (False, True):
        done = run(folder, name, *libraries, *["ordered"] * ordered)
        clean = "cai_sim: not judged: 2 of 2 launches" if name == "not_served" else "cai_sim: no race"
        expected = r"cai_sim: \d+ (possible )?race" if race and not ordered else clean
        patterns = [expected, more] + ([race] if race and not ordered else [])
        wrong += [f"{name}{' ordered' * ordered}: no {one!r} in\n{done.stdout}{done.stderr}" for one in patterns
                  if not re.search(one, done.stderr, re.S)]  # fmt: skip
        if "Traceback" in done.stderr:
            wrong.append(f"{name}: {done.stderr}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default=os.environ.get("CC", "cc"))
    parser.add_argument("--only", default=",".join(PROGRAMS))
    options = parser.parse_args()
    if platform.machine() != "x86_64" or not shutil.which(options.cc) or importlib.util.find_spec("cai_sim") is None:
        print("check_libraries.py: skipped, it needs x86-64, a compiler, and the package cai_sim")
        return 77
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        libraries = [str(file) for file in build(options.cc, folder)]
        for one in options.only.split(","):
            found = wrong_with(folder, one, libraries)
            wrong += found
            print(f"{one}: {'wrong' if found else 'right'}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
