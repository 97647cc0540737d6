"""What matrix.py and symbols.py know of each header: its macros, and units that use it.

In the text of a unit, "@header" is the header under test as a unit includes it.
"""

from __future__ import annotations

import argparse
import pathlib
from dataclasses import dataclass, field

# Levels of a mode in tier exhaustive: "all" compiles at four optimizations in one standard of each language;
# "one" at -O2 in that standard, else syntax; "none" is syntax alone. In tier full: matrix.py's MAIN.
SYNTAX, ONE, ALL = "none", "one", "all"
# With the flags of the subject; with CUDA's headers instead; with neither.
USUAL, LINKED, NEITHER = "usual", "linked", "neither"
BOTH, HOST, NVCC = "both", "host", "nvcc"
# Headers of other projects, by the option with their folder, and the file that is looked for in it.
OTHERS = {"dlpack": "dlpack/dlpack.h", "python": "Python.h", "mpi": "mpi.h", "tvm": "tvm/ffi/c_api.h",
          "hip": "hip/hip_runtime_api.h"}


@dataclass(frozen=True)
class Mode:
    """A unit that every compiler and standard must take without a word."""

    text: str
    levels: str = SYNTAX
    backend: str = USUAL  # for host compilers; nvcc has CUDA's headers in every unit
    where: str = BOTH
    flags: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # of OTHERS, besides those of the subject


@dataclass(frozen=True)
class Subject:
    """One header. `link` and `linked` are empty where a program would need the library of another project."""

    guard: str  # the macro that has its version
    switch: str  # compiles the implementation of it alone
    other_version: str  # what it says of another version of itself
    use: str  # what few users do; C, C++ and CUDA
    link: str  # an expression for main that needs the implementation and is 0
    linked: str  # the function in it
    copies: tuple[str, str]  # a unit of a copy, and the main of a program of two
    host_flags: tuple[str, ...] = ()  # without CUDA's headers
    below: tuple[str, ...] = ()  # the headers that it extends, the lowest first, as a unit includes them
    together: tuple[str, ...] = ()  # of these, the ones whose implementation its switch compiles, too
    modes: dict[str, Mode] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # of OTHERS: what its declarations need
    brought: str = ""  # how a unit includes them
    light: bool = False  # fewer standards and levels: what it adds to the headers below it is small


# --------------------------------------------------------------------- every header
USE = """
int use(const cai_array *array, cai_error *err);
int use(const cai_array *array, cai_error *err)
{
    cai_kernel_view view;
    CAI_TRY(cai_expect(array, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE | CAI_WRITABLE, err)); /* one enum, for C++20 */
    return cai_kernel_view_of(array, &view, err);
}
"""
IMPLEMENT = '#define CAI_IMPLEMENTATION\n#include "@header"\n'


def modes_of(subject: Subject) -> dict[str, Mode]:
    """The modes of any header, then its own."""
    use = subject.use
    static, shared = "#define CAI_STATIC\n", "#define CAI_SHARED\n"
    modes = {
        "declarations": Mode('#include "@header"\n' + use),
        "declarations, shared": Mode(shared + '#include "@header"\n' + use),
        "implementation": Mode(IMPLEMENT, ALL),
        "own switch": Mode(f'#define {subject.switch}\n#include "@header"\n' + use),
        "static": Mode(static + IMPLEMENT, ALL),
        "static, declarations first": Mode(static + '#include "@header"\n' + IMPLEMENT + use),
        "static, few used": Mode(static + IMPLEMENT + use, ALL),
        "shared": Mode(shared + "#define CAI_BUILD\n" + IMPLEMENT),
        "namespace": Mode("#define CAI_NAMESPACE mylib_\n" + IMPLEMENT + use),
        "declarations, then implementation": Mode('#include "@header"\n' + IMPLEMENT + '#include "@header"\n' + use),
        "implementation twice": Mode(IMPLEMENT + IMPLEMENT + use),
    }
    return {**modes, **subject.modes}


# --------------------------------------------------------------------- two copies in one program
# Each defines the functions as %(name)s; the main has another C file's declarations of them.
CORE_COPY = """
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
CORE_MAIN = """
#include "@header"
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
    return 0;
}
"""
# One copy exports an array on a stream, the other exchanges it on another one.
STREAM_FUNCTIONS = """
int make_%(name)s(cai_array *out, cai_event_pool *pool, const cai_cuda *cuda, uint64_t stream)%(end)s
int exchange_%(name)s(cai_event_pool *pool, const cai_cuda *cuda, cai_array *array, uint64_t stream)%(end)s
int close_%(name)s(cai_event_pool *pool)%(end)s
"""
STREAM_COPY = (STREAM_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_array *out, cai_event_pool *pool, const cai_cuda *cuda, uint64_t stream)
{
    static float values[6];
    const int64_t shape[1] = {6};
    cai_error err;
    CAI_TRY(cai_event_pool_init(pool, cuda, NULL, 0, 0, &err));
    CAI_TRY(cai_array_init(out, CAI_FLOAT32, 1, shape, NULL, values, &err));
    return cai_stream_export(out, pool, stream, NULL, 0, &err);
}
int exchange_%(name)s(cai_event_pool *pool, const cai_cuda *cuda, cai_array *array, uint64_t stream)
{
    cai_array *arrays[1];
    cai_exchange ex;
    cai_error err;
    arrays[0] = array;
    CAI_TRY(cai_event_pool_init(pool, cuda, NULL, 0, 0, &err));
    CAI_TRY(cai_exchange_begin(&ex, pool, arrays, 1, stream, &err));
    return cai_exchange_end(&ex, CAI_OK, &err);
}
int close_%(name)s(cai_event_pool *pool)
{
    cai_error err;
    return cai_event_pool_destroy(pool, &err);
}
""")  # fmt: skip
STREAM_MAIN = (
    '#include "@header"\n#include <stddef.h>\n#include <string.h>\n'
    + (STREAM_FUNCTIONS % {"name": "alpha", "end": ";"}) + (STREAM_FUNCTIONS % {"name": "beta", "end": ";"}) + """
static int created, destroyed, recorded, waited;
static int32_t one(void *self, uint64_t *context) { (void)self; *context = 1; return 0; }
static int32_t push(void *self, uint64_t context) { (void)self; return context == 1 ? 0 : 201; }
static int32_t pop(void *self) { (void)self; return 0; }
static int32_t device(void *self, int32_t *device) { (void)self; *device = 0; return 0; }
static int32_t primary(void *self, int32_t device, uint64_t *context) { (void)device; return one(self, context); }
static int32_t of(void *self, uint64_t stream, uint64_t *context) { (void)self; *context = stream ? 1 : 0; return 0; }
static int32_t done(void *self, uint64_t object) { (void)self; (void)object; return 0; }
static int32_t mode(void *self, int32_t *mode) { (void)self; *mode = 0; return 0; }
static int32_t thread(void *self, uint64_t *thread) { (void)self; *thread = 1; return 0; }
static int32_t capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    (void)self; (void)stream;
    memset(capture, 0, sizeof *capture);
    return 0;
}
static int32_t info(void *self, uint64_t pointer, cai_cuda_pointer *info)
{
    (void)self; (void)pointer;
    memset(info, 0, sizeof *info);
    return 0;
}
static int32_t create(void *self, uint64_t *event) { (void)self; *event = (uint64_t)++created; return 0; }
static int32_t destroy(void *self, uint64_t event) { (void)self; (void)event; ++destroyed; return 0; }
static int32_t record(void *self, uint64_t event, uint64_t stream) { (void)self; (void)event; (void)stream; ++recorded; return 0; }
static int32_t wait(void *self, uint64_t stream, uint64_t event) { (void)self; (void)event; (void)stream; ++waited; return 0; }
int main(void)
{
    static cai_cuda cuda;
    static cai_event_pool producer, consumer;
    cai_array array;
    cuda.struct_size = (uint32_t)sizeof cuda;
    cuda.version = CAI_CUDA_VERSION;
    cuda.context_current = one;
    cuda.context_push = push;
    cuda.context_pop = cuda.context_synchronize = pop;
    cuda.context_device = device;
    cuda.device_context = primary;
    cuda.stream_context = of;
    cuda.stream_capture = capture;
    cuda.stream_synchronize = cuda.event_query = cuda.event_synchronize = done;
    cuda.capture_mode = mode;
    cuda.pointer_info = info;
    cuda.host_thread = thread;
    cuda.event_create = create;
    cuda.event_destroy = destroy;
    cuda.event_record = record;
    cuda.stream_wait_event = wait;
    if (make_alpha(&array, &producer, &cuda, 0x100) || array.stream != 0x100) return 1;
    if (exchange_beta(&consumer, &cuda, &array, 0x200)) return 2;
    if (recorded != 2 || waited != 2) return 3; /* there and back */
    if (close_alpha(&producer) || close_beta(&consumer) || created != destroyed) return 4;
    return 0;
}
""")  # fmt: skip

