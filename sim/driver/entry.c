/* entry.c - calls of the driver: who called, what is served, the simulation, errors
 * SPDX-License-Identifier: MIT */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRIVER_AWAY = 32, DRIVER_CHUNK = 4096, DRIVER_CHUNKS = 1 << 15, DRIVER_VERSION = CUDA_VERSION };

/* What a host thread is doing. */
typedef struct driver_thread {
    const char *name; /* given by cai_driver_enter */
    const void *caller;
    int32_t depth;
    int32_t per_thread;
    int32_t in_site;
    const char *running; /* the function of the driver that was called last */
    cai_driver_call *call; /* of the call that runs, or NULL */
    uint64_t tag;          /* its number */
    const void *from;      /* who called the function of the driver */
    int32_t dead;          /* 1: something dead was given to the call, which has no number yet */
} driver_thread;

static __thread driver_thread driver_self;
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;
static cai_sim *driver_simulation;
static int32_t driver_devices;
static uint64_t driver_memory;
static uint32_t driver_options;
static int driver_initialized;
static cai_driver_call *driver_calls[DRIVER_CHUNKS];
static uint64_t driver_call_count;
static cai_driver_site_function driver_site;
static void *driver_site_context;
static FILE *driver_log;
static char *driver_away[DRIVER_AWAY]; /* files of the libraries that asked for private tables */
static int32_t driver_away_count;
int driver_recorder;

/* ------------------------------------------------------------------ >>the simulation */
static uint64_t driver_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    char *end;
    unsigned long long value;
    if (!text || !*text)
        return otherwise;
    value = strtoull(text, &end, 10);
    return *end || !value ? otherwise : (uint64_t)value;
}

static void driver_make(void)
{
    const char *calls = getenv("CAI_SIM_CALLS");
    int32_t device, peer, devices = driver_devices;
    uint64_t memory = driver_memory;
    if (!devices)
        devices = (int32_t)driver_environment("CAI_SIM_DEVICES", 1);
    if (devices < 1 || devices > CAI_SIM_DEVICES)
        devices = 1;
    if (!memory)
        memory = driver_environment("CAI_SIM_MEMORY", (uint64_t)8 << 30);
    if (calls && *calls)
        driver_log = strcmp(calls, "-") ? fopen(calls, "a") : stderr;
    driver_simulation = cai_sim_create(devices);
    if (!driver_simulation)
        return;
    cai_sim_on_undefined(driver_simulation, driver_dead_handle, NULL);
    if (!driver_recorder)
        driver_watch_begin(driver_simulation);
    cai_sim_set_options(driver_simulation,
                        cai_sim_options(driver_simulation) | driver_options | (uint32_t)CAI_SIM_PROGRESS);
    for (device = 0; device < devices; ++device) {
        cai_sim_set_memory(driver_simulation, device, memory);
        for (peer = 0; peer < devices; ++peer)
            if (peer != device)
                cai_sim_set_peer_access(driver_simulation, device, peer, 0);
    }
    driver_devices = devices;
    driver_memory = memory;
}

cai_sim *cai_driver_sim(void)
{
    cai_sim *made = __atomic_load_n(&driver_simulation, __ATOMIC_ACQUIRE);
    if (made)
        return made;
    pthread_mutex_lock(&driver_lock);
    if (!driver_simulation)
        driver_make();
    made = driver_simulation;
    pthread_mutex_unlock(&driver_lock);
    return made;
}

int32_t cai_driver_configure(int32_t devices, uint64_t memory_bytes, uint32_t options)
{
    int32_t done = 0;
    if (devices < 0 || devices > CAI_SIM_DEVICES)
        return 0;
    pthread_mutex_lock(&driver_lock);
    if (!driver_simulation) {
        driver_devices = devices;
        driver_memory = memory_bytes;
        driver_options = options;
        done = 1;
    }
    pthread_mutex_unlock(&driver_lock);
    return done;
}

