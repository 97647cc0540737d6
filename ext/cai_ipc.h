/* cai_ipc.h - arrays in device memory between processes: one descriptor of plain bytes - v0.2.0
 * SPDX-License-Identifier: MIT (text at the end of this file)
 * Plain C99 that is also C++11 and compiles under nvcc. No CUDA header: cai_stream.h calls CUDA. */

#if defined(CAI_IMPLEMENTATION) && !defined(CAI_IPC_IMPLEMENTATION)
#define CAI_IPC_IMPLEMENTATION
#endif

/* A second include of the headers below adds what is requested now, and refuses late configuration. */
#if !defined(CAI_MANAGER_H_INCLUDED) || defined(CAI_IMPLEMENTATION) ||                                       \
    defined(CAI_STATIC) != defined(CAI_PRIV_DECLARED_STATIC) ||                                              \
    defined(CAI_SHARED) != defined(CAI_PRIV_DECLARED_SHARED) ||                                              \
    defined(CAI_NAMESPACE) != defined(CAI_PRIV_DECLARED_NAMESPACE)
#include "cai_manager.h"
#endif

#if CAI_MANAGER_H_INCLUDED / 100 != 2
#error "cai_ipc.h: this is version 0.2, which needs cai_manager.h 0.2"
#endif
#if defined(CAI_IPC_H_INCLUDED) && CAI_IPC_H_INCLUDED != 200
#error "cai_ipc.h: another version of it was included first; one translation unit takes one version"
#endif

#ifndef CAI_IPC_H_INCLUDED
#define CAI_IPC_H_INCLUDED 200 /* 10000 * major + 100 * minor + patch */

/*
DO THIS
    In one .c, .cpp or .cu file (CAI_IPC_IMPLEMENTATION for this header alone). All other configuration is
    that of cai_manager.h, which is found by -I or beside this file.

        #define CAI_IMPLEMENTATION
        #include "cai_ipc.h"

WHAT IT IS
    The producer process allocates device memory. The consumer process works on an array in it without a copy.
    The producer sends the bytes of a struct cai_ipc_v0 in any way. The consumer makes an array of them:

        CAI_TRY(cai_ipc_export(&ipc, &manager, memory, &x, &descriptor, err));   // process A
        write(pipe, &descriptor, sizeof descriptor);

        read(pipe, &descriptor, sizeof descriptor);                          // process B
        CAI_TRY(cai_ipc_import(&ipc, &descriptor, &x, err));
        ...
        cai_array_release(&x);

ORDER AND LIFETIME
    Events and reference counts do not cross processes. So both processes must do this:
    - Before it sends, the producer waits on the host for all work that writes, frees or moves the memory
      (cudaStreamSynchronize on each stream with such work). It starts no such work before the answer.
    - The consumer waits for its own work on the array, releases the array, and then answers.
    - The producer frees the memory after all consumers have answered (R116).
    So an import has CAI_SYNC_NONE. Its release closes at once, on any thread, and waits for nothing. If it
    was opened in the primary context of its device, that context is retained until then. Any other context
    must live as long as the import. If a context is reset before, the memory is gone. From CUDA 12.0 on
    (cuCtxGetId) the release then closes nothing, and a later import opens the memory anew.
    cai_exchange_finish keeps an import until the consumer's stream has passed.

WHAT CAN BE SENT
    Any array inside one memory object of CAI_MEMORY_DEVICE can be sent, also with strides. CUDA's handle is
    that of a whole allocation, and the descriptor has the place in it. So a plugin can also send memory that
    it cut out of a larger allocation, with its hook ipc_handle (cai_emm_ipc_handle is one to borrow). Memory
    of CUDA's pools (cudaMallocAsync), of the host and managed memory cannot be sent, nor masks and fields.

WITHOUT PEER ACCESS
    cai_ipc_import opens memory on its own device. Kernels of another device can use the memory if they have
    peer access, which you must check (cudaDeviceCanAccessPeer). If they have no access, cai_ipc_import_copy
    opens the memory, copies the array to a manager's device, and closes it again.

TRUST
    cai_ipc_import treats the descriptor as untrusted bytes. It checks them before it calls CUDA. After
    opening it checks them against the size that CUDA returns. Without the slot pointer_range, the producer is
    trusted. CUDA alone can check the 64 bytes of the handle. Their writer chooses among the memory that this
    user may open. Both processes can write to imported memory, as CUDA has no read-only mapping.

THREADS
    Any number of threads may use one cai_ipc, except while it is made or destroyed. Threads that open the
    same handle at the same moment open it once each, which CUDA counts, and use a place each.
*/

#if defined(CAI_NAMESPACE)
#define cai_ipc_destroy CAI_PRIV_RENAMED(cai_ipc_destroy)
#define cai_ipc_export CAI_PRIV_RENAMED(cai_ipc_export)
#define cai_ipc_export_by_table CAI_PRIV_RENAMED(cai_ipc_export_by_table)
#define cai_ipc_import CAI_PRIV_RENAMED(cai_ipc_import)
#define cai_ipc_import_copy CAI_PRIV_RENAMED(cai_ipc_import_copy)
#define cai_ipc_init CAI_PRIV_RENAMED(cai_ipc_init)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- >>descriptor */
/* Processes exchange the struct below. cai.h explains the guard. */
#ifndef CAI_IPC_ABI_V0
#define CAI_IPC_ABI_V0

/** An array in an allocation of another process of this machine, in 1200 bytes without padding. */
struct cai_ipc_v0 {
    uint32_t abi;                  /* CAI_IPC_ABI */
    uint32_t struct_size;          /* sizeof of the maker's struct */
    uint32_t flags;                /* 0 or CAI_IPC_READ_ONLY */
    int32_t ndim;                  /* 0 to 64 */
    unsigned char handle[64];      /* CUDA's, of the allocation */
    unsigned char device_uuid[16]; /* of the memory's device, because ordinals differ between processes */
    uint64_t offset, size;         /* bytes: the memory object in the allocation */
    uint64_t data_offset;          /* bytes: the first element in the object; 0 if the array is empty */
    uint64_t process, cookie;      /* of the producer; both together name it */
    struct cai_dtype_v0 dtype;
    int64_t packed_extent;         /* of the array: values along packed_axis */
    int32_t packed_axis;           /* of the array; -1: none */
    int32_t backend;               /* CAI_BACKEND_...: whose handle it is */
    int64_t shape[64];             /* elements; 0 past ndim */
    int64_t strides[64];           /* bytes; 0 past ndim */
};

