/* test_kernel.c - the reader of images: images made here, damaged ones, and files
 * SPDX-License-Identifier: MIT
 *
 * test_kernel [--list FILE | --fuzz ROUNDS FILE...]
 * --list writes the kernels and variables of a file. --fuzz damages files at random and reads them. */
#include "cai_kernel.h"
#include "cai_test.h"

#ifdef __unix__
#include <dlfcn.h>
#endif

enum { MOST = 1 << 16, SECTIONS = 8, MEMORY_BYTES = 4096 };

#define MEMORY UINT64_C(0x7f0000001000)

/* ------------------------------------------------------------------ >>images made here */
/* A cubin as it is built. */
typedef struct cubin {
    uint8_t bytes[MOST];
    size_t end;
    size_t offsets[SECTIONS];
    size_t sizes[SECTIONS];
    uint32_t types[SECTIONS];
    uint32_t links[SECTIONS];
    uint32_t names[SECTIONS];
    int count;
} cubin;

static void put(uint8_t *at, uint64_t value, int bytes)
{
    int i;
    for (i = 0; i < bytes; ++i)
        at[i] = (uint8_t)(value >> 8 * i & 0xff);
}

static void add(cubin *made, uint64_t value, int bytes)
{
    put(made->bytes + made->end, value, bytes);
    made->end += (size_t)bytes;
}

/* Begins a section. Its bytes are added behind it. */
static int begin(cubin *made, uint32_t name, uint32_t type, uint32_t link)
{
    made->offsets[made->count] = made->end;
    made->names[made->count] = name;
    made->types[made->count] = type;
    made->links[made->count] = link;
    return made->count++;
}

static void end(cubin *made)
{
    made->sizes[made->count - 1] = made->end - made->offsets[made->count - 1];
}

static void add_text(cubin *made, const char *text, size_t bytes)
{
    memcpy(made->bytes + made->end, text, bytes);
    made->end += bytes;
}

static void add_symbol(cubin *made, uint32_t name, int type, int other, int section, uint64_t value,
                       uint64_t bytes)
{
    add(made, name, 4);
    add(made, (uint64_t)type, 1);
    add(made, (uint64_t)other, 1);
    add(made, (uint64_t)section, 2);
    add(made, value, 8);
    add(made, bytes, 8);
}

static void add_parameter(cubin *made, int ordinal, int offset, uint64_t bytes)
{
    add(made, 0x04 | 0x17 << 8 | 12 << 16, 4);
    add(made, 0, 4);
    add(made, (uint64_t)ordinal, 2);
    add(made, (uint64_t)offset, 2);
    add(made, bytes << 18 | 0xf500, 4);
}

static void add_large_parameter(cubin *made, int ordinal, int offset, uint64_t bytes)
{
    add(made, 0x04 | 0x45 << 8 | 12 << 16, 4);
    add(made, 0, 4);
    add(made, (uint64_t)ordinal, 2);
    add(made, (uint64_t)offset, 2);
    add(made, bytes | 0x05000000, 4); /* the alignment of what it points to */
}

/* The names of the sections, and of the symbols. */
static const char section_names[] = "\0.shstrtab\0.strtab\0.symtab\0.nv.info.run"
                                    "\0.nv.global\0.nv.global.init";
static const char symbol_names[] = "\0run\0zeros\0three\0helper";

static void add_header(cubin *made)
{
    int i;
    size_t table;
    table = made->end = (made->end + 7) / 8 * 8;
    for (i = 0; i < made->count; ++i) {
        uint8_t *row = made->bytes + made->end;
        put(row, made->names[i], 4);
        put(row + 4, made->types[i], 4);
        put(row + 24, made->offsets[i], 8);
        put(row + 32, made->sizes[i], 8);
        put(row + 40, made->links[i], 4);
        made->end += 64;
    }
    memcpy(made->bytes, "\177ELF\2\1\1\101\10", 9);
    put(made->bytes + 18, 190, 2);
    put(made->bytes + 40, table, 8);
    put(made->bytes + 48, 0x6005a04, 4);
    put(made->bytes + 58, 64, 2);
    put(made->bytes + 60, (uint64_t)made->count, 2);
    put(made->bytes + 62, 1, 2);
}

/* run(8 bytes, a struct of 24 bytes, 4 bytes), two variables, and a function that is no kernel. `info` writes
 * other records. */
static void build(cubin *made, void (*info)(cubin *))
{
    memset(made, 0, sizeof *made);
    made->end = 64;
    begin(made, 0, 0, 0);
    begin(made, 1, 3, 0);
    add_text(made, section_names, sizeof section_names);
    end(made);
    begin(made, 11, 3, 0);
    add_text(made, symbol_names, sizeof symbol_names);
    end(made);
    begin(made, 19, 2, 2);
    add_symbol(made, 0, 0, 0, 0, 0, 0);
    add_symbol(made, 1, 0x12, 0x10, 5, 0, 128);
    add_symbol(made, 5, 0x01, 0, 5, 8, 40);
    add_symbol(made, 11, 0x01, 4, 6, 4, 4);
    add_symbol(made, 17, 0x12, 0, 5, 0, 128);
    end(made);
    begin(made, 27, 0x70000000, 3);
    info(made);
    end(made);
    begin(made, 40, 8, 0);
    made->sizes[5] = 48;
    begin(made, 51, 1, 0);
    add(made, UINT64_C(0x300000002), 8);
    end(made);
    add_header(made);
}

static void plain_info(cubin *made)
{
    add(made, 0x04 | 0x37 << 8 | 4 << 16, 4);
    add(made, 130, 4);
    add_parameter(made, 2, 32, 4);
    add_parameter(made, 1, 8, 24);
    add_parameter(made, 0, 0, 8);
    add(made, 0x03 | 0x1b << 8 | 255 << 16, 4); /* a value, and no payload of 255 bytes */
    add(made, 0x04 | 0x0a << 8 | 8 << 16, 4);
    add(made, 5, 4);
    add(made, 528 | 36 << 16, 4);
}

