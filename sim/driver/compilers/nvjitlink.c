/* nvjitlink.c - a stand-in of libnvJitLink.so: what was linked to machine code, as PTX
 * SPDX-License-Identifier: MIT
 *
 * PTX that goes in explains the machine code that comes out. What went in for optimization at link time is linked once
 * more, with the option that gives PTX. The header of the real library calls functions by the version of that header,
 * __nvJitLinkCreate_13_0; each library has those up to its own version. */
#include "forward.h"

#include <stdio.h>

#ifndef COMPILER_MAJOR
#define COMPILER_MAJOR 13
#endif

enum {
    JIT_INTERNAL = 6, /* NVJITLINK_ERROR_INTERNAL */
    JIT_PTX = 2,      /* types of inputs */
    JIT_LTOIR = 3,
    JIT_FATBIN = 4,
    JIT_ANY = 10
};

typedef struct jit_input {
    uint32_t type;
    void *data;
    size_t bytes;
    struct jit_input *next;
} jit_input;

/* One linker of the program. */
typedef struct jit_link {
    void *handle;
    char **options;
    uint32_t option_count;
    jit_input *inputs, **last;
    struct jit_link *next;
} jit_link;

static jit_link *jit_links;
static pthread_mutex_t jit_lock = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t jit_number(const void *pointer)
{
    return (uintptr_t)pointer;
}

/* ---------------------------------------------------------------------- >>what is linked */
static void jit_free(jit_link *link)
{
    uint32_t i;
    for (i = 0; link->options && i < link->option_count; ++i)
        free(link->options[i]);
    while (link->inputs) {
        jit_input *next = link->inputs->next;
        free(link->inputs->data);
        free(link->inputs);
        link->inputs = next;
    }
    free(link->options);
    free(link);
}

/* Without memory the linker is not known, and the machine code is not explained. */
static void jit_remember(void *handle, uint32_t count, const char *const *options)
{
    jit_link *made = (jit_link *)calloc(1, sizeof *made);
    uint32_t i;
    if (!made)
        return;
    made->handle = handle;
    made->last = &made->inputs;
    made->options = (char **)calloc((size_t)count + 2, sizeof *made->options);
    for (i = 0; made->options && i < count; ++i) {
        made->options[i] = strdup(options[i]);
        made->option_count += made->options[i] != NULL;
    }
    if (!made->options || made->option_count != count) {
        jit_free(made);
        return;
    }
    pthread_mutex_lock(&jit_lock);
    made->next = jit_links;
    jit_links = made;
    pthread_mutex_unlock(&jit_lock);
}

/* take: it is removed from the list. */
static jit_link *jit_find(const void *handle, int take)
{
    jit_link **place, *found;
    pthread_mutex_lock(&jit_lock);
    for (place = &jit_links; *place && (*place)->handle != handle; place = &(*place)->next)
        continue;
    found = *place;
    if (found && take)
        *place = found->next;
    pthread_mutex_unlock(&jit_lock);
    return found;
}

static void jit_add(jit_link *link, uint32_t type, const void *data, size_t bytes)
{
    jit_input *made;
    if (!link || !(type == JIT_PTX || type == JIT_LTOIR || type == JIT_FATBIN || type == JIT_ANY))
        return;
    made = (jit_input *)calloc(1, sizeof *made);
    if (made)
        made->data = malloc(bytes + 1);
    if (!made || !made->data) {
        free(made);
        return;
    }
    memcpy(made->data, data, bytes);
    ((char *)made->data)[bytes] = 0;
    made->bytes = bytes;
    made->type = type;
    *link->last = made;
    link->last = &made->next;
}

static void jit_add_file(jit_link *link, uint32_t type, const char *path)
{
    FILE *file = link && path ? fopen(path, "rb") : NULL;
    void *data = NULL;
    long end = -1;
    if (!file)
        return;
    if (!fseek(file, 0, SEEK_END))
        end = ftell(file);
    if (end > 0 && !fseek(file, 0, SEEK_SET))
        data = malloc((size_t)end);
    if (data)
        jit_add(link, type, data, fread(data, 1, (size_t)end, file));
    fclose(file);
    free(data);
}