#endif /* CAI_IPC_ABI_V0 */

#define CAI_IPC_ABI 0x43495031u /* "CIP1" */

enum { CAI_IPC_READ_ONLY = 1 << 0 /* the array was not writable, and its import is not */ };

/* ---------------------------------------------------------------- >>processes */
/** A place for an allocation of another process that is open in this one. It is storage only. */
typedef struct cai_ipc_mapping {
    struct cai_ipc *ipc;
    unsigned char handle[64];
    uint64_t context, context_id, pointer;
    uint64_t base, nbytes;  /* of the allocation; 0: not known */
    int32_t device;
    int32_t state;          /* 0: idle, 1: being opened or closed, 2: open, 3: its context is gone */
    int64_t references;     /* arrays */
    int32_t retained;       /* the context is the primary one, and stays until the place is idle */
    int32_t reserved;       /* 0 */
} cai_ipc_mapping;

/** The imports of a process. Do not move, copy or write a cai_ipc. Its fields may be read. */
typedef struct cai_ipc {
    const cai_cuda *cuda;
    cai_ipc_mapping *mappings;
    uint64_t cookie;
    int32_t capacity;
    int32_t guard;         /* held for a few instructions */
    int32_t used;          /* mappings that are not idle */
    int32_t failed;        /* mappings that could not be closed */
    int32_t first_failure; /* CUDA's number of the first of those */
    int32_t reserved;
    cai_cuda whole;        /* if the maker's table is shorter than this header's */
} cai_ipc;

/** Makes a cai_ipc, without a CUDA call. One for each process is best. `cuda` must outlive it. The table may
 *  end before any slot. `mappings` is the caller's storage for `capacity` allocations that are open at the
 *  same time. NULL and 0 allow exports only. `cookie` is a number that no other process has, because process
 *  ids are used again and containers share them. If it is 0, cai_ipc_init makes one of the time and the
 *  address of `ipc`. Several cai_ipc in one process need the same cookie. If the cookies differ, only CUDA
 *  notices that a process opens its own memory. Errors: CAI_ERR_ARGUMENT, CAI_ERR_ABI (the table). */
CAI_API CAI_MUST_CHECK cai_status cai_ipc_init(cai_ipc *ipc, const cai_cuda *cuda, cai_ipc_mapping *mappings,
                                               int32_t capacity, uint64_t cookie, cai_error *err);

/** Ends a cai_ipc. Fails with CAI_ERR_PENDING and does nothing while an imported array is not released.
 *  Errors: CAI_ERR_ARGUMENT, CAI_ERR_PENDING. */
CAI_API CAI_MUST_CHECK cai_status cai_ipc_destroy(cai_ipc *ipc, cai_error *err);

/* ------------------------------------------------------------------- >>arrays */
/** Describes an array inside a memory object to other processes. `array` may be NULL, for the bytes of the
 *  object as uint8. All work on it must be done (see ORDER AND LIFETIME). Another sync than CAI_SYNC_NONE is
 *  refused, so synchronize and store CAI_SYNC_NONE. On failure nothing is stored. Errors: CAI_ERR_ARGUMENT,
 *  CAI_ERR_ABI, CAI_ERR_STALE, CAI_ERR_EXPORT (pending work, a mask, fields, the backend),
 *  CAI_ERR_UNAVAILABLE, CAI_ERR_CUDA. CAI_ERR_MEMORY: memory of CUDA's pool, or not of a device, or an array
 *  outside of the object. */
CAI_API CAI_MUST_CHECK cai_status cai_ipc_export(cai_ipc *ipc, cai_manager *manager,
                                                 cai_memory_handle memory, const cai_array *array,
                                                 struct cai_ipc_v0 *out, cai_error *err);

/** Describes an array in memory by a table without a manager (cai_emm_array, cai_emm_alloc) to other
 *  processes, as cai_ipc_export does. The current context is that of the memory. The hook ipc_handle finds
 *  the allocation, or CUDA does if the table has CAI_EMM_CUDA_IPC. Errors: those of cai_ipc_export, those of
 *  cai_emm_hooks_check, CAI_ERR_MEMORY (also an array without elements, an array of another device than the
 *  current context, or a base of the hook that is NULL or behind the array). */
CAI_API CAI_MUST_CHECK cai_status cai_ipc_export_by_table(cai_ipc *ipc, const cai_emm_hooks *hooks,
                                                          const cai_array *array, struct cai_ipc_v0 *out,
                                                          cai_error *err);

/** Makes an owned array of a descriptor. The allocation is opened once for all arrays in it, and the last
 *  release closes it. If the current context is of its device, that context opens it. If not, the primary
 *  context of the device does, if this process uses it (cudaFree(0)). What is open already stays in its
 *  context. Release the arrays before that context is destroyed. An array without elements opens nothing.
 *  `in` is untrusted and copied, and need not be aligned. The array has CAI_SYNC_NONE, CAI_MEMORY_DEVICE, and
 *  the device's ordinal in this process. ipc->failed counts failed releases.
 *  Errors: CAI_ERR_ARGUMENT (also if this process exported it), CAI_ERR_ABI (another version, packed_axis),
 *  CAI_ERR_MEMORY (outside the allocation), CAI_ERR_CAPACITY (no mapping is free). Errors of the description:
 *  CAI_ERR_SHAPE, CAI_ERR_TYPESTR, CAI_ERR_STRIDES, CAI_ERR_DATA. CAI_ERR_UNAVAILABLE means that there is no
 *  such device, no context of it, no function for it, or that the producer's table was of another backend.
 *  CAI_ERR_CUDA with native 1 means that the producer freed the memory or ended. */
CAI_API CAI_MUST_CHECK cai_status cai_ipc_import(cai_ipc *ipc, const struct cai_ipc_v0 *in, cai_array *out,
                                                 cai_error *err);