static void large_info(cubin *made)
{
    add_large_parameter(made, 1, 20008, 8);
    add_large_parameter(made, 0, 0, 20008);
}

/* Reads bytes that end where their memory ends, so that a sanitizer sees a step behind them. */
static cai_kernel_image *read_exactly(const void *data, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    cai_kernel_image *image;
    if (!copy)
        return NULL;
    memcpy(copy, data, bytes);
    image = cai_kernel_image_read(copy, bytes);
    free(copy);
    return image;
}

static void check_run(const cai_kernel_image *image)
{
    const cai_kernel *kernel = cai_kernel_find(image, "run");
    const cai_kernel_global *global = cai_kernel_global_find(image, "three");
    CHECK_INT(cai_kernel_image_is_opaque(image), 0);
    CHECK_INT(cai_kernel_count(image), 1);
    CHECK(kernel == cai_kernel_at(image, 0));
    if (!kernel || !global || kernel->parameter_count != 3) {
        CHECK(0);
        return;
    }
    CHECK_INT(kernel->opaque, 0);
    CHECK_INT(kernel->architecture, 90);
    CHECK_UINT(kernel->parameter_bytes, 36);
    CHECK_UINT(kernel->parameters[1].offset, 8);
    CHECK_UINT(kernel->parameters[1].bytes, 24);
    CHECK_UINT(kernel->parameters[2].offset, 32);
    CHECK_UINT(kernel->parameters[2].bytes, 4);
    CHECK_INT(cai_kernel_global_count(image), 2);
    CHECK_UINT(global->bytes, 4);
    CHECK_INT(global->managed, 1);
    CHECK(global->data && *(const char *)global->data == 3);
    global = cai_kernel_global_find(image, "zeros");
    CHECK(global && global->bytes == 40 && !global->data && !global->managed);
}

static void test_cubin(void)
{
    static cubin made;
    cai_kernel_image *image;
    build(&made, plain_info);
    image = read_exactly(made.bytes, made.end);
    check_run(image);
    CHECK(!cai_kernel_find(image, "helper"));
    CHECK(!cai_kernel_find(image, "zeros"));
    CHECK(!cai_kernel_find(image, NULL));
    CHECK(!cai_kernel_at(image, 1) && !cai_kernel_at(image, -1));
    CHECK(!cai_kernel_global_at(image, 2) && !cai_kernel_global_at(image, -1));
    cai_kernel_image_free(image);
    image = cai_kernel_image_read(made.bytes, 0); /* it says how long it is */
    check_run(image);
    cai_kernel_image_free(image);
    CHECK(!cai_kernel_image_read(NULL, 4));
    CHECK(cai_kernel_image_is_opaque(NULL) && !cai_kernel_count(NULL) && !cai_kernel_global_count(NULL));
    cai_kernel_image_free(NULL);
}

static void test_large(void)
{
    static cubin made;
    cai_kernel_image *image;
    const cai_kernel *kernel;
    build(&made, large_info);
    image = read_exactly(made.bytes, made.end);
    kernel = cai_kernel_find(image, "run");
    CHECK(kernel && kernel->parameter_count == 2 && kernel->parameter_bytes == 20016);
    CHECK(kernel && kernel->parameters[1].offset == 20008 && kernel->parameters[1].bytes == 8);
    cai_kernel_image_free(image);
}

/* ------------------------------------------------------------------------ >>damaged */
static void twice_info(cubin *made)
{
    add_parameter(made, 0, 0, 8);
    add_parameter(made, 0, 8, 8);
}

static void gap_info(cubin *made)
{
    add_parameter(made, 2, 8, 8);
    add_parameter(made, 0, 0, 8);
}

static void outside_info(cubin *made)
{
    add_parameter(made, 0, 32, 8);
    add(made, 0x04 | 0x0a << 8 | 8 << 16, 4);
    add(made, 5, 4);
    add(made, 528 | 36 << 16, 4);
}

static void cut_info(cubin *made)
{
    add_parameter(made, 0, 0, 8);
    add(made, 0x04 | 0x17 << 8 | 12 << 16, 4);
    add(made, 0, 4);
}

static void strange_info(cubin *made)
{
    add_parameter(made, 0, 0, 8);
    add(made, 9, 4);
}

static void silent_info(cubin *made)
{
    add(made, 0x04 | 0x0a << 8 | 8 << 16, 4);
    add(made, 5, 4);
    add(made, 528 | 36 << 16, 4);
}

/* The kernel is known by name, and its parameters are not. */
static void test_damaged_parameters(void)
{
    static void (*const infos[])(cubin *) = {twice_info, gap_info, outside_info,
                                             cut_info, strange_info, silent_info};
    static cubin made;
    size_t i;
    for (i = 0; i < sizeof infos / sizeof *infos; ++i) {
        cai_kernel_image *image;
        const cai_kernel *kernel;
        build(&made, infos[i]);
        image = read_exactly(made.bytes, made.end);
        kernel = cai_kernel_find(image, "run");
        CHECK(kernel && kernel->opaque && !kernel->parameter_count);
        CHECK_INT(cai_kernel_image_is_opaque(image), 0);
        cai_kernel_image_free(image);
    }
}

/* Each ending is read without a step behind it, and no cut cubin passes for a whole one. */
static void test_cut(void)
{
    static cubin made;
    size_t bytes;
    build(&made, plain_info);
    for (bytes = 0; bytes < made.end; ++bytes) {
        cai_kernel_image *image = bytes ? read_exactly(made.bytes, bytes) : NULL;
        CHECK(!bytes || cai_kernel_image_is_opaque(image));
        cai_kernel_image_free(image);
    }
}

