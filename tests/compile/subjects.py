"""What matrix.py and symbols.py know of each header: its macros, and units that use it.

In the text of a unit, "@header" is the header under test as a unit includes it.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass, field

# Levels of a mode: "all" compiles at two optimizations, at four in one standard of each language;
# "one" at -O2 in that standard, else syntax; "none" is syntax alone.
SYNTAX, ONE, ALL = "none", "one", "all"
# With the flags of the subject; with CUDA's headers instead; with neither.
USUAL, LINKED, NEITHER = "usual", "linked", "neither"
BOTH, HOST, NVCC = "both", "host", "nvcc"


@dataclass(frozen=True)
class Mode:
    """A unit that every compiler and standard must take without a word."""

    text: str
    levels: str = SYNTAX
    backend: str = USUAL  # for host compilers; nvcc has CUDA's headers in every unit
    where: str = BOTH
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """One header."""

    guard: str  # the macro that has its version
    switch: str  # compiles the implementation of it alone
    other_version: str  # what it says of another version of itself
    use: str  # what few users do; C, C++ and CUDA
    link: str  # an expression for main that needs the implementation and is 0
    linked: str  # the function in it
    copies: tuple[str, str]  # a unit of a copy, and the main of a program of two
    host_flags: tuple[str, ...] = ()  # without CUDA's headers
    below: tuple[str, ...] = ()  # the headers that it extends, the lowest first
    modes: dict[str, Mode] = field(default_factory=dict)


# --------------------------------------------------------------------- every header
USE = """
int use(const cai_array *array, cai_error *err);
int use(const cai_array *array, cai_error *err)
{
    cai_kernel_view view;
    CAI_TRY(cai_expect(array, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
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
int make_%(name)s(cai_array *out, cai_stream_pool *pool, const cai_cuda *cuda, uint64_t stream)%(end)s
int exchange_%(name)s(cai_stream_pool *pool, const cai_cuda *cuda, const cai_array *array, uint64_t stream)%(end)s
int close_%(name)s(cai_stream_pool *pool)%(end)s
"""
STREAM_COPY = (STREAM_FUNCTIONS.replace("%(end)s", ";") + """
int make_%(name)s(cai_array *out, cai_stream_pool *pool, const cai_cuda *cuda, uint64_t stream)
{
    static float values[6];
    const int64_t shape[1] = {6};
    cai_error err;
    CAI_TRY(cai_stream_pool_init(pool, cuda, NULL, 0, 0, &err));
    CAI_TRY(cai_array_init(out, CAI_FLOAT32, 1, shape, NULL, values, &err));
    return cai_stream_export(out, pool, stream, NULL, 0, &err);
}
int exchange_%(name)s(cai_stream_pool *pool, const cai_cuda *cuda, const cai_array *array, uint64_t stream)
{
    const cai_array *arrays[1];
    cai_exchange ex;
    cai_error err;
    arrays[0] = array;
    CAI_TRY(cai_stream_pool_init(pool, cuda, NULL, 0, 0, &err));
    CAI_TRY(cai_exchange_begin(&ex, pool, arrays, 1, stream, &err));
    return cai_exchange_end(&ex, CAI_OK, &err);
}
int close_%(name)s(cai_stream_pool *pool)
{
    cai_error err;
    return cai_stream_pool_destroy(pool, &err);
}
""")  # fmt: skip
STREAM_MAIN = (
    '#include "@header"\n#include <stddef.h>\n#include <string.h>\n'
    + (STREAM_FUNCTIONS % {"name": "alpha", "end": ";"}) + (STREAM_FUNCTIONS % {"name": "beta", "end": ";"}) + """
static int created, destroyed, recorded, waited;
static int32_t one(void *self, uint64_t *context) { (void)self; *context = 1; return 0; }
static int32_t push(void *self, uint64_t context) { (void)self; return context == 1 ? 0 : 201; }
static int32_t pop(void *self) { (void)self; return 0; }
static int32_t of(void *self, uint64_t stream, uint64_t *context) { (void)self; *context = stream ? 1 : 0; return 0; }
static int32_t capture(void *self, uint64_t stream, cai_cuda_capture *capture)
{
    (void)self; (void)stream;
    memset(capture, 0, sizeof *capture);
    return 0;
}
static int32_t create(void *self, uint64_t *event) { (void)self; *event = (uint64_t)++created; return 0; }
static int32_t destroy(void *self, uint64_t event) { (void)self; (void)event; ++destroyed; return 0; }
static int32_t record(void *self, uint64_t event, uint64_t stream) { (void)self; (void)event; (void)stream; ++recorded; return 0; }
static int32_t wait(void *self, uint64_t stream, uint64_t event) { (void)self; (void)event; (void)stream; ++waited; return 0; }
int main(void)
{
    static cai_cuda cuda;
    static cai_stream_pool producer, consumer;
    cai_array array;
    cuda.struct_size = (uint32_t)sizeof cuda;
    cuda.version = CAI_CUDA_VERSION;
    cuda.context_current = one;
    cuda.context_push = push;
    cuda.context_pop = pop;
    cuda.stream_context = of;
    cuda.stream_capture = capture;
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

# One copy fills in a table of hooks, the other's manager takes memory from it, for an array that the main releases.
EMM_FUNCTIONS = """
int table_%(name)s(cai_emm_hooks *out)%(end)s
int make_%(name)s(cai_array *out, cai_emm *emm, const cai_emm_hooks *hooks)%(end)s
int close_%(name)s(cai_emm *emm, cai_emm_count *count)%(end)s
"""
EMM_COPY = (EMM_FUNCTIONS.replace("%(end)s", ";") + """
int table_%(name)s(cai_emm_hooks *out)
{
    cai_emm_hooks_host(out);
    return cai_emm_hooks_check(out, NULL);
}
int make_%(name)s(cai_array *out, cai_emm *emm, const cai_emm_hooks *hooks)
{
    const int64_t shape[1] = {6};
    cai_error err;
    CAI_TRY(cai_emm_init(emm, NULL, hooks, NULL, &err));
    return cai_emm_array(out, emm, CAI_FLOAT32, 1, shape, CAI_STREAM_LEGACY, &err);
}
int close_%(name)s(cai_emm *emm, cai_emm_count *count)
{
    cai_error err;
    cai_emm_counts(emm, count);
    return cai_emm_destroy(emm, &err);
}
""")  # fmt: skip
EMM_MAIN = (
    '#include "@header"\n#include <stddef.h>\n#include <string.h>\n'
    + (EMM_FUNCTIONS % {"name": "alpha", "end": ";"}) + (EMM_FUNCTIONS % {"name": "beta", "end": ";"}) + """
int main(void)
{
    static cai_emm one, other;
    cai_emm_hooks hooks;
    cai_emm_count count;
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
int use(cai_stream_pool *pool, const cai_array *x, use_stream s, cai_error *err);
int use(cai_stream_pool *pool, const cai_array *x, use_stream s, cai_error *err)
{
    const cai_array *io[1];
    cai_exchange ex;
    cai_status status = CAI_OK;
    use_stream launch;
    io[0] = x;
    CAI_TRY(cai_exchange_begin(&ex, pool, io, 1, CAI_STREAM(s), err));
    launch = cai_cuda_stream(ex.stream);
#if defined(__CUDACC__)
    use_kernel<<<1, 1, 0, launch>>>(reinterpret_cast<float *>(x->data));
    status = cai_cuda_status(cudaGetLastError(), "use_kernel", err);
#else
    if (launch == s) status = cai_cuda_status(0, "use_kernel", err);
#endif
    return cai_exchange_end(&ex, status, err);
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
    return cai_cuda_stream(0x500) == (struct CUstream_st *)(uintptr_t)0x500 ? 0 : 4;
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
__global__ void use_kernel(const float *x, float *scratch) { scratch[threadIdx.x] = x[threadIdx.x] * 2; }
#else
typedef struct CUstream_st *use_stream;
#endif
int use(cai_emm *emm, const cai_array *x, cai_array *out, use_stream s, cai_error *err);
int use(cai_emm *emm, const cai_array *x, cai_array *out, use_stream s, cai_error *err)
{
    cai_memory scratch;
    cai_status status, freed;
    cai_error second;
    CAI_TRY(cai_emm_alloc(&scratch, emm, 4096, 0, CAI_STREAM(s), err));
    status = cai_emm_array(out, emm, CAI_FLOAT32, x->ndim, x->shape, CAI_STREAM(s), err);
#if defined(__CUDACC__)
    use_kernel<<<1, 1, 0, s>>>(reinterpret_cast<const float *>(x->data), static_cast<float *>(cai_emm_pointer(emm, scratch)));
    if (!status) status = cai_cuda_status(cudaGetLastError(), "use_kernel", err);
#else
    if (!cai_emm_pointer(emm, scratch)) status = cai_cuda_status(1, "use_kernel", err);
#endif
    if (status) cai_array_release(out);
    freed = cai_emm_free(emm, scratch, CAI_STREAM(s), &second);
    return status ? status : freed;
}
"""
NO_HOST_HEADER = """
#if defined(BUFSIZ) || defined(EXIT_SUCCESS)
#error "a header of the C library was included"
#endif
"""


def emm_modes() -> dict[str, Mode]:
    """Backends, switches, orders of the three headers."""
    core = '#define CAI_CORE_IMPLEMENTATION\n#include "cai.h"\n'
    stream = '#define CAI_STREAM_IMPLEMENTATION\n#include "cai_stream.h"\n'
    alone = '#define CAI_EMM_IMPLEMENTATION\n#include "@header"\n'
    cuda = "#include <cuda.h>\n#include <cuda_runtime_api.h>\n"
    struct = '#include "ext/cai_array_struct.h"\n'
    nothing = NO_CUDA_HEADER + NO_LOADER_HEADER
    both = IMPLEMENT.replace("@header", "cai_stream.h") + '#include "@header"\n'
    modes = {
        "nothing of CUDA or the C library in the declarations": Mode('#include "@header"\n' + nothing + NO_HOST_HEADER, where=HOST),
        "linked": Mode(IMPLEMENT + EMM_USE, ALL, LINKED, HOST),
        "linked, static": Mode("#define CAI_STATIC\n" + IMPLEMENT, ONE, LINKED, HOST),
        "linked, namespace": Mode("#define CAI_NAMESPACE mylib_\n" + IMPLEMENT, ONE, LINKED, HOST),
        "headers of CUDA first": Mode(cuda + IMPLEMENT + EMM_USE, ONE, LINKED),
        "headers of CUDA last": Mode(IMPLEMENT + cuda + EMM_USE, SYNTAX, LINKED),
        "headers of CUDA between": Mode('#include "@header"\n' + cuda + IMPLEMENT + EMM_USE, SYNTAX, LINKED),
        "stream first": Mode(both + EMM_USE, ONE),
        "stream last": Mode(IMPLEMENT + '#include "cai_stream.h"\n' + EMM_USE),
        "stream declared first": Mode('#include "cai_stream.h"\n' + IMPLEMENT + EMM_USE),
        "core declared first": Mode('#include "cai.h"\n' + IMPLEMENT + EMM_USE),
        "from below": Mode(core + stream + alone + EMM_USE, ONE),
        "from above": Mode(alone + stream + core + EMM_USE),
        "core in the middle": Mode(stream + core + alone + EMM_USE),
        "static, from below": Mode("#define CAI_STATIC\n" + core + stream + alone + EMM_USE),
        "static, from above": Mode("#define CAI_STATIC\n" + alone + stream + core + EMM_USE),
        "every header": Mode(IMPLEMENT + struct + EMM_USE, ONE),
        "every header, the other way": Mode("#define CAI_IMPLEMENTATION\n" + struct + '#include "@header"\n' + EMM_USE),
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


# --------------------------------------------------------------------- the table
CORE = Subject(
    guard="CAI_H_INCLUDED", switch="CAI_CORE_IMPLEMENTATION", other_version="another version of cai.h", use=USE,
    link="cai_version() == CAI_H_INCLUDED ? 0 : 1", linked="cai_version", copies=(CORE_COPY, CORE_MAIN),
)  # fmt: skip
SUBJECTS = {
    "cai.h": CORE,
    "cai_array_struct.h": Subject(
        guard="CAI_ARRAY_STRUCT_H_INCLUDED", switch="CAI_ARRAY_STRUCT_IMPLEMENTATION", other_version="another version of it",
        use=USE, link="cai_array_struct_import(NULL, NULL, NULL, 0, NULL, NULL) == CAI_ERR_ARGUMENT ? 0 : 1",
        linked="cai_array_struct_import", copies=(CORE_COPY, CORE_MAIN), below=("cai.h",),
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
    ),
}  # fmt: skip


def subject_of(header: pathlib.Path) -> Subject:
    """What is known of a header; a copy of one under another name is taken for cai.h."""
    return SUBJECTS.get(header.name, CORE)