const cai_cuda *driver_cuda(void)
{
    cai_sim *sim = cai_driver_sim();
    if (cai_sim_calls(sim) > 4096)
        cai_sim_log_clear(sim);
    return cai_sim_cuda(sim);
}

/* ----------------------------------------------------------------------- >>calls */
void cai_driver_enter(const char *name, const void *caller)
{
    if (driver_self.depth++)
        return;
    driver_self.name = name;
    driver_self.caller = caller;
}

void cai_driver_leave(void)
{
    if (driver_self.depth)
        --driver_self.depth;
}

void cai_driver_set_site(cai_driver_site_function site, void *context)
{
    pthread_mutex_lock(&driver_lock);
    driver_site = site;
    driver_site_context = context;
    pthread_mutex_unlock(&driver_lock);
}

static uint64_t driver_ask_site(void)
{
    cai_driver_site_function site;
    void *context;
    uint64_t number;
    pthread_mutex_lock(&driver_lock);
    site = driver_site;
    context = driver_site_context;
    pthread_mutex_unlock(&driver_lock);
    if (!site || driver_self.in_site)
        return 0;
    driver_self.in_site = 1;
    number = site(context);
    driver_self.in_site = 0;
    return number;
}

/* Notes the call, and gives its number to the operations that it makes. */
static void driver_note_call(const char *name, const void *caller)
{
    cai_driver_call call = {NULL, NULL, 0, NULL, 0, 0};
    uint64_t tag = 0;
    call.name = driver_self.depth ? driver_self.name : name;
    call.caller = driver_self.depth ? driver_self.caller : caller;
    call.site = driver_ask_site();
    pthread_mutex_lock(&driver_lock);
    if (driver_call_count < (uint64_t)DRIVER_CHUNK * DRIVER_CHUNKS) {
        cai_driver_call **chunk = &driver_calls[driver_call_count / DRIVER_CHUNK];
        if (!*chunk)
            *chunk = (cai_driver_call *)calloc(DRIVER_CHUNK, sizeof **chunk);
        if (*chunk) {
            driver_self.call = &(*chunk)[driver_call_count % DRIVER_CHUNK];
            *driver_self.call = call;
            tag = ++driver_call_count;
        }
    }
    pthread_mutex_unlock(&driver_lock);
    driver_self.tag = tag;
    cai_sim_set_tag(cai_driver_sim(), tag);
}

const char *driver_dead_call(uint64_t *tag, const void **thread)
{
    *tag = driver_self.call ? driver_self.tag : 0;
    *thread = &driver_self;
    driver_self.dead = !*tag;
    return driver_self.depth ? driver_self.name : driver_self.running;
}

int32_t cai_driver_call_of(uint64_t tag, cai_driver_call *out)
{
    int32_t found = 0;
    if (!out)
        return 0;
    pthread_mutex_lock(&driver_lock);
    if (tag && tag <= driver_call_count) {
        *out = driver_calls[(tag - 1) / DRIVER_CHUNK][(tag - 1) % DRIVER_CHUNK];
        found = 1;
    }
    pthread_mutex_unlock(&driver_lock);
    return found;
}

void driver_call_launches(const char *kernel, int opaque, int32_t follows)
{
    pthread_mutex_lock(&driver_lock);
    if (driver_self.call) {
        driver_self.call->kernel = kernel;
        driver_self.call->opaque = opaque;
        driver_self.call->follows = follows;
    }
    pthread_mutex_unlock(&driver_lock);
}

int32_t cai_driver_work(const char *name, const void *caller, const void *stream,
                        const cai_sim_access *accesses, int32_t count, int32_t opaque)
{
    if (!name || count < 0 || (count && !accesses))
        return CUDA_ERROR_INVALID_VALUE;
    if (!cai_driver_sim() || !__atomic_load_n(&driver_initialized, __ATOMIC_ACQUIRE))
        return CUDA_ERROR_NOT_INITIALIZED;
    driver_self.per_thread = 0;
    driver_self.running = name;
    driver_self.call = NULL;
    driver_note_call(name, caller);
    driver_call_launches(name, opaque, 0);
    return cai_sim_launch(cai_driver_sim(), stream ? driver_number(stream) : 1, name, NULL, NULL, accesses, count);
}