/* ------------------------------------------------------------------------ >>linked again */
static uintptr_t jit_call(const char *name, const void *a, uintptr_t b, uintptr_t c, uintptr_t d, const void *e)
{
    forward_function function = forward_find(name);
    return function ? function(jit_number(a), b, c, d, jit_number(e), 0, 0, 0) : JIT_INTERNAL;
}

/* The PTX of a second linker, which has the same inputs. free() it. NULL: it does not link. */
static char *jit_linked_ptx(void *handle, const jit_link *link, size_t *bytes)
{
    const jit_input *one;
    char *ptx = NULL;
    for (one = link->inputs; one; one = one->next)
        if ((one->type == JIT_LTOIR || one->type == JIT_ANY) &&
            jit_call("nvJitLinkAddData", handle, one->type, jit_number(one->data), one->bytes, "cai_sim"))
            return NULL;
    if (jit_call("nvJitLinkComplete", handle, 0, 0, 0, NULL) ||
        jit_call("nvJitLinkGetLinkedPtxSize", handle, jit_number(bytes), 0, 0, NULL) || *bytes < 2)
        return NULL;
    ptx = (char *)malloc(*bytes);
    if (ptx && !jit_call("nvJitLinkGetLinkedPtx", handle, jit_number(ptx), 0, 0, NULL))
        return ptx;
    free(ptx);
    return NULL;
}

static void jit_explain_again(jit_link *link, const void *cubin, size_t bytes)
{
    static char option[] = "-ptx";
    void *again = NULL;
    size_t ptx_bytes = 0;
    char *ptx;
    link->options[link->option_count] = option;
    if (jit_call("nvJitLinkCreate", &again, link->option_count + 1, jit_number(link->options), 0, NULL))
        return;
    ptx = jit_linked_ptx(again, link, &ptx_bytes);
    if (ptx)
        forward_source(cubin, bytes, ptx, ptx_bytes);
    free(ptx);
    jit_call("nvJitLinkDestroy", &again, 0, 0, 0, NULL);
}

static void jit_explain(void *handle, const void *cubin)
{
    jit_link *link = jit_find(handle, 0);
    const jit_input *one;
    size_t bytes = 0;
    int again = 0;
    if (!link || jit_call("nvJitLinkGetLinkedCubinSize", handle, jit_number(&bytes), 0, 0, NULL) || !bytes)
        return;
    for (one = link->inputs; one; one = one->next) {
        again |= one->type == JIT_LTOIR;
        if (one->type != JIT_LTOIR)
            forward_source(cubin, bytes, one->data, one->bytes);
    }
    if (again)
        jit_explain_again(link, cubin, bytes);
}

/* -------------------------------------------------------------------------- >>functions */
static int jit_create(forward_function *real, const char *name, void **handle, uint32_t count, const char **options)
{
    int result = (int)forward_call(real, name, JIT_INTERNAL, jit_number(handle), count, jit_number(options), 0, 0, 0, 0,
                                   0);
    if (!result)
        jit_remember(*handle, count, options);
    return result;
}

static int jit_destroy(forward_function *real, const char *name, void **handle)
{
    jit_link *link = handle ? jit_find(*handle, 1) : NULL;
    if (link)
        jit_free(link);
    return (int)forward_call(real, name, JIT_INTERNAL, jit_number(handle), 0, 0, 0, 0, 0, 0, 0);
}

static int jit_add_data(forward_function *real, const char *name, void *handle, uint32_t type, const void *data,
                        size_t bytes, const char *label)
{
    int result = (int)forward_call(real, name, JIT_INTERNAL, jit_number(handle), type, jit_number(data), bytes,
                                   jit_number(label), 0, 0, 0);
    if (!result)
        jit_add(jit_find(handle, 0), type, data, bytes);
    return result;
}

static int jit_add_path(forward_function *real, const char *name, void *handle, uint32_t type, const char *path)
{
    int result = (int)forward_call(real, name, JIT_INTERNAL, jit_number(handle), type, jit_number(path), 0, 0, 0, 0, 0);
    if (!result)
        jit_add_file(jit_find(handle, 0), type, path);
    return result;
}

