/* watch.c - what the host itself accesses: pinned and managed memory that work uses which nobody waited for
 * SPDX-License-Identifier: MIT
 *
 * The memory is a file that is mapped twice: for the program, and for the simulation's own copies. When work is
 * queued that uses it, the program's pages are dropped. The bytes stay, and the next access of the program, also by
 * way of the system, brings the pages back. /proc/self/pagemap tells which are there. Nothing is ever protected, so no
 * access fails and no signal is needed.
 *
 * Of memory that work reads only a write of the host matters: the bytes are compared with what they were. Of memory
 * that work writes every access matters. Once a host thread has waited for the work, the use of it is forgotten. */
#include "driver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WATCH_PAGE = 4096, WATCH_USES = 1024, WATCH_ENTRIES = 256 };

/* A block of memory. Never freed, as the simulation uses it again or keeps it. */
typedef struct watch_block {
    uint64_t address, bytes; /* whole pages */
    uint64_t apart;          /* from the program's addresses to those of the simulation */
    uint64_t asked;          /* bytes that are in use */
} watch_block;

/* Bytes that an operation uses which no host thread has waited for. */
typedef struct watch_use {
    uint64_t operation;
    uint64_t first, end;
    uint64_t page, page_end; /* the pages that are looked at */
    uint64_t apart;
    uint64_t digest; /* of the bytes, if the operation reads them */
    int32_t writes;
    int32_t shared;  /* it writes what another one reads */
    int32_t split;   /* the pages are a mapping of their own */
    int32_t told;    /* the access is in the trace */
    int32_t fresh;   /* its pages are not dropped yet */
} watch_use;

/* Memory that the program registered: its pages cannot be dropped. */
typedef struct watch_registered {
    uint64_t first, bytes;
    int32_t used;
} watch_registered;

/* The outer lock is for reading the trace, the inner one for what is here. Under the inner one nothing calls the
 * simulation, which calls watch_make and watch_function with its own lock. */
static pthread_mutex_t watch_outer = PTHREAD_MUTEX_INITIALIZER, watch_inner = PTHREAD_MUTEX_INITIALIZER;
static int32_t watch_active;    /* there are blocks or registrations */
static int32_t watch_use_count; /* read without a lock, too */
static int32_t watch_functions; /* of operations that run now */
static __thread int32_t watch_in_function;
static watch_block *watch_blocks; /* by address */
static int32_t watch_block_count;
static watch_use watch_uses[WATCH_USES];
static watch_registered *watch_registrations;
static int32_t watch_registration_count;
static int watch_file = -1, watch_pages = -1;
static uint64_t watch_file_end;
static long watch_faults = -1;
static uint64_t watch_read;         /* the last operation of the trace that was read */
static unsigned char *watch_waited; /* of each operation: 1: a host thread waited for it */
static uint64_t watch_waited_room;
static uint64_t *watch_stack;
static size_t watch_stack_room;
static cai_driver_host watch_counts;

static uint64_t watch_round(uint64_t bytes)
{
    return (bytes + WATCH_PAGE - 1) / WATCH_PAGE * WATCH_PAGE;
}

static void *watch_memory(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ------------------------------------------------------------------------ >>blocks */
/* With the lock. 0: this system lacks something. */
static int watch_open(void)
{
    if (watch_file >= 0)
        return 1;
    if (sysconf(_SC_PAGESIZE) != WATCH_PAGE)
        return 0;
    watch_pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (watch_pages < 0)
        return 0;
    watch_file = memfd_create("cai_sim host memory", MFD_CLOEXEC);
    return watch_file >= 0;
}

static uint64_t watch_map(uint64_t at, uint64_t bytes)
{
    void *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, watch_file, (off_t)at);
    if (made == MAP_FAILED)
        return 0;
    (void)madvise(made, bytes, MADV_NOHUGEPAGE);
    return (uint64_t)(uintptr_t)made;
}

static void watch_add_block(uint64_t address, uint64_t bytes, uint64_t apart)
{
    int32_t place = watch_block_count;
    if (!(watch_block_count & (watch_block_count - 1))) {
        const size_t room = watch_block_count ? 2 * (size_t)watch_block_count : 1;
        watch_blocks = (watch_block *)realloc(watch_blocks, room * sizeof *watch_blocks);
        if (!watch_blocks)
            abort();
    }
    for (; place && watch_blocks[place - 1].address > address; --place)
        watch_blocks[place] = watch_blocks[place - 1];
    watch_blocks[place].address = address;
    watch_blocks[place].bytes = bytes;
    watch_blocks[place].apart = apart;
    ++watch_block_count;
}