/** Makes an owned array in memory of `manager`, with a copy of the elements, for a device without peer
 *  access. It opens the allocation as cai_ipc_import does, copies on `stream`, waits on the host, and closes
 *  the allocation. `stream` is of the manager's context. You may answer the producer after the call. The copy
 *  has the same strides, and also the bytes between the elements. It is writable and has CAI_SYNC_NONE. Its
 *  release gives the memory back to the manager. On failure nothing is stored. If the wait failed, the
 *  allocation is closed by a later poll of the manager's pool (cai_keepalive_poll), else at once. Errors:
 *  those of cai_ipc_import, of cai_manager_alloc, CAI_ERR_UNAVAILABLE (the manager's table lacks copy_async
 *  or stream_synchronize). */
CAI_API CAI_MUST_CHECK cai_status cai_ipc_import_copy(cai_ipc *ipc, const struct cai_ipc_v0 *in,
                                                      cai_manager *manager, uint64_t stream, cai_array *out,
                                                      cai_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_IPC_H_INCLUDED */

/* ============================================================ >>implementation
 *   >>describing  >>contexts  >>mappings  >>public */

#if defined(CAI_IPC_IMPLEMENTATION) && !defined(CAI_IPC_IMPLEMENTED)
#define CAI_IPC_IMPLEMENTED

#include <string.h>
#include <time.h>
#if defined(_WIN32)
#include <process.h>
#else
#include <unistd.h>
#endif
#define CAI_PRIV_WANT_EMM
#define CAI_PRIV_WANT_ERRORS
#define CAI_PRIV_WANT_GUARD
#include "cai.h"
#include "cai_stream.h"
#include "cai_emm.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wold-style-cast" /* C that is also C++ has C casts */
#pragma clang diagnostic ignored "-Wzero-as-null-pointer-constant" /* and NULL */
#endif

/* Every data model has the same bytes, so a 32-bit process may send to a 64-bit one. */
typedef char cai_priv_assert_ipc[((offsetof(struct cai_ipc_v0, ndim) == 12) &
                                  (offsetof(struct cai_ipc_v0, handle) == 16) &
                                  (offsetof(struct cai_ipc_v0, device_uuid) == 80) &
                                  (offsetof(struct cai_ipc_v0, offset) == 96) &
                                  (offsetof(struct cai_ipc_v0, size) == 104) &
                                  (offsetof(struct cai_ipc_v0, data_offset) == 112) &
                                  (offsetof(struct cai_ipc_v0, process) == 120) &
                                  (offsetof(struct cai_ipc_v0, cookie) == 128) &
                                  (offsetof(struct cai_ipc_v0, dtype) == 136) &
                                  (offsetof(struct cai_ipc_v0, packed_extent) == 160) &
                                  (offsetof(struct cai_ipc_v0, packed_axis) == 168) &
                                  (offsetof(struct cai_ipc_v0, backend) == 172) &
                                  (offsetof(struct cai_ipc_v0, shape) == 176) &
                                  (offsetof(struct cai_ipc_v0, strides) == 688) &
                                  (sizeof(struct cai_ipc_v0) == 1200)) ? 1 : -1];

enum { CAI_PRIV_IPC_IDLE, CAI_PRIV_IPC_BUSY, CAI_PRIV_IPC_OPEN, CAI_PRIV_IPC_GONE };
enum { CAI_PRIV_IPC_DEVICES = 1024 /* at most as many are queried for their UUID */ };

static cai_status cai_priv_ipc_did(int32_t error, const char *operation, cai_error *err)
{
    return error ? cai_cuda_status(error, operation, err) : CAI_OK;
}

static cai_status cai_priv_ipc_made(const cai_ipc *ipc, const char *function, cai_error *err)
{
    if (ipc && ipc->cuda) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_ARGUMENT, "%s: ipc is NULL or not made", function);
}

static cai_status cai_priv_ipc_own(cai_error *err, int32_t native)
{
    (void)cai_priv_error(err, CAI_ERR_ARGUMENT, "descriptor: the process that exported it cannot open it");
    if (err) err->native = native;
    return CAI_ERR_ARGUMENT;
}

static uint64_t cai_priv_ipc_process(void)
{
#if defined(_WIN32)
    return (uint64_t)_getpid();
#else
    return (uint64_t)getpid();
#endif
}

/* ---------------------------------------------------------------- >>describing */
/* Checks that the code of a dtype, or its typestr, makes the same dtype. */
static cai_status cai_priv_ipc_dtype(const cai_dtype *dtype, cai_error *err)
{
    char text[CAI_TYPESTR_SIZE];
    const int32_t length = cai_dtype_typestr(dtype, text, (int32_t)sizeof text);
    cai_dtype made;
    if (!cai_dtype_of(dtype->code, &made, NULL) && !memcmp(&made, dtype, sizeof made)) return CAI_OK;
    if (!cai_dtype_parse(text, length, 0, &made, NULL) && !memcmp(&made, dtype, sizeof made)) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_TYPESTR, "descriptor: code 0x%lx with itemsize = %ld is no dtype",
                          (unsigned long)(uint32_t)dtype->code, (long)dtype->itemsize);
}

/* Makes the array, with the object at an address. While the address is not known, it is 2^62. */
static cai_status cai_priv_ipc_describe(const struct cai_ipc_v0 *in, uint64_t address, cai_array *out,
                                        cai_error *err)
{
    const int64_t *strides = in->dtype.code == CAI_BITFIELD ? NULL : in->strides; /* C order, in bits */
    CAI_TRY(cai_array_init_dtype(out, &in->dtype, in->ndim, in->shape, strides, address + in->data_offset,
                                 err));
    if (in->flags & CAI_IPC_READ_ONLY) out->flags &= ~(uint32_t)CAI_WRITABLE;
    out->sync = CAI_SYNC_NONE;
    out->memory = CAI_MEMORY_DEVICE;
    out->backend = in->backend;
    out->packed_axis = in->packed_axis;
    out->packed_extent = in->packed_extent;
    return cai_array_check(out, err);
}