static void check_opaque(const void *data, size_t bytes)
{
    cai_kernel_image *image = read_exactly(data, bytes);
    CHECK(image && cai_kernel_image_is_opaque(image));
    cai_kernel_image_free(image);
}

static void test_unknown(void)
{
    static cubin made;
    check_opaque("x", 1);
    check_opaque("\177ELF", 4);
    check_opaque("\x50\xed\x55\xba", 4);
    check_opaque("\xb1\x43\x62\x46 a pointer that is not followed in a file", 44);
    build(&made, plain_info);
    put(made.bytes + 18, 62, 2); /* of another machine */
    check_opaque(made.bytes, made.end);
    build(&made, plain_info);
    put(made.bytes + 40, UINT64_MAX - 8, 8); /* the table of sections */
    check_opaque(made.bytes, made.end);
    build(&made, plain_info);
    put(made.bytes + 62, 7, 2); /* the section of names */
    check_opaque(made.bytes, made.end);
    CHECK(cai_kernel_image_is_opaque(cai_kernel_image_read(NULL, 0)));
}

/* -------------------------------------------------------------------- >>fat binaries */
static size_t fatbin(uint8_t *out, const void *entry, size_t bytes, uint64_t flags, int count)
{
    size_t at = 16;
    int i;
    memset(out, 0, 16);
    for (i = 0; i < count; ++i) {
        memset(out + at, 0, 64);
        put(out + at, 2, 2);
        put(out + at + 4, 64, 4);
        put(out + at + 8, bytes, 8);
        put(out + at + 40, flags, 8);
        memcpy(out + at + 64, entry, bytes);
        at += 64 + bytes;
    }
    put(out, 0xba55ed50, 4);
    put(out + 4, 1, 2);
    put(out + 6, 16, 2);
    put(out + 8, at - 16, 8);
    return at;
}

static void test_fatbin(void)
{
    static uint8_t fat[MOST];
    static cubin made;
    struct { uint32_t magic, version; const void *data, *more; } wrapper = {0x466243b1, 1, NULL, NULL};
    cai_kernel_image *image;
    size_t bytes;
    build(&made, plain_info);
    bytes = fatbin(fat, made.bytes, made.end, 0x11, 2); /* the second one adds no kernel */
    image = read_exactly(fat, bytes);
    check_run(image);
    cai_kernel_image_free(image);
    wrapper.data = fat;
    image = cai_kernel_image_read(&wrapper, 0);
    check_run(image);
    cai_kernel_image_free(image);
    wrapper.data = NULL;
    image = cai_kernel_image_read(&wrapper, 0);
    CHECK(image && cai_kernel_image_is_opaque(image));
    cai_kernel_image_free(image);
    bytes = fatbin(fat, made.bytes, made.end, 0x2011, 1);
    check_opaque(fat, bytes);
    bytes = fatbin(fat, made.bytes, made.end, 0x8011, 1);
    check_opaque(fat, bytes);
    check_opaque(fat, fatbin(fat, "", 0, 0x11, 0));
    bytes = fatbin(fat, made.bytes, made.end, 0x11, 1);
    check_opaque(fat, bytes - 1);
    put(fat + 24, UINT64_MAX - 40, 8); /* the size of the entry */
    check_opaque(fat, bytes);
}

/* ------------------------------------------------------------------------ >>Zstandard */
/* A frame of one block that is not compressed. `says`: the size that its head has. */
static size_t frame(uint8_t *out, const void *data, size_t bytes, uint64_t says)
{
    put(out, 0xfd2fb528, 4);
    put(out + 4, 0xe0, 1); /* one segment, and 8 bytes of size */
    put(out + 5, says, 8);
    put(out + 13, (uint64_t)bytes << 3 | 1, 3);
    memcpy(out + 16, data, bytes);
    return 16 + bytes;
}

static int has_zstd(void)
{
#ifdef __unix__
    return dlopen("libzstd.so.1", RTLD_NOW) != NULL;
#else
    return 0;
#endif
}

/* Sets what an entry of a fat binary is: its architecture and the bytes of its frame. */
static void describe_entry(uint8_t *entry, uint64_t kind, uint64_t architecture, uint64_t bytes)
{
    put(entry, kind, 2);
    put(entry + 16, bytes, 4);
    put(entry + 28, architecture, 4);
}

static void test_zstd(void)
{
    static uint8_t fat[MOST], packed[MOST], padded[MOST];
    static cubin made;
    static const uint64_t sizes[] = {0, 1, UINT64_C(1) << 28, (UINT64_C(1) << 28) + 1, UINT64_MAX - 1, UINT64_MAX};
    cai_kernel_image *image;
    size_t bytes, i;
    build(&made, plain_info);
    bytes = frame(packed, made.bytes, made.end, made.end);
    if (!has_zstd()) {
        check_opaque(fat, fatbin(fat, packed, bytes, 0x8011, 1));
        return;
    }
    image = read_exactly(fat, fatbin(fat, packed, bytes, 0x8011, 2)); /* one of two is read */
    check_run(image);
    cai_kernel_image_free(image);
    memcpy(padded, packed, bytes);
    fatbin(fat, padded, bytes + 7, 0x8011, 2); /* the second one is damaged, and of a newer architecture */
    describe_entry(fat + 16, 2, 90, bytes);
    describe_entry(fat + 16 + 64 + bytes + 7, 2, 100, bytes);
    memset(fat + 16 + 64 + bytes + 7 + 64, 0, 8);
    image = read_exactly(fat, 16 + 2 * (64 + bytes + 7));
    check_run(image);
    cai_kernel_image_free(image);
    check_opaque(fat, fatbin(fat, packed, bytes - 1, 0x8011, 1));
    for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        bytes = frame(packed, made.bytes, made.end, sizes[i]);
        check_opaque(fat, fatbin(fat, packed, bytes, 0x8011, 1));
    }
}