# One copy fills in a table of hooks, the other makes an array by it, which the main releases.
EMM_FUNCTIONS = """
int table_%(name)s(cai_emm_hooks *out)%(end)s
int make_%(name)s(cai_array *out, const cai_emm_hooks *hooks)%(end)s
"""
EMM_COPY = (EMM_FUNCTIONS.replace("%(end)s", ";") + """
int table_%(name)s(cai_emm_hooks *out)
{
    cai_emm_hooks_malloc(out);
    return cai_emm_hooks_check(out, NULL);
}
int make_%(name)s(cai_array *out, const cai_emm_hooks *hooks)
{
    const int64_t shape[1] = {6};
    cai_error err;
    return cai_emm_array(out, NULL, hooks, CAI_FLOAT32, 1, shape, CAI_STREAM_LEGACY, &err);
}
""")  # fmt: skip
EMM_MAIN = (
    '#include "@header"\n#include <stddef.h>\n#include <string.h>\n'
    + (EMM_FUNCTIONS % {"name": "alpha", "end": ";"}) + (EMM_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    cai_emm_hooks one, other;
    cai_array x, y;
    if (table_alpha(&one) || make_beta(&x, &one)) return 1;
    if (table_beta(&other) || make_alpha(&y, &other)) return 2;
    if (x.nbytes != 24 || !x.data || x.data == y.data || !x.release || !y.release) return 3;
    memset((void *)(uintptr_t)x.data, 0, 24);
    x.release(&x);
    y.release(&y);
    return x.release || y.release ? 4 : 0;
}
""")  # fmt: skip

# One copy fills in a table of hooks, the other's manager takes memory from it, for an array that the main releases.
MANAGER_FUNCTIONS = """
int table_%(name)s(cai_emm_hooks *out)%(end)s
int make_%(name)s(cai_array *out, cai_manager *manager, const cai_emm_hooks *hooks)%(end)s
int close_%(name)s(cai_manager *manager, cai_manager_count *count)%(end)s
"""
MANAGER_COPY = (MANAGER_FUNCTIONS.replace("%(end)s", ";") + """
int table_%(name)s(cai_emm_hooks *out)
{
    cai_emm_hooks_malloc(out);
    return cai_emm_hooks_check(out, NULL);
}
int make_%(name)s(cai_array *out, cai_manager *manager, const cai_emm_hooks *hooks)
{
    const int64_t shape[1] = {6};
    cai_error err;
    CAI_TRY(cai_manager_init(manager, NULL, hooks, NULL, &err));
    return cai_manager_array(out, manager, CAI_FLOAT32, 1, shape, CAI_STREAM_LEGACY, &err);
}
int close_%(name)s(cai_manager *manager, cai_manager_count *count)
{
    cai_error err;
    cai_manager_counts(manager, count);
    return cai_manager_destroy(manager, &err);
}
""")  # fmt: skip
MANAGER_MAIN = (
    '#include "@header"\n#include <stddef.h>\n#include <string.h>\n'
    + (MANAGER_FUNCTIONS % {"name": "alpha", "end": ";"}) + (MANAGER_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static cai_manager one, other;
    cai_emm_hooks hooks;
    cai_manager_count count;
    cai_array x, y;
    if (table_alpha(&hooks) || make_beta(&x, &one, &hooks)) return 1;
    if (table_beta(&hooks) || make_alpha(&y, &other, &hooks)) return 2;
    if (x.nbytes != 24 || !x.data || x.data == y.data || !x.release || !y.release) return 3;
    memset((void *)(uintptr_t)x.data, 0, 24);
    if (!close_beta(&one, &count) || count.live != 1) return 4; /* refused: the array lives */
    x.release(&x);
    y.release(&y);
    if (close_beta(&one, &count) || count.live || count.freed != 1) return 5;
    return close_alpha(&other, &count) || count.live ? 6 : 0;
}
""")  # fmt: skip

# --------------------------------------------------------------------- cai_stream.h
STREAM_USE = """
#if defined(__CUDACC__)
typedef cudaStream_t use_stream;
__global__ void use_kernel(float *x) { x[threadIdx.x] *= 2; }
#else
typedef struct CUstream_st *use_stream;
#endif
int use(cai_event_pool *pool, cai_array *x, use_stream s, cai_error *err);
int use(cai_event_pool *pool, cai_array *x, use_stream s, cai_error *err)
{
    cai_array *io[1];
    cai_exchange ex;
    cai_status status = CAI_OK;
    use_stream launch;
    io[0] = x;
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(s), err));
    launch = cai_stream_to_cuda(ex.stream);
#if defined(__CUDACC__)
    use_kernel<<<1, 1, 0, launch>>>(reinterpret_cast<float *>(x->data));
    status = cai_cuda_status(cudaGetLastError(), "use_kernel", err);
#else
    if (launch == s) status = cai_cuda_status(0, "use_kernel", err);
#endif
    return cai_exchange_finish(&ex, status, io, 1, err);
}
"""
NO_CUDA_HEADER = """
#if defined(CUDART_VERSION) || defined(CUDA_VERSION)
#error "a header of CUDA was included"
#endif
"""
NO_LOADER_HEADER = """
#if defined(RTLD_LAZY)
#error "the header of the loader was included"
#endif
"""