static int jit_cubin(forward_function *real, const char *name, void *handle, void *cubin)
{
    int result = (int)forward_call(real, name, JIT_INTERNAL, jit_number(handle), jit_number(cubin), 0, 0, 0, 0, 0, 0);
    if (!result)
        jit_explain(handle, cubin);
    return result;
}

/* All functions of one version; `before` and `behind` are what stands around "Create" in their names. */
#define JIT_ALL(before, behind) \
    FORWARD(before##Complete##behind, JIT_INTERNAL) \
    FORWARD(before##GetLinkedCubinSize##behind, JIT_INTERNAL) \
    FORWARD(before##GetLinkedPtxSize##behind, JIT_INTERNAL) \
    FORWARD(before##GetLinkedPtx##behind, JIT_INTERNAL) \
    FORWARD(before##GetLinkedLTOIRSize##behind, JIT_INTERNAL) \
    FORWARD(before##GetLinkedLTOIR##behind, JIT_INTERNAL) \
    FORWARD(before##GetErrorLogSize##behind, JIT_INTERNAL) \
    FORWARD(before##GetErrorLog##behind, JIT_INTERNAL) \
    FORWARD(before##GetInfoLogSize##behind, JIT_INTERNAL) \
    FORWARD(before##GetInfoLog##behind, JIT_INTERNAL) \
    FORWARD_EXPORT int before##Create##behind(void **handle, uint32_t count, const char **options); \
    int before##Create##behind(void **handle, uint32_t count, const char **options) \
    { \
        static forward_function real; \
        return jit_create(&real, #before "Create" #behind, handle, count, options); \
    } \
    FORWARD_EXPORT int before##Destroy##behind(void **handle); \
    int before##Destroy##behind(void **handle) \
    { \
        static forward_function real; \
        return jit_destroy(&real, #before "Destroy" #behind, handle); \
    } \
    FORWARD_EXPORT int before##AddData##behind(void *handle, uint32_t type, const void *data, size_t bytes, \
                                                        const char *label); \
    int before##AddData##behind(void *handle, uint32_t type, const void *data, size_t bytes, \
                                         const char *label) \
    { \
        static forward_function real; \
        return jit_add_data(&real, #before "AddData" #behind, handle, type, data, bytes, label); \
    } \
    FORWARD_EXPORT int before##AddFile##behind(void *handle, uint32_t type, const char *path); \
    int before##AddFile##behind(void *handle, uint32_t type, const char *path) \
    { \
        static forward_function real; \
        return jit_add_path(&real, #before "AddFile" #behind, handle, type, path); \
    } \
    FORWARD_EXPORT int before##GetLinkedCubin##behind(void *handle, void *cubin); \
    int before##GetLinkedCubin##behind(void *handle, void *cubin) \
    { \
        static forward_function real; \
        return jit_cubin(&real, #before "GetLinkedCubin" #behind, handle, cubin); \
    }

JIT_ALL(nvJitLink, )
FORWARD(nvJitLinkVersion, JIT_INTERNAL)

#if COMPILER_MAJOR == 12
JIT_ALL(__nvJitLink, _12_0) JIT_ALL(__nvJitLink, _12_1) JIT_ALL(__nvJitLink, _12_2) JIT_ALL(__nvJitLink, _12_3) JIT_ALL(__nvJitLink, _12_4)
JIT_ALL(__nvJitLink, _12_5) JIT_ALL(__nvJitLink, _12_6) JIT_ALL(__nvJitLink, _12_7) JIT_ALL(__nvJitLink, _12_8) JIT_ALL(__nvJitLink, _12_9)
#else
JIT_ALL(__nvJitLink, _13_0) JIT_ALL(__nvJitLink, _13_1) JIT_ALL(__nvJitLink, _13_2) JIT_ALL(__nvJitLink, _13_3) JIT_ALL(__nvJitLink, _13_4)
JIT_ALL(__nvJitLink, _13_5) JIT_ALL(__nvJitLink, _13_6) JIT_ALL(__nvJitLink, _13_7) JIT_ALL(__nvJitLink, _13_8) JIT_ALL(__nvJitLink, _13_9)
#endif