void cai_driver_mark(const char *text)
{
    cai_sim_host_access(cai_driver_sim(), text, NULL, 0);
}

int32_t cai_driver_function_get(int32_t index, cai_driver_function *out)
{
    if (index < 0 || index >= driver_rows || !out)
        return 0;
    out->name = driver_table[index].name;
    out->calls = __atomic_load_n(&driver_table[index].calls, __ATOMIC_RELAXED);
    out->asked = driver_table[index].asked;
    out->served = driver_table[index].served;
    out->failed = __atomic_load_n(&driver_table[index].failed, __ATOMIC_RELAXED);
    return 1;
}

/* ---------------------------------------------------------------- >>entry and exit */
static void driver_write(const char *name, const char *result, int number)
{
    if (!driver_log)
        return;
    pthread_mutex_lock(&driver_lock);
    fprintf(driver_log, "%s%s%s %s %d\n", driver_self.depth ? driver_self.name : "",
            driver_self.depth ? " > " : "",
            name, result, number);
    fflush(driver_log);
    pthread_mutex_unlock(&driver_lock);
}

/* Adds what the host accessed before this call to the trace. */
static void driver_look_at_host(const char *name, const void *caller)
{
    cai_sim_access *found;
    const int32_t count = driver_watch_look(&found);
    if (!count)
        return;
    if (!name)
        cai_sim_set_tag(cai_driver_sim(), 0);
    else if (!driver_self.call)
        driver_note_call(name, caller);
    cai_sim_host_access(cai_driver_sim(), CAI_DRIVER_HOST_ACCESS, found, count);
    free(found);
}

void cai_driver_host_get(cai_driver_host *out)
{
    driver_look_at_host(NULL, NULL);
    driver_watch_counts(out);
}

CUresult driver_begin(int row, const void *caller, int flags)
{
    driver_row *self = &driver_table[row];
    __atomic_fetch_add(&self->calls, 1, __ATOMIC_RELAXED);
    driver_self.per_thread = flags & 1;
    driver_self.call = NULL;
    driver_self.running = self->name;
    driver_self.from = caller;
    if (!cai_driver_sim())
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(flags & 4) && !__atomic_load_n(&driver_initialized, __ATOMIC_ACQUIRE))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags & 2)
        driver_note_call(self->name, caller);
    driver_look_at_host(self->name, caller);
    return CUDA_SUCCESS;
}

CUresult driver_end(int row, CUresult result)
{
    if (driver_self.dead) {
        driver_self.dead = 0;
        driver_note_call(driver_table[row].name, driver_self.from);
        driver_dead_number(&driver_self, driver_self.tag);
    }
    if (driver_self.call)
        driver_watch_queued();
    if (result == CUDA_ERROR_NOT_SUPPORTED && !driver_recorder) /* this form of the function is not served */
        __atomic_fetch_add(&driver_table[row].failed, 1, __ATOMIC_RELAXED);
    driver_write(driver_table[row].name, "=", (int)result);
    return result;
}

void driver_followed(int row, CUresult own)
{
    if (own == CUDA_SUCCESS)
        return;
    __atomic_fetch_add(&driver_table[row].failed, 1, __ATOMIC_RELAXED);
    driver_write(driver_table[row].name, "is not followed =", (int)own);
}