static void test_link(void)
{
    static cubin made;
    const void *inputs[2];
    size_t sizes[2], bytes = 0;
    cai_kernel_image *image;
    void *linked;
    build(&made, plain_info);
    inputs[0] = inputs[1] = made.bytes;
    sizes[0] = sizes[1] = made.end;
    linked = cai_kernel_link(inputs, sizes, 2, &bytes);
    image = read_exactly(linked, bytes);
    check_run(image);
    cai_kernel_image_free(image);
    free(linked);
    inputs[1] = "what nobody knows"; /* it may have kernels */
    sizes[1] = 17;
    linked = cai_kernel_link(inputs, sizes, 2, &bytes);
    check_opaque(linked, bytes);
    free(linked);
    CHECK(!cai_kernel_link(inputs, sizes, 0, &bytes));
    CHECK(!cai_kernel_link(NULL, sizes, 1, &bytes));
}

/* ------------------------------------------------------------------------ >>accesses */
static int one_memory(void *context, uint64_t address, uint64_t *first, uint64_t *bytes)
{
    (void)context;
    if (address < MEMORY || address - MEMORY >= MEMORY_BYTES)
        return 0;
    *first = MEMORY;
    *bytes = MEMORY_BYTES;
    return 1;
}

static void check_access(const cai_sim_access *access, uint64_t offset, uint64_t bytes, int write)
{
    CHECK_UINT(access->address, MEMORY + offset);
    CHECK_UINT(access->bytes, bytes);
    CHECK_INT(access->write, write);
}

/* The byte that a pointer points to is used, all of its memory may be. */
static void check_pointer(const cai_sim_access *two, uint64_t offset, int write)
{
    check_access(&two[0], offset, 1, write);
    check_access(&two[1], 0, MEMORY_BYTES, write ? CAI_SIM_MAY_ACCESS : CAI_SIM_MAY_READ);
}

static void test_pointers(void)
{
    static cubin made;
    uint64_t first = MEMORY, three[3] = {5, MEMORY + 64, MEMORY + MEMORY_BYTES};
    uint32_t tail = 7;
    uint8_t block[36];
    const void *arguments[3];
    cai_sim_access out[4];
    cai_kernel_image *image;
    const cai_kernel *run;
    build(&made, plain_info);
    image = read_exactly(made.bytes, made.end);
    run = cai_kernel_find(image, "run");
    arguments[0] = &first;
    arguments[1] = three;
    arguments[2] = &tail;
    CHECK_INT(cai_kernel_accesses(run, arguments, NULL, 0, one_memory, NULL, out, 4), 4);
    check_pointer(&out[0], 0, CAI_SIM_MAY_WRITE);
    check_pointer(&out[2], 64, CAI_SIM_MAY_WRITE);
    CHECK_INT(cai_kernel_accesses(run, arguments, NULL, 0, one_memory, NULL, NULL, 0), 4);
    arguments[1] = NULL;
    CHECK_INT(cai_kernel_accesses(run, arguments, NULL, 0, one_memory, NULL, out, 1), 2);
    memset(block, 0, sizeof block);
    memcpy(block + 8, three, sizeof three);
    CHECK_INT(cai_kernel_accesses(run, NULL, block, sizeof block, one_memory, NULL, out, 4), 2);
    check_pointer(&out[0], 64, CAI_SIM_MAY_WRITE);
    CHECK_INT(cai_kernel_accesses(run, NULL, block, 12, one_memory, NULL, out, 4), 0);
    memset(block, 0, sizeof block);
    memcpy(block + 12, &first, 8); /* not aligned */
    CHECK_INT(cai_kernel_accesses(run, NULL, block, sizeof block, one_memory, NULL, out, 4), 0);
    CHECK_INT(cai_kernel_accesses(run, NULL, NULL, 0, one_memory, NULL, out, 4), 0);
    CHECK_INT(cai_kernel_accesses(NULL, arguments, NULL, 0, one_memory, NULL, out, 4), 0);
    CHECK_INT(cai_kernel_accesses(run, arguments, NULL, 0, NULL, NULL, out, 4), 0);
    cai_kernel_image_free(image);
}

/* What words of PTX say goes before "may write". */
static void test_words(void)
{
    static const cai_kernel_parameter parameters[4] = {{0, 8}, {8, 8}, {16, 8}, {24, 8}};
    static const uint8_t words[4] = {CAI_KERNEL_READS, CAI_KERNEL_READS | CAI_KERNEL_WRITES, 0,
                                     CAI_KERNEL_UNKNOWN};
    const uint64_t block[4] = {MEMORY, MEMORY + 8, MEMORY + 16, MEMORY + 24};
    cai_kernel kernel;
    cai_sim_access out[6];
    memset(&kernel, 0, sizeof kernel);
    kernel.parameters = parameters;
    kernel.words = words;
    kernel.parameter_count = 4;
    kernel.parameter_bytes = 32;
    CHECK_INT(cai_kernel_accesses(&kernel, NULL, block, sizeof block, one_memory, NULL, out, 6), 6);
    check_pointer(&out[0], 0, 0);
    check_pointer(&out[2], 8, 1);
    check_pointer(&out[4], 24, CAI_SIM_MAY_WRITE);
}

/* -------------------------------------------------------------------------- >>Numba */
/* Launches with words as parameters of eight bytes. Returns the accesses. */
static int32_t launch_words(const uint64_t *words, int32_t count, cai_sim_access *out)
{
    static cai_kernel_parameter parameters[64];
    cai_kernel kernel;
    int32_t i;
    memset(&kernel, 0, sizeof kernel);
    for (i = 0; i < count; ++i) {
        parameters[i].offset = 8 * (uint32_t)i;
        parameters[i].bytes = 8;
    }
    kernel.parameters = parameters;
    kernel.parameter_count = count;
    kernel.parameter_bytes = 8 * (uint32_t)count;
    return cai_kernel_accesses(&kernel, NULL, words, 8 * (size_t)count, one_memory, NULL, out, 8);
}