/* Checks all of a descriptor that needs no CUDA. `out` gets the right extent, and no address. */
static cai_status cai_priv_ipc_judge(const struct cai_ipc_v0 *in, cai_array *out, cai_error *err)
{
    const uint64_t most = UINT64_C(1) << 61;
    if (in->abi != CAI_IPC_ABI || in->struct_size != sizeof *in)
        return cai_priv_error(err, CAI_ERR_ABI,
                              "descriptor: abi = 0x%lx and size = %lu must be 0x%lx and %lu",
                              (unsigned long)in->abi, (unsigned long)in->struct_size,
                              (unsigned long)CAI_IPC_ABI, (unsigned long)sizeof *in);
    if (in->flags & ~(uint32_t)CAI_IPC_READ_ONLY)
        return cai_priv_error(err, CAI_ERR_ABI, "descriptor: flags = 0x%lx has unknown bits",
                              (unsigned long)in->flags);
    if (in->packed_axis == -1 && in->packed_extent)
        return cai_priv_error(err, CAI_ERR_ABI, "descriptor: packed_extent = %lld, and packed_axis is -1",
                              (long long)in->packed_extent);
    if (in->ndim < 0 || in->ndim > CAI_MAX_NDIM)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_SHAPE, 29), "descriptor: ndim = %ld is not in 0..64",
                              (long)in->ndim);
    if (in->offset > most || in->size > most || in->data_offset > in->size)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "descriptor: offset %llu, data_offset %llu and size %llu describe no memory",
                              (unsigned long long)in->offset, (unsigned long long)in->data_offset,
                              (unsigned long long)in->size);
    CAI_TRY(cai_priv_ipc_dtype(&in->dtype, err));
    CAI_TRY(cai_priv_ipc_describe(in, UINT64_C(1) << 62, out, err));
    if (!out->size) return CAI_OK;
    if (out->hi <= (int64_t)(in->size - in->data_offset) && -out->lo <= (int64_t)in->data_offset)
        return CAI_OK;
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                          "descriptor: bytes [%lld, %lld) from data_offset %llu are not inside size %llu",
                          (long long)out->lo, (long long)out->hi, (unsigned long long)in->data_offset,
                          (unsigned long long)in->size);
}

/* ------------------------------------------------------------------ >>contexts */
/* Makes a context current if it is not. */
static cai_status cai_priv_ipc_enter(const cai_cuda *cuda, uint64_t context, int32_t *pushed, cai_error *err)
{
    uint64_t before = 0;
    int32_t error;
    *pushed = 0;
    CAI_TRY(cai_priv_ipc_did(cuda->context_current(cuda->self, &before), "context_current", err));
    if (before == context) return CAI_OK;
    error = cai_priv_context_enter(cuda, context);
    *pushed = !error;
    return cai_priv_ipc_did(error, "context_push", err);
}

static int32_t cai_priv_ipc_leave(const cai_cuda *cuda, uint64_t context, int32_t pushed)
{
    return pushed ? cai_priv_context_leave(cuda, context) : 0;
}

/* ------------------------------------------------------------------ >>mappings */
/* Makes a place idle, and counts a failed close. With error 4 the process and the mapping have ended. */
static void cai_priv_ipc_idle(cai_ipc_mapping *mapping, int32_t error)
{
    cai_ipc *ipc = mapping->ipc;
    const cai_cuda *cuda = ipc->cuda;
    const int32_t left = mapping->retained ? cuda->primary_release(cuda->self, mapping->device) : 0;
    if (!error) error = left;
    mapping->retained = 0;
    cai_priv_guard_take(&ipc->guard);
    mapping->state = CAI_PRIV_IPC_IDLE;
    ipc->used--;
    if (error && error != 4 && !ipc->failed++) ipc->first_failure = error;
    cai_priv_guard_give(&ipc->guard);
}

/* Opens or closes. While a stream captures globally, CUDA may forbid both unless the mode is relaxed. */
static int32_t cai_priv_ipc_call(cai_ipc_mapping *mapping, int opens)
{
    const cai_cuda *cuda = mapping->ipc->cuda;
    int32_t mode, error = cai_priv_mode_relax(cuda, &mode);
    if (error) return error;
    error = opens ? cuda->ipc_open(cuda->self, mapping->handle, &mapping->pointer)
                  : cuda->ipc_close(cuda->self, mapping->pointer);
    if (error && opens) mapping->pointer = 0;
    return cai_priv_mode_restore(cuda, mode, error);
}

/* Returns whether the mapping exists. A reset of the context ends it, and another mapping may be at its
 * address. */
static int cai_priv_ipc_lives(const cai_ipc_mapping *mapping)
{
    return cai_priv_context_lives(mapping->ipc->cuda, mapping->context, mapping->context_id);
}

static void cai_priv_ipc_close(cai_ipc_mapping *mapping)
{
    const cai_cuda *cuda = mapping->ipc->cuda;
    cai_error err;
    int32_t pushed = 0, error = 0, left;
    err.native = 0;
    if (!cai_priv_ipc_lives(mapping)) error = 709; /* told, because the arrays had no memory */
    else if (cai_priv_ipc_enter(cuda, mapping->context, &pushed, &err)) error = err.native;
    else error = cai_priv_ipc_call(mapping, 0);
    left = cai_priv_ipc_leave(cuda, mapping->context, pushed);
    cai_priv_ipc_idle(mapping, error ? error : left);
}

static void cai_priv_ipc_drop(cai_ipc_mapping *mapping)
{
    int32_t last;
    cai_priv_guard_take(&mapping->ipc->guard);
    last = !--mapping->references;
    if (last) mapping->state = CAI_PRIV_IPC_BUSY; /* no other thread joins it */
    cai_priv_guard_give(&mapping->ipc->guard);
    if (last) cai_priv_ipc_close(mapping);
}

static void cai_priv_ipc_release(cai_array *array)
{
    array->release = NULL;
    cai_priv_ipc_drop((cai_ipc_mapping *)array->owner);
}

