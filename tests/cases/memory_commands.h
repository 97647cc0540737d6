/* memory_commands.h - the commands of memory.txt beside those of commands.h. README.md lists them.
 * SPDX-License-Identifier: MIT */
#ifndef MEMORY_COMMANDS_H
#define MEMORY_COMMANDS_H

#include "commands.h"
#include "hooks.h"

enum { MEMORY_HANDLES = 96, MEMORY_LISTS = 64 };

/* A handle of the case. */
typedef struct named_memory {
    char name[WORLD_NAME];
    cai_memory_handle handle;
    cai_memory_ipc ipc;
} named_memory;

typedef struct memory_world {
    cai_manager emm;
    int made;                    /* there is a manager */
    named_memory handles[MEMORY_HANDLES];
    int handle_count;
    void *lists[MEMORY_LISTS];   /* of the manager, not yet freed */
    size_t list_sizes[MEMORY_LISTS];
    int lists_fail;              /* the n-th request from now fails */
} memory_world;

static memory_world mw;

/* ------------------------------------------------------- lists of the manager */

static void *list_alloc(void *user_data, size_t size)
{
    int i;
    if (user_data != &mw) complain(w.in, "alloc_fn gets another user_data");
    if (mw.lists_fail > 0 && --mw.lists_fail == 0) return NULL;
    for (i = 0; i < MEMORY_LISTS && mw.lists[i] != NULL; i++) continue;
    if (i == MEMORY_LISTS) script_bad(w.in, "too many lists of the manager's own");
    mw.lists[i] = malloc(size);
    if (mw.lists[i] == NULL) script_bad(w.in, "out of memory");
    memset(mw.lists[i], w.garbage, size);
    mw.list_sizes[i] = size;
    return mw.lists[i];
}

static void list_free(void *user_data, void *list, size_t size)
{
    int i;
    for (i = 0; i < MEMORY_LISTS && (mw.lists[i] != list || list == NULL); i++) continue;
    if (i == MEMORY_LISTS) {
        complain(w.in, "free_fn gets what alloc_fn did not give");
        return;
    }
    if (user_data != &mw || mw.list_sizes[i] != size)
        complain(w.in, "free_fn gets another size or user_data");
    mw.lists[i] = NULL;
    free(list);
}

/* ---------------------------------------------------------------------- words */

static named_memory *find_memory(const char *name)
{
    int i;
    for (i = 0; i < mw.handle_count; i++) {
        if (strcmp(mw.handles[i].name, name) == 0) return &mw.handles[i];
    }
    return NULL;
}

static named_memory *new_memory_word(script_words *in)
{
    const char *name = script_word(in);
    named_memory *m = find_memory(name);
    if (m == NULL) m = &mw.handles[mw.handle_count++];
    if (mw.handle_count == MEMORY_HANDLES) script_bad(in, "too many handles");
    memset(m, 0, sizeof *m);
    copy_name(in, m->name, name);
    return m;
}

static named_memory *memory_word_known(script_words *in)
{
    named_memory *m = find_memory(script_word(in));
    if (m == NULL) {
        in->at--;
        script_bad(in, "no such handle");
    }
    return m;
}

/* A handle: a name, or a number. */
static cai_memory_handle handle_word(script_words *in)
{
    const char *word = script_word(in);
    in->at--;
    if (word[0] >= '0' && word[0] <= '9') return (cai_memory_handle)script_number(in);
    return memory_word_known(in)->handle;
}

static int32_t kind_word(script_words *in)
{
    static const char *const kinds[] = {"device", "pool",    "host",      "pinned",
                                        "mapped", "managed", "registered"};
    static const int32_t values[] = {CAI_MEMORY_DEVICE, CAI_MEMORY_POOL,    CAI_MEMORY_HOST,
                                     CAI_MEMORY_PINNED, CAI_MEMORY_MAPPED,  CAI_MEMORY_MANAGED,
                                     CAI_MEMORY_REGISTERED};
    int32_t i;
    for (i = 0; i < 7; i++) {
        if (script_take(in, kinds[i])) return values[i];
    }
    return (int32_t)script_number(in);
}

