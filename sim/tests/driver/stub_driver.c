/* stub_driver.c - the functions of cai_driver.h over the simulation, with a few calls in place of CUDA's
 * SPDX-License-Identifier: MIT
 * check_python_sim.py tests the package cai_sim with it, without a GPU library and without the driver. */
#include <stdlib.h>
#include <string.h>

#include "cai_driver.h"
#include "cai_sim.h"

enum { STUB_CALLS = 100000 };

static cai_sim *stub_sim;
static int32_t stub_devices = 1;
static uint64_t stub_memory;
static cai_driver_site_function stub_site;
static void *stub_site_context;
static cai_driver_call stub_calls[STUB_CALLS];
static uint64_t stub_count;
static int32_t stub_undefined[8], stub_undefined_count; /* CAI_DRIVER_... */

/* ------------------------------------------------------------------ cai_driver.h */
struct cai_sim *cai_driver_sim(void)
{
    if (stub_sim != NULL) return stub_sim;
    stub_sim = cai_sim_create(stub_devices);
    if (stub_memory) cai_sim_set_memory(stub_sim, 0, stub_memory);
    (void)cai_sim_set_context(stub_sim, cai_sim_primary(stub_sim, 0));
    return stub_sim;
}

int32_t cai_driver_configure(int32_t devices, uint64_t memory_bytes, uint32_t options)
{
    (void)options;
    if (stub_sim != NULL) return 0;
    if (devices) stub_devices = devices;
    stub_memory = memory_bytes;
    return 1;
}

void cai_driver_set_site(cai_driver_site_function site, void *context)
{
    stub_site = site;
    stub_site_context = context;
}

int32_t cai_driver_call_of(uint64_t tag, cai_driver_call *out)
{
    if (tag == 0 || tag > stub_count) return 0;
    *out = stub_calls[tag - 1];
    return 1;
}

void cai_driver_mark(const char *text)
{
    (void)cai_sim_host_access(cai_driver_sim(), text, NULL, 0);
}

int32_t cai_driver_undefined(int32_t index, cai_driver_dead *out)
{
    const char *said = getenv("STUB_DEAD"); /* CAI_DRIVER_..., as a digit, twice */
    if (index < 0 || index >= (said != NULL ? 2 : stub_undefined_count)) return 0;
    memset(out, 0, sizeof *out);
    out->what = said != NULL ? *said - '0' : stub_undefined[index];
    out->kind = out->what == CAI_DRIVER_OUT_OF_REACH ? "memory" : "stream";
    out->name = out->what == CAI_DRIVER_OUT_OF_REACH ? "m3" : "s3";
    out->call = "stub_dead";
    out->of_device = 1;
    out->made = 1;
    out->destroyed = 2;
    out->used = 3;
    return 1;
}

int32_t cai_driver_source(const void *image, size_t bytes, const void *ptx, size_t ptx_bytes)
{
    return image && bytes && ptx && ptx_bytes;
}

/* The files that STUB_AWAY names, joined by colons. */
int32_t cai_driver_turned_away(int32_t index, char *file, size_t capacity)
{
    const char *at = getenv("STUB_AWAY");
    size_t length;
    for (; at && *at && index > 0; --index) {
        at = strchr(at, ':');
        at = at ? at + 1 : NULL;
    }
    if (index != 0 || !at || !*at) return 0;
    length = strcspn(at, ":");
    if (file == NULL || length >= capacity) return 1;
    memcpy(file, at, length);
    file[length] = '\0';
    return 1;
}

int32_t cai_driver_function_get(int32_t index, cai_driver_function *out)
{
    static const cai_driver_function functions[] = {
        {"stub_launch", 3, 1, 1, 0},    {"stub_not_served", 2, 1, 0, 0}, {"stub_not_followed", 3, 1, 1, 2},
        {"stub_asked_for", 0, 1, 0, 0}, {"stub_never", 0, 0, 0, 0},      
    };
    const int32_t count = (int32_t)(sizeof functions / sizeof functions[0]);
    if (index < 0 || index >= count) return 0;
    *out = functions[index];
    return 1;
}