#define MINUS(number) (UINT64_C(0) - (number))
#define CHECK_ARRAY(offset, size, ...)                                                            \
    do {                                                                                          \
        const uint64_t words[] = {__VA_ARGS__};                                                   \
        cai_sim_access got[8];                                                                    \
        CHECK_INT(launch_words(words, (int32_t)(sizeof words / sizeof *words), got), 1);          \
        check_access(&got[0], offset, size, CAI_SIM_MAY_WRITE);                                   \
    } while (0)

#define CHECK_POINTER(offset, ...)                                                                \
    do {                                                                                          \
        const uint64_t words[] = {__VA_ARGS__};                                                   \
        cai_sim_access got[8];                                                                    \
        CHECK_INT(launch_words(words, (int32_t)(sizeof words / sizeof *words), got), 2);          \
        check_pointer(&got[0], offset, CAI_SIM_MAY_WRITE);                                        \
    } while (0)

static void test_numba(void)
{
    const uint64_t two[] = {0, 0, 10, 4, MEMORY, 10, 4, 3, 0, 0, 4, 8, MEMORY + 80, 4, 8};
    const uint64_t strided[] = {0, 0, 500, 4, MEMORY, 500, 8};
    const uint64_t parts[] = {0, 0, 9, 8, MEMORY, 3, 3, 8, 120}; /* and its axes the other way round */
    cai_sim_access out[8];
    CHECK_ARRAY(0, 4000, 0, 0, 1000, 4, MEMORY, 1000, 4);
    CHECK_ARRAY(2000, 2000, 0, 0, 500, 4, MEMORY + 2000, 500, 4);
    CHECK_INT(launch_words(strided, 7, out), 1); /* every second one: too many gaps */
    check_access(&out[0], 0, 3996, CAI_SIM_MAY_ACCESS);
    CHECK_ARRAY(0, 400, 0, 0, 100, 4, MEMORY + 396, 100, MINUS(4)); /* backwards */
    CHECK_ARRAY(0, 96, 0, 0, 12, 8, MEMORY, 3, 4, 32, 8);          /* rows */
    CHECK_ARRAY(0, 96, 0, 0, 12, 8, MEMORY, 3, 4, 8, 24);          /* columns */
    CHECK_ARRAY(0, 8, 0, 0, 12, 8, MEMORY, 3, 4, 0, 0);            /* one element everywhere */
    CHECK_ARRAY(8, 8, 0, 0, 1, 8, MEMORY + 8, 5);                  /* no axis */
    CHECK_POINTER(0, 0, 0, 1000, 8, MEMORY, 1000, 8); /* more than there is: a pointer */
    CHECK_POINTER(0, 0, 0, 12, 8, MEMORY, 3, 5, 40, 8); /* no shape of 12 elements */
    CHECK_POINTER(0, 0, 0, 12, 8, MEMORY); /* no shape at all */
    CHECK_POINTER(0, 0, 0, 2, 8, MEMORY, 2, MINUS(8)); /* it begins before the memory */
    CHECK_POINTER(0, 0, 0, 2, 8, MEMORY, 2, UINT64_C(1) << 62);
    CHECK_POINTER(16, 0, MEMORY + 16, 2, 8, 0, 2, 8); /* no array: a pointer among numbers */
    CHECK_INT(launch_words(parts, 9, out), 3); /* a part of each row */
    check_access(&out[0], 0, 24, CAI_SIM_MAY_WRITE);
    check_access(&out[2], 240, 24, CAI_SIM_MAY_WRITE);
    CHECK_INT(launch_words(two, 15, out), 2);
    check_access(&out[0], 0, 40, CAI_SIM_MAY_WRITE);
    check_access(&out[1], 80, 32, CAI_SIM_MAY_WRITE);
}

/* --------------------------------------------------------------------------- >>memrefs */
static int32_t launch_named(const char *name, const uint64_t *words, int32_t count, cai_sim_access *out)
{
    cai_kernel_parameter parameters[32];
    cai_kernel kernel;
    int32_t i;
    memset(&kernel, 0, sizeof kernel);
    for (i = 0; i < count; ++i) {
        parameters[i].offset = 8 * (uint32_t)i;
        parameters[i].bytes = 8;
    }
    kernel.name = name;
    kernel.parameters = parameters;
    kernel.parameter_count = count;
    kernel.parameter_bytes = 8 * (uint32_t)count;
    return cai_kernel_accesses(&kernel, NULL, words, 8 * (size_t)count, one_memory, NULL, out, 8);
}

#define TAIL "C7mutable7alignedE"
#define CHECK_MEMREF(name, offset, size, ...)                                                       \
    do {                                                                                            \
        const uint64_t words[] = {__VA_ARGS__};                                                     \
        cai_sim_access got[8];                                                                      \
        CHECK(launch_named(name, words, (int32_t)(sizeof words / sizeof *words), got) >= 1);        \
        check_access(&got[0], offset, size, CAI_SIM_MAY_WRITE);                                     \
    } while (0)

