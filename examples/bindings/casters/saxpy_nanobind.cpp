/* saxpy_nanobind.cpp - y = a x + y on the caller's stream, for arrays of any library, by cai_nanobind.h
 * SPDX-License-Identifier: MIT */
#define CAI_IMPLEMENTATION
#include "cai_stream.h"
#include "cai_nanobind.h"
#include "saxpy_device.h"

static cai_event_pool pool;
static cai_keepalive places[64]; // arrays that wait until the work on them has passed
static saxpy_device *device;

static cai_status saxpy(float a, cai_array *x, cai_array *y, uint64_t s, cai_error *err)
{
    cai_array *const io[2] = {x, y};
    cai_exchange ex;
    CAI_TRY(cai_expect(x, "x", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE, err));
    CAI_TRY(cai_expect(y, "y", CAI_FLOAT32, CAI_ANY_NDIM, CAI_ON_DEVICE | CAI_WRITABLE | CAI_NO_SELF_OVERLAP, err));
    CAI_TRY(cai_expect_same_shape_named(x, "x", y, "y", err));
    CAI_TRY(cai_exchange_begin(&ex, &pool, io, 2, s, err));
    const cai_status status = cai_exchange_finish(&ex, saxpy_device_launch(device, a, x, 1, y, s, err), io, 2, err);
    if (x->release || y->release) // a release failed; when the stream has passed, they may go all the same
        (void)pool.cuda->stream_synchronize(pool.cuda->self, s);
    return status;
}

NB_MODULE(saxpy_nanobind, m)
{
    cai_error err;
    cai_nb::open(m);
    device = saxpy_device_open();
    if (cai_event_pool_init(&pool, saxpy_device_cuda(device), places, 64, 0, &err)) cai_nb::raise(err);
    m.def("saxpy", [](float a, cai_nb::array x, cai_nb::array y, cai_nb::stream s) {
        nanobind::gil_scoped_release without_gil;
        cai_error why;
        if (saxpy(a, &x, &y, s.number, &why)) cai_nb::raise(why);
    });
}