/* Returns a reference to the open mapping of a handle, else a place to be opened (*opens), else NULL. */
static cai_ipc_mapping *cai_priv_ipc_take(cai_ipc *ipc, const unsigned char *handle, int32_t device,
                                          int *opens)
{
    cai_ipc_mapping *found = NULL;
    int32_t i;
    cai_priv_guard_take(&ipc->guard);
    for (i = 0; i < ipc->capacity; ++i) {
        cai_ipc_mapping *mapping = &ipc->mappings[i];
        if (mapping->state == CAI_PRIV_IPC_IDLE && !found) found = mapping;
        if (mapping->state != CAI_PRIV_IPC_OPEN || mapping->device != device) continue;
        if (memcmp(mapping->handle, handle, sizeof mapping->handle)) continue;
        found = mapping;
        break;
    }
    *opens = found && found->state == CAI_PRIV_IPC_IDLE;
    if (*opens) {
        found->ipc = ipc;
        found->state = CAI_PRIV_IPC_BUSY;
        found->device = device;
        found->references = 0;
        memcpy(found->handle, handle, sizeof found->handle);
        ipc->used++;
    }
    if (found) found->references++;
    cai_priv_guard_give(&ipc->guard);
    return found;
}

/* Returns whether the taken mapping still exists. If not, drops the reference, so that no thread joins it. */
static int cai_priv_ipc_may_join(cai_ipc_mapping *mapping)
{
    if (cai_priv_ipc_lives(mapping)) return 1;
    cai_priv_guard_take(&mapping->ipc->guard);
    mapping->state = CAI_PRIV_IPC_GONE;
    cai_priv_guard_give(&mapping->ipc->guard);
    cai_priv_ipc_drop(mapping);
    return 0;
}

/* Opens a place in the context that is current. */
static cai_status cai_priv_ipc_open_here(cai_ipc_mapping *mapping, int32_t *opened, cai_error *err)
{
    const cai_cuda *cuda = mapping->ipc->cuda;
    int32_t error;
    mapping->pointer = mapping->base = mapping->nbytes = 0;
    error = cai_priv_ipc_call(mapping, 1);
    *opened = mapping->pointer != 0; /* also where the mode was not restored */
    if (error == 201) return cai_priv_ipc_own(err, error); /* although a context is current */
    CAI_TRY(cai_priv_ipc_did(error, "ipc_open", err));
    if (!mapping->pointer)
        return cai_priv_error(err, CAI_ERR_MEMORY, "ipc_open succeeded and returned no address");
    if (!cuda->pointer_range) return CAI_OK;
    error = cuda->pointer_range(cuda->self, mapping->pointer, &mapping->base, &mapping->nbytes);
    return cai_priv_ipc_did(error, "pointer_range", err);
}

/* Finds the context to open in. It is the current one if that is of the device, else the device's primary one
 * if that is active. None is made. A primary context is retained, as arrays may outlast its other users. */
static cai_status cai_priv_ipc_find_context(cai_ipc_mapping *mapping, cai_error *err)
{
    const cai_cuda *cuda = mapping->ipc->cuda;
    uint64_t primary = 0;
    int32_t device = CAI_DEVICE_UNKNOWN;
    int32_t error = cuda->context_current(cuda->self, &mapping->context);
    CAI_TRY(cai_priv_ipc_did(error, "context_current", err));
    if (mapping->context && cuda->context_device)
        CAI_TRY(cai_priv_ipc_did(cuda->context_device(cuda->self, &device), "context_device", err));
    error = cuda->device_context(cuda->self, mapping->device, &primary);
    CAI_TRY(cai_priv_ipc_did(error, "device_context", err));
    if (!mapping->context || device != mapping->device) mapping->context = primary;
    mapping->retained =
        primary && mapping->context == primary && cuda->primary_retain && cuda->primary_release;
    if (mapping->retained) {
        error = cuda->primary_retain(cuda->self, mapping->device, &mapping->context);
        mapping->retained = !error;
        CAI_TRY(cai_priv_ipc_did(error, "primary_retain", err));
    }
    if (!mapping->context)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_UNAVAILABLE, 111),
                              "no context of device %ld is current on this thread, and its primary one is "
                              "not active",
                              (long)mapping->device);
    error = cuda->context_id ? cuda->context_id(cuda->self, mapping->context, &mapping->context_id) : 0;
    return cai_priv_ipc_did(error, "context_id", err);
}

static cai_status cai_priv_ipc_open(cai_ipc_mapping *mapping, cai_error *err)
{
    cai_ipc *ipc = mapping->ipc;
    const cai_cuda *cuda = ipc->cuda;
    int32_t pushed = 0, opened = 0, left;
    cai_status status = cai_priv_ipc_find_context(mapping, err);
    if (!status) status = cai_priv_ipc_enter(cuda, mapping->context, &pushed, err);
    if (status) {
        cai_priv_ipc_idle(mapping, 0);
        return status;
    }
    status = cai_priv_ipc_open_here(mapping, &opened, err);
    left = cai_priv_ipc_leave(cuda, mapping->context, pushed);
    if (!status) status = cai_priv_ipc_did(left, "context_pop", err);
    if (status && opened) cai_priv_ipc_close(mapping);
    else if (status) cai_priv_ipc_idle(mapping, 0);
    if (status) return status;
    cai_priv_guard_take(&ipc->guard);
    mapping->state = CAI_PRIV_IPC_OPEN;
    cai_priv_guard_give(&ipc->guard);
    return CAI_OK;
}

/* Checks that base <= pointer + offset and pointer + offset + size <= base + nbytes. */
static cai_status cai_priv_ipc_inside(const cai_ipc_mapping *mapping, const struct cai_ipc_v0 *in,
                                      cai_error *err)
{
    const uint64_t nbytes = mapping->nbytes;
    const uint64_t start = mapping->pointer + in->offset - mapping->base; /* before the base: very large */
    if (!mapping->ipc->cuda->pointer_range) return CAI_OK;
    if (start <= nbytes && in->size <= nbytes - start) return CAI_OK;
    return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                          "descriptor: offset %llu, size %llu are not inside the %llu bytes opened",
                          (unsigned long long)in->offset, (unsigned long long)in->size,
                          (unsigned long long)nbytes);
}