/* Arrays of numba-cuda-mlir: allocated, aligned, offset, shape, strides in elements. */
static void test_memref(void)
{
    const uint64_t two[] = {7, MEMORY, MEMORY + 80, 0, 4, 1, MEMORY, MEMORY, 0, 2, 3, 3, 1};
    const uint64_t none[] = {0, 0, 0, 0, 1};
    cai_sim_access out[8];
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL, 0, 4000, MEMORY, MEMORY, 0, 1000, 1);
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL, 48, 40, MEMORY, MEMORY + 40, 2, 10, 1);
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL, 0, 400, MEMORY, MEMORY + 396, 0, 100, MINUS(1));
    CHECK_MEMREF("_Z1k5ArrayIDhLi2E1" TAIL, 0, 8, MEMORY, MEMORY, 0, 3, 4, 8, 1);        /* the first of 3 rows */
    CHECK_MEMREF("_ZN1m12_3clocals_3e1kE5ArrayIdLi0E1" TAIL, 8, 8, MEMORY, MEMORY + 8, 0);
    CHECK_MEMREF("_Z1k5ArrayI10complex128Li1E1" TAIL, 0, 160, MEMORY, MEMORY, 0, 10, 1);
    CHECK_MEMREF("_Z1k5ArrayI17datetime64_5bs_5dLi1E1" TAIL, 0, 80, MEMORY, MEMORY, 0, 10, 1);
    CHECK_INT(launch_named("_Z1kx5ArrayIaLi1E1" TAIL "5TupleI5ArrayIiLi2E1" TAIL "E", two, 13, out), 2);
    check_access(&out[0], 80, 4, CAI_SIM_MAY_WRITE);
    check_access(&out[1], 0, 24, CAI_SIM_MAY_WRITE);
    CHECK_INT(launch_named("_Z1k5ArrayIfLi1E1" TAIL, none, 5, out), 0);
    /* these are pointers of any kind */
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL, 0, 1, MEMORY, MEMORY, 0, 2000, 1);         /* more than there is */
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL, 0, 1, MEMORY, MEMORY, 0, UINT64_MAX, 1);
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL, 0, 1, MEMORY, MEMORY, MINUS(1), 4, 1);
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1" TAIL "x", 0, 1, MEMORY, MEMORY, 0, 4, 1);        /* one parameter too few */
    CHECK_MEMREF("_Z1k5ArrayI6RecordILi3EELi1E1" TAIL, 0, 1, MEMORY, MEMORY, 0, 4, 1); /* elements of any size */
    CHECK_MEMREF("_Z1k5ArrayIfLi1E1C7mut", 0, 1, MEMORY, MEMORY, 0, 4, 1);
    CHECK_MEMREF("_Z9k5ArrayI", 0, 1, MEMORY, MEMORY, 0, 4, 1);
}

/* ---------------------------------------------------------------------------- >>fuzz */
static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Everything that an image has is looked at. */
static void use(const cai_kernel_image *image)
{
    static uint64_t words[1 << 13];
    static const void *arguments[1 << 16];
    cai_sim_access out[8];
    int32_t i, k;
    size_t sum = 0;
    for (i = 0; i < 1 << 13; ++i)
        words[i] = MEMORY + 8 * (uint64_t)i % MEMORY_BYTES;
    for (i = 0; i < cai_kernel_count(image); ++i) {
        const cai_kernel *kernel = cai_kernel_at(image, i);
        CHECK(cai_kernel_find(image, kernel->name) == kernel);
        CHECK(kernel->parameter_count >= 0 && kernel->parameter_bytes <= 65535);
        for (k = 0; k < kernel->parameter_count; ++k)
            arguments[k] = words;
        cai_kernel_accesses(kernel, arguments, NULL, 0, one_memory, NULL, out, 8);
        cai_kernel_accesses(kernel, NULL, words, sizeof words, one_memory, NULL, out, 8);
    }
    for (i = 0; i < cai_kernel_global_count(image); ++i) {
        const cai_kernel_global *global = cai_kernel_global_at(image, i);
        sum += strlen(global->name);
        if (global->data)
            sum += ((const uint8_t *)global->data)[global->bytes - 1];
    }
    CHECK(sum < SIZE_MAX);
}

static uint64_t damage_value(uint64_t old)
{
    switch (random_number() % 6) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return old + random_number() % 9 - 4;
    case 3:
        return old ^ UINT64_C(1) << random_number() % 64;
    case 4:
        return random_number() % 70000;
    default:
        return random_number();
    }
}

static void fuzz(const uint8_t *data, size_t bytes, int rounds)
{
    uint8_t *copy = (uint8_t *)malloc(bytes + 8);
    int round;
    for (round = 0; copy && round < rounds; ++round) {
        uint64_t changes = random_number() % 8 + 1;
        size_t left = random_number() % 16 ? bytes : (size_t)(random_number() % bytes) + 1;
        cai_kernel_image *image;
        memcpy(copy, data, bytes);
        while (changes--) {
            size_t at = (size_t)(random_number() % bytes);
            int width = 1 << random_number() % 4;
            uint64_t old = 0;
            memcpy(&old, copy + at, bytes - at < 8 ? bytes - at : 8);
            put(copy + at, damage_value(old), width);
        }
        image = read_exactly(copy, left);
        CHECK(image != NULL);
        use(image);
        cai_kernel_image_free(image);
    }
    free(copy);
}

static const char ptx_text[] =
    "// a comment\n.version 8.0\n.target sm_80\n.address_size 64\n"
    ".global .align 4 .b8 table[400];\n.const .align 8 .f64 weight = 0d3FF0000000000000;\n"
    ".visible .entry put(.param .u64 put_0, .param .u64 put_1, .param .align 8 .b8 put_2[24])\n{\n"
    ".reg .f32 %f<3>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [put_0];\nld.param.u64 %rd2, [put_1];\n"
    "ld.param.u64 %rd5, [put_2+8];\ncvta.to.global.u64 %rd3, %rd1;\ncvta.to.global.u64 %rd4, %rd2;\n"
    "ld.global.f32 %f1, [%rd4+4];\nst.global.f32 [%rd3], %f1;\n{ call.uni other, (%rd5); }\nret;\n}\n";

static void check_put(const cai_kernel_image *image)
{
    const cai_kernel *kernel = cai_kernel_find(image, "put");
    CHECK_INT(cai_kernel_image_is_opaque(image), 0);
    CHECK(kernel && kernel->words && kernel->parameter_count == 3 && kernel->parameter_bytes == 40);
    if (!kernel || !kernel->words)
        return;
    CHECK_INT(kernel->words[0], CAI_KERNEL_WRITES);
    CHECK_INT(kernel->words[1], CAI_KERNEL_READS);
    CHECK_INT(kernel->words[2], 0);
    CHECK_INT(kernel->words[3] & CAI_KERNEL_UNKNOWN, CAI_KERNEL_UNKNOWN);
    CHECK(cai_kernel_global_find(image, "table") && cai_kernel_global_find(image, "table")->bytes == 400);
}

