/* rand.c - cuRAND
 * SPDX-License-Identifier: MIT */
#include "libraries.h"

enum {
    RAND_OK = 0,
    RAND_NOT_INITIALIZED = 101,
    RAND_RANGE = 104,
    RAND_LAUNCH = 201,
    RAND_INITIALIZATION = 203
};

static int rand_part(int part)
{
    const int version = lib_version(LIB_CURAND, 10004000);
    return part == 0 ? version / 1000000 : part == 1 ? version / 1000 % 1000 : version % 1000;
}

LIB_EXPORT int cai_lib_curandGetVersion(int *version)
{
    *version = rand_part(0) * 1000 + rand_part(1) * 100 + rand_part(2);
    return RAND_OK;
}

LIB_EXPORT int cai_lib_curandGetProperty(int part, int *value)
{
    if (part < 0 || part > 2 || !value) return RAND_RANGE;
    *value = rand_part(part);
    return RAND_OK;
}

LIB_EXPORT int cai_lib_curandCreateGenerator(lib_handle **generator, int kind)
{
    (void)kind;
    *generator = lib_handle_make();
    return *generator ? RAND_OK : RAND_INITIALIZATION;
}

/* Of the host: pointer_mode says so. */
LIB_EXPORT int cai_lib_curandCreateGeneratorHost(lib_handle **generator, int kind)
{
    const int status = cai_lib_curandCreateGenerator(generator, kind);
    if (status == RAND_OK) (*generator)->pointer_mode = LIB_DEVICE + 1;
    return status;
}

LIB_EXPORT int cai_lib_curandDestroyGenerator(lib_handle *generator)
{
    if (!lib_handle_is(generator)) return RAND_NOT_INITIALIZED;
    lib_handle_free(generator);
    return RAND_OK;
}

LIB_EXPORT int cai_lib_curandSetStream(lib_handle *generator, const void *stream)
{
    if (!lib_handle_is(generator)) return RAND_NOT_INITIALIZED;
    generator->stream = stream;
    return RAND_OK;
}

#define RAND_SETTING(NAME, TYPE)                                                                             \
    LIB_EXPORT int cai_lib_curandSet##NAME(lib_handle *generator, TYPE value);                               \
    LIB_EXPORT int cai_lib_curandSet##NAME(lib_handle *generator, TYPE value)                                \
    {                                                                                                        \
        (void)value;                                                                                         \
        return lib_handle_is(generator) ? RAND_OK : RAND_NOT_INITIALIZED;                                    \
    }
RAND_SETTING(PseudoRandomGeneratorSeed, unsigned long long)
RAND_SETTING(GeneratorOffset, unsigned long long)
RAND_SETTING(GeneratorOrdering, int)
RAND_SETTING(QuasiRandomGeneratorDimensions, unsigned int)

static int rand_fill(const char *name, const void *caller, const lib_handle *generator, void *out,
                     size_t bytes)
{
    lib_work work;
    if (!lib_handle_is(generator)) return RAND_NOT_INITIALIZED;
    if (generator->pointer_mode != LIB_HOST) {
        memset(out, 0, bytes);
        return RAND_OK;
    }
    lib_begin(&work, name, caller, generator->stream);
    lib_range(&work, out, (int64_t)bytes, LIB_WRITE);
    return lib_end(&work) == 0 ? RAND_OK : RAND_LAUNCH;
}

LIB_EXPORT int cai_lib_curandGenerateSeeds(lib_handle *generator)
{
    return rand_fill("curandGenerateSeeds", LIB_CALLER, generator, NULL, 0);
}

#define RAND_PLAIN(NAME, BYTES)                                                                              \
    LIB_EXPORT int cai_lib_curand##NAME(lib_handle *generator, void *out, size_t count);                     \
    LIB_EXPORT int cai_lib_curand##NAME(lib_handle *generator, void *out, size_t count)                      \
    {                                                                                                        \
        return rand_fill("curand" #NAME, LIB_CALLER, generator, out, count * (BYTES));                       \
    }
#define RAND_NORMAL(NAME, TYPE)                                                                              \
    LIB_EXPORT int cai_lib_curand##NAME(lib_handle *generator, void *out, size_t count, TYPE a, TYPE b);     \
    LIB_EXPORT int cai_lib_curand##NAME(lib_handle *generator, void *out, size_t count, TYPE a, TYPE b)      \
    {                                                                                                        \
        (void)a, (void)b;                                                                                    \
        return rand_fill("curand" #NAME, LIB_CALLER, generator, out, count * sizeof(TYPE));                  \
    }
RAND_PLAIN(Generate, 4)
RAND_PLAIN(GenerateLongLong, 8)
RAND_PLAIN(GenerateUniform, 4)
RAND_PLAIN(GenerateUniformDouble, 8)
RAND_NORMAL(GenerateNormal, float)
RAND_NORMAL(GenerateNormalDouble, double)
RAND_NORMAL(GenerateLogNormal, float)
RAND_NORMAL(GenerateLogNormalDouble, double)

LIB_EXPORT int cai_lib_curandGeneratePoisson(lib_handle *generator, void *out, size_t count, double lambda)
{
    (void)lambda;
    return rand_fill("curandGeneratePoisson", LIB_CALLER, generator, out, count * 4);
}