static cai_status cai_priv_ipc_find_device(const cai_cuda *cuda, const unsigned char *uuid, int32_t *device,
                                           cai_error *err)
{
    unsigned char other[16];
    int32_t error = 0;
    for (*device = 0; *device < CAI_PRIV_IPC_DEVICES && !error; ++*device) {
        memset(other, 0, sizeof other);
        error = cuda->device_uuid(cuda->self, *device, other);
        if (!error && !memcmp(other, uuid, sizeof other)) return CAI_OK;
    }
    if (error && error != 100 && error != 101) return cai_cuda_status(error, "device_uuid", err);
    return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                          "descriptor: no device of this process has the UUID %x%x%x%x%x%x%x%x-...",
                          uuid[0] >> 4, uuid[0] & 15, uuid[1] >> 4, uuid[1] & 15, uuid[2] >> 4, uuid[2] & 15,
                          uuid[3] >> 4, uuid[3] & 15);
}

/* -------------------------------------------------------------------- >>public */
CAI_API cai_status cai_ipc_init(cai_ipc *ipc, const cai_cuda *cuda, cai_ipc_mapping *mappings,
                                int32_t capacity, uint64_t cookie, cai_error *err)
{
    if (!ipc || !cuda || capacity < 0 || (capacity && !mappings))
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_ipc_init: %s",
                              !ipc    ? "ipc is NULL"
                              : !cuda ? "cuda is NULL"
                                      : "mappings is NULL, or capacity is negative");
    if (!cai_priv_knows_cuda(cuda))
        return cai_priv_error(err, CAI_ERR_ABI, "cai_ipc_init: the CUDA table has %lu bytes, version %lu",
                              (unsigned long)cuda->struct_size, (unsigned long)cuda->version);
    memset(ipc, 0, sizeof *ipc);
    if (capacity) memset(mappings, 0, (size_t)capacity * sizeof *mappings);
    if (!cookie) {
        cookie = (uint64_t)(uintptr_t)ipc + ((uint64_t)time(NULL) << 20 ^ (uint64_t)clock());
        cookie = (cookie ^ cookie >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    }
    ipc->cuda = cai_priv_whole_cuda(cuda, &ipc->whole);
    ipc->mappings = mappings;
    ipc->capacity = capacity;
    ipc->cookie = cookie;
    return CAI_OK;
}

CAI_API cai_status cai_ipc_destroy(cai_ipc *ipc, cai_error *err)
{
    int32_t used;
    CAI_TRY(cai_priv_ipc_made(ipc, "cai_ipc_destroy", err));
    cai_priv_guard_take(&ipc->guard);
    used = ipc->used;
    cai_priv_guard_give(&ipc->guard);
    if (used)
        return cai_priv_error(err, CAI_ERR_PENDING, "cai_ipc_destroy: %ld imported allocations are open",
                              (long)used);
    memset(ipc, 0, sizeof *ipc);
    return CAI_OK;
}

/* Refuses an array with parts that a descriptor cannot contain. */
static cai_status cai_priv_errorable(const cai_array *array, cai_error *err)
{
    if (array->mask) return cai_priv_error(err, CAI_ERR_EXPORT, "mask: a descriptor cannot contain a mask");
    if (array->field_count)
        return cai_priv_error(err, CAI_ERR_EXPORT, "descr: a descriptor cannot contain fields");
    if (!array->size || array->sync == CAI_SYNC_NONE) return CAI_OK;
    return cai_priv_error(err, CAI_ERR_EXPORT, "stream: sync = %ld is not NONE (1): work may be pending",
                          (long)array->sync);
}

/* Makes an array of all bytes of an object. */
static cai_status cai_priv_ipc_whole(cai_array *out, const cai_memory_object *info, cai_error *err)
{
    const int64_t bytes = (int64_t)info->size;
    return cai_array_init(out, CAI_UINT8, 1, &bytes, NULL, (void *)(uintptr_t)info->address, err);
}

static void cai_priv_ipc_fill(struct cai_ipc_v0 *out, const cai_array *array, uint64_t address)
{
    out->abi = CAI_IPC_ABI;
    out->struct_size = (uint32_t)sizeof *out;
    out->flags = array->flags & CAI_WRITABLE ? 0 : (uint32_t)CAI_IPC_READ_ONLY;
    out->ndim = array->ndim;
    out->data_offset = array->size ? array->data - address : 0;
    out->process = cai_priv_ipc_process();
    out->dtype = array->dtype;
    out->packed_axis = array->packed_axis;
    out->packed_extent = array->packed_axis < 0 ? 0 : array->packed_extent;
    memcpy(out->shape, array->shape, (size_t)array->ndim * sizeof *out->shape);
    memcpy(out->strides, array->strides, (size_t)array->ndim * sizeof *out->strides);
}

/* Writes the descriptor of an array in memory that begins at `address`. */
static cai_status cai_priv_ipc_write(const cai_ipc *ipc, const cai_memory_ipc *where, const cai_array *array,
                                     uint64_t address, struct cai_ipc_v0 *out, cai_error *err)
{
    struct cai_ipc_v0 made;
    cai_array judged;
    int32_t error;
    memset(&made, 0, sizeof made);
    error = ipc->cuda->device_uuid(ipc->cuda->self, where->device, made.device_uuid);
    CAI_TRY(cai_priv_ipc_did(error, "device_uuid", err));
    memcpy(made.handle, where->handle, sizeof made.handle);
    made.offset = where->offset;
    made.size = where->size;
    made.cookie = ipc->cookie;
    made.backend = cai_priv_backend(ipc->cuda);
    if (cai_priv_is_foreign(ipc->cuda, array->backend))
        return cai_priv_error(err, CAI_ERR_EXPORT, "backend = %ld, but the table is of backend %ld",
                              (long)array->backend, (long)made.backend);
    cai_priv_ipc_fill(&made, array, address);
    CAI_TRY(cai_priv_ipc_judge(&made, &judged, err)); /* the array must be inside the object */
    *out = made;
    return CAI_OK;
}

