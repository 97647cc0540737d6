/* forward.h - what the stand-ins of libnvrtc and libnvJitLink share
 * SPDX-License-Identifier: MIT
 *
 * A stand-in has the soname of the real library and was loaded first, so that who asks for that library by its
 * soname finds the stand-in. Each public function goes on to the real one, which is opened at the first call. What
 * a compiler makes machine code from is given to the driver: PTX tells reads from writes, machine code does not. */
#ifndef FORWARD_H_INCLUDED
#define FORWARD_H_INCLUDED

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FORWARD_EXPORT __attribute__((visibility("default")))

/* Arguments of these libraries are pointers and whole numbers, at most eight. Those that a function does not have are
 * read and not used: on x86-64 and AArch64 both sides agree about all others. */
typedef uintptr_t (*forward_function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                                      uintptr_t);

static char *forward_path;
static void *forward_library;
static pthread_once_t forward_once = PTHREAD_ONCE_INIT;

/** Names the file of the real library, before any other call. */
FORWARD_EXPORT void cai_compiler_real(const char *path);

void cai_compiler_real(const char *path)
{
    free(forward_path);
    forward_path = path ? strdup(path) : NULL;
}

/* Its own symbols come first in it: those of the stand-in have the same names. */
static void forward_open(void)
{
    if (forward_path)
        forward_library = dlopen(forward_path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
}

static forward_function forward_find(const char *name)
{
    forward_function function = NULL;
    void *found;
    pthread_once(&forward_once, forward_open);
    found = forward_library ? dlsym(forward_library, name) : NULL;
    memcpy(&function, &found, sizeof function);
    return function;
}

/* Calls the real function. `missing`: what is returned if the real library lacks it. */
static uintptr_t forward_call(forward_function *kept, const char *name, uintptr_t missing, uintptr_t a, uintptr_t b,
                              uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h)
{
    forward_function function = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    if (!function) {
        function = forward_find(name);
        __atomic_store_n(kept, function, __ATOMIC_RELEASE);
    }
    return function ? function(a, b, c, d, e, f, g, h) : missing;
}

#define FORWARD(name, missing)                                                                                  \
    FORWARD_EXPORT uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, \
                                  uintptr_t g, uintptr_t h);                                                    \
    uintptr_t name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g,   \
                   uintptr_t h)                                                                                 \
    {                                                                                                           \
        static forward_function kept;                                                                           \
        return forward_call(&kept, #name, (uintptr_t)(missing), a, b, c, d, e, f, g, h);                        \
    }

/* Gives the driver what machine code was made from. */
static void forward_source(const void *image, size_t bytes, const void *ptx, size_t ptx_bytes)
{
    int32_t (*source)(const void *, size_t, const void *, size_t) = NULL;
    void *found = dlsym(RTLD_DEFAULT, "cai_driver_source");
    memcpy(&source, &found, sizeof source);
    if (source)
        source(image, bytes, ptx, ptx_bytes);
}

#endif /* FORWARD_H_INCLUDED */