/* ------------------------------------------------------------------------- calls */
/* What the driver does at each call that queues or waits. */
static cai_sim *stub_call(const char *name, const void *caller, const char *kernel, int32_t opaque)
{
    const uint64_t site = stub_site == NULL ? 0 : stub_site(stub_site_context);
    const uint64_t number = __atomic_fetch_add(&stub_count, 1, __ATOMIC_SEQ_CST);
    cai_driver_call *call = &stub_calls[number];
    if (number >= STUB_CALLS) abort();
    call->name = name;
    call->caller = caller;
    call->site = site;
    call->kernel = kernel == NULL ? NULL : strdup(kernel);
    call->opaque = opaque;
    cai_sim_set_tag(cai_driver_sim(), number + 1);
    if (cai_sim_current(stub_sim) == 0) (void)cai_sim_set_context(stub_sim, cai_sim_primary(stub_sim, 0));
    return stub_sim;
}

uint64_t stub_alloc(uint64_t bytes);
uint64_t stub_stream(void);
uint64_t stub_event(void);
int32_t stub_free(uint64_t address);
int32_t stub_launch(uint64_t stream, const char *kernel, uint64_t address, uint64_t bytes, int32_t write);
int32_t stub_record(uint64_t event, uint64_t stream);
int32_t stub_wait(uint64_t stream, uint64_t event);
int32_t stub_synchronize(uint64_t stream);
int32_t stub_tell(uint64_t stream);
int32_t stub_break(int32_t error);
void stub_use(int32_t what);
int32_t stub_run(void);
int32_t stub_devices_made(void);

#define STUB_CALL(name) stub_call(name, __builtin_return_address(0), NULL, 0)

uint64_t stub_alloc(uint64_t bytes)
{
    return cai_sim_alloc(STUB_CALL("stub_alloc"), CAI_SIM_MEM_DEVICE, bytes);
}

uint64_t stub_stream(void)
{
    return cai_sim_stream_create(STUB_CALL("stub_stream"), 1);
}

uint64_t stub_event(void)
{
    return cai_sim_event_create(STUB_CALL("stub_event"));
}

int32_t stub_free(uint64_t address)
{
    return cai_sim_free(STUB_CALL("stub_free"), address);
}

/* address 0: a kernel whose accesses are not known. write: 0 to 4, as of cai_sim_access; 64 more: its code was not
 * read. */
int32_t stub_launch(uint64_t stream, const char *kernel, uint64_t address, uint64_t bytes, int32_t write)
{
    cai_sim *sim = stub_call("stub_launch", __builtin_return_address(0), kernel, address == 0);
    cai_sim_access access = cai_sim_reads(address, bytes);
    access.write = write & 63;
    if (write >= 64) stub_calls[stub_count - 1].follows = 4; /* programs with one thread */
    return cai_sim_touch(sim, stream, kernel, &access, address != 0);
}

int32_t stub_record(uint64_t event, uint64_t stream)
{
    return cai_sim_event_record(STUB_CALL("stub_record"), event, stream);
}

int32_t stub_wait(uint64_t stream, uint64_t event)
{
    return cai_sim_stream_wait_event(STUB_CALL("stub_wait"), stream, event);
}

int32_t stub_synchronize(uint64_t stream)
{
    return cai_sim_stream_synchronize(STUB_CALL("stub_synchronize"), stream);
}

/* The device fails. */
int32_t stub_break(int32_t error)
{
    cai_sim_set_device_error(stub_sim, 0, error);
    return error;
}

/* Something undefined is used: CAI_DRIVER_... */
void stub_use(int32_t what)
{
    stub_undefined[stub_undefined_count++] = what;
}

static void stub_told(void *argument)
{
    (void)argument;
}

/* A host function, which stub_run runs with all else that is queued. */
int32_t stub_tell(uint64_t stream)
{
    return cai_sim_host_function(STUB_CALL("stub_tell"), stream, "tell", stub_told, NULL, NULL, 0);
}

int32_t stub_run(void)
{
    return cai_sim_run(cai_driver_sim());
}

void cai_driver_host_get(cai_driver_host *out)
{
    memset(out, 0, sizeof *out);
}

int32_t stub_devices_made(void)
{
    (void)cai_driver_sim();
    return stub_devices;
}