CAI_API cai_status cai_ipc_export(cai_ipc *ipc, cai_manager *manager, cai_memory_handle memory,
                                  const cai_array *array, struct cai_ipc_v0 *out, cai_error *err)
{
    cai_memory_object info;
    cai_memory_ipc where;
    cai_array whole;
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_ipc_export: out is NULL");
    CAI_TRY(cai_priv_ipc_made(ipc, "cai_ipc_export", err));
    if (!ipc->cuda->device_uuid)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA table has no device_uuid");
    if (array) CAI_TRY(cai_array_check(array, err));
    memset(&info, 0, sizeof info); /* gcc does not see that a failure leaves them unread */
    memset(&where, 0, sizeof where);
    CAI_TRY(cai_manager_describe(manager, memory, &info, err));
    if (info.kind != CAI_MEMORY_DEVICE && info.kind != CAI_MEMORY_POOL)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "memory of kind %ld is no device memory: other processes cannot open it",
                              (long)info.kind);
    if (array) CAI_TRY(cai_priv_errorable(array, err));
    CAI_TRY(cai_manager_ipc_handle(manager, memory, &where, err));
    if (!array) CAI_TRY(cai_priv_ipc_whole(&whole, &info, err));
    return cai_priv_ipc_write(ipc, &where, array ? array : &whole, info.address, out, err);
}

/* Finds the place of the array's bytes in their allocation, with a hook. */
static cai_status cai_priv_ipc_place(const cai_ipc *ipc, const cai_emm_hooks *hooks, const cai_array *array,
                                     cai_memory_ipc *out, cai_error *err)
{
    const uint64_t first = array->data + (uint64_t)array->lo;
    void *const ptr = (void *)(uintptr_t)first;
    const int32_t own = array->memory == CAI_MEMORY_UNKNOWN ? CAI_MEMORY_DEVICE : array->memory;
    const int32_t kind = hooks->kind != CAI_MEMORY_DEVICE ? hooks->kind : own;
    void *base = NULL;
    int32_t error;
    if (kind != CAI_MEMORY_DEVICE)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "memory of %s (kind %ld) has no handle for other processes",
                              cai_priv_emm_name(hooks), (long)kind);
    if (!hooks->ipc_handle && !(hooks->flags & CAI_EMM_CUDA_IPC))
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "%s has no hook ipc_handle",
                              cai_priv_emm_name(hooks));
    CAI_TRY(cai_priv_ipc_did(ipc->cuda->context_device(ipc->cuda->self, &out->device), "context_device",
                             err));
    if (array->device >= 0 && array->device != out->device)
        return cai_priv_error(err, CAI_ERR_MEMORY, "the array is on device %ld, the current context on %ld",
                              (long)array->device, (long)out->device);
    error = hooks->ipc_handle ? hooks->ipc_handle(hooks->ctx, ptr, out->handle, &base)
                              : cai_emm_ipc_handle(ipc->cuda, ptr, out->handle, &base);
    if (error == 801)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "ipc_handle of %s: CUDA's table cannot make a handle",
                              cai_priv_emm_name(hooks));
    if (error) return cai_priv_emm_hook_status(hooks, "ipc_handle", error, err);
    if (!base || (uintptr_t)base > (uintptr_t)ptr)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "ipc_handle of %s returned %p as the base of %p", cai_priv_emm_name(hooks),
                              base, ptr);
    out->offset = first - (uint64_t)(uintptr_t)base;
    out->size = (uint64_t)(array->hi - array->lo);
    return CAI_OK;
}

CAI_API cai_status cai_ipc_export_by_table(cai_ipc *ipc, const cai_emm_hooks *hooks, const cai_array *array,
                                           struct cai_ipc_v0 *out, cai_error *err)
{
    cai_emm_hooks whole;
    cai_memory_ipc where;
    if (!out) return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_ipc_export_by_table: out is NULL");
    CAI_TRY(cai_priv_ipc_made(ipc, "cai_ipc_export_by_table", err));
    if (!ipc->cuda->device_uuid || !ipc->cuda->context_device)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no device_uuid or context_device");
    CAI_TRY(cai_emm_hooks_check(hooks, err));
    cai_priv_emm_whole_hooks(&whole, hooks);
    CAI_TRY(cai_array_check(array, err));
    CAI_TRY(cai_priv_errorable(array, err));
    if (!array->size)
        return cai_priv_error(err, CAI_PRIV_RULE(CAI_ERR_MEMORY, 116),
                              "an array without elements has no memory: send its shape alone");
    memset(&where, 0, sizeof where);
    CAI_TRY(cai_priv_ipc_place(ipc, &whole, array, &where, err));
    return cai_priv_ipc_write(ipc, &where, array, array->data + (uint64_t)array->lo, out, err);
}

/* Gives the array its address, and an owner. */
static cai_status cai_priv_ipc_map(cai_ipc *ipc, const struct cai_ipc_v0 *in, int32_t device, cai_array *out,
                                   cai_error *err)
{
    cai_ipc_mapping *mapping;
    cai_status status;
    int opens;
    do mapping = cai_priv_ipc_take(ipc, in->handle, device, &opens);
    while (mapping && !opens && !cai_priv_ipc_may_join(mapping));
    if (!mapping)
        return cai_priv_error(err, CAI_ERR_CAPACITY, "none of %ld mappings is free",
                              (long)ipc->capacity);
    if (opens) CAI_TRY(cai_priv_ipc_open(mapping, err)); /* not shared yet */
    status = cai_priv_ipc_inside(mapping, in, err);
    if (!status) status = cai_priv_ipc_describe(in, mapping->pointer + in->offset, out, err);
    if (status) cai_priv_ipc_drop(mapping);
    else cai_array_own(out, cai_priv_ipc_release, mapping);
    return status;
}

