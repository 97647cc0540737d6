/* fft.c - cuFFT
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

#include <pthread.h>

enum {
    FFT_OK = 0,
    FFT_INVALID_PLAN = 1,
    FFT_INVALID_TYPE = 3,
    FFT_INVALID_VALUE = 4,
    FFT_FAILED = 6,
    FFT_SETUP = 7
};
enum { FFT_PLANS = 1024, FFT_DIMENSIONS = 3 };

/* One side of a transform: what it reads, or what it writes. */
typedef struct fft_side {
    int bits;                 /* of an element */
    int64_t extent, distance; /* elements of one transform, and from one to the next */
    int gaps;                 /* 1: between the elements are others */
} fft_side;

typedef struct fft_plan {
    int used, made;
    const void *stream;
    void *work;
    size_t work_bytes;
    int64_t batch;
    fft_side in, out;
} fft_plan;

static fft_plan fft_plans[FFT_PLANS]; /* the number of a plan is its place and 1 */
static pthread_mutex_t fft_lock = PTHREAD_MUTEX_INITIALIZER;

static fft_plan *fft_of(int number)
{
    return number > 0 && number <= FFT_PLANS && fft_plans[number - 1].used ? &fft_plans[number - 1] : NULL;
}

LIB_EXPORT int cai_lib_cufftCreate(int *number)
{
    lib_handle *ready = lib_handle_make(); /* for its context */
    int i;
    if (!number || !ready) return FFT_SETUP;
    lib_handle_free(ready);
    pthread_mutex_lock(&fft_lock);
    for (i = 0; i < FFT_PLANS && fft_plans[i].used; ++i) {
    }
    if (i < FFT_PLANS) {
        memset(&fft_plans[i], 0, sizeof fft_plans[i]);
        fft_plans[i].used = 1;
    }
    pthread_mutex_unlock(&fft_lock);
    *number = i + 1;
    return i < FFT_PLANS ? FFT_OK : FFT_SETUP;
}

LIB_EXPORT int cai_lib_cufftDestroy(int number)
{
    fft_plan *plan = fft_of(number);
    if (!plan) return FFT_INVALID_PLAN;
    plan->used = 0;
    return FFT_OK;
}

LIB_EXPORT int cai_lib_cufftSetStream(int number, const void *stream)
{
    fft_plan *plan = fft_of(number);
    if (!plan) return FFT_INVALID_PLAN;
    plan->stream = stream;
    return FFT_OK;
}

LIB_EXPORT int cai_lib_cufftSetWorkArea(int number, void *work)
{
    fft_plan *plan = fft_of(number);
    if (!plan) return FFT_INVALID_PLAN;
    plan->work = work;
    return FFT_OK;
}

LIB_EXPORT int cai_lib_cufftSetAutoAllocation(int number, int yes)
{
    (void)yes;
    return fft_of(number) ? FFT_OK : FFT_INVALID_PLAN;
}

LIB_EXPORT int cai_lib_cufftGetSize(int number, size_t *bytes)
{
    const fft_plan *plan = fft_of(number);
    if (!plan || !bytes) return FFT_INVALID_PLAN;
    *bytes = plan->work_bytes;
    return FFT_OK;
}

static int fft_part(int part)
{
    const int version = lib_version(LIB_CUFFT, 12000000);
    return part == 0 ? version / 1000000 : part == 1 ? version / 1000 % 1000 : version % 1000;
}

LIB_EXPORT int cai_lib_cufftGetVersion(int *version)
{
    *version = fft_part(0) * 1000 + fft_part(1) * 100 + fft_part(2);
    return FFT_OK;
}

LIB_EXPORT int cai_lib_cufftGetProperty(int part, int *value)
{
    if (part < 0 || part > 2 || !value) return FFT_INVALID_VALUE;
    *value = fft_part(part);
    return FFT_OK;
}

/* ------------------------------------------------------------------------ >>plans */
/* What a caller says of one side: how its elements lie. `embed` NULL: one behind the other. */
typedef struct fft_layout {
    const long long *embed;
    long long stride, distance;
    int type; /* a cudaDataType */
    int half; /* 1: the last dimension has n / 2 + 1 elements */
} fft_layout;