static uint64_t on_stream(script_words *in)
{
    if (!script_take(in, "on")) script_bad(in, "on a stream?");
    return stream_word(in);
}

/* --------------------------------------------------------------------- tables */

/* Takes the name of a hook and sets it to NULL. */
static int lose_hook(script_words *in, cai_emm_hooks *h)
{
#define LOSE_HOOK(hook)                                                                                      \
    if (script_take(in, #hook)) {                                                                            \
        h->hook = NULL;                                                                                      \
        return 1;                                                                                            \
    }
    LOSE_HOOK(device_alloc)
    LOSE_HOOK(device_free)
    LOSE_HOOK(initialize)
    LOSE_HOOK(reset)
    LOSE_HOOK(memory_info)
    LOSE_HOOK(defer)
    LOSE_HOOK(ipc_handle)
    LOSE_HOOK(host_alloc)
    LOSE_HOOK(host_free)
    LOSE_HOOK(pin)
    LOSE_HOOK(unpin)
    LOSE_HOOK(managed_alloc)
    LOSE_HOOK(managed_free)
#undef LOSE_HOOK
    return 0;
}

/* Only the pair that every table has. */
static void only_pair(cai_emm_hooks *h)
{
    h->initialize = NULL;
    h->reset = NULL;
    h->memory_info = NULL;
    h->defer = NULL;
    h->ipc_handle = NULL;
    h->host_alloc = NULL;
    h->host_free = NULL;
    h->pin = NULL;
    h->unpin = NULL;
    h->managed_alloc = NULL;
    h->managed_free = NULL;
}

static int table_field(script_words *in, hook_table *t)
{
    cai_emm_hooks *h = &t->hooks;
    if (script_take(in, "frees_wait")) h->flags |= (uint32_t)CAI_EMM_FREES_WAIT;
    else if (script_take(in, "cuda_host")) h->flags |= (uint32_t)CAI_EMM_CUDA_HOST;
    else if (script_take(in, "flags")) h->flags = (uint32_t)script_number(in);
    else if (script_take(in, "version")) h->version = (uint32_t)script_number(in);
    else if (script_take(in, "kind")) h->kind = kind_word(in);
    else if (script_take(in, "size")) h->struct_size = (uint32_t)script_number(in);
    else if (script_take(in, "ends_before_initialize"))
        h->struct_size = (uint32_t)offsetof(cai_emm_hooks, initialize);
    else if (script_take(in, "ends_before_host_alloc"))
        h->struct_size = (uint32_t)offsetof(cai_emm_hooks, host_alloc);
    else if (script_take(in, "unended")) memset(h->name, 'x', sizeof h->name);
    else if (script_take(in, "unnamed")) h->name[0] = 0;
    else return 0;
    return 1;
}

/* hooks NAME [pair] [chunked] [free 32 total 64] [kind K] [frees_wait] [cuda_host] [flags N] [version N]
 *       [size N] [ends_before_initialize] [ends_before_host_alloc] [unended] [unnamed] [without HOOK ...] */
static void do_hooks(script_words *in)
{
    hook_table *t = make_table(in, script_word(in));
    while (script_more(in)) {
        if (script_take(in, "pair")) only_pair(&t->hooks);
        else if (script_take(in, "chunked")) t->chunked = 1;
        else if (script_take(in, "free")) t->free_bytes = (size_t)script_number(in);
        else if (script_take(in, "total")) t->total_bytes = (size_t)script_number(in);
        else if (script_take(in, "without")) {
            while (script_more(in) && lose_hook(in, &t->hooks)) continue;
        } else if (!table_field(in, t)) script_bad(in, "not understood");
    }
}

/* builtin cuda | async | host: a table of the library by that name */
static cai_status do_builtin(script_words *in, cai_error *err)
{
    hook_table *t = make_table(in, script_word(in));
    cai_emm_hooks before;
    cai_status status = CAI_OK;
    memset(&t->hooks, w.garbage, sizeof t->hooks);
    before = t->hooks;
    if (strcmp(t->name, "cuda") == 0) status = cai_emm_hooks_cuda(&t->hooks, &w.cuda, err);
    else if (strcmp(t->name, "async") == 0) status = cai_emm_hooks_async(&t->hooks, &w.cuda, NULL, err);
    else if (strcmp(t->name, "host") == 0) cai_emm_hooks_malloc(&t->hooks);
    else script_bad(in, "no built-in table before");
    if (status != CAI_OK && memcmp(&t->hooks, &before, sizeof before) != 0)
        complain(in, "the call failed and changed the table");
    if (status == CAI_OK && cai_emm_hooks_check(&t->hooks, NULL) != CAI_OK)
        complain(in, "the built-in table is refused by cai_emm_hooks_check");
    return status;
}

/* table_is cuda name cuda kind device flags 3: what the table says */
static void do_table_is(script_words *in)
{
    const hook_table *t = table_word(in);
    while (script_more(in)) {
        if (script_take(in, "name")) {
            if (strcmp(script_word(in), t->hooks.name) != 0) complain(in, "its name is %s", t->hooks.name);
        } else if (script_take(in, "kind")) {
            same(in, "kind", (uint64_t)(int64_t)t->hooks.kind, (uint64_t)(int64_t)kind_word(in));
        } else if (script_take(in, "flags")) {
            same(in, "flags", t->hooks.flags, (uint64_t)script_number(in));
        } else script_bad(in, "not understood");
    }
}

/* check NAME */
static cai_status do_check(script_words *in, cai_error *err)
{
    return cai_emm_hooks_check(&table_word(in)->hooks, err);
}

/* hook [NAME.]HOOK fails 2 | gives null | gives misaligned, [at 3]: its next, or third, call from now */
static void do_hook(script_words *in)
{
    hook_fault *f = &hw.faults[hw.fault_count++];
    if (hw.fault_count == HOOKS_FAULTS) script_bad(in, "too many");
    sprintf(f->hook, "%.40s", script_word(in));
    f->countdown = 1;
    if (script_take(in, "gives")) f->gift = script_word(in)[0];
    else if (script_take(in, "fails")) f->error = (int32_t)script_number(in);
    if (script_take(in, "at")) f->countdown = (int)script_number(in);
}

/* addresses reuse: memory that went is given out again, that which went last first */
static void do_addresses(script_words *in)
{
    hw.reuse = script_take(in, "reuse");
}

/* lists fail [at 2]: the manager gets no memory for its own lists, the next time, or the second */
static void do_lists(script_words *in)
{
    script_take(in, "fail");
    mw.lists_fail = script_take(in, "at") ? (int)script_number(in) : 1;
}

/* -------------------------------------------------------------------- manager */

/* init [over NAME] [count N] [bytes N] [malloc] [half] [reserved N] [no_options] [no_pool] */
static cai_status do_init(script_words *in, cai_error *err)
{
    cai_manager_options options, *used = &options;
    const hook_table *t = &hw.tables[0];
    cai_event_pool *pool = &w.pool;
    cai_status status;
    memset(&options, 0, sizeof options);
    options.alloc_fn = list_alloc;
    options.free_fn = list_free;
    options.user_data = &mw;
    while (script_more(in)) {
        if (script_take(in, "over")) t = table_word(in);
        else if (script_take(in, "count")) options.deferred_count = (int32_t)script_number(in);
        else if (script_take(in, "bytes")) options.deferred_bytes = (uint64_t)script_number(in);
        else if (script_take(in, "malloc")) memset(&options, 0, sizeof options);
        else if (script_take(in, "half")) options.free_fn = NULL;
        else if (script_take(in, "flags")) options.flags = (int32_t)script_number(in);
        else if (script_take(in, "no_options")) used = NULL;
        else if (script_take(in, "no_pool")) pool = NULL;
        else break;
    }
    memset(&mw.emm, w.garbage, sizeof mw.emm);
    hw.emm = NULL; /* no hook may be called */
    status = cai_manager_init(&mw.emm, pool, &t->hooks, used, err);
    mw.made = status == CAI_OK;
    hw.emm = mw.made ? &mw.emm : NULL;
    return status;
}

/* manager [ready] and the words of init: not looked at. ready: and initialized, if it tells of memory */
static void do_manager(script_words *in)
{
    const int ready = script_take(in, "ready");
    size_t unused;
    cai_error err;
    begin_log();
    if (do_init(in, &err) != CAI_OK) complain(in, "no manager: %s", err.message);
    else if (ready && mw.emm.hooks.memory_info != NULL &&
             cai_manager_device_memory(&mw.emm, &unused, &unused, &err) != CAI_OK)
        complain(in, "not ready: %s", err.message);
}

static cai_status do_destroy_manager(script_words *in, cai_error *err)
{
    const cai_status status = cai_manager_destroy(&mw.emm, err);
    (void)in;
    if (status == CAI_OK || status == CAI_ERR_CUDA) { /* gone all the same */
        mw.made = 0;
        hw.emm = NULL;
        memset(&mw.emm, w.garbage, sizeof mw.emm);
        mw.handle_count = 0;
    }
    return status;
}

static cai_status do_reset(script_words *in, cai_error *err)
{
    (void)in;
    return cai_manager_reset(&mw.emm, err);
}

/* memory_info [free 32 total 64]: what it tells */
static cai_status do_memory_info(script_words *in, cai_error *err)
{
    size_t free_bytes = 77, total_bytes = 77;
    const cai_status status = cai_manager_device_memory(&mw.emm, &free_bytes, &total_bytes, err);
    if (status != CAI_OK && (free_bytes != 77 || total_bytes != 77)) complain(in, "stores after a failure");
    if (script_take(in, "free")) same(in, "free", free_bytes, (uint64_t)script_number(in));
    if (script_take(in, "total")) same(in, "total", total_bytes, (uint64_t)script_number(in));
    return status;
}

static cai_status do_flush(script_words *in, cai_error *err)
{
    (void)in;
    return cai_manager_flush(&mw.emm, err);
}

static cai_status do_defer_begin(script_words *in, cai_error *err)
{
    (void)in;
    return cai_manager_defer_begin(&mw.emm, err);
}

static cai_status do_defer_end(script_words *in, cai_error *err)
{
    (void)in;
    return cai_manager_defer_end(&mw.emm, err);
}

/* --------------------------------------------------------------------- memory */

static cai_memory_handle no_handle(void)
{
    cai_memory_handle handle;
    memset(&handle, w.garbage, sizeof handle);
    return handle;
}

/* Keeps a new handle; 0 after a failure, which touches nothing. */
static cai_status got(script_words *in, named_memory *m, cai_memory_handle handle, cai_status status)
{
    const named_memory *other = &mw.handles[0];
    for (; handle != 0 && status == CAI_OK && other < &mw.handles[mw.handle_count]; other++) {
        if (other != m && other->handle == handle) complain(in, "%s had that handle", other->name);
    }
    if (status != CAI_OK && handle != no_handle()) complain(in, "the call failed and touched the handle");
    m->handle = status == CAI_OK ? handle : 0;
    return status;
}

/* alloc a 1024 [align 4096] on X */
static cai_status do_alloc(script_words *in, cai_error *err)
{
    named_memory *m = new_memory_word(in);
    const size_t size = (size_t)script_number(in);
    const size_t alignment = script_take(in, "align") ? (size_t)script_number(in) : 0;
    const uint64_t stream = on_stream(in);
    cai_memory_handle handle = no_handle();
    const cai_status status = cai_manager_alloc(&handle, &mw.emm, size, alignment, stream, err);
    return got(in, m, handle, status);
}

static uint32_t flags_words(script_words *in)
{
    return script_take(in, "flags") ? (uint32_t)script_number(in) : 0;
}

/* host_alloc a 4096 [flags 3] */
static cai_status do_host_alloc(script_words *in, cai_error *err)
{
    named_memory *m = new_memory_word(in);
    const size_t size = (size_t)script_number(in);
    const uint32_t flags = flags_words(in);
    cai_memory_handle handle = no_handle();
    const cai_status status = cai_manager_pinned_alloc(&handle, &mw.emm, size, flags, err);
    return got(in, m, handle, status);
}

/* managed_alloc a 4096 [flags 1] */
static cai_status do_managed_alloc(script_words *in, cai_error *err)
{
    named_memory *m = new_memory_word(in);
    const size_t size = (size_t)script_number(in);
    const uint32_t flags = flags_words(in);
    cai_memory_handle handle = no_handle();
    const cai_status status = cai_manager_managed_alloc(&handle, &mw.emm, size, flags, err);
    return got(in, m, handle, status);
}

/* pin a 4096 at h+256 | null [flags 1] */
static cai_status do_pin(script_words *in, cai_error *err)
{
    named_memory *m = new_memory_word(in);
    const size_t size = (size_t)script_number(in);
    uint64_t address = 0;
    uint32_t flags;
    cai_memory_handle handle = no_handle();
    cai_status status;
    script_take(in, "at");
    if (!script_take(in, "null")) address = address_word(in);
    flags = flags_words(in);
    status = cai_manager_pin(&handle, &mw.emm, (void *)(uintptr_t)address, size, flags, err);
    return got(in, m, handle, status);
}

/* free a on X */
static cai_status do_free(script_words *in, cai_error *err)
{
    const cai_memory_handle handle = handle_word(in);
    return cai_manager_free(&mw.emm, handle, on_stream(in), err);
}

/* retain a */
static cai_status do_retain(script_words *in, cai_error *err)
{
    return cai_manager_retain(&mw.emm, handle_word(in), err);
}

static void same_info(script_words *in, const cai_memory_object *info)
{
    if (script_take(in, "address")) same(in, "address", info->address, address_or_none(in));
    else if (script_take(in, "size")) same(in, "size", info->size, (uint64_t)script_number(in));
    else if (script_take(in, "number")) same(in, "number", info->number, (uint64_t)script_number(in));
    else if (script_take(in, "kind"))
        same(in, "kind", (uint64_t)(int64_t)info->kind, (uint64_t)(int64_t)kind_word(in));
    else if (script_take(in, "references"))
        same(in, "references", (uint64_t)info->references, (uint64_t)script_number(in));
    else if (script_take(in, "lost"))
        same(in, "lost", (uint64_t)(int64_t)info->lost, (uint64_t)script_number(in));
    else script_bad(in, "not understood");
}

/* info a [address p1] [size 1024] [on X] [number 1] [kind device] [references 1] [lost 0] */
static cai_status do_info(script_words *in, cai_error *err)
{
    const cai_memory_handle handle = handle_word(in);
    cai_memory_object info, before;
    cai_status status;
    memset(&info, w.garbage, sizeof info);
    before = info;
    status = cai_manager_describe(&mw.emm, handle, &info, err);
    if (status != CAI_OK && memcmp(&info, &before, sizeof info) != 0) complain(in, "stores after a failure");
    if (status == CAI_OK) same(in, "memory", info.memory, handle);
    while (status == CAI_OK && script_more(in)) same_info(in, &info);
    return status;
}

/* fill_list: the next handle needs another list */
static void do_fill_list(script_words *in)
{
    (void)in;
    mw.emm.idle = NULL;
}

/* pointer a is p1+256 | none */
static void do_pointer(script_words *in)
{
    const cai_memory_handle handle = handle_word(in);
    script_take(in, "is");
    same(in, "pointer", (uint64_t)(uintptr_t)cai_manager_pointer(&mw.emm, handle), address_or_none(in));
}

/* handle a is 0 */
static void do_handle(script_words *in)
{
    const cai_memory_handle handle = handle_word(in);
    script_take(in, "is");
    same(in, "handle", handle, (uint64_t)script_number(in));
}

/* ipc a [offset 256] [size 128] [device 0] */
static cai_status do_ipc(script_words *in, cai_error *err)
{
    named_memory *m = memory_word_known(in);
    cai_status status;
    memset(&m->ipc, w.garbage, sizeof m->ipc);
    status = cai_manager_ipc_handle(&mw.emm, m->handle, &m->ipc, err);
    if (script_take(in, "offset")) same(in, "offset", m->ipc.offset, (uint64_t)script_number(in));
    if (script_take(in, "size")) same(in, "size", m->ipc.size, (uint64_t)script_number(in));
    if (script_take(in, "device"))
        same(in, "device", (uint64_t)(int64_t)m->ipc.device, (uint64_t)script_number(in));
    if (status == CAI_OK) same(in, "reserved", (uint64_t)(int64_t)m->ipc.reserved, 0);
    return status;
}

/* one_allocation a b: both have the same handle for other processes. two_allocations a b */
static int ipc_differ(script_words *in)
{
    const named_memory *a = memory_word_known(in), *b = memory_word_known(in);
    return memcmp(a->ipc.handle, b->ipc.handle, sizeof a->ipc.handle) != 0;
}

static void do_one_allocation(script_words *in)
{
    if (ipc_differ(in)) complain(in, "they have different handles");
}

static void do_two_allocations(script_words *in)
{
    if (!ipc_differ(in)) complain(in, "they have one handle");
}

/* --------------------------------------------------------------------- arrays */

static int32_t code_word(script_words *in)
{
    const char *name = script_word(in);
    int32_t code;
    for (code = 0; code < 0x10000; code++) {
        if (strcmp(cai_dtype_name(code), name) == 0) return code;
    }
    in->at--;
    return (int32_t)script_number(in);
}

/* new_array x float32 4 8 on X */
static cai_status do_new_array(script_words *in, cai_error *err)
{
    held *h = &w.arrays[w.array_count++];
    cai_array untouched;
    int64_t shape[SCRIPT_WORDS];
    int32_t code, ndim = 0;
    cai_status status;
    if (w.array_count == WORLD_ARRAYS) script_bad(in, "too many arrays");
    copy_name(in, h->name, script_word(in));
    code = code_word(in);
    while (script_more(in) && strcmp(in->word[in->at], "on") != 0) shape[ndim++] = script_number(in);
    h->array = (cai_array *)script_storage(1, sizeof *h->array);
    memset(h->array, w.garbage, sizeof *h->array);
    status = cai_manager_array(h->array, &mw.emm, code, ndim, shape, on_stream(in), err);
    h->data = status == CAI_OK ? h->array->data : 0;
    memset(&untouched, w.garbage, sizeof untouched);
    if (status != CAI_OK && memcmp(h->array, &untouched, sizeof untouched) != 0)
        complain(in, "the call failed and touched the array");
    if (status != CAI_OK) h->array->release = NULL;
    return status;
}

/* own x a */
static cai_status do_own(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    const cai_array before = *h->array;
    const cai_status status = cai_manager_own(h->array, &mw.emm, handle_word(in), err);
    if (status == CAI_OK && h->array->release == NULL) complain(in, "%s is not owned", h->name);
    return unchanged(in, h, &before, status);
}

/* release_array x: cai_array_release */
static cai_status do_release_array(script_words *in, cai_error *err)
{
    held *h = array_word(in);
    (void)err;
    cai_array_release(h->array);
    if (h->array->release != NULL) complain(in, "%s is still owned", h->name);
    return CAI_OK;
}

/* move_array x: the struct is somewhere else from now on, its old place overwritten */
static void do_move_array(script_words *in)
{
    held *h = array_word(in);
    cai_array *to = (cai_array *)script_storage(1, sizeof *to);
    cai_array_move(to, h->array);
    memset(h->array, w.garbage, sizeof *h->array);
    free(h->array);
    h->array = to;
}

/* set_sync x on Y | none | unknown | event E [beside X], [thread 1]: the case changes what the array says */
static void do_set_sync(script_words *in)
{
    held *h = array_word(in);
    h->array->stream = h->array->event = h->array->thread = 0;
    if (!array_sync(in, h->array)) script_bad(in, "not understood");
    if (script_take(in, "thread")) h->array->thread = (uint64_t)script_number(in);
}

/* data x is p1+256 | none */
static void do_data(script_words *in)
{
    const held *h = array_word(in);
    script_take(in, "is");
    same(in, "data", h->array->data, address_or_none(in));
}

/* owned x, borrowed x */
static void do_owned(script_words *in)
{
    const held *h = array_word(in);
    if (h->array->release == NULL) complain(in, "%s is not owned", h->name);
}

static void do_borrowed(script_words *in)
{
    const held *h = array_word(in);
    if (h->array->release != NULL) complain(in, "%s is owned", h->name);
}

/* ---------------------------------------------------------------------- facts */

/* counts [live 1] [live_bytes 1024] [deferred 0] [deferred_bytes 0] [allocated 1] [freed 0] [retries 0]
 *        [lost 0] [failed 0] [first_failure 0] */
static void do_counts(script_words *in)
{
    cai_manager_count c;
    memset(&c, w.garbage, sizeof c);
    cai_manager_counts(&mw.emm, &c);
    while (script_more(in)) {
#define COUNT(field)                                                                                         \
    if (script_take(in, #field)) {                                                                           \
        same(in, #field, (uint64_t)c.field, (uint64_t)script_number(in));                                    \
        continue;                                                                                            \
    }
        COUNT(live)
        COUNT(live_bytes)
        COUNT(deferred)
        COUNT(deferred_bytes)
        COUNT(allocated)
        COUNT(freed)
        COUNT(retries)
        COUNT(lost)
        COUNT(failed)
        COUNT(first_failure)
#undef COUNT
        script_bad(in, "not understood");
    }
}

static const char *name_of_handle(cai_memory_handle handle)
{
    int i;
    for (i = mw.handle_count - 1; i >= 0; i--) {
        if (mw.handles[i].handle == handle) return handle ? mw.handles[i].name : "-";
    }
    return handle ? "?" : "-";
}

/* live a b -: the leak report, `-` for an object that only arrays have. live nothing */
static void do_live(script_words *in)
{
    cai_memory_object infos[MEMORY_HANDLES], first;
    const int64_t count = cai_manager_list(&mw.emm, infos, MEMORY_HANDLES);
    char text[SCRIPT_TEXT] = "", wanted[SCRIPT_TEXT] = "";
    int64_t i;
    same(in, "live without room", (uint64_t)cai_manager_list(&mw.emm, NULL, 0), (uint64_t)count);
    memset(&first, w.garbage, sizeof first);
    same(in, "live with room for one", (uint64_t)cai_manager_list(&mw.emm, &first, 1), (uint64_t)count);
    if (count > 0) same(in, "the number of the first", first.number, infos[0].number);
    for (i = 0; i < count && i < 24; i++)
        sprintf(text + strlen(text), "%s%s", i ? " " : "", name_of_handle(infos[i].memory));
    while (script_more(in)) {
        if (wanted[0]) strcat(wanted, " ");
        strcat(wanted, script_word(in));
    }
    if (strcmp(wanted, count ? text : "nothing") != 0) complain(in, "live are: %s", count ? text : "nothing");
}

#endif
