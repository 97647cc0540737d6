/* dlpack_world.h - what dlpack_order.c and dlpack_table.c share: a simulated CUDA with a pool, inside a module.
 * SPDX-License-Identifier: MIT */
#if !defined(DLPACK_WORLD_H_INCLUDED)
#define DLPACK_WORLD_H_INCLUDED

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define CAI_STATIC
#define CAI_IMPLEMENTATION
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_stream.h"

#include <dlpack/dlpack.h>

#include "cai_python_dlpack.h"

#include "cai_sim.c"

#include "cai_check.c"

enum { BYTES = 64, PLACES = 8 };

typedef struct world {
    cai_python py;
    cai_sim *sim;
    cai_event_pool pool;
    cai_keepalive places[PLACES];
} world;

static world *world_of(PyObject *module)
{
    return (world *)PyModule_GetState(module);
}

static void launch(world *w, uint64_t stream, const char *name, uint64_t data)
{
    const cai_sim_access access = cai_sim_writes(data, BYTES);
    (void)cai_sim_touch(w->sim, stream, name, &access, 1);
}

/* streams(count) -> handles, in a new simulation */
static PyObject *world_streams(PyObject *module, PyObject *args)
{
    world *w = world_of(module);
    PyObject *made;
    cai_error err;
    int count, i;
    if (!PyArg_ParseTuple(args, "i:streams", &count)) return NULL;
    w->sim = cai_sim_create(2);
    if (!w->sim) return PyErr_NoMemory();
    (void)cai_sim_set_context(w->sim, cai_sim_primary(w->sim, 0));
    if (cai_event_pool_init(&w->pool, cai_sim_cuda(w->sim), w->places, PLACES, 0, &err))
        return cai_python_raise(&err);
    made = PyTuple_New(count);
    for (i = 0; made && i < count; ++i)
        PyTuple_SetItem(made, i, PyLong_FromUnsignedLongLong(cai_sim_stream_create(w->sim, 1)));
    return made;
}

/* Waits for all, and drops what was kept: an array may keep a tensor that keeps an array. */
static int drop_kept(world *w)
{
    cai_error err;
    do {
        if (cai_keepalive_drain(&w->pool, &err)) {
            (void)cai_python_raise(&err);
            return -1;
        }
        cai_python_drain(&w->py);
    } while (w->pool.waiting);
    return 0;
}

/* close() -> what was wrong: the last race, or errors of CUDA; "" nothing. Ends the simulation. */
static PyObject *world_close(PyObject *module, PyObject *unused)
{
    world *w = world_of(module);
    char text[CAI_CHECK_TEXT] = "";
    cai_check_race races[8];
    cai_error err;
    int32_t count;
    (void)unused;
    if (drop_kept(w)) return NULL;
    if (cai_event_pool_destroy(&w->pool, &err)) return cai_python_raise(&err);
    count = cai_check_races(w->sim, races, 8);
    if (count) cai_check_race_text(w->sim, &races[count < 8 ? count - 1 : 7], text);
    else (void)cai_sim_errors(w->sim, text, sizeof text);
    cai_sim_destroy(w->sim);
    w->sim = NULL;
    return PyUnicode_FromString(text);
}

#endif /* DLPACK_WORLD_H_INCLUDED */