CUresult driver_missing(int row, const void *caller)
{
    (void)caller;
    __atomic_fetch_add(&driver_table[row].calls, 1, __ATOMIC_RELAXED);
    cai_driver_sim();
    driver_write(driver_table[row].name, "is not served =", CUDA_ERROR_NOT_SUPPORTED);
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult driver_refuse(CUresult result, const char *reason)
{
    driver_write("refused:", reason, (int)result);
    return result;
}

uint64_t driver_stream(CUstream stream)
{
    if (stream)
        return driver_number(stream);
    return driver_self.per_thread ? 2 : 1;
}

CUresult driver_need_context(void)
{
    return cai_sim_current(cai_driver_sim()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

uint64_t driver_memory_bytes(void)
{
    return driver_memory;
}

CUresult driver_need_device(CUdevice device)
{
    cai_driver_sim();
    return device >= 0 && device < driver_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ------------------------------------------------------------------- >>functions */
CUresult do_cuInit(unsigned int flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_store_n(&driver_initialized, 1, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

CUresult do_cuDriverGetVersion(int *version)
{
    DRIVER_NEED(version);
    *version = DRIVER_VERSION;
    return CUDA_SUCCESS;
}

driver_row *driver_find(const char *name, int version, int per_thread, int *known)
{
    driver_row *best = NULL;
    int row;
    *known = 0;
    for (row = 0; row < driver_rows; ++row) {
        driver_row *one = &driver_table[row];
        if (strcmp(one->base, name) || (one->per_thread && !per_thread))
            continue;
        *known = 1;
        if (one->version > version)
            continue;
        if (!best || one->version > best->version || (one->version == best->version && one->per_thread))
            best = one;
    }
    return best;
}

CUresult do_cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *status)
{
    driver_row *found;
    int known = 0;
    DRIVER_NEED(symbol && function && flags <= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    *function = NULL;
    DRIVER_NEED(version <= DRIVER_VERSION);
    found = driver_find(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
    if (found) {
        memcpy(function, &found->function, sizeof *function);
        found->asked = 1;
    }
    if (status && found)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    if (status && !found)
        *status = known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

CUresult do_cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return do_cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* Keeps the file of a library that is turned away, once. */
static void driver_turn_away(const void *caller)
{
    Dl_info info;
    int32_t i;
    if (!caller || !dladdr(caller, &info) || !info.dli_fname)
        return;
    pthread_mutex_lock(&driver_lock);
    for (i = 0; i < driver_away_count && strcmp(driver_away[i], info.dli_fname); ++i) {
    }
    if (i == driver_away_count && i < DRIVER_AWAY) {
        driver_away[i] = strdup(info.dli_fname);
        driver_away_count += driver_away[i] != NULL;
    }
    pthread_mutex_unlock(&driver_lock);
}

int32_t cai_driver_turned_away(int32_t index, char *file, size_t capacity)
{
    int32_t found;
    pthread_mutex_lock(&driver_lock);
    found = index >= 0 && index < driver_away_count;
    if (found && file && capacity)
        snprintf(file, capacity, "%s", driver_away[index]);
    pthread_mutex_unlock(&driver_lock);
    return found;
}

/* The private tables of a vendor's libraries are not here: a static libcudart finds nothing. */
CUresult do_cuGetExportTable(const void **table, const CUuuid *id)
{
    DRIVER_NEED(table && id);
    *table = NULL;
    driver_turn_away(driver_self.from);
    return CUDA_ERROR_NOT_FOUND;
}

static const driver_error *driver_find_error(CUresult error)
{
    int row;
    for (row = 0; driver_errors[row].name; ++row)
        if (driver_errors[row].number == (int)error)
            return &driver_errors[row];
    return NULL;
}

CUresult do_cuGetErrorName(CUresult error, const char **text)
{
    const driver_error *found = driver_find_error(error);
    DRIVER_NEED(text);
    *text = found ? found->name : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuGetErrorString(CUresult error, const char **text)
{
    const driver_error *found = driver_find_error(error);
    DRIVER_NEED(text);
    *text = found ? found->text : NULL;
    return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult do_cuProfilerStart(void)
{
    return CUDA_SUCCESS;
}

CUresult do_cuProfilerStop(void)
{
    return CUDA_SUCCESS;
}