def stream_modes() -> dict[str, Mode]:
    """Backends, switches, orders of headers."""
    alone = '#define CAI_STREAM_IMPLEMENTATION\n#include "@header"\n'
    core = '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n'
    cuda = "#include <cuda.h>\n#include <cuda_runtime_api.h>\n"
    struct = '#include "ext/cai_array_struct.h"\n'
    modes = {
        "nothing of CUDA in the declarations": Mode('#include "@header"\n' + NO_CUDA_HEADER + NO_LOADER_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + STREAM_USE, ALL, LINKED, HOST),
        "linked, static": Mode("#define CAI_STATIC\n" + IMPLEMENT, ONE, LINKED, HOST),
        "linked, namespace": Mode("#define CAI_NAMESPACE mylib_\n" + IMPLEMENT, ONE, LINKED, HOST),
        "per thread": Mode(IMPLEMENT + STREAM_USE, ONE, LINKED, flags=("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)),
        "headers of CUDA first": Mode(cuda + IMPLEMENT + STREAM_USE, ONE, LINKED),
        "headers of CUDA last": Mode(IMPLEMENT + cuda + STREAM_USE, SYNTAX, LINKED),
        "headers of CUDA between": Mode('#include "@header"\n' + cuda + IMPLEMENT + STREAM_USE, SYNTAX, LINKED),
        "core first": Mode('#define CAI_IMPLEMENTATION\n#include "cai.h"\n#include "@header"\n' + STREAM_USE, ONE),
        "core last": Mode(IMPLEMENT + '#include "cai.h"\n' + STREAM_USE),
        "core declared first": Mode('#include "cai.h"\n' + IMPLEMENT + STREAM_USE),
        "core implemented first": Mode(core + alone + STREAM_USE),
        "core implemented last": Mode(alone + core + STREAM_USE),
        "every header": Mode(IMPLEMENT + struct + STREAM_USE, ONE),
        "every header, the other way": Mode("#define CAI_IMPLEMENTATION\n" + struct + '#include "@header"\n' + STREAM_USE),
    }
    switches = ("CAI_NO_CUDART", "CAI_NO_LOADER", "CAI_NO_THREADS")
    for number in range(8):
        chosen = [name for bit, name in enumerate(switches) if number >> bit & 1]
        text = "".join(f"#define {name}\n" for name in chosen) + alone
        name = ", ".join(chosen) or "no switch"
        without = (NO_CUDA_HEADER if "CAI_NO_CUDART" in chosen else "") + (NO_LOADER_HEADER if "CAI_NO_LOADER" in chosen else "")
        backend = NEITHER if "CAI_NO_CUDART" in chosen else LINKED
        modes[f"alone, {name}"] = Mode(text + without, ONE, backend, HOST)
        if number in (0, 1, 7):
            modes[f"alone in a .cu, {name}"] = Mode(text, where=NVCC)
    return modes


# CAI_STREAM(0) against what CUDA's headers made of an unlabelled stream, in the unit where it stands.
DEFAULT_STREAM = """
#include "@header"
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
int main(void)
{
    const char name[] = TEXT(%(decorated)s);
    const int per_thread = name[sizeof name - 2] == 'z'; /* ..._ptsz */
    struct CUstream_st *none = 0;
    if (CAI_STREAM(none) != (per_thread ? CAI_STREAM_PER_THREAD : CAI_STREAM_LEGACY)) return 1;
    if (CAI_STREAM(0) != %(expected)d) return 2;
    if (CAI_STREAM((struct CUstream_st *)(uintptr_t)0x500) != 0x500) return 3;
    return cai_stream_to_cuda(0x500) == (struct CUstream_st *)(uintptr_t)0x500 ? 0 : 4;
}
"""
# Where there is no driver cai_cuda_linked says so.
LINKED_MAIN = IMPLEMENT + """
#include <stdio.h>
int main(void)
{
    static cai_cuda_driver driver;
    cai_error err;
    const cai_status status = cai_cuda_linked(&driver, &err);
    if (status == CAI_OK) return driver.runtime_version / 1000 == CUDART_VERSION / 1000 && driver.driver_version ? 0 : 1;
    if (status == CAI_ERR_UNAVAILABLE) return 0;
    printf("%s\\n", err.message);
    return 2;
}
"""
# The functions of the runtime that cai_cuda_linked uses, as its versions declare them.
RUNTIME_HEADER = """
#define CUDART_VERSION %(version)d
typedef enum { cudaSuccess = 0 } cudaError_t;
enum { cudaEnableDefault = 0 };
#if CUDART_VERSION >= 12000
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess = 0 };
#define LAST , enum cudaDriverEntryPointQueryResult *
#else
#define LAST
#endif
#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetLastError(void);
cudaError_t cudaRuntimeGetVersion(int *);
#if CUDART_VERSION >= 11030 && CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char *, void **, unsigned long long LAST);
#endif
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **, unsigned int, unsigned long long LAST);
#endif
#ifdef __cplusplus
}
#endif
"""

# --------------------------------------------------------------------- cai_emm.h
EMM_USE = """
#if defined(__CUDACC__)
typedef cudaStream_t use_stream;
__global__ void use_kernel(float *x, float *scratch) { x[threadIdx.x] = scratch[threadIdx.x] * 2; }
#else
typedef struct CUstream_st *use_stream;
#endif
int use(cai_event_pool *pool, const cai_emm_hooks *hooks, const cai_array *x, cai_array *out, use_stream s, cai_error *err);
int use(cai_event_pool *pool, const cai_emm_hooks *hooks, const cai_array *x, cai_array *out, use_stream s, cai_error *err)
{
    void *scratch;
    cai_status status, freed;
    cai_error second;
    CAI_TRY(cai_emm_array(out, pool, hooks, CAI_FLOAT32, x->ndim, x->shape, CAI_STREAM(s), err));
    status = cai_emm_alloc(&scratch, hooks, 4096, CAI_STREAM(s), err);
    if (!status) {
#if defined(__CUDACC__)
        use_kernel<<<1, 1, 0, s>>>(reinterpret_cast<float *>(out->data), static_cast<float *>(scratch));
        status = cai_cuda_status(cudaGetLastError(), "use_kernel", err);
#else
        if (!scratch) status = cai_cuda_status(1, "use_kernel", err);
#endif
        freed = cai_emm_free(hooks, scratch, 4096, CAI_STREAM(s), &second);
        if (!status) status = freed;
    }
    if (status) cai_array_release(out);
    return status;
}
"""
NO_HOST_HEADER = """
#if defined(BUFSIZ) || defined(EXIT_SUCCESS)
#error "a header of the C library was included"
#endif
"""


def emm_modes() -> dict[str, Mode]:
    """Orders of the three headers, switches; those of cai_manager.h have it in every combination."""
    core = '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n'
    stream = '#define CAI_STREAM_IMPLEMENTATION\n#include "cai_stream.h"\n'
    alone = '#define CAI_EMM_IMPLEMENTATION\n#include "@header"\n'
    nothing = NO_CUDA_HEADER + NO_LOADER_HEADER
    both = IMPLEMENT.replace("@header", "cai_stream.h") + '#include "@header"\n'
    modes = {
        "nothing of CUDA or the C library in the declarations": Mode('#include "@header"\n' + nothing + NO_HOST_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + EMM_USE, SYNTAX, LINKED, HOST),
        "stream first": Mode(both + EMM_USE),
        "stream last": Mode(IMPLEMENT + '#include "cai_stream.h"\n' + EMM_USE),
        "from below": Mode(core + stream + alone + EMM_USE),
        "from above": Mode(alone + stream + core + EMM_USE),
        "alone": Mode(alone + nothing + EMM_USE, ALL, where=HOST),
    }
    for name in ("CAI_NO_THREADS", "CAI_NO_LOADER"):
        modes[f"all, {name}"] = Mode(f"#define {name}\n" + IMPLEMENT + EMM_USE)
        modes[f"alone, {name}"] = Mode(f"#define {name}\n" + alone + EMM_USE, ONE)
    return modes


# --------------------------------------------------------------------- ext/cai_manager.h
MANAGER_USE = """
#if defined(__CUDACC__)
typedef cudaStream_t use_stream;
__global__ void use_kernel(const float *x, float *scratch) { scratch[threadIdx.x] = x[threadIdx.x] * 2; }
#else
typedef struct CUstream_st *use_stream;
#endif
int use(cai_manager *manager, const cai_array *x, cai_array *out, use_stream s, cai_error *err);
int use(cai_manager *manager, const cai_array *x, cai_array *out, use_stream s, cai_error *err)
{
    cai_memory_handle scratch;
    cai_status status, freed;
    cai_error second;
    CAI_TRY(cai_manager_alloc(&scratch, manager, 4096, 0, CAI_STREAM(s), err));
    status = cai_manager_array(out, manager, CAI_FLOAT32, x->ndim, x->shape, CAI_STREAM(s), err);
#if defined(__CUDACC__)
    use_kernel<<<1, 1, 0, s>>>(reinterpret_cast<const float *>(x->data), static_cast<float *>(cai_manager_pointer(manager, scratch)));
    if (!status) status = cai_cuda_status(cudaGetLastError(), "use_kernel", err);
#else
    if (!cai_manager_pointer(manager, scratch)) status = cai_cuda_status(1, "use_kernel", err);
#endif
    if (status) cai_array_release(out);
    freed = cai_manager_free(manager, scratch, CAI_STREAM(s), &second);
    return status ? status : freed;
}
"""


def manager_modes() -> dict[str, Mode]:
    """Backends, switches, orders of the four headers."""
    core = '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n'
    stream = '#define CAI_STREAM_IMPLEMENTATION\n#include "cai_stream.h"\n'
    emm = '#define CAI_EMM_IMPLEMENTATION\n#include "cai_emm.h"\n'
    alone = '#define CAI_MANAGER_IMPLEMENTATION\n#include "@header"\n'
    cuda = "#include <cuda.h>\n#include <cuda_runtime_api.h>\n"
    struct = '#include "ext/cai_array_struct.h"\n'
    nothing = NO_CUDA_HEADER + NO_LOADER_HEADER
    both = IMPLEMENT.replace("@header", "cai_stream.h") + '#include "@header"\n'
    modes = {
        "nothing of CUDA or the C library in the declarations": Mode('#include "@header"\n' + nothing + NO_HOST_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + MANAGER_USE, ALL, LINKED, HOST),
        "linked, static": Mode("#define CAI_STATIC\n" + IMPLEMENT, ONE, LINKED, HOST),
        "linked, namespace": Mode("#define CAI_NAMESPACE mylib_\n" + IMPLEMENT, ONE, LINKED, HOST),
        "headers of CUDA first": Mode(cuda + IMPLEMENT + MANAGER_USE, ONE, LINKED),
        "headers of CUDA last": Mode(IMPLEMENT + cuda + MANAGER_USE, SYNTAX, LINKED),
        "headers of CUDA between": Mode('#include "@header"\n' + cuda + IMPLEMENT + MANAGER_USE, SYNTAX, LINKED),
        "stream first": Mode(both + MANAGER_USE, ONE),
        "stream last": Mode(IMPLEMENT + '#include "cai_stream.h"\n' + MANAGER_USE),
        "stream declared first": Mode('#include "cai_stream.h"\n' + IMPLEMENT + MANAGER_USE),
        "core declared first": Mode('#include "cai.h"\n' + IMPLEMENT + MANAGER_USE),
        "emm declared first": Mode('#include "cai_emm.h"\n' + IMPLEMENT + MANAGER_USE),
        "from below": Mode(core + stream + emm + alone + MANAGER_USE, ONE),
        "from above": Mode(alone + emm + stream + core + MANAGER_USE),
        "core in the middle": Mode(emm + stream + core + alone + MANAGER_USE),
        "static, from below": Mode("#define CAI_STATIC\n" + core + stream + emm + alone + MANAGER_USE),
        "static, from above": Mode("#define CAI_STATIC\n" + alone + emm + stream + core + MANAGER_USE),
        "every header": Mode(IMPLEMENT + struct + MANAGER_USE, ONE),
        "every header, the other way": Mode("#define CAI_IMPLEMENTATION\n" + struct + '#include "@header"\n' + MANAGER_USE),
    }
    switches = ("CAI_NO_CUDART", "CAI_NO_LOADER", "CAI_NO_THREADS")
    for number in range(8):
        chosen = [name for bit, name in enumerate(switches) if number >> bit & 1]
        text = "".join(f"#define {name}\n" for name in chosen)
        name = ", ".join(chosen) or "no switch"
        modes[f"all, {name}"] = Mode(text + IMPLEMENT, ONE, NEITHER if "CAI_NO_CUDART" in chosen else LINKED, HOST)
        modes[f"alone, {name}"] = Mode(text + alone + nothing, ONE, NEITHER, HOST)
        if number in (0, 4, 7):
            modes[f"alone in a .cu, {name}"] = Mode(text + alone, where=NVCC)
    return modes


# --------------------------------------------------------------------- ext/cai_dlpack.h
DLPACK_USE = """
int use(cai_array *x, cai_dlpack_storage *storage, struct DLManagedTensor **out, cai_error *err);
int use(cai_array *x, cai_dlpack_storage *storage, struct DLManagedTensor **out, cai_error *err)
{
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    return cai_dlpack_export(x, CAI_DLPACK_ORDERED, storage, out, err);
}
int use_versioned(struct DLManagedTensorVersioned *managed, cai_array *x, cai_error *err);
int use_versioned(struct DLManagedTensorVersioned *managed, cai_array *x, cai_error *err)
{
    const cai_dlpack_options options = {CAI_LENIENT | CAI_DLPACK_READ_ONLY, CAI_SYNC_STREAM, CAI_STREAM_LEGACY};
    return cai_dlpack_import_versioned(managed, &options, x, err);
}
#if defined(CAI_STREAM_H_INCLUDED)
int use_ordered(cai_array *x, cai_event_pool *pool, cai_dlpack_ordered *storage, struct DLManagedTensor **out, cai_error *err);
int use_ordered(cai_array *x, cai_event_pool *pool, cai_dlpack_ordered *storage, struct DLManagedTensor **out, cai_error *err)
{
    return cai_dlpack_export_ordered(x, pool, CAI_STREAM_LEGACY, CAI_DLPACK_NO_CAPTURES, storage, out, err);
}
#endif
"""
# One copy exports an array, the other imports the tensor.
DLPACK_FUNCTIONS = """
int export_%(name)s(cai_dlpack_storage *storage, struct DLManagedTensor **out)%(end)s
int import_%(name)s(struct DLManagedTensor *managed, cai_array *out)%(end)s
"""
DLPACK_COPY = (DLPACK_FUNCTIONS.replace("%(end)s", ";") + """
int export_%(name)s(cai_dlpack_storage *storage, struct DLManagedTensor **out)
{
    static float values[6];
    const int64_t shape[2] = {2, 3};
    cai_array array;
    cai_error err;
    CAI_TRY(cai_array_init(&array, CAI_FLOAT32, 2, shape, NULL, values, &err));
    array.sync = CAI_SYNC_NONE;
    array.memory = CAI_MEMORY_HOST;
    return cai_dlpack_export(&array, CAI_DLPACK_DROP_READ_ONLY, storage, out, &err);
}
int import_%(name)s(struct DLManagedTensor *managed, cai_array *out)
{
    return cai_dlpack_import(managed, NULL, out, NULL);
}
""")  # fmt: skip
DLPACK_MAIN = (
    '#include "@header"\n#include <stddef.h>\n'
    + (DLPACK_FUNCTIONS % {"name": "alpha", "end": ";"}) + (DLPACK_FUNCTIONS % {"name": "beta", "end": ";"}) + """
static int ended;
static void end(cai_dlpack_storage *self) { (void)self; ++ended; }
int main(void)
{
    static cai_dlpack_storage one, other;
    struct DLManagedTensor *managed = NULL;
    cai_array array;
    one.done = other.done = end;
    if (export_alpha(&one, &managed) || import_beta(managed, &array)) return 1;
    if (array.size != 6 || array.strides[0] != 12 || !array.release) return 2;
    array.release(&array);
    if (ended != 1 || export_beta(&other, &managed) || import_alpha(managed, &array)) return 3;
    array.release(&array);
    return ended == 2 ? 0 : 4;
}
""")  # fmt: skip


def dlpack_modes() -> dict[str, Mode]:
    """How dlpack.h is found, orders of headers."""
    stream = '#include "cai_stream.h"\n'
    return {
        "dlpack.h first": Mode("#include <dlpack/dlpack.h>\n" + IMPLEMENT + DLPACK_USE),
        "dlpack.h after": Mode(IMPLEMENT + "#include <dlpack/dlpack.h>\n" + DLPACK_USE),
        "with cai_stream.h": Mode("#define CAI_IMPLEMENTATION\n" + stream + '#include "@header"\n' + DLPACK_USE),
        "cai_stream.h after": Mode(IMPLEMENT + stream + DLPACK_USE.partition("#if defined(CAI_STREAM")[0]),
        "cai_stream.h between": Mode('#include "@header"\n#define CAI_IMPLEMENTATION\n' + stream + '#include "@header"\n' + DLPACK_USE),
        "with cai_stream.h, static": Mode("#define CAI_STATIC\n#define CAI_IMPLEMENTATION\n" + stream + '#include "@header"\n' + DLPACK_USE),
        "core in another unit": Mode('#include "cai.h"\n#define CAI_DLPACK_IMPLEMENTATION\n#include "@header"\n' + DLPACK_USE, ONE),
    }


# --------------------------------------------------------------------- ext/cai_ipc.h
IPC_USE = """
int use(cai_ipc *ipc, cai_manager *manager, cai_memory_handle memory, const cai_array *x, cai_array *out, cai_error *err);
int use(cai_ipc *ipc, cai_manager *manager, cai_memory_handle memory, const cai_array *x, cai_array *out, cai_error *err)
{
    struct cai_ipc_v0 descriptor;
    CAI_TRY(cai_ipc_export(ipc, manager, memory, x, &descriptor, err));
    return cai_ipc_import(ipc, &descriptor, out, err);
}
"""
# One copy makes what knows the imports, the other judges a descriptor.
IPC_FUNCTIONS = """
int make_%(name)s(cai_ipc *ipc, const cai_cuda *cuda)%(end)s
int import_%(name)s(cai_ipc *ipc, const struct cai_ipc_v0 *in, cai_array *out)%(end)s
int close_%(name)s(cai_ipc *ipc)%(end)s
"""
IPC_COPY = (IPC_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_ipc *ipc, const cai_cuda *cuda)
{
    return cai_ipc_init(ipc, cuda, NULL, 0, 7, NULL);
}
int import_%(name)s(cai_ipc *ipc, const struct cai_ipc_v0 *in, cai_array *out)
{
    return cai_ipc_import(ipc, in, out, NULL);
}
int close_%(name)s(cai_ipc *ipc)
{
    return cai_ipc_destroy(ipc, NULL);
}
""")  # fmt: skip
IPC_MAIN = (
    '#include "@header"\n#include <stddef.h>\n'
    + (IPC_FUNCTIONS % {"name": "alpha", "end": ";"}) + (IPC_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static cai_cuda cuda;
    static cai_ipc ipc;
    static struct cai_ipc_v0 in;
    cai_array array;
    cuda.struct_size = (uint32_t)sizeof cuda;
    cuda.version = CAI_CUDA_VERSION;
    in.abi = CAI_IPC_ABI;
    in.struct_size = (uint32_t)sizeof in;
    in.ndim = 1;
    in.process = in.cookie = 3;
    in.dtype.code = CAI_UINT8;
    in.dtype.itemsize = in.dtype.alignment = 1;
    in.strides[0] = 1;
    in.packed_axis = -1;
    if (make_alpha(&ipc, &cuda)) return 1;
    if (import_beta(&ipc, &in, &array) != CAI_ERR_UNAVAILABLE) return 2; /* a good one, but no CUDA */
    in.dtype.alignment++;
    if (import_beta(&ipc, &in, &array) != CAI_ERR_TYPESTR) return 3;
    in.abi++;
    if (import_beta(&ipc, &in, &array) != CAI_ERR_ABI) return 4;
    return close_beta(&ipc) ? 5 : 0;
}
""")  # fmt: skip


def ipc_modes() -> dict[str, Mode]:
    """Backends, switches, orders of the headers."""
    alone = '#define CAI_IPC_IMPLEMENTATION\n#include "@header"\n'
    emm, manager = '#include "cai_emm.h"\n', '#include "ext/cai_manager.h"\n'
    modes = {
        "nothing of CUDA or the C library in the declarations":
            Mode('#include "@header"\n' + NO_CUDA_HEADER + NO_LOADER_HEADER + NO_HOST_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + IPC_USE, SYNTAX, LINKED, HOST),
        "emm first": Mode("#define CAI_IMPLEMENTATION\n" + emm + '#include "@header"\n' + IPC_USE),
        "emm last": Mode(IMPLEMENT + emm + IPC_USE),
        "manager first": Mode("#define CAI_IMPLEMENTATION\n" + manager + '#include "@header"\n' + IPC_USE),
        "manager last": Mode(IMPLEMENT + manager + IPC_USE),
        "alone": Mode(alone + NO_CUDA_HEADER + NO_LOADER_HEADER + IPC_USE, ALL, where=HOST),
    }  # fmt: skip
    for name in ("CAI_NO_THREADS", "CAI_NO_LOADER"):
        modes[f"alone, {name}"] = Mode(f"#define {name}\n" + alone + IPC_USE, ONE)
    return modes


# --------------------------------------------------------------------- ext/cai_place.h
PLACE_USE = """
int use(const cai_array *x, const cai_array *out, cai_placement *where, cai_error *err);
int use(const cai_array *x, const cai_array *out, cai_placement *where, cai_error *err)
{
    const cai_operand input = cai_operand_array(x, "x");
    return cai_place(&input, 1, out, CAI_PLACE_SAME_DEVICE, 0, 0, where, err);
}
"""
# One copy makes the operands, the other places work on them.
PLACE_FUNCTIONS = """
int make_%(name)s(cai_array *out, float *values, uint64_t stream)%(end)s
int place_%(name)s(const cai_operand *inputs, cai_placement *where, cai_error *err)%(end)s
"""
PLACE_COPY = (PLACE_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_array *out, float *values, uint64_t stream)
{
    const int64_t shape[1] = {6};
    CAI_TRY(cai_array_init(out, CAI_FLOAT32, 1, shape, NULL, values, NULL));
    out->memory = CAI_MEMORY_DEVICE;
    out->device = 0;
    out->sync = CAI_SYNC_STREAM;
    out->stream = stream;
    return CAI_OK;
}
int place_%(name)s(const cai_operand *inputs, cai_placement *where, cai_error *err)
{
    return cai_place(inputs, 2, NULL, CAI_PLACE_IDENTICAL, 0, 0, where, err);
}
""")  # fmt: skip
PLACE_MAIN = (
    '#include "@header"\n#include <stddef.h>\n#include <string.h>\n'
    + (PLACE_FUNCTIONS % {"name": "alpha", "end": ";"}) + (PLACE_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static float values[6];
    cai_array x, y;
    cai_operand io[2];
    cai_placement where;
    cai_error err;
    io[0] = cai_operand_array(&x, NULL);
    io[1] = cai_operand_array(&y, NULL);
    if (make_alpha(&x, values, 0x500) || make_beta(&y, values, 0x500)) return 1;
    if (place_beta(io, &where, &err) || where.stream != 0x500 || where.decided != 0) return 2;
    y.stream = 0x600;
    if (place_alpha(io, &where, &err) != CAI_ERR_PLACEMENT || err.index != 1) return 3;
    return strstr(err.message, "input 1 is on device 0, stream 0x600") ? 0 : 4;
}
""")  # fmt: skip