/* A kernel with "s", 16 bytes: what the words of a body must be. '?': may write, with or without more. */
static void check_body(const char *body, char first, char second)
{
    static const char head[] = ".version 8.0\n.visible .entry k(.param .align 8 .b8 s[16])\n{\n";
    const char expected[] = {first, second};
    char text[4096];
    const cai_kernel *kernel;
    cai_kernel_image *image;
    int i;
    snprintf(text, sizeof text, "%s%s", head, body);
    image = read_exactly(text, strlen(text));
    kernel = cai_kernel_find(image, "k");
    CHECK(kernel && kernel->words);
    for (i = 0; kernel && kernel->words && i < 2; ++i) {
        const uint8_t how = kernel->words[i];
        const char found = how & CAI_KERNEL_UNKNOWN ? '?' : "-rwx"[how & 3];
        if (found != expected[i])
            printf("word %d is %c, not %c: %s\n", i, found, expected[i], body);
        CHECK_INT(found, expected[i]);
    }
    cai_kernel_image_free(image);
}

/* PTX has numbers to base 16, 8 and 2, with U behind. */
static void test_ptx_offsets(void)
{
    static const char *const second[] = {"8", "0x8", "0X8U", "010", "0b1000", "8U"};
    static const char *const unclear[] = {"-8", "16+-8", "4+4", "2*4", "16"};
    char body[200];
    size_t i;
    for (i = 0; i < sizeof second / sizeof *second; ++i) {
        snprintf(body, sizeof body, "ld.param.u64 %%r1, [s+%s]; st.global.u32 [%%r1], 0; ret;\n}\n", second[i]);
        check_body(body, '-', 'w');
    }
    for (i = 0; i < sizeof unclear / sizeof *unclear; ++i) {
        snprintf(body, sizeof body, "ld.param.u64 %%r1, [s+%s]; st.global.u32 [%%r1], 0; ret;\n}\n", unclear[i]);
        check_body(body, '?', '?');
    }
}

/* What ptxas would refuse must not be read as a kernel that leaves memory alone. */
static void test_ptx_malformed(void)
{
#define LOADS "ld.param.u64 %r1, [s]; ld.global.f32 %f1, [%r1];\n"
#define STORES "ld.param.u64 %r2, [s+8]; st.global.f32 [%r2], %f1;\n"
    check_body(LOADS STORES "ret;\n}\n", 'r', 'w');
    check_body(LOADS STORES "ret;\n}\n.visible .entry other() { ret; }", 'r', 'w');
    check_body(LOADS "mov.b64 %r3, %r4;\f" STORES "ret;\n}\n", '?', '?');
    check_body(LOADS, '?', '?');
    check_body(LOADS "{ " STORES "ret;\n}\n", '?', '?');
    check_body(LOADS ",\n" STORES "ret;\n}\n", '?', '?');
    check_body(LOADS "}\n" STORES "ret;\n}\n", '?', '?');
#undef LOADS
#undef STORES
}

/* One operand may have 128 registers, and one instruction must not hide the others. */
static void test_ptx_many_registers(void)
{
    char body[3000];
    size_t at, i;
    for (i = 0; i < 2; ++i) {
        const int count = i ? 300 : 128; /* no instruction has 300: not judged */
        int one;
        at = (size_t)snprintf(body, sizeof body, "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {");
        for (one = 0; one < count; ++one)
            at += (size_t)snprintf(body + at, sizeof body - at, "%s%%f%d", one ? "," : "", one);
        snprintf(body + at, sizeof body - at,
                 "}, %%rd3, %%rd4, p, 1, 1, 0, 1;\nld.param.u64 %%r1, [s+8]; st.global.f32 [%%r1], %%f9; ret;\n}\n");
        check_body(body, i ? '?' : '-', i ? '?' : 'w');
    }
}

static void test_ptx_variables(void)
{
    static const char text[] =
        ".version 8.0\n.global .attribute(.managed, .unified(1, 2)) .align 4 .u32 a[2][3] = {{1, 2, 3}, {4}}, b[][2] "
        "= {{1}, {2}, {3}}, c;\n.const .f32 d[] = {-1.0, (2.0), };\n.extern .const .b8 e[];\n"
        ".global .v4 .f32 f;\n.global .u64 g = generic(a)+4, h[] = {generic(a), mask(0xff, a)};\n";
    static const struct {
        const char *name;
        uint64_t bytes;
    } known[] = {{"a", 24}, {"b", 24}, {"c", 4}, {"d", 8}, {"e", 0}, {"f", 16}, {"g", 8}, {"h", 16}};
    cai_kernel_image *image = read_exactly(text, sizeof text - 1);
    size_t i;
    CHECK_INT(cai_kernel_image_is_opaque(image), 0);
    CHECK_INT(cai_kernel_global_count(image), 8);
    for (i = 0; i < sizeof known / sizeof *known; ++i) {
        const cai_kernel_global *one = cai_kernel_global_find(image, known[i].name);
        CHECK(one != NULL);
        if (one)
            CHECK_INT(one->bytes, known[i].bytes);
    }
    cai_kernel_image_free(image);
    check_opaque(".version 8.0\n.visible .entry k(.param .u64 a, .param .u64 a) { ret; }", 68);
}