/* With the lock. Blocks do not follow one another in the file, so that the system never joins their mappings: it maps
 * pages around one that is read, but only in the same mapping. */
static uint64_t watch_new_block(uint64_t bytes, uint64_t *second)
{
    uint64_t address;
    if (!watch_open() || ftruncate(watch_file, (off_t)(watch_file_end + bytes)))
        return 0;
    address = watch_map(watch_file_end, bytes);
    *second = address ? watch_map(watch_file_end, bytes) : 0;
    if (!*second) {
        if (address)
            munmap(watch_memory(address), bytes);
        return 0;
    }
    watch_file_end += bytes + WATCH_PAGE;
    watch_add_block(address, bytes, *second - address);
    return address;
}

static void *watch_make(void *context, uint64_t bytes, void **second)
{
    uint64_t address, other = 0;
    (void)context;
    pthread_mutex_lock(&watch_inner);
    address = watch_new_block(watch_round(bytes ? bytes : 1), &other);
    watch_counts.watched += address != 0;
    watch_counts.not_watched += address == 0;
    pthread_mutex_unlock(&watch_inner);
    if (address)
        __atomic_store_n(&watch_active, 1, __ATOMIC_RELEASE);
    *second = watch_memory(other);
    return watch_memory(address);
}

/* With the lock. The block around an address, or NULL. */
static watch_block *watch_block_of(uint64_t address)
{
    int32_t low = 0, high = watch_block_count;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (watch_blocks[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || address - watch_blocks[low - 1].address >= watch_blocks[low - 1].bytes)
        return NULL;
    return &watch_blocks[low - 1];
}

static void watch_clear(void *context, void *block, uint64_t bytes)
{
    const watch_block *found;
    (void)context;
    pthread_mutex_lock(&watch_inner);
    found = watch_block_of(driver_number(block));
    pthread_mutex_unlock(&watch_inner);
    block = watch_memory(driver_number(block) + found->apart);
    if (madvise(block, watch_round(bytes), MADV_REMOVE))
        memset(block, 0, bytes);
}

/* ------------------------------------------------------------------------- >>pages */
/* Page faults of this process so far: if there was none, the host has touched nothing that was dropped. */
static long watch_fault_count(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? -1 : usage.ru_minflt + usage.ru_majflt;
}

/* The first and the last of the pages of a use that are there. 0: none. */
static int watch_there(const watch_use *use, uint64_t *first, uint64_t *last)
{
    uint64_t entries[WATCH_ENTRIES], page = use->page;
    int found = 0;
    while (page < use->page_end) {
        const uint64_t left = (use->page_end - page) / WATCH_PAGE, count = left < WATCH_ENTRIES ? left : WATCH_ENTRIES;
        uint64_t i;
        if (pread(watch_pages, entries, count * 8, (off_t)(page / WATCH_PAGE * 8)) != (ssize_t)(count * 8))
            return found;
        for (i = 0; i < count; ++i) {
            if (!(entries[i] >> 62)) /* neither present nor swapped */
                continue;
            if (!found)
                *first = page + i * WATCH_PAGE;
            *last = page + i * WATCH_PAGE;
            found = 1;
        }
        page += count * WATCH_PAGE;
    }
    return found;
}

static int watch_drop(const watch_use *use)
{
    return !madvise(watch_memory(use->page), use->page_end - use->page, MADV_DONTNEED);
}

/* A number made of the bytes of a use as the simulation sees them. */
static uint64_t watch_digest(const watch_use *use)
{
    const unsigned char *bytes = (const unsigned char *)watch_memory(use->first + use->apart);
    uint64_t left = use->end - use->first, digest = left, word;
    for (; left; left -= word, bytes += word) {
        uint64_t value = 0;
        word = left < 8 ? left : 8;
        memcpy(&value, bytes, word);
        digest = (digest ^ value) * 0x9E3779B97F4A7C15u;
        digest ^= digest >> 32;
    }
    return digest;
}

static int watch_overlap(const watch_use *a, const watch_use *b)
{
    return a->first < b->end && b->first < a->end;
}

/* What an operation wrote is not what the host wrote. */
static void watch_digest_again(const watch_use *writer)
{
    int32_t i;
    for (i = 0; i < watch_use_count; ++i)
        if (!watch_uses[i].writes && watch_overlap(&watch_uses[i], writer))
            watch_uses[i].digest = watch_digest(&watch_uses[i]);
}

/* -------------------------------------------------------------------------- >>uses */
/* The pages to look at. Of memory that is written: those that are wholly so, if there are any, as the rest of another
 * page may be used meanwhile. */
static void watch_pages_of(watch_use *use, const watch_block *block, uint64_t used_end)
{
    const uint64_t outer_end = watch_round(use->end);
    const uint64_t inner = watch_round(use->first);
    const uint64_t inner_end = use->end >= used_end ? outer_end : use->end / WATCH_PAGE * WATCH_PAGE;
    use->page = use->first / WATCH_PAGE * WATCH_PAGE;
    use->page_end = outer_end;
    if (!use->writes || inner >= inner_end)
        return;
    use->page = inner;
    use->page_end = inner_end;
    use->split = inner != block->address || inner_end != block->address + block->bytes;
}

/* The system maps the pages around one that is read, but only those of the same mapping. Advice that differs makes
 * mappings that are not joined. */
static void watch_split(const watch_use *use, int yes)
{
    static const int advice[] = {MADV_RANDOM, MADV_SEQUENTIAL};
    static uint32_t turn;
    const uint64_t bytes = use->page_end - use->page;
    if (!use->split)
        return;
    (void)madvise(watch_memory(use->page), bytes, yes ? advice[turn / 2 % 2] : MADV_NORMAL);
    (void)madvise(watch_memory(use->page), bytes, yes && turn % 2 ? MADV_DONTDUMP : MADV_DODUMP);
    turn += (uint32_t)yes;
}

/* With the inner lock. */
static void watch_remove(int32_t place)
{
    watch_split(&watch_uses[place], 0);
    memmove(&watch_uses[place], &watch_uses[place + 1],
            (size_t)(watch_use_count - place - 1) * sizeof *watch_uses);
    __atomic_store_n(&watch_use_count, watch_use_count - 1, __ATOMIC_RELEASE);
}

/* With the inner lock: an operation uses memory from now on. */
static void watch_add(const cai_sim_operation *op, const cai_sim_access *access)
{
    const watch_block *block = watch_block_of(access->address);
    watch_use use;
    if (!block || !access->bytes || access->bytes > block->bytes)
        return;
    if (watch_use_count == WATCH_USES) {
        ++watch_counts.forgotten;
        watch_remove(0);
    }
    memset(&use, 0, sizeof use);
    use.operation = op->id;
    use.first = access->address;
    use.end = access->address + access->bytes;
    use.apart = block->apart;
    use.writes = access->write != 0;
    use.fresh = 1;
    watch_pages_of(&use, block, block->address + block->asked);
    watch_uses[watch_use_count] = use;
    __atomic_store_n(&watch_use_count, watch_use_count + 1, __ATOMIC_RELEASE);
}

/* With the inner lock: memory is freed, or used by another allocation. */
static void watch_forget(uint64_t first, uint64_t end)
{
    int32_t i;
    for (i = watch_use_count - 1; i >= 0; --i)
        if (watch_uses[i].first < end && first < watch_uses[i].end)
            watch_remove(i);
}

static void watch_allocated(uint64_t address, uint64_t bytes)
{
    watch_block *block = watch_block_of(address);
    if (block)
        block->asked = bytes;
}

static void watch_arm(watch_use *use)
{
    int32_t i;
    use->fresh = 0;
    watch_split(use, 1);
    if (!watch_drop(use)) { /* the program locked it */
        use->told = 1;
        ++watch_counts.forgotten;
    }
    if (!use->writes)
        use->digest = watch_digest(use);
    for (i = 0; i < watch_use_count; ++i)
        if (watch_uses[i].writes != use->writes && watch_overlap(&watch_uses[i], use))
            watch_uses[i].shared = use->shared = 1;
}

/* ----------------------------------------------------------------------- >>the trace */
static int watch_is_waited(uint64_t operation)
{
    return operation <= watch_waited_room && watch_waited[operation - 1];
}

static void watch_push(size_t *depth, uint64_t operation)
{
    if (watch_is_waited(operation))
        return;
    if (operation > watch_waited_room) {
        const uint64_t room = 2 * operation;
        watch_waited = (unsigned char *)realloc(watch_waited, room);
        if (!watch_waited)
            abort();
        memset(watch_waited + watch_waited_room, 0, room - watch_waited_room);
        watch_waited_room = room;
    }
    watch_waited[operation - 1] = 1;
    if (*depth == watch_stack_room) {
        watch_stack_room = watch_stack_room ? 2 * watch_stack_room : 64;
        watch_stack = (uint64_t *)realloc(watch_stack, watch_stack_room * sizeof *watch_stack);
        if (!watch_stack)
            abort();
    }
    watch_stack[(*depth)++] = operation;
}

/* A host thread has waited for an entry, and so for all before it. No entry is looked at twice. */
static void watch_wait(const cai_sim_operation *op)
{
    cai_sim_operation one = *op;
    size_t depth = 0;
    int32_t i;
    for (;;) {
        for (i = 0; i < one.wait_count; ++i)
            watch_push(&depth, one.waits[i]);
        do {
            if (!depth)
                return;
        } while (!cai_sim_operation_get(cai_driver_sim(), watch_stack[--depth], &one));
    }
}

/* With the inner lock. */
static void watch_note_registered(const cai_sim_access *access)
{
    int32_t i;
    for (i = 0; i < watch_registration_count; ++i) {
        watch_registered *one = &watch_registrations[i];
        if (one->used || access->address - one->first >= one->bytes)
            continue;
        one->used = 1;
        ++watch_counts.registered;
    }
}

static void watch_entry(const cai_sim_operation *op)
{
    const cai_sim_access *x = op->accesses;
    int32_t i;
    if (op->kind == CAI_SIM_OP_SYNCHRONIZE)
        watch_wait(op);
    if (!op->access_count)
        return;
    pthread_mutex_lock(&watch_inner);
    if (op->kind == CAI_SIM_OP_ALLOC)
        watch_allocated(x->address, x->bytes);
    else if (op->kind == CAI_SIM_OP_FREE)
        watch_forget(x->address, x->address + x->bytes);
    else if (op->stream && op->state != CAI_SIM_STATE_CAPTURED)
        for (i = 0; i < op->access_count; ++i) {
            watch_note_registered(&x[i]);
            watch_add(op, &x[i]);
        }
    pthread_mutex_unlock(&watch_inner);
}

/* What writes memory that other work reads has perhaps run now. */
static void watch_look_at_writers(void)
{
    cai_sim_operation op;
    int32_t i;
    for (i = 0; i < watch_use_count; ++i) { /* only who has the outer lock adds and removes */
        watch_use *use = &watch_uses[i];
        if (!use->writes || use->shared != 1)
            continue;
        if (!cai_sim_operation_get(cai_driver_sim(), use->operation, &op) || op.state == CAI_SIM_STATE_QUEUED)
            continue;
        pthread_mutex_lock(&watch_inner);
        use->shared = 2;
        watch_digest_again(use);
        pthread_mutex_unlock(&watch_inner);
    }
}

/* With the outer lock: reads what is new in the trace. */
static void watch_read_trace(void)
{
    const uint64_t last = cai_sim_operation_count(cai_driver_sim());
    cai_sim_operation op;
    int32_t i;
    while (watch_read < last)
        if (cai_sim_operation_get(cai_driver_sim(), ++watch_read, &op))
            watch_entry(&op);
    watch_look_at_writers();
    pthread_mutex_lock(&watch_inner);
    for (i = watch_use_count - 1; i >= 0; --i)
        if (watch_is_waited(watch_uses[i].operation))
            watch_remove(i);
    for (i = 0; i < watch_use_count; ++i)
        if (watch_uses[i].fresh)
            watch_arm(&watch_uses[i]);
    pthread_mutex_unlock(&watch_inner);
}

/* ------------------------------------------------------------------------ >>looking */
/* With the inner lock. Did the host access what it should not, as far as the bytes that are left tell? Then *first
 * and *end are the bytes. */
static int watch_judge(watch_use *use, uint64_t *first, uint64_t *end)
{
    uint64_t page = use->page, last = use->page_end - WATCH_PAGE;
    int seen = 0;
    if (use->told || use->fresh)
        return 0;
    if (watch_there(use, &page, &last)) {
        if (!use->writes)
            (void)watch_drop(use);
        seen = use->writes || watch_digest(use) != use->digest;
    }
    *first = page > use->first ? page : use->first;
    *end = last + WATCH_PAGE < use->end ? last + WATCH_PAGE : use->end;
    return seen;
}

/* What is written first: the pages of what is read are dropped again. */
static int32_t watch_judge_all(cai_sim_access *found)
{
    int32_t i, writes, count = 0;
    for (writes = 1; writes >= 0; --writes)
        for (i = 0; i < watch_use_count; ++i) {
            watch_use *use = &watch_uses[i];
            uint64_t first, end;
            if (use->writes != writes || !watch_judge(use, &first, &end))
                continue;
            use->told = 1;
            found[count] = cai_sim_reads(first, end - first);
            found[count++].write = !writes;
        }
    return count;
}

int32_t driver_watch_look(cai_sim_access **found)
{
    int32_t count = 0;
    long faults;
    *found = NULL;
    if (!__atomic_load_n(&watch_use_count, __ATOMIC_ACQUIRE) || watch_in_function)
        return 0;
    faults = watch_fault_count();
    if (faults == __atomic_load_n(&watch_faults, __ATOMIC_RELAXED) && faults >= 0)
        return 0;
    pthread_mutex_lock(&watch_outer);
    watch_read_trace();
    pthread_mutex_lock(&watch_inner);
    if (watch_use_count && !watch_functions) {
        __atomic_store_n(&watch_faults, faults, __ATOMIC_RELAXED);
        *found = (cai_sim_access *)calloc((size_t)watch_use_count, sizeof **found);
        count = *found ? watch_judge_all(*found) : 0;
    }
    pthread_mutex_unlock(&watch_inner);
    pthread_mutex_unlock(&watch_outer);
    if (!count)
        free(*found);
    return count;
}

void driver_watch_queued(void)
{
    if (!__atomic_load_n(&watch_active, __ATOMIC_ACQUIRE) || watch_in_function)
        return;
    pthread_mutex_lock(&watch_outer);
    watch_read_trace();
    pthread_mutex_unlock(&watch_outer);
}

/* A function that work calls accesses memory in the order of its stream: what was touched when it ends is forgotten. */
static void watch_function(void *context, int32_t begins)
{
    int32_t i;
    (void)context;
    pthread_mutex_lock(&watch_inner);
    watch_in_function += begins ? 1 : -1;
    watch_functions += begins ? 1 : -1;
    for (i = 0; i < watch_use_count && !begins; ++i) {
        watch_use *use = &watch_uses[i];
        if (use->told || use->fresh)
            continue;
        (void)watch_drop(use);
        if (!use->writes)
            use->digest = watch_digest(use);
    }
    __atomic_store_n(&watch_faults, -1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&watch_inner);
}

/* --------------------------------------------------------------------- >>registrations */
void driver_watch_registered(uint64_t address, uint64_t bytes)
{
    int32_t i = 0;
    if (driver_recorder)
        return;
    pthread_mutex_lock(&watch_inner);
    while (bytes && i < watch_registration_count && watch_registrations[i].bytes)
        ++i;
    while (!bytes && i < watch_registration_count && watch_registrations[i].first != address)
        ++i;
    if (i == watch_registration_count && bytes) {
        watch_registered *more = (watch_registered *)realloc(watch_registrations, ((size_t)i + 1) * sizeof *more);
        if (!more)
            abort();
        watch_registrations = more;
        ++watch_registration_count;
    }
    if (i < watch_registration_count) {
        watch_registrations[i].first = address;
        watch_registrations[i].bytes = bytes;
        watch_registrations[i].used = 0;
    }
    pthread_mutex_unlock(&watch_inner);
    if (bytes)
        __atomic_store_n(&watch_active, 1, __ATOMIC_RELEASE);
}

void driver_watch_counts(cai_driver_host *out)
{
    pthread_mutex_lock(&watch_inner);
    *out = watch_counts;
    pthread_mutex_unlock(&watch_inner);
}

void driver_watch_begin(cai_sim *sim)
{
    static const cai_sim_host_memory functions = {NULL, watch_make, watch_clear, watch_function};
    cai_sim_set_host_memory(sim, &functions);
}