# --------------------------------------------------------------------- ext/cai_move.h
MOVE_USE = """
int use(cai_array *x, cai_event_pool *pool, const cai_emm_hooks *hooks, uint64_t stream, cai_error *err);
int use(cai_array *x, cai_event_pool *pool, const cai_emm_hooks *hooks, uint64_t stream, cai_error *err)
{
    return cai_move(x, pool, stream, hooks, err);
}
"""
# One copy makes the array, the other moves it, without a pool.
MOVE_FUNCTIONS = """
int make_%(name)s(cai_array *out, float *values)%(end)s
int move_%(name)s(cai_array *x, cai_error *err)%(end)s
"""
MOVE_COPY = (MOVE_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_array *out, float *values)
{
    const int64_t shape[1] = {6};
    return cai_array_init(out, CAI_FLOAT32, 1, shape, NULL, values, NULL);
}
int move_%(name)s(cai_array *x, cai_error *err)
{
    return cai_move(x, NULL, 1, NULL, err);
}
""")  # fmt: skip
MOVE_MAIN = (
    '#include "@header"\n#include <stddef.h>\n'
    + (MOVE_FUNCTIONS % {"name": "alpha", "end": ";"}) + (MOVE_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static float values[6];
    cai_array x;
    cai_error err;
    if (make_alpha(&x, values)) return 1;
    return move_beta(&x, &err) == CAI_ERR_ARGUMENT && err.code == CAI_ERR_ARGUMENT ? 0 : 2;
}
""")  # fmt: skip


def place_modes() -> dict[str, Mode]:
    """Backends, switches, orders of the three headers."""
    alone = '#define CAI_PLACE_IMPLEMENTATION\n#include "@header"\n'
    stream = '#include "cai_stream.h"\n'
    return {
        "nothing of CUDA or the C library in the declarations":
            Mode('#include "@header"\n' + NO_CUDA_HEADER + NO_LOADER_HEADER + NO_HOST_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + PLACE_USE, SYNTAX, LINKED, HOST),
        "stream first": Mode("#define CAI_IMPLEMENTATION\n" + stream + '#include "@header"\n' + PLACE_USE),
        "stream last": Mode(IMPLEMENT + stream + PLACE_USE),
        "alone": Mode(alone + NO_CUDA_HEADER + NO_LOADER_HEADER + PLACE_USE, ALL, where=HOST),
    }  # fmt: skip


# --------------------------------------------------------------------- ext/cai_python.h
PYTHON_USE = """
int use(cai_python *py, PyObject *const *objects, uint64_t *stream, cai_array *out);
int use(cai_python *py, PyObject *const *objects, uint64_t *stream, cai_array *out)
{
    const char *const names[1] = {"x"};
    const uint32_t flags = CAI_LENIENT | CAI_PYTHON_HOST | CAI_PYTHON_BORROW;
    const cai_python_options options = {flags, 0, CAI_STREAM_LEGACY, names};
    if (cai_python_stream(py, objects[0], stream)) return -1;
    if (cai_python_import(py, objects + 1, 1, &options, out)) return -1;
    cai_python_release(py, out, 1);
    return cai_python_clear(py) ? -1 : 0;
}
int use_offer(PyTypeObject *type, PyObject *(*adopt)(PyTypeObject *, struct cai_array_v0 *));
int use_offer(PyTypeObject *type, PyObject *(*adopt)(PyTypeObject *, struct cai_array_v0 *))
{
    static cai_python_exchange exchange;
    exchange.abi = CAI_ABI;
    exchange.struct_size = sizeof exchange;
    exchange.adopt = adopt;
    return cai_python_offer(type, &exchange);
}
#if defined(CAI_STREAM_H_INCLUDED)
int use_after(cai_python *py, cai_event_pool *pool, cai_array *arrays, uint64_t stream);
int use_after(cai_python *py, cai_event_pool *pool, cai_array *arrays, uint64_t stream)
{
    return cai_python_release_after(py, pool, arrays, 1, stream);
}
#endif
"""
# Two copies become one object: a program would need Python's library.
PYTHON_COPY = """
int make_%(name)s(cai_python *py);
int make_%(name)s(cai_python *py) { return cai_python_init(py); }
"""
PYTHON_MAIN = """
#include "@header"
int make_alpha(cai_python *py);
int make_beta(cai_python *py);
int both(cai_python *py);
int both(cai_python *py) { return make_alpha(py) || make_beta(py); }
"""
LIMITED = "-DPy_LIMITED_API=0x030b0000"