CAI_API cai_status cai_ipc_import(cai_ipc *ipc, const struct cai_ipc_v0 *in, cai_array *out, cai_error *err)
{
    struct cai_ipc_v0 copy;
    const cai_cuda *cuda;
    cai_array array;
    int32_t device;
    if (!out || !in)
        return cai_priv_error(err, CAI_ERR_ARGUMENT, "cai_ipc_import: %s is NULL", out ? "in" : "out");
    CAI_TRY(cai_priv_ipc_made(ipc, "cai_ipc_import", err));
    memcpy(&copy, (const void *)in, sizeof copy); /* may lie in memory that others write */
    CAI_TRY(cai_priv_ipc_judge(&copy, &array, err));
    if (copy.process == cai_priv_ipc_process() && copy.cookie == ipc->cookie)
        return cai_priv_ipc_own(err, 0);
    cuda = ipc->cuda;
    if (copy.backend != cai_priv_backend(cuda))
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "descriptor: backend = %ld, but the table is of backend %ld",
                              (long)copy.backend, (long)cai_priv_backend(cuda));
    if (!cuda->device_uuid || !cuda->device_context || !cuda->context_current || !cuda->context_push ||
        !cuda->context_pop || !cuda->ipc_open || !cuda->ipc_close)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE, "the CUDA table lacks a function that opens memory");
    CAI_TRY(cai_priv_ipc_find_device(cuda, copy.device_uuid, &device, err));
    if (array.size) CAI_TRY(cai_priv_ipc_map(ipc, &copy, device, &array, err));
    array.device = device;
    cai_array_move(out, &array);
    return CAI_OK;
}

/* Releases an array when the stream has passed, or at once if that cannot be known. */
static void cai_priv_ipc_keep(cai_array *array, cai_event_pool *pool, uint64_t stream)
{
    if (cai_keepalive_push(array, pool, stream, NULL)) cai_array_release(array);
}

/* Queues the copy. Between two devices CUDA needs both contexts. An older table has no function for that. */
static int32_t cai_priv_ipc_queue(const cai_manager *manager, uint64_t to, const cai_ipc_mapping *mapping,
                                  uint64_t from, uint64_t size, uint64_t stream)
{
    const cai_cuda *cuda = manager->cuda;
    if (mapping->device == manager->device || cuda->struct_size < offsetof(cai_cuda, copy_3d_peer_async) ||
        !cuda->copy_peer_async)
        return cuda->copy_async(cuda->self, to, from, size, stream);
    return cuda->copy_peer_async(cuda->self, to, manager->context, from, mapping->context, size, stream);
}

/* Copies the bytes of an array on a stream of the manager's context, and waits on the host. If the wait
 * fails, the array is kept until the stream has passed. */
static cai_status cai_priv_ipc_copy(const cai_manager *manager, uint64_t to, cai_array *from, uint64_t stream,
                                    cai_error *err)
{
    const cai_cuda *cuda = manager->cuda;
    const uint64_t first = from->data + (uint64_t)from->lo, size = (uint64_t)(from->hi - from->lo);
    int32_t pushed = 0, mode, left, error;
    CAI_TRY(cai_priv_ipc_enter(cuda, manager->context, &pushed, err));
    error = cai_priv_mode_relax(cuda, &mode);
    if (!error) {
        error = cai_priv_ipc_queue(manager, to, (const cai_ipc_mapping *)from->owner, first, size, stream);
        if (!error) {
            error = cuda->stream_synchronize(cuda->self, stream);
            if (error) cai_priv_ipc_keep(from, manager->pool, stream);
        }
        error = cai_priv_mode_restore(cuda, mode, error);
    }
    left = cai_priv_ipc_leave(cuda, manager->context, pushed);
    return cai_priv_ipc_did(error ? error : left, "copying the array", err);
}

/* Makes the array with the strides of `from` in the bytes of `memory`, which it takes over. */
static cai_status cai_priv_ipc_take_over(cai_array *out, const cai_array *from, cai_array *memory,
                                         cai_error *err)
{
    const int64_t *strides = from->dtype.code == CAI_BITFIELD ? NULL : from->strides; /* C order, in bits */
    const uint64_t data = memory->data - (uint64_t)from->lo;
    cai_array made;
    CAI_TRY(cai_array_init_dtype(&made, &from->dtype, from->ndim, from->shape, strides, data, err));
    made.sync = CAI_SYNC_NONE;
    made.memory = memory->memory;
    made.device = memory->device;
    made.backend = memory->backend;
    made.packed_axis = from->packed_axis;
    made.packed_extent = from->packed_extent;
    cai_array_own(&made, memory->release, memory->owner);
    cai_array_move(out, &made);
    return CAI_OK;
}

/* Copies an array with elements. */
static cai_status cai_priv_ipc_copy_of(cai_array *out, cai_array *from, cai_manager *manager,
                                       uint64_t stream, cai_error *err)
{
    const int64_t size = from->hi - from->lo;
    cai_array memory;
    cai_status status;
    CAI_TRY(cai_manager_array(&memory, manager, CAI_UINT8, 1, &size, stream, err));
    status = cai_priv_ipc_copy(manager, memory.data, from, stream, err);
    if (!status) status = cai_priv_ipc_take_over(out, from, &memory, err);
    if (status) cai_array_release(&memory);
    return status;
}

CAI_API cai_status cai_ipc_import_copy(cai_ipc *ipc, const struct cai_ipc_v0 *in, cai_manager *manager,
                                       uint64_t stream, cai_array *out, cai_error *err)
{
    cai_array from;
    cai_status status;
    if (!manager || !manager->cuda || !out)
        return cai_priv_error(err, CAI_ERR_ARGUMENT,
                              "cai_ipc_import_copy: manager is NULL, not made or of host memory, or out is "
                              "NULL");
    if (manager->cuda->struct_size < offsetof(cai_cuda, copy_3d_async) || !manager->cuda->copy_async ||
        !manager->cuda->stream_synchronize)
        return cai_priv_error(err, CAI_ERR_UNAVAILABLE,
                              "the CUDA table has no copy_async or no stream_synchronize");
    CAI_TRY(cai_ipc_import(ipc, in, &from, err));
    if (from.size) {
        status = cai_priv_ipc_copy_of(out, &from, manager, stream, err);
        cai_array_release(&from);
        return status;
    }
    from.device = manager->device;
    from.backend = cai_priv_backend(manager->cuda);
    from.flags |= CAI_WRITABLE;
    cai_array_move(out, &from);
    return CAI_OK;
}

#if defined(__clang__) && defined(__cplusplus)
#pragma clang diagnostic pop
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CAI_IPC_IMPLEMENTATION */

/*
MIT License

Copyright (c) 2026 the cai authors

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without
limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions
of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED
TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER
DEALINGS IN THE SOFTWARE.
*/