static void fft_side_set(fft_side *side, int rank, const long long *n, const fft_layout *given)
{
    int64_t step = given->embed ? given->stride : 1, last = 0, all = 1;
    int i;
    for (i = rank - 1; i >= 0; --i) {
        const int64_t here = i == rank - 1 && given->half ? n[i] / 2 + 1 : n[i];
        last += (here - 1) * step;
        all *= here;
        step *= given->embed ? given->embed[i] : here;
    }
    side->bits = lib_bits(given->type);
    side->extent = last + 1;
    side->distance = given->embed ? given->distance : all;
    side->gaps = side->extent != all;
}

static int fft_make(int number, int rank, const long long *n, const fft_layout *in, const fft_layout *out,
                    long long batch, size_t *work_bytes)
{
    fft_plan *plan = fft_of(number);
    if (!plan) return FFT_INVALID_PLAN;
    if (rank < 1 || rank > FFT_DIMENSIONS || !n || batch < 1) return FFT_INVALID_VALUE;
    fft_side_set(&plan->in, rank, n, in);
    fft_side_set(&plan->out, rank, n, out);
    plan->batch = batch;
    plan->made = 1;
    plan->work_bytes = (size_t)(plan->out.extent * plan->out.bits / 8 * batch);
    if (work_bytes) *work_bytes = plan->work_bytes;
    return FFT_OK;
}

/* A cufftType: what it reads, what it writes, and which side has half a dimension. */
static int fft_types(int type, fft_layout *in, fft_layout *out)
{
    const int wide = type >= 0x69, kind = wide ? type - 0x40 : type; /* 0x29 C2C, 0x2a R2C, 0x2c C2R */
    const int complex_one = wide ? CUDA_C_64F : CUDA_C_32F, real_one = wide ? CUDA_R_64F : CUDA_R_32F;
    if (kind != 0x29 && kind != 0x2a && kind != 0x2c) return FFT_INVALID_TYPE;
    in->type = kind == 0x2a ? real_one : complex_one;
    out->type = kind == 0x2c ? real_one : complex_one;
    in->half = kind == 0x2c;
    out->half = kind == 0x2a;
    return FFT_OK;
}

static int fft_make_many(int number, int rank, const long long *n, const long long *inembed,
                         long long istride, long long idist, const long long *onembed, long long ostride,
                         long long odist, int type, long long batch, size_t *work_bytes)
{
    fft_layout in = {inembed, istride, idist, 0, 0}, out = {onembed, ostride, odist, 0, 0};
    const int status = fft_types(type, &in, &out);
    return status != FFT_OK ? status : fft_make(number, rank, n, &in, &out, batch, work_bytes);
}

LIB_EXPORT int cai_lib_cufftMakePlanMany64(int number, int rank, const long long *n, const long long *inembed,
                                           long long istride, long long idist, const long long *onembed,
                                           long long ostride, long long odist, int type, long long batch,
                                           size_t *work_bytes)
{
    return fft_make_many(number, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch,
                         work_bytes);
}

static const long long *fft_wide(int rank, const int *from, long long *to)
{
    int i;
    for (i = 0; from && i < rank && i < FFT_DIMENSIONS; ++i) to[i] = from[i];
    return from ? to : NULL;
}

LIB_EXPORT int cai_lib_cufftMakePlanMany(int number, int rank, const int *n, const int *inembed, int istride,
                                         int idist, const int *onembed, int ostride, int odist, int type,
                                         int batch, size_t *work_bytes)
{
    long long sizes[FFT_DIMENSIONS], in[FFT_DIMENSIONS], out[FFT_DIMENSIONS];
    return fft_make_many(number, rank, fft_wide(rank, n, sizes), fft_wide(rank, inembed, in), istride, idist,
                         fft_wide(rank, onembed, out), ostride, odist, type, batch, work_bytes);
}

/* Here the types of the two sides are given. One real side: the other one has half a dimension. */
LIB_EXPORT int cai_lib_cufftXtMakePlanMany(int number, int rank, const long long *n, const long long *inembed,
                                           long long istride, long long idist, int itype,
                                           const long long *onembed, long long ostride, long long odist,
                                           int otype, long long batch, size_t *work_bytes, int execution)
{
    const int real_in = itype < 3 || itype == CUDA_R_16BF, real_out = otype < 3 || otype == CUDA_R_16BF;
    const fft_layout in = {inembed, istride, idist, itype, real_out && !real_in};
    const fft_layout out = {onembed, ostride, odist, otype, real_in && !real_out};
    (void)execution;
    return fft_make(number, rank, n, &in, &out, batch, work_bytes);
}