def python_modes(switch: str, use: str) -> dict[str, Mode]:
    """The limited API and all of it; what was included before; orders of headers. switch: the header's own."""
    stream = '#include "cai_stream.h"\n'
    after = "#define CAI_IMPLEMENTATION\n" + stream + '#include "@header"\n' + use
    return {
        "Python.h first": Mode("#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n" + IMPLEMENT + use),
        "cai_stream.h after": Mode(IMPLEMENT + use + stream),
        "cai_stream.h between": Mode('#include "@header"\n#define CAI_IMPLEMENTATION\n' + stream + '#include "@header"\n' + use),
        "core in another unit": Mode(f'#include "cai.h"\n#define {switch}\n#include "@header"\n' + use),
        "CAI_NO_THREADS": Mode("#define CAI_NO_THREADS\n" + IMPLEMENT + use),
        "after cai_stream.h, declarations": Mode(stream + '#include "@header"\n' + use),
        "after cai_stream.h": Mode(after, ALL),
        "after cai_stream.h, limited": Mode(after, ONE, flags=(LIMITED,)),
        "after cai_stream.h, static": Mode("#define CAI_STATIC\n" + after),
        "after cai_stream.h, namespace": Mode("#define CAI_NAMESPACE mylib_\n" + after),
        "limited": Mode(IMPLEMENT + use, ALL, flags=(LIMITED,)),
        "limited, declarations": Mode('#include "@header"\n' + use, flags=(LIMITED,)),
        "limited, static": Mode("#define CAI_STATIC\n" + IMPLEMENT, flags=(LIMITED,)),
    }  # fmt: skip


# --------------------------------------------------------------------- ext/cai_python_dlpack.h
PYTHON_DLPACK_USE = PYTHON_USE + """
PyObject *use_dlpack(cai_python *py, PyObject *object, const cai_array *x, PyObject *args, PyObject *kwargs);
PyObject *use_dlpack(cai_python *py, PyObject *object, const cai_array *x, PyObject *args, PyObject *kwargs)
{
    cai_python_dlpack_request request;
    if (cai_python_dlpack_ask(x, args, kwargs, &request)) return cai_python_dlpack_device(x);
    return cai_python_dlpack(py, object, x, &request);
}
int use_dlpack_init(cai_python *py);
int use_dlpack_init(cai_python *py)
{
    return cai_python_dlpack_init(py);
}
#if defined(CAI_STREAM_H_INCLUDED)
PyObject *use_both(cai_python *py, cai_event_pool *pool, PyObject *object, const cai_array *x,
                   const cai_python_dlpack_request *request);
PyObject *use_both(cai_python *py, cai_event_pool *pool, PyObject *object, const cai_array *x,
                   const cai_python_dlpack_request *request)
{
    return cai_python_dlpack_ordered(py, pool, object, x, request);
}
#endif
"""


def python_dlpack_modes() -> dict[str, Mode]:
    """Those of cai_python.h, and its two headers before it or after it."""
    below = ('#include "ext/cai_python.h"\n', '#include "ext/cai_dlpack.h"\n')
    modes = python_modes("CAI_PYTHON_DLPACK_IMPLEMENTATION", PYTHON_DLPACK_USE)
    for header in below:
        name = header[14:-3]
        modes[f"{name} first"] = Mode("#define CAI_IMPLEMENTATION\n" + header + '#include "@header"\n' + PYTHON_DLPACK_USE)
        modes[f"{name} last"] = Mode(IMPLEMENT + PYTHON_DLPACK_USE + header)
    modes["with cai_python.h alone in one unit"] = Mode(
        '#define CAI_PYTHON_IMPLEMENTATION\n' + below[0] + '#define CAI_PYTHON_DLPACK_IMPLEMENTATION\n#include "@header"\n')
    return modes


# --------------------------------------------------------------------- the table
CORE = Subject(
    guard="CAI_H_INCLUDED", switch="CAI_CORE_IMPLEMENTATION", other_version="another version of cai.h", use=USE,
    link="cai_version() == CAI_H_INCLUDED ? 0 : 1", linked="cai_version", copies=(CORE_COPY, CORE_MAIN),
)  # fmt: skip
# -------------------------------------------------------------------- ext/cai_layout.h
LAYOUT_USE = """
int use(cai_layout *layout, const cai_dtype *dtype, const cai_array *x, cai_array *out, cai_error *err);
int use(cai_layout *layout, const cai_dtype *dtype, const cai_array *x, cai_array *out, cai_error *err)
{
    CAI_TRY(cai_layout_preset(layout, "gtcuda", "IJK", err));
    CAI_TRY(cai_layout_plan(layout, dtype, err));
    return cai_view_domain(x, layout->halo_low, layout->halo_high, out, err);
}
"""
# One copy plans, the other checks an array by the plan.
LAYOUT_FUNCTIONS = """
int plan_%(name)s(cai_layout *layout)%(end)s
int check_%(name)s(const cai_layout *layout, float *values)%(end)s
"""
LAYOUT_COPY = (LAYOUT_FUNCTIONS.replace("%(end)s", ";") + """
int plan_%(name)s(cai_layout *layout)
{
    cai_dtype dtype;
    CAI_TRY(cai_dtype_of(CAI_FLOAT32, &dtype, NULL));
    CAI_TRY(cai_layout_preset(layout, "F", "IJ", NULL));
    layout->shape[0] = 2;
    layout->shape[1] = 3;
    return cai_layout_plan(layout, &dtype, NULL);
}
int check_%(name)s(const cai_layout *layout, float *values)
{
    cai_array x;
    CAI_TRY(cai_array_init(&x, CAI_FLOAT32, 2, layout->shape, layout->strides, values, NULL));
    return cai_layout_check(layout, &x, NULL);
}
""")  # fmt: skip
LAYOUT_MAIN = (
    '#include "@header"\n#include <string.h>\n'
    + (LAYOUT_FUNCTIONS % {"name": "alpha", "end": ";"}) + (LAYOUT_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static float values[6];
    cai_layout layout;
    memset(&layout, 0, sizeof layout);
    if (plan_alpha(&layout) || layout.nbytes != (int64_t)sizeof values || layout.strides[1] != 8) return 1;
    return check_beta(&layout, values) || check_alpha(&layout, values);
}
""")  # fmt: skip


# -------------------------------------------------------------------- ext/cai_tensor_map.h
TENSOR_MAP_USE = """
int use(const cai_array *x, cai_tensor_map_plan *plan, cai_error *err);
int use(const cai_array *x, cai_tensor_map_plan *plan, cai_error *err)
{
    cai_tensor_tile tile = {{64, 32}, {0}, 0, 0, CAI_TENSOR_MAP_SWIZZLE_128B, CAI_TENSOR_MAP_L2_128B, 0};
    return cai_tensor_map_of(x, &tile, plan, err);
}
int use_columns(const cai_array *x, cai_im2col_map_plan *plan, cai_error *err);
int use_columns(const cai_array *x, cai_im2col_map_plan *plan, cai_error *err)
{
    cai_im2col_tile tile = {{-1, -1}, {-1, -1}, {0}, 64, 128, 0, 0, CAI_TENSOR_MAP_SWIZZLE_128B, 0, 0};
    return cai_im2col_map_of(x, &tile, plan, err);
}
"""
# Casts of the macros, in the user's own file
TENSOR_MAP_CALL = """#include <cuda.h>
int encode(const cai_tensor_map_plan *plan, CUtensorMap *map);
int encode(const cai_tensor_map_plan *plan, CUtensorMap *map)
{
    return cuTensorMapEncodeTiled(map, CAI_TENSOR_MAP_ARGUMENTS(*plan)) != CUDA_SUCCESS;
}
int encode_columns(const cai_im2col_map_plan *plan, CUtensorMap *map);
int encode_columns(const cai_im2col_map_plan *plan, CUtensorMap *map)
{
    return cuTensorMapEncodeIm2col(map, CAI_IM2COL_MAP_ARGUMENTS(*plan)) != CUDA_SUCCESS;
}
"""
# One copy plans, and the other plans the same again.
TENSOR_MAP_FUNCTIONS = """
int plan_%(name)s(cai_tensor_map_plan *plan)%(end)s
"""
TENSOR_MAP_COPY = (TENSOR_MAP_FUNCTIONS.replace("%(end)s", ";") + """
int plan_%(name)s(cai_tensor_map_plan *plan)
{
    const cai_tensor_tile tile = {{4, 8}, {0}, 0, 0, 0, 0, 0};
    const int64_t shape[2] = {6, 8};
    cai_dtype dtype;
    cai_array x;
    CAI_TRY(cai_dtype_of(CAI_FLOAT32, &dtype, NULL));
    CAI_TRY(cai_array_init_dtype(&x, &dtype, 2, shape, NULL, 4096, NULL));
    return cai_tensor_map_of(&x, &tile, plan, NULL);
}
""")  # fmt: skip
TENSOR_MAP_MAIN = (
    '#include "@header"\n#include <string.h>\n'
    + (TENSOR_MAP_FUNCTIONS % {"name": "alpha", "end": ";"}) + (TENSOR_MAP_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    cai_tensor_map_plan one, other;
    if (plan_alpha(&one) || plan_beta(&other)) return 1;
    return memcmp(&one, &other, sizeof one) || one.dims[1] != 6 || one.strides[0] != 32 || one.box_bytes != 128;
}
""")  # fmt: skip


