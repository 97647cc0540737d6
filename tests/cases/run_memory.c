/* run_memory.c - the conformance cases of cai_manager.h: memory.txt, the calls of hooks and of CUDA, exactly.
 * SPDX-License-Identifier: MIT
 *
 *     run_memory [--verbose] [--self-test] [--only ID] memory.txt
 *
 * The commands are described in README.md; otherwise as run_cases. */
#if !defined(CAI_TESTS_LINKED)
#define CAI_IMPLEMENTATION
#endif
#define CAI_NO_CUDART
#define CAI_NO_LOADER
#include "cai_manager.h"

#include "caller_per_thread.h"
#include "memory_commands.h"
#include "runner.h"

static const call_entry memory_calls[] = {
    {"builtin", do_builtin},         {"check", do_check},           {"init", do_init},
    {"destroy_manager", do_destroy_manager},
    {"reset", do_reset},             {"memory_info", do_memory_info}, {"flush", do_flush},
    {"defer_begin", do_defer_begin}, {"defer_end", do_defer_end},   {"alloc", do_alloc},
    {"host_alloc", do_host_alloc},   {"managed_alloc", do_managed_alloc}, {"pin", do_pin},
    {"free", do_free},               {"retain", do_retain},         {"info", do_info},
    {"ipc", do_ipc},                 {"new_array", do_new_array},   {"own", do_own},
    {"release_array", do_release_array}, {NULL, NULL},
};

static const plain_entry memory_plains[] = {
    {"hooks", do_hooks},       {"hook", do_hook},         {"addresses", do_addresses},
    {"lists", do_lists},       {"manager", do_manager},   {"table_is", do_table_is},
    {"pointer", do_pointer},   {"handle", do_handle},     {"one_allocation", do_one_allocation},
    {"set_sync", do_set_sync}, {"data", do_data},         {"owned", do_owned},
    {"borrowed", do_borrowed}, {"counts", do_counts},     {"live", do_live},
    {"two_allocations", do_two_allocations}, {"fill_list", do_fill_list}, {"move_array", do_move_array},
    {NULL, NULL},
};

static void memory_begin(script_words *in)
{
    memset(&mw, 0, sizeof mw);
    hooks_begin(in);
}

/* The lock is free. */
static void memory_check(script_words *in)
{
    if (mw.made && mw.emm.guard != 0) complain(in, "the manager's lock is held");
}

/* All references of a handle go, on the memory's stream. */
static void free_all_of(script_words *in, cai_memory_handle handle, const char *name)
{
    cai_memory_object info;
    cai_error err;
    while (handle != 0 && cai_manager_describe(&mw.emm, handle, &info, NULL) == CAI_OK) {
        if (cai_manager_free(&mw.emm, handle, 1, &err) == CAI_OK) continue;
        complain(in, "at the end, free %s: %s", name, err.message);
        return;
    }
}

static void destroy_at_end(script_words *in)
{
    cai_error err;
    while (mw.emm.defer_depth > 0 && cai_manager_defer_end(&mw.emm, &err) == CAI_OK) continue;
    if (cai_manager_destroy(&mw.emm, &err) != CAI_OK) complain(in, "at the end, manager: %s", err.message);
    mw.made = 0;
    hw.emm = NULL;
}

/* Arrays, handles and manager go; then nothing of the hooks' and of the manager's own is left. */
static void memory_finish(script_words *in)
{
    cai_error err;
    int i;
    for (i = 0; i < hw.fault_count; i++) {
        if (hw.faults[i].countdown > 0) complain(in, "%s was not called as often", hw.faults[i].hook);
    }
    if (!w.pool_gone && cai_keepalive_drain(&w.pool, &err) != CAI_OK)
        complain(in, "at the end, drain: %s", err.message);
    for (i = 0; i < w.array_count; i++) {
        if (w.arrays[i].array != NULL && w.arrays[i].array->release != release_array)
            cai_array_release(w.arrays[i].array);
    }
    for (i = 0; mw.made && i < mw.handle_count; i++)
        free_all_of(in, mw.handles[i].handle, mw.handles[i].name);
    if (mw.made) destroy_at_end(in);
    for (i = 0; i < MEMORY_LISTS; i++) {
        if (mw.lists[i] != NULL) complain(in, "the manager left a list of %d bytes", (int)mw.list_sizes[i]);
    }
}

static void memory_free(void)
{
    int i;
    for (i = 0; i < MEMORY_LISTS; i++) free(mw.lists[i]);
}

int main(int argc, char **argv)
{
    static const runner r = {"run_memory",  memory_calls,  memory_plains, memory_begin,
                             memory_check, memory_finish, hook_leaks,    memory_free};
    return run_main(argc, argv, &r);
}