/* What is told of a cubin is what its PTX says, for the kernels that both have. */
static void test_explain(void)
{
    static const char same[] = ".version 8.0\n.visible .entry run(.param .u64 a, .param .align 8 .b8 b[24], "
                               ".param .u32 c)\n"
                               "{ ld.param.u64 %r1, [a]; st.global.u32 [%r1], 0; ret; }\n.entry more() { ret; }\n";
    static const char other[] = ".version 8.0\n.visible .entry run(.param .u64 a)\n{ ret; }\n";
    static cubin made;
    cai_kernel_image *image;
    const cai_kernel *run;
    int32_t count;
    build(&made, plain_info);
    CHECK_UINT(cai_kernel_image_bytes(made.bytes, 0), cai_kernel_image_bytes(made.bytes, made.end));
    CHECK(cai_kernel_image_bytes(made.bytes, 0) && cai_kernel_image_bytes(made.bytes, 0) <= made.end);
    CHECK_UINT(cai_kernel_image_bytes(made.bytes, 63), 0);
    CHECK_UINT(cai_kernel_image_bytes(same, sizeof same), 0);
    image = read_exactly(made.bytes, made.end);
    count = cai_kernel_count(image);
    run = cai_kernel_find(image, "run");
    CHECK(run && !run->words && run->follows == CAI_KERNEL_UNREAD);
    cai_kernel_image_explain(image, other, sizeof other - 1);
    CHECK(run && !run->words);
    cai_kernel_image_explain(image, "no PTX", 6);
    cai_kernel_image_explain(NULL, same, sizeof same - 1);
    cai_kernel_image_explain(image, same, sizeof same - 1);
    CHECK(run && run->words && run->words[0] == CAI_KERNEL_WRITES && !run->words[1] && !run->follows);
    CHECK_STR(run ? run->name : NULL, "run");
    CHECK(run && run->architecture == 90);
    CHECK_INT(cai_kernel_count(image), count);
    cai_kernel_image_free(image);
}

static void test_ptx(void)
{
    static uint8_t fat[MOST];
    cai_kernel_image *image = read_exactly(ptx_text, sizeof ptx_text - 1);
    check_put(image);
    cai_kernel_image_free(image);
    image = cai_kernel_image_read(ptx_text, 0);
    check_put(image);
    cai_kernel_image_free(image);
    image = read_exactly(fat, fatbin(fat, ptx_text, sizeof ptx_text, 0x11, 1));
    check_put(image);
    cai_kernel_image_free(image);
    check_opaque("// no PTX", 9);
}

static void test_fuzz(void)
{
    static uint8_t fat[MOST];
    static cubin made;
    build(&made, plain_info);
    fuzz(made.bytes, made.end, 20000);
    fuzz((const uint8_t *)ptx_text, sizeof ptx_text - 1, 20000);
    fuzz(fat, fatbin(fat, made.bytes, made.end, 0x11, 2), 10000);
}

/* --------------------------------------------------------------------------- >>files */
static uint8_t *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    long size = -1;
    if (file && !fseek(file, 0, SEEK_END))
        size = ftell(file);
    if (size > 0 && !fseek(file, 0, SEEK_SET))
        data = (uint8_t *)malloc((size_t)size);
    if (data)
        *bytes = fread(data, 1, (size_t)size, file);
    if (file)
        fclose(file);
    return data;
}

/* What PTX says of each eight bytes of the parameters: words NAME CAI_KERNEL_..., and beside them: follows NAME
 * CAI_KERNEL_... */
static void list_words(const cai_kernel *kernel)
{
    uint32_t word;
    printf("words %s", kernel->name);
    for (word = 0; kernel->words && word * 8 < kernel->parameter_bytes; ++word)
        printf(" %d", kernel->words[word]);
    printf("\nfollows %s %d\n", kernel->name, kernel->follows);
}

/* kernel NAME ARCHITECTURE BYTES OFFSET:BYTES... | words | global NAME BYTES CONSTANT MANAGED DATA */
static void list(const cai_kernel_image *image)
{
    int32_t i, k;
    printf("%s\n", cai_kernel_image_is_opaque(image) ? "opaque" : "known");
    for (i = 0; i < cai_kernel_count(image); ++i) {
        const cai_kernel *kernel = cai_kernel_at(image, i);
        printf("kernel %s %d %s%u", kernel->name, kernel->architecture, kernel->opaque ? "opaque " : "",
               kernel->parameter_bytes);
        for (k = 0; k < kernel->parameter_count; ++k)
            printf(" %u:%u", kernel->parameters[k].offset, kernel->parameters[k].bytes);
        printf("\n");
        list_words(kernel);
    }
    for (i = 0; i < cai_kernel_global_count(image); ++i) {
        const cai_kernel_global *global = cai_kernel_global_at(image, i);
        printf("global %s %llu %d %d %d\n", global->name, (unsigned long long)global->bytes, global->constant,
               global->managed, global->data != NULL);
    }
}

static int with_files(int count, char **arguments)
{
    int listed = !strcmp(arguments[1], "--list"), i;
    for (i = listed ? 2 : 3; i < count; ++i) {
        size_t bytes = 0;
        uint8_t *data = read_file(arguments[i], &bytes);
        cai_kernel_image *image;
        if (!data)
            return 2;
        image = cai_kernel_image_read(data, bytes);
        if (listed)
            list(image);
        else
            fuzz(data, bytes, atoi(arguments[2]));
        cai_kernel_image_free(image);
        free(data);
    }
    return cai_test_failures != 0;
}

static void run(void)
{
    test_cubin();
    test_large();
    test_damaged_parameters();
    test_cut();
    test_unknown();
    test_fatbin();
    test_zstd();
    test_link();
    test_pointers();
    test_words();
    test_numba();
    test_memref();
    test_explain();
    test_ptx();
    test_ptx_offsets();
    test_ptx_malformed();
    test_ptx_many_registers();
    test_ptx_variables();
    test_fuzz();
}

int main(int count, char **arguments)
{
    if (count > 2)
        return with_files(count, arguments);
    run();
    printf("%lld checks\n", (long long)cai_test_checks);
    return cai_test_failures != 0;
}