# -------------------------------------------------------------------- ext/cai_scaled.h
SCALED_USE = """
int use(const cai_scaled *x, cai_scale_map *map, cai_error *err);
int use(const cai_scaled *x, cai_scale_map *map, cai_error *err)
{
    CAI_TRY(cai_expect_scaled(x, "x", CAI_NVFP4, CAI_SCALES_128X4, -1, CAI_ON_DEVICE, err));
    return cai_scale_map_of(x, map, err);
}
#if defined(__CUDACC__)
__global__ void scales(cai_scale_map map, const unsigned char *from, unsigned char *to, int64_t columns)
{
    const int64_t row = blockIdx.x, column = threadIdx.x;
    to[row * columns + column] = from[cai_scale_offset(&map, row, column)];
}
#endif
"""
# One copy makes a map, and the other makes it again.
SCALED_FUNCTIONS = """
int map_%(name)s(cai_scale_map *map)%(end)s
"""
SCALED_COPY = (SCALED_FUNCTIONS.replace("%(end)s", ";") + """
int map_%(name)s(cai_scale_map *map)
{
    static const int64_t shape[2] = {200, 300};
    int64_t padded[2];
    cai_dtype dtype;
    cai_array data, scales;
    cai_scaled x = {&data, &scales, 1, 32, 1, CAI_SCALES_128X4};
    CAI_TRY(cai_dtype_of(CAI_FLOAT8_E5M2, &dtype, NULL));
    CAI_TRY(cai_array_init_dtype(&data, &dtype, 2, shape, NULL, 4096, NULL));
    CAI_TRY(cai_scales_shape(&x, padded, NULL));
    CAI_TRY(cai_dtype_of(CAI_FLOAT8_E8M0FNU, &dtype, NULL));
    CAI_TRY(cai_array_init_dtype(&scales, &dtype, 2, padded, NULL, 4096, NULL));
    return cai_scale_map_of(&x, map, NULL);
}
""")  # fmt: skip
SCALED_MAIN = (
    '#include "@header"\n#include <string.h>\n'
    + (SCALED_FUNCTIONS % {"name": "alpha", "end": ";"}) + (SCALED_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    cai_scale_map one, other;
    if (map_alpha(&one) || map_beta(&other)) return 1;
    return memcmp(&one, &other, sizeof one) || cai_scale_offset(&one, 129, 299) != 3 * 512 + 2 * 512 + 16 + 1;
}
""")  # fmt: skip


# -------------------------------------------------------------------- ext/cai_small_view.h
SMALL_VIEW_USE = """
int use(const cai_array *x, cai_small_view *view, cai_error *err);
int use(const cai_array *x, cai_small_view *view, cai_error *err)
{
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, 2, CAI_ON_DEVICE, err));
    return cai_small_view_of(x, view, err);
}
#if defined(__CUDACC__)
__global__ void add(cai_small_view x, cai_small_view y, cai_small_view z)
{
    const int64_t i = blockIdx.x, j = threadIdx.x;
    *(float *)cai_small_at2(&z, i, j) = *(float *)cai_small_at2(&x, i, j) + *(float *)cai_small_at2(&y, i, j);
    *(float *)cai_small_element(&z, 0) += *(float *)cai_small_at1(&x, i) + *(float *)cai_small_at3(&y, i, j, 0);
}
#endif
"""
# One copy makes a view, and the other makes it again.
SMALL_VIEW_FUNCTIONS = """
int view_%(name)s(float *values, cai_small_view *view)%(end)s
"""
SMALL_VIEW_COPY = (SMALL_VIEW_FUNCTIONS.replace("%(end)s", ";") + """
int view_%(name)s(float *values, cai_small_view *view)
{
    static const int64_t shape[2] = {2, 3};
    cai_array x;
    CAI_TRY(cai_array_init(&x, CAI_FLOAT32, 2, shape, NULL, values, NULL));
    return cai_small_view_of(&x, view, NULL);
}
""")  # fmt: skip
SMALL_VIEW_MAIN = (
    '#include "@header"\n#include <string.h>\n'
    + (SMALL_VIEW_FUNCTIONS % {"name": "alpha", "end": ";"}) + (SMALL_VIEW_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static float values[6];
    cai_small_view one, other;
    if (view_alpha(values, &one) || view_beta(values, &other)) return 1;
    return memcmp(&one, &other, sizeof one) || cai_small_at2(&one, 1, 2) != (void *)(values + 5);
}
""")  # fmt: skip


