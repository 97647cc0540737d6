/* fake_cuda.h - how test_loader.c steers and reads the fake CUDA driver of fake_libcuda.c.
 * SPDX-License-Identifier: MIT
 *
 * The driver has two devices, contexts c1 (primary of device 0), c2 (primary of device 1) and c3 (device 0);
 * streams s1, s2 (c1), s3 (c2), s4 and s6 (c1, one capture), s5 (c1, its capture is invalid);
 * memory m1 (device 0, c1, 5 GiB), m2 (device 1, c2), m3 (pinned, another address on the device), m4
 * (managed), m5 (a pool of device 1), m6 (a CUDA array), m7 (pinned in c1, no address on a device), m8
 * (pinned in c2, no address in another context). Devices have no access to one another. What is allocated or
 * opened is FAKE_MADE, and as
 * large as that, no memory of the model. Every call is a line of the log: the function, the
 * CUDA version whose signature it has, the inputs; `*name` for an output that is wanted, `-` for one that is
 * NULL; and ` ! 400` if it fails. FAKE_CUDA_DRIVER in the environment: the newest CUDA it can do. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdint.h>

#if defined(_WIN32)
#define FAKE_EXPORT __declspec(dllexport)
#define FAKE_CALL __stdcall
#else
#define FAKE_CALL
#define FAKE_EXPORT __attribute__((visibility("default")))
#endif

/* Values that do not survive 32 bits */
#define FAKE_CAPTURE_ID 0x1122334455667788ULL
#define FAKE_STREAM_ID 0x5100000000000000ULL /* + the number of the stream */
#define FAKE_M1 0x00007a1000000000ULL
#define FAKE_M1_SIZE 0x0000000140000200ULL
#define FAKE_M2 0x00007a2000000000ULL
#define FAKE_M3 0x00007a3000000000ULL
#define FAKE_M3_ON_DEVICE 0x00007b3000000000ULL
#define FAKE_M4 0x00007a4000000000ULL
#define FAKE_M5 0x00007a5000000000ULL
#define FAKE_M6 0x00007a6000000000ULL
#define FAKE_M7 0x00007a8000000000ULL
#define FAKE_M8 0x00007a9000000000ULL
#define FAKE_SIZE 0x10000ULL
#define FAKE_MADE 0x00007a7000000000ULL
#define FAKE_FREE 0x0000000150000000ULL  /* bytes of a device */
#define FAKE_TOTAL 0x0000000250000000ULL
#define FAKE_HANDLE_BYTE(i) ((unsigned char)(0x31 + 3 * (int)(i))) /* of the handle of every allocation */
#define FAKE_UUID_BYTE(device, i) ((unsigned char)(0xd0 + 32 * (int)(device) + (int)(i)))

enum { FAKE_FOUND = 0, FAKE_NOT_FOUND = 1, FAKE_VERSION_TOO_OLD = 2 };

struct fake_control {
    void (*reset)(void);         /* as at the start: c1 is current, no failures, empty log */
    int32_t (*driver)(void);     /* the newest CUDA it can do */
    void (*set_initialized)(int32_t yes); /* whether cuInit was called */
    void (*fail)(const char *function, int32_t error); /* "*": all; error 0 ends it */
    int32_t (*failing)(const char *function); /* its error */
    void (*hide)(const char *symbol); /* cuGetProcAddress does not know it; "": nothing hidden */
    void (*narrow)(int32_t yes); /* booleans of pointers: store one byte instead of four */
    void (*make_current)(const char *context); /* the only one on the stack; "": none */
    int32_t (*depth)(void);      /* of the stack */
    const char *(*current)(void);
    uint64_t (*handle)(const char *name);
    void (*set_pending)(int32_t yes); /* events have not passed */
    void (*work)(const char *stream); /* more work on it */
    int32_t (*ordered)(const char *before, const char *after); /* all work of one is before what comes next */
    int32_t (*events)(void);     /* that live */
    int32_t (*retained)(void);   /* references to primary contexts */
    void (*set_active)(int32_t device, int32_t yes); /* whether others retain its primary context; they do */
    int32_t (*primaries_made)(void); /* primary contexts that a call made active */
    void (*set_mirror)(int32_t yes); /* without a context, pointers have zeros for attributes, no error */
    int32_t (*damaged)(void);    /* guard bytes that changed */
    const char *(*log)(void);
    void (*clear)(void);         /* the log */
    /* for the fake runtimes */
    void (*note)(const char *line);
    int32_t (*find)(const char *symbol, int32_t version, int32_t per_thread, void (**function)(void));
};

typedef const struct fake_control *(*fake_control_function)(void);
#define FAKE_CONTROL_NAME "fake_cuda_control"

#endif