static int fft_make_plain(int number, int rank, const long long *n, int type, int batch, size_t *work_bytes)
{
    return fft_make_many(number, rank, n, NULL, 1, 0, NULL, 1, 0, type, batch, work_bytes);
}

LIB_EXPORT int cai_lib_cufftMakePlan1d(int number, int nx, int type, int batch, size_t *work_bytes)
{
    const long long n[1] = {nx};
    return fft_make_plain(number, 1, n, type, batch, work_bytes);
}

LIB_EXPORT int cai_lib_cufftMakePlan2d(int number, int nx, int ny, int type, size_t *work_bytes)
{
    const long long n[2] = {nx, ny};
    return fft_make_plain(number, 2, n, type, 1, work_bytes);
}

LIB_EXPORT int cai_lib_cufftMakePlan3d(int number, int nx, int ny, int nz, int type, size_t *work_bytes)
{
    const long long n[3] = {nx, ny, nz};
    return fft_make_plain(number, 3, n, type, 1, work_bytes);
}

LIB_EXPORT int cai_lib_cufftPlan1d(int *number, int nx, int type, int batch)
{
    const int status = cai_lib_cufftCreate(number);
    return status != FFT_OK ? status : cai_lib_cufftMakePlan1d(*number, nx, type, batch, NULL);
}

LIB_EXPORT int cai_lib_cufftPlan2d(int *number, int nx, int ny, int type)
{
    const int status = cai_lib_cufftCreate(number);
    return status != FFT_OK ? status : cai_lib_cufftMakePlan2d(*number, nx, ny, type, NULL);
}

LIB_EXPORT int cai_lib_cufftPlan3d(int *number, int nx, int ny, int nz, int type)
{
    const int status = cai_lib_cufftCreate(number);
    return status != FFT_OK ? status : cai_lib_cufftMakePlan3d(*number, nx, ny, nz, type, NULL);
}

LIB_EXPORT int cai_lib_cufftPlanMany(int *number, int rank, const int *n, const int *inembed, int istride,
                                     int idist, const int *onembed, int ostride, int odist, int type,
                                     int batch)
{
    const int status = cai_lib_cufftCreate(number);
    return status != FFT_OK ? status
                            : cai_lib_cufftMakePlanMany(*number, rank, n, inembed, istride, idist, onembed,
                                                        ostride, odist, type, batch, NULL);
}

/* -------------------------------------------------------------------------- >>runs */
static void fft_access(lib_work *work, const fft_side *side, const void *data, int64_t batch, int write)
{
    int64_t i;
    if (side->gaps || !side->bits) {
        work->opaque = 1;
        return;
    }
    if (side->distance == side->extent) {
        lib_range(work, data, side->extent * batch * side->bits / 8, write);
        return;
    }
    for (i = 0; i < batch && !work->opaque; ++i)
        lib_range(work, (const uint8_t *)data + i * side->distance * side->bits / 8,
                  side->extent * side->bits / 8, write);
}

static int fft_run(const char *name, const void *caller, int number, const void *in, void *out)
{
    const fft_plan *plan = fft_of(number);
    lib_work work;
    if (!plan || !plan->made) return FFT_INVALID_PLAN;
    lib_begin(&work, name, caller, plan->stream);
    fft_access(&work, &plan->in, in, plan->batch, LIB_READ);
    fft_access(&work, &plan->out, out, plan->batch, LIB_WRITE);
    lib_range(&work, plan->work, (int64_t)plan->work_bytes, LIB_MAY_WRITE);
    return lib_end(&work) == 0 ? FFT_OK : FFT_FAILED;
}

#define FFT_RUN(NAME)                                                                                        \
    LIB_EXPORT int cai_lib_cufft##NAME(int number, const void *in, void *out, int direction);                \
    LIB_EXPORT int cai_lib_cufft##NAME(int number, const void *in, void *out, int direction)                 \
    {                                                                                                        \
        (void)direction;                                                                                     \
        return fft_run("cufft" #NAME, LIB_CALLER, number, in, out);                                          \
    }
FFT_RUN(ExecC2C)
FFT_RUN(ExecZ2Z)
FFT_RUN(ExecR2C)
FFT_RUN(ExecC2R)
FFT_RUN(ExecD2Z)
FFT_RUN(ExecZ2D)
FFT_RUN(XtExec)