# -------------------------------------------------------------------- ext/cai_transfer.h
TRANSFER_USE = """
int use(cai_transfer *plan, const cai_array *to, const cai_array *from, cai_run *runs, cai_error *err);
int use(cai_transfer *plan, const cai_array *to, const cai_array *from, cai_run *runs, cai_error *err)
{
    CAI_TRY(cai_transfer_plan(plan, to, from, err));
    return cai_transfer_runs(plan, 0, runs, 1);
}
#if defined(CAI_STREAM_H_INCLUDED)
int queue(const cai_transfer *plan, const cai_cuda *cuda, uint64_t stream, cai_error *err);
int queue(const cai_transfer *plan, const cai_cuda *cuda, uint64_t stream, cai_error *err)
{
    CAI_TRY(cai_transfer_copy_peer(plan, cuda, 1, 1, stream, err));
    return cai_transfer_copy(plan, cuda, stream, err);
}
#endif
"""
# One copy plans, the other carries out.
TRANSFER_FUNCTIONS = """
int plan_%(name)s(cai_transfer *plan, float *values, float *buffer)%(end)s
int copy_%(name)s(const cai_transfer *plan)%(end)s
"""
TRANSFER_COPY = (TRANSFER_FUNCTIONS.replace("%(end)s", ";") + """
int plan_%(name)s(cai_transfer *plan, float *values, float *buffer)
{
    const int64_t shape[2] = {2, 3}, strides[2] = {4, 8};
    cai_array x;
    CAI_TRY(cai_array_init(&x, CAI_FLOAT32, 2, shape, strides, values, NULL));
    return cai_transfer_pack(plan, &x, (uint64_t)(uintptr_t)buffer, NULL);
}
int copy_%(name)s(const cai_transfer *plan)
{
    cai_transfer_on_host(plan);
    return plan->runs == 6 ? 0 : 1;
}
""")  # fmt: skip
TRANSFER_MAIN = (
    '#include "@header"\n'
    + (TRANSFER_FUNCTIONS % {"name": "alpha", "end": ";"}) + (TRANSFER_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static float values[6] = {0, 1, 2, 3, 4, 5}, buffer[6];
    static cai_transfer plan;
    if (plan_alpha(&plan, values, buffer) || copy_beta(&plan)) return 1;
    return buffer[1] < 2 || buffer[3] > 1;
}
""")  # fmt: skip


def transfer_modes() -> dict[str, Mode]:
    """Orders of headers."""
    stream = '#include "cai_stream.h"\n'
    return {
        "with cai_stream.h": Mode("#define CAI_IMPLEMENTATION\n" + stream + '#include "@header"\n' + TRANSFER_USE),
        "cai_stream.h after": Mode(IMPLEMENT + stream + TRANSFER_USE.partition("#if defined(CAI_STREAM")[0]),
        "cai_stream.h between": Mode('#include "@header"\n#define CAI_IMPLEMENTATION\n' + stream + '#include "@header"\n' + TRANSFER_USE),
        "core in another unit": Mode('#include "cai.h"\n#define CAI_TRANSFER_IMPLEMENTATION\n#include "@header"\n' + TRANSFER_USE, ONE),
    }


# --------------------------------------------------------- ext/cai_mpi_type.h, ext/cai_mpi.h
MPI_TYPE_USE = """
int use(const cai_array *array, MPI_Datatype *type, cai_error *err);
int use(const cai_array *array, MPI_Datatype *type, cai_error *err)
{
    CAI_TRY(cai_mpi_status(MPI_SUCCESS, "MPI_Send", err));
    return cai_mpi_type(array, type, err);
}
"""
MPI_USE = """
int use(cai_mpi_batch *batch, const cai_mpi_options *options, cai_mpi_message *message, cai_error *err);
int use(cai_mpi_batch *batch, const cai_mpi_options *options, cai_mpi_message *message, cai_error *err)
{
    const int64_t width = 1;
    const int32_t axis = 0;
    const cai_mpi_halo_options halo = {options->comm, &width, &width, &axis, 1, 0};
    int32_t count;
    CAI_TRY(cai_mpi_halo(message->array, &halo, message, message->array, 0, &count, err));
    CAI_TRY(cai_mpi_open(batch, options, message, 1, err));
    CAI_TRY(cai_mpi_start(batch, err));
    CAI_TRY(cai_mpi_finish(batch, err));
    return cai_mpi_close(batch, err);
}
"""
MPI_TYPE_COPY = """
int make_%(name)s(const cai_dtype *dtype, MPI_Datatype *type);
int make_%(name)s(const cai_dtype *dtype, MPI_Datatype *type) { return cai_mpi_dtype(dtype, type, NULL); }
"""
MPI_COPY = """
int make_%(name)s(cai_mpi_batch *batch);
int make_%(name)s(cai_mpi_batch *batch) { return cai_mpi_close(batch, NULL); }
"""
MPI_TYPE_MAIN = """
#include "@header"
int make_alpha(const cai_dtype *dtype, MPI_Datatype *type);
int make_beta(const cai_dtype *dtype, MPI_Datatype *type);
int both(const cai_dtype *dtype, MPI_Datatype *type);
int both(const cai_dtype *dtype, MPI_Datatype *type) { return make_alpha(dtype, type) || make_beta(dtype, type); }
"""
MPI_MAIN = """
#include "@header"
int make_alpha(cai_mpi_batch *batch);
int make_beta(cai_mpi_batch *batch);
int both(cai_mpi_batch *batch);
int both(cai_mpi_batch *batch) { return make_alpha(batch) || make_beta(batch); }
"""


# --------------------------------------------------------------------- ext/cai_hip.h
HIP_USE = """
uint64_t use(struct ihipStream_t *stream, const cai_cuda **table);
uint64_t use(struct ihipStream_t *stream, const cai_cuda **table)
{
    *table = cai_hip_table();
    return CAI_HIP_STREAM(cai_stream_to_hip(CAI_HIP_STREAM(stream)));
}
"""
HIP_COPY = """
const cai_cuda *table_%(name)s(void);
const cai_cuda *table_%(name)s(void) { return cai_hip_table(); }
"""
HIP_MAIN = """
#include "@header"
const cai_cuda *table_alpha(void);
const cai_cuda *table_beta(void);
int both(void);
int both(void) { return table_alpha() == table_beta(); }
"""


# ------------------------------------------------------- ext/cai_storage.h, ext/cai_access.h
STORAGE_USE = """
int use(cai_storage *storage, uint64_t stream, cai_array *out, cai_error *err);
int use(cai_storage *storage, uint64_t stream, cai_array *out, cai_error *err)
{
    cai_storage_access access;
    CAI_TRY(cai_storage_begin(&access, storage, CAI_SIDE_DEVICE, CAI_WRITE, stream, err));
    CAI_TRY(cai_storage_end(&access, CAI_OK, err));
    return cai_storage_export(storage, CAI_SIDE_HOST, CAI_READ, 0, out, err);
}
"""
# One copy makes storages, the other works on them.
STORAGE_FUNCTIONS = """
int make_%(name)s(cai_storage *out)%(end)s
int work_%(name)s(cai_storage *storage, cai_storage *other)%(end)s
"""
STORAGE_COPY = ("#include <string.h>\n" + STORAGE_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_storage *out)
{
    static cai_emm_hooks hooks;
    cai_storage_options options;
    cai_dtype dtype;
    cai_layout layout;
    memset(&options, 0, sizeof options);
    options.host = &hooks;
    options.kind = CAI_STORAGE_HOST;
    options.flags = CAI_STORAGE_ZEROS;
    CAI_TRY(cai_dtype_of(CAI_FLOAT32, &dtype, NULL));
    memset(&layout, 0, sizeof layout);
    CAI_TRY(cai_layout_preset(&layout, "F", "IJ", NULL));
    layout.shape[0] = 2;
    layout.shape[1] = 3;
    cai_emm_hooks_malloc(&hooks);
    return cai_storage_init(out, &options, &dtype, &layout, NULL);
}
int work_%(name)s(cai_storage *storage, cai_storage *other)
{
    static float values[6];
    static cai_storage given;
    const int64_t shape[2] = {2, 3};
    cai_storage_options options;
    cai_storage_access access;
    cai_array out, x;
    memset(&options, 0, sizeof options);
    options.kind = CAI_STORAGE_HOST;
    CAI_TRY(cai_array_init(&x, CAI_FLOAT32, 2, shape, NULL, values, NULL));
    x.sync = CAI_SYNC_NONE;
    CAI_TRY(cai_storage_wrap(&given, &options, &x, NULL, CAI_STORAGE_CLEAN, NULL));
    CAI_TRY(cai_storage_begin(&access, storage, CAI_SIDE_HOST, CAI_WRITE, 0, NULL));
    *(float *)(uintptr_t)access.array.data = 7;
    CAI_TRY(cai_storage_end(&access, CAI_OK, NULL));
    CAI_TRY(cai_storage_mark(storage, CAI_SIDE_HOST, 0, 0, NULL));
    CAI_TRY(cai_storage_sync(storage, 0, 0, NULL));
    CAI_TRY(cai_storage_assign(other, storage, NULL));
    CAI_TRY(cai_storage_export(other, CAI_SIDE_HOST, CAI_READ, 0, &out, NULL));
    if (*(const float *)(uintptr_t)out.data != 7 || cai_storage_place(other, storage) != CAI_SIDE_HOST) return 9;
    if (cai_storage_release(other, NULL) != CAI_ERR_PENDING) return 10;
    cai_array_release(&out);
    CAI_TRY(cai_storage_assign(&given, other, NULL));
    if (values[0] != 7 || values[5] != 0) return 11;
    CAI_TRY(cai_storage_release(&given, NULL));
    CAI_TRY(cai_storage_release(other, NULL));
    return cai_storage_release(storage, NULL);
}
""")  # fmt: skip
STORAGE_MAIN = (
    '#include "@header"\n'
    + (STORAGE_FUNCTIONS % {"name": "alpha", "end": ";"}) + (STORAGE_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static cai_storage first, second;
    if (make_alpha(&first) || make_beta(&second)) return 1;
    return work_beta(&first, &second);
}
""")  # fmt: skip


def storage_modes() -> dict[str, Mode]:
    """Backends, switches, orders of the headers."""
    alone = '#define CAI_STORAGE_IMPLEMENTATION\n#include "@header"\n'
    emm, layout = '#include "cai_emm.h"\n', '#include "ext/cai_layout.h"\n'
    transfer = '#include "ext/cai_transfer.h"\n'
    manager, place = '#include "ext/cai_manager.h"\n', '#include "ext/cai_place.h"\n'
    modes = {
        "nothing of CUDA or the C library in the declarations":
            Mode('#include "@header"\n' + NO_CUDA_HEADER + NO_LOADER_HEADER + NO_HOST_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + STORAGE_USE, SYNTAX, LINKED, HOST),
        "emm first": Mode("#define CAI_IMPLEMENTATION\n" + emm + '#include "@header"\n' + STORAGE_USE),
        "emm last": Mode(IMPLEMENT + emm + STORAGE_USE),
        "layout first": Mode("#define CAI_IMPLEMENTATION\n" + layout + '#include "@header"\n' + STORAGE_USE),
        "layout last": Mode(IMPLEMENT + layout + STORAGE_USE),
        "transfer first": Mode(transfer + IMPLEMENT + STORAGE_USE),
        "transfer last": Mode(IMPLEMENT + transfer + STORAGE_USE),
        "manager and place first": Mode("#define CAI_IMPLEMENTATION\n" + manager + place + '#include "@header"\n' + STORAGE_USE),
        "manager and place last": Mode(IMPLEMENT + place + manager + STORAGE_USE),
        "alone": Mode(alone + NO_CUDA_HEADER + NO_LOADER_HEADER + STORAGE_USE, ALL, where=HOST),
    }  # fmt: skip
    for name in ("CAI_NO_THREADS", "CAI_NO_LOADER"):
        modes[f"all, {name}"] = Mode(f"#define {name}\n" + IMPLEMENT + STORAGE_USE)
        modes[f"alone, {name}"] = Mode(f"#define {name}\n" + alone + STORAGE_USE, ONE)
    return modes


ACCESS_USE = """
int use(cai_argument *io, const cai_storage_options *options, uint64_t stream, cai_error *err);
int use(cai_argument *io, const cai_storage_options *options, uint64_t stream, cai_error *err)
{
    CAI_TRY(cai_access_begin(io, 2, options, cai_access_side(io, 2), stream, err));
    return cai_access_end(io, 2, CAI_OK, err);
}
"""
# One copy makes the field, the other is the computation.
ACCESS_FUNCTIONS = """
int make_%(name)s(cai_access *out, cai_array *array, float *values)%(end)s
int work_%(name)s(const cai_access *field)%(end)s
"""
ACCESS_COPY = ("#include <string.h>\n" + ACCESS_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_access *out, cai_array *array, float *values)
{
    const int64_t shape[1] = {3};
    memset(out, 0, sizeof *out);
    out->struct_size = (uint32_t)sizeof *out;
    out->version = CAI_ACCESS_VERSION;
    out->array[0] = array;
    CAI_TRY(cai_array_init(array, CAI_FLOAT32, 1, shape, NULL, values, NULL));
    array->sync = CAI_SYNC_NONE;
    return CAI_OK;
}
int work_%(name)s(const cai_access *field)
{
    static cai_argument io;
    cai_storage_options options;
    memset(&options, 0, sizeof options);
    io.access = field;
    io.mode = CAI_WRITE;
    if (cai_access_side(&io, 1) != CAI_SIDE_HOST) return 9;
    CAI_TRY(cai_access_begin(&io, 1, &options, CAI_SIDE_HOST, 0, NULL));
    *(float *)(uintptr_t)io.array.data = 7;
    return cai_access_end(&io, 1, CAI_OK, NULL);
}
""")  # fmt: skip
ACCESS_MAIN = (
    '#include "@header"\n#include <stddef.h>\n'
    + (ACCESS_FUNCTIONS % {"name": "alpha", "end": ";"}) + (ACCESS_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static float values[3];
    cai_array x;
    cai_access field;
    if (make_alpha(&field, &x, values) || work_beta(&field)) return 2;
    return values[0] < 7;
}
""")  # fmt: skip


# --------------------------------------------------------------------- ext/cai_tvm_ffi.h
TVM_USE = """
int use(const TVMFFIAny *values, int32_t count, cai_event_pool *pool, TVMFFIAny *result, cai_error *err);
int use(const TVMFFIAny *values, int32_t count, cai_event_pool *pool, TVMFFIAny *result, cai_error *err)
{
    static const char *const names[] = {"x"};
    cai_tvm_ffi_args args;
    cai_array x, z;
    CAI_TRY(cai_tvm_ffi_open(&args, values, count, names, 1, err));
    CAI_TRY(cai_tvm_ffi_array(&args, 0, &x, err));
    CAI_TRY(cai_tvm_ffi_new(&z, &x, CAI_FLOAT32, x.ndim, x.shape, result, err));
    return cai_tvm_ffi_end(cai_tvm_ffi_give(&x, pool, result, err), result, err);
}
"""
TVM_COPY = """
int end_%(name)s(TVMFFIAny *result);
int end_%(name)s(TVMFFIAny *result) { return cai_tvm_ffi_end(CAI_OK, result, NULL); }
"""
TVM_MAIN = """
#include "@header"
int end_alpha(TVMFFIAny *result);
int end_beta(TVMFFIAny *result);
int both(TVMFFIAny *result);
int both(TVMFFIAny *result) { return end_alpha(result) || end_beta(result); }
"""

SUBJECTS = {
    "cai.h": CORE,
    "cai_array_struct.h": Subject(
        guard="CAI_ARRAY_STRUCT_H_INCLUDED", switch="CAI_ARRAY_STRUCT_IMPLEMENTATION", other_version="another version of it",
        use=USE, link="cai_array_struct_import(NULL, NULL, NULL, 0, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_array_struct_import", copies=(CORE_COPY, CORE_MAIN), below=("cai.h",),
    ),
    "cai_layout.h": Subject(
        guard="CAI_LAYOUT_H_INCLUDED", switch="CAI_LAYOUT_IMPLEMENTATION", other_version="another version of it",
        use=LAYOUT_USE, link="cai_layout_preset(NULL, NULL, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_layout_preset", copies=(LAYOUT_COPY, LAYOUT_MAIN), below=("cai.h",),
    ),
    "cai_tensor_map.h": Subject(
        guard="CAI_TENSOR_MAP_H_INCLUDED", switch="CAI_TENSOR_MAP_IMPLEMENTATION", other_version="another version of it",
        use=TENSOR_MAP_USE, link="cai_tensor_map_of(NULL, NULL, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_tensor_map_of", copies=(TENSOR_MAP_COPY, TENSOR_MAP_MAIN), below=("cai.h",), light=True,
        modes={"with cuda.h": Mode('#include "@header"\n' + TENSOR_MAP_CALL, backend=LINKED)},
    ),
    "cai_scaled.h": Subject(
        guard="CAI_SCALED_H_INCLUDED", switch="CAI_SCALED_IMPLEMENTATION", other_version="another version of it",
        use=SCALED_USE, link="cai_scales_shape(NULL, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_scales_shape", copies=(SCALED_COPY, SCALED_MAIN), below=("cai.h",), light=True,
    ),
    "cai_small_view.h": Subject(
        guard="CAI_SMALL_VIEW_H_INCLUDED", switch="CAI_SMALL_VIEW_IMPLEMENTATION", other_version="another version of it",
        use=SMALL_VIEW_USE, link="cai_small_view_of(NULL, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_small_view_of", copies=(SMALL_VIEW_COPY, SMALL_VIEW_MAIN), below=("cai.h",), light=True,
    ),
    "cai_transfer.h": Subject(
        guard="CAI_TRANSFER_H_INCLUDED", switch="CAI_TRANSFER_IMPLEMENTATION", other_version="another version of it",
        use=TRANSFER_USE, link="cai_transfer_runs(NULL, 0, NULL, 0)", linked="cai_transfer_runs",
        copies=(TRANSFER_COPY, TRANSFER_MAIN), host_flags=("-DCAI_NO_CUDART",), below=("cai.h",), modes=transfer_modes(),
        light=True,
    ),
    "cai_stream.h": Subject(
        guard="CAI_STREAM_H_INCLUDED", switch="CAI_STREAM_IMPLEMENTATION", other_version="another version of it",
        use=STREAM_USE, link='cai_cuda_status(0, "x", NULL)', linked="cai_cuda_status", copies=(STREAM_COPY, STREAM_MAIN),
        host_flags=("-DCAI_NO_CUDART",), below=("cai.h",), modes=stream_modes(),
    ),
    "cai_emm.h": Subject(
        guard="CAI_EMM_H_INCLUDED", switch="CAI_EMM_IMPLEMENTATION", other_version="another version of it", use=EMM_USE,
        link="cai_emm_hooks_check(NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1", linked="cai_emm_hooks_check",
        copies=(EMM_COPY, EMM_MAIN), host_flags=("-DCAI_NO_CUDART",), below=("cai.h", "cai_stream.h"), modes=emm_modes(),
        light=True,
    ),
    "cai_manager.h": Subject(
        guard="CAI_MANAGER_H_INCLUDED", switch="CAI_MANAGER_IMPLEMENTATION", other_version="another version of it",
        use=MANAGER_USE, link="cai_manager_init(NULL, NULL, NULL, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_manager_init", copies=(MANAGER_COPY, MANAGER_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "cai_stream.h", "cai_emm.h"), modes=manager_modes(),
    ),
    "cai_dlpack.h": Subject(
        guard="CAI_DLPACK_H_INCLUDED", switch="CAI_DLPACK_IMPLEMENTATION", other_version="another version of it",
        use=DLPACK_USE, link="cai_dlpack_device(NULL, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1", linked="cai_dlpack_device",
        copies=(DLPACK_COPY, DLPACK_MAIN), host_flags=("-DCAI_NO_CUDART",), below=("cai.h",), modes=dlpack_modes(),
        others=("dlpack",), light=True,
    ),
    "cai_ipc.h": Subject(
        guard="CAI_IPC_H_INCLUDED", switch="CAI_IPC_IMPLEMENTATION", other_version="another version of it", use=IPC_USE,
        link="cai_ipc_destroy(NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1", linked="cai_ipc_destroy",
        copies=(IPC_COPY, IPC_MAIN), host_flags=("-DCAI_NO_CUDART",), below=("cai.h", "cai_stream.h", "cai_emm.h", "ext/cai_manager.h"),
        modes=ipc_modes(), light=True,
    ),
    "cai_storage.h": Subject(
        guard="CAI_STORAGE_H_INCLUDED", switch="CAI_STORAGE_IMPLEMENTATION", other_version="another version of it",
        use=STORAGE_USE, link="cai_storage_release(NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1", linked="cai_storage_release",
        copies=(STORAGE_COPY, STORAGE_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "cai_stream.h", "cai_emm.h", "ext/cai_layout.h", "ext/cai_transfer.h"), modes=storage_modes(), light=True,
    ),
    "cai_access.h": Subject(
        guard="CAI_ACCESS_H_INCLUDED", switch="CAI_ACCESS_IMPLEMENTATION", other_version="another version of it",
        use=ACCESS_USE, link="cai_access_side(NULL, 0)", linked="cai_access_side",
        copies=(ACCESS_COPY, ACCESS_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "cai_stream.h", "cai_emm.h", "ext/cai_layout.h", "ext/cai_transfer.h", "ext/cai_storage.h"), light=True,
    ),
    "cai_place.h": Subject(
        guard="CAI_PLACE_H_INCLUDED", switch="CAI_PLACE_IMPLEMENTATION", other_version="another version of it", use=PLACE_USE,
        link="cai_place(NULL, 0, NULL, 0, 0, 0, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1", linked="cai_place",
        copies=(PLACE_COPY, PLACE_MAIN), host_flags=("-DCAI_NO_CUDART",), below=("cai.h", "cai_stream.h"),
        modes=place_modes(), light=True,
    ),
    "cai_move.h": Subject(
        guard="CAI_MOVE_H_INCLUDED", switch="CAI_MOVE_IMPLEMENTATION", other_version="another version of it", use=MOVE_USE,
        link="cai_move(NULL, NULL, 0, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1", linked="cai_move",
        copies=(MOVE_COPY, MOVE_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "cai_stream.h", "cai_emm.h", "ext/cai_place.h", "ext/cai_transfer.h"), light=True,
    ),
    "cai_mpi_type.h": Subject(
        guard="CAI_MPI_TYPE_H_INCLUDED", switch="CAI_MPI_TYPE_IMPLEMENTATION", other_version="another version of it",
        use=MPI_TYPE_USE, link="", linked="", copies=(MPI_TYPE_COPY, MPI_TYPE_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "ext/cai_transfer.h"), others=("mpi",), brought="#include <mpi.h>\n", light=True,
    ),
    "cai_mpi.h": Subject(
        guard="CAI_MPI_H_INCLUDED", switch="CAI_MPI_IMPLEMENTATION", other_version="another version of it", use=MPI_USE,
        link="", linked="", copies=(MPI_COPY, MPI_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "cai_stream.h", "cai_emm.h", "ext/cai_transfer.h", "ext/cai_mpi_type.h"), others=("mpi",),
        brought="#include <mpi.h>\n", light=True,
    ),
    "cai_hip.h": Subject(
        guard="CAI_HIP_H_INCLUDED", switch="CAI_HIP_IMPLEMENTATION", other_version="another version of it", use=HIP_USE,
        link="", linked="", copies=(HIP_COPY, HIP_MAIN), host_flags=("-DCAI_NO_CUDART", "-DCAI_NO_LOADER"),
        below=("cai.h", "cai_stream.h"), others=("hip",), light=True,
    ),
    "cai_python.h": Subject(
        guard="CAI_PYTHON_H_INCLUDED", switch="CAI_PYTHON_IMPLEMENTATION", other_version="another version of it",
        use=PYTHON_USE, link="", linked="", copies=(PYTHON_COPY, PYTHON_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h",), modes=python_modes("CAI_PYTHON_IMPLEMENTATION", PYTHON_USE), others=("python",),
        brought="#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n", light=True,
    ),
    "cai_python_dlpack.h": Subject(
        guard="CAI_PYTHON_DLPACK_H_INCLUDED", switch="CAI_PYTHON_DLPACK_IMPLEMENTATION", other_version="another version of it",
        use=PYTHON_DLPACK_USE, link="", linked="", copies=(PYTHON_COPY.replace("init", "dlpack_init"), PYTHON_MAIN),
        host_flags=("-DCAI_NO_CUDART",), below=("cai.h", "ext/cai_dlpack.h", "ext/cai_python.h"), together=("ext/cai_python.h",),
        modes=python_dlpack_modes(), others=("python", "dlpack"),
        brought="#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n", light=True,
    ),
    "cai_tvm_ffi.h": Subject(
        guard="CAI_TVM_FFI_H_INCLUDED", switch="CAI_TVM_FFI_IMPLEMENTATION", other_version="another version of it",
        use=TVM_USE, link="", linked="", copies=(TVM_COPY, TVM_MAIN), host_flags=("-DCAI_NO_CUDART",),
        below=("cai.h", "cai_stream.h", "ext/cai_dlpack.h"), others=("tvm",),
        brought="#include <tvm/ffi/extra/c_env_api.h>\n", light=True,
    ),
}  # fmt: skip


def subject_of(header: pathlib.Path) -> Subject:
    """What is known of a header; a copy of one under another name is taken for cai.h."""
    return SUBJECTS.get(header.name, CORE)


def add_others(parser: argparse.ArgumentParser) -> None:
    """An option for the folder of each header of another project."""
    for name, file in OTHERS.items():
        parser.add_argument(f"--{name}-include", help=f"folder of {file}")


def others_of(args: argparse.Namespace) -> dict[str, str]:
    """The folders that were given and have the file."""
    given = {name: getattr(args, f"{name}_include") for name in OTHERS}
    return {name: folder for name, folder in given.items() if folder and pathlib.Path(folder, OTHERS[name]).is_file()}


def other_flags(args: argparse.Namespace) -> list[str]:
    """How a compiler finds the headers of other projects: as a system's, whose warnings are not ours. Folders
    that it searches anyway must keep their place for C++ (#include_next)."""
    folders = [folder for folder in others_of(args).values() if folder not in ("/usr/include", "/usr/local/include")]
    plain = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"] if "mpi" in others_of(args) else []  # MPI's C alone
    plain += ["-D__HIP_PLATFORM_AMD__"] if "hip" in others_of(args) else []
    return plain + [flag for folder in folders for flag in ("-isystem", folder)]


def missing(args: argparse.Namespace) -> str:
    """Why the header cannot be compiled here; empty if it can."""
    lacking = [name for name in subject_of(args.header).others if name not in others_of(args)]
    return " and ".join(f"{OTHERS[name]} is not there (--{name}-include FOLDER)" for name in lacking)
