/* cai_kernel.c - reads the images of kernels: their names, parameters and global variables
 * SPDX-License-Identifier: MIT
 *
 * Cubins are ELF64 files. What their own sections hold was found by compiling and looking. Each offset of a
 * file is checked before it is used. */
#include "cai_kernel.h"
#include "cai_ptx.h"

#include <stdlib.h>
#include <string.h>
#ifdef __unix__
#include <dlfcn.h>
#endif

enum {
    KERNEL_DEPTH = 4,         /* images in images */
    KERNEL_MOST_BYTES = 65535, /* of the parameters of one kernel */
    KERNEL_NOBITS = 8,
    KERNEL_GLOBAL_NOBITS = 0x70000007, /* of .nv.global, in relocatable cubins */
    KERNEL_SYMBOLS = 2,
    KERNEL_HEADER = 64, /* bytes of the header of an ELF file, and of an entry of its table of sections */
    KERNEL_SYMBOL = 24,
    KERNEL_MACHINE = 190, /* EM_CUDA */
    KERNEL_OBJECT = 1,    /* types of symbols */
    KERNEL_FUNCTION = 2,
    KERNEL_VARIABLE = 13, /* in relocatable cubins */
    KERNEL_ENTRY = 0x10,  /* of a symbol: a kernel, and no other function */
    KERNEL_MANAGED = 0x04,
    KERNEL_FATBIN_HEADER = 16,
    KERNEL_FATBIN_ENTRY = 64,
    KERNEL_COMPRESSED = 0xa000, /* LZ4, Zstandard */
    KERNEL_PTX_ENTRY = 1,
    KERNEL_ARCHITECTURE = 90,    /* of the simulated device */
    KERNEL_MOST_IMAGE = 1 << 28, /* bytes of an entry that was compressed */
    KERNEL_MOST_RATIO = 1024,
    KERNEL_AXES = 32,
    KERNEL_PIECES = 64, /* accesses for one array */
    KERNEL_LINKED = 0xca1       /* the version of what cai_kernel_link makes */
};

#define KERNEL_MAGIC_ELF UINT32_C(0x464c457f)
#define KERNEL_MAGIC_FATBIN UINT32_C(0xba55ed50)
#define KERNEL_MAGIC_WRAPPER UINT32_C(0x466243b1)
#define KERNEL_MAGIC_ZSTD UINT32_C(0xfd2fb528)

/* Bytes of a file. */
typedef struct kernel_bytes {
    const uint8_t *at;
    uint64_t bytes;
} kernel_bytes;

typedef struct kernel_section {
    const char *name;
    uint32_t type;
    uint32_t link;
    kernel_bytes data; /* `at` is NULL if the file has none */
} kernel_section;

typedef struct kernel_elf {
    kernel_bytes file;
    uint64_t table;
    uint32_t count;
    kernel_bytes names;
    int32_t architecture;
} kernel_elf;

struct cai_kernel_image {
    cai_kernel *kernels;
    cai_kernel_global *globals;
    int32_t kernel_count;
    int32_t kernel_room;
    int32_t global_count;
    int32_t global_room;
    int32_t opaque;
    int32_t failed; /* no memory */
};

/* ---------------------------------------------------------------------------- >>bytes */
static uint64_t kernel_number(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    int i;
    for (i = bytes - 1; i >= 0; --i)
        value = value << 8 | at[i];
    return value;
}

static uint32_t kernel_u16(const uint8_t *at)
{
    return (uint32_t)kernel_number(at, 2);
}

static uint32_t kernel_u32(const uint8_t *at)
{
    return (uint32_t)kernel_number(at, 4);
}

static uint64_t kernel_u64(const uint8_t *at)
{
    return kernel_number(at, 8);
}

/* 1: the range lies in the bytes. */
static int kernel_has(kernel_bytes whole, uint64_t offset, uint64_t bytes)
{
    return offset <= whole.bytes && bytes <= whole.bytes - offset;
}

/* The bytes from `offset` on, which must lie in the whole. */
static kernel_bytes kernel_part(kernel_bytes whole, uint64_t offset, uint64_t bytes)
{
    kernel_bytes part;
    part.at = whole.at + offset;
    part.bytes = bytes;
    return part;
}

/* The text at an offset of a table of names. NULL: it does not end in the table. */
static const char *kernel_text(kernel_bytes names, uint64_t offset)
{
    if (offset >= names.bytes || !memchr(names.at + offset, 0, (size_t)(names.bytes - offset)))
        return NULL;
    return (const char *)(names.at + offset);
}

static void *kernel_copy(const void *data, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

/* --------------------------------------------------------------------------- >>tables */
/* Room for one more. Returns the table, or NULL without memory. */
static void *kernel_room(void *table, int32_t count, int32_t *room, size_t size)
{
    int32_t wanted = *room ? 2 * *room : 16;
    void *grown;
    if (count < *room)
        return table;
    grown = *room > INT32_MAX / 4 ? NULL : realloc(table, (size_t)wanted * size);
    if (grown)
        *room = wanted;
    return grown;
}

/* Adds a kernel without parameters that are known. NULL: no memory. */
static cai_kernel *kernel_add(cai_kernel_image *image, const char *name, int32_t architecture)
{
    cai_kernel *table = (cai_kernel *)kernel_room(image->kernels, image->kernel_count, &image->kernel_room,
                                                  sizeof *table);
    cai_kernel *made;
    char *copy = table ? (char *)kernel_copy(name, strlen(name) + 1) : NULL;
    if (table)
        image->kernels = table;
    if (!copy) {
        image->failed = 1;
        return NULL;
    }
    made = &table[image->kernel_count++];
    memset(made, 0, sizeof *made);
    made->name = copy;
    made->opaque = 1;
    made->architecture = architecture;
    made->follows = CAI_KERNEL_UNREAD;
    return made;
}

static cai_kernel_global *kernel_add_global(cai_kernel_image *image, const char *name, uint64_t bytes)
{
    cai_kernel_global *table = (cai_kernel_global *)kernel_room(image->globals, image->global_count,
                                                                &image->global_room, sizeof *table);
    cai_kernel_global *made;
    char *copy = table ? (char *)kernel_copy(name, strlen(name) + 1) : NULL;
    if (table)
        image->globals = table;
    if (!copy) {
        image->failed = 1;
        return NULL;
    }
    made = &table[image->global_count++];
    memset(made, 0, sizeof *made);
    made->name = copy;
    made->bytes = bytes;
    return made;
}

static void kernel_drop(const cai_kernel *kernel)
{
    free((void *)(uintptr_t)kernel->name);
    free((void *)(uintptr_t)kernel->parameters);
    free((void *)(uintptr_t)kernel->words);
}

static void kernel_drop_global(const cai_kernel_global *global)
{
    free((void *)(uintptr_t)global->name);
    free((void *)(uintptr_t)global->data);
}

/* The better of two kernels of one name: what is known, and what its PTX tells. */
static int kernel_rank(const cai_kernel *kernel)
{
    return kernel->opaque ? 0 : kernel->words ? 2 : 1;
}

static int kernel_compare(const void *left, const void *right)
{
    const cai_kernel *a = (const cai_kernel *)left;
    const cai_kernel *b = (const cai_kernel *)right;
    int order = strcmp(a->name, b->name);
    return order ? order : kernel_rank(b) - kernel_rank(a);
}

static int kernel_compare_globals(const void *left, const void *right)
{
    const cai_kernel_global *a = (const cai_kernel_global *)left;
    const cai_kernel_global *b = (const cai_kernel_global *)right;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->data ? 0 : 1) - (b->data ? 0 : 1);
}

static void kernel_sort_kernels(cai_kernel_image *image)
{
    int32_t i, kept = 0;
    if (!image->kernel_count)
        return;
    qsort(image->kernels, (size_t)image->kernel_count, sizeof *image->kernels, kernel_compare);
    for (i = 0; i < image->kernel_count; ++i) {
        cai_kernel *last = kept ? &image->kernels[kept - 1] : NULL;
        if (!last || strcmp(last->name, image->kernels[i].name)) {
            image->kernels[kept++] = image->kernels[i];
            continue;
        }
        if (!last->architecture) /* PTX has none */
            last->architecture = image->kernels[i].architecture;
        kernel_drop(&image->kernels[i]);
    }
    image->kernel_count = kept;
}

static void kernel_sort_globals(cai_kernel_image *image)
{
    int32_t i, kept = 0;
    if (!image->global_count)
        return;
    qsort(image->globals, (size_t)image->global_count, sizeof *image->globals, kernel_compare_globals);
    for (i = 0; i < image->global_count; ++i) {
        cai_kernel_global *last = kept ? &image->globals[kept - 1] : NULL;
        if (!last || strcmp(last->name, image->globals[i].name)) {
            image->globals[kept++] = image->globals[i];
            continue;
        }
        last->managed |= image->globals[i].managed;
        kernel_drop_global(&image->globals[i]);
    }
    image->global_count = kept;
}

/* ------------------------------------------------------------------------------ >>ELF */
/* Returns 1, or 0 if the section does not lie in the file. */
static int kernel_section_at(const kernel_elf *elf, uint32_t index, kernel_section *out)
{
    const uint8_t *row;
    uint64_t offset;
    if (index >= elf->count)
        return 0;
    row = elf->file.at + elf->table + (uint64_t)index * KERNEL_HEADER;
    out->name = kernel_text(elf->names, kernel_u32(row));
    out->type = kernel_u32(row + 4);
    out->link = kernel_u32(row + 40);
    offset = kernel_u64(row + 24);
    out->data.bytes = kernel_u64(row + 32);
    out->data.at = NULL;
    if (!out->name)
        return 0;
    if (out->type == KERNEL_NOBITS || out->type == KERNEL_GLOBAL_NOBITS)
        return 1;
    if (!kernel_has(elf->file, offset, out->data.bytes))
        return 0;
    out->data.at = elf->file.at + offset;
    return 1;
}

/* Returns 1, or 0 if it is no cubin, or damaged. */
static int kernel_elf_open(kernel_bytes file, kernel_elf *elf)
{
    const uint8_t *names;
    uint32_t flags, index;
    uint64_t offset, bytes;
    memset(elf, 0, sizeof *elf);
    if (file.bytes < KERNEL_HEADER || file.at[4] != 2 || file.at[5] != 1)
        return 0;
    elf->file = file;
    elf->table = kernel_u64(file.at + 40);
    elf->count = kernel_u16(file.at + 60);
    index = kernel_u16(file.at + 62);
    flags = kernel_u32(file.at + 48);
    elf->architecture = (int32_t)(file.at[7] == 0x41 ? flags >> 8 & 0xff : flags & 0xff);
    if (kernel_u16(file.at + 18) != KERNEL_MACHINE || kernel_u16(file.at + 58) != KERNEL_HEADER)
        return 0;
    if (index >= elf->count || !kernel_has(file, elf->table, (uint64_t)elf->count * KERNEL_HEADER))
        return 0;
    names = file.at + elf->table + (uint64_t)index * KERNEL_HEADER;
    offset = kernel_u64(names + 24);
    bytes = kernel_u64(names + 32);
    if (kernel_u32(names + 4) == KERNEL_NOBITS || !kernel_has(file, offset, bytes))
        return 0;
    elf->names = kernel_part(file, offset, bytes);
    return 1;
}

/* A variable of a section for those. */
static int kernel_add_variable(cai_kernel_image *image, const kernel_elf *elf, const uint8_t *symbol,
                               const char *name)
{
    kernel_section section;
    cai_kernel_global *made;
    uint64_t value = kernel_u64(symbol + 8), bytes = kernel_u64(symbol + 16);
    if (!bytes || !kernel_section_at(elf, kernel_u16(symbol + 6), &section))
        return 1;
    if (strcmp(section.name, ".nv.global") && strcmp(section.name, ".nv.global.init") &&
        strcmp(section.name, ".nv.constant3"))
        return 1;
    if (!kernel_has(section.data, value, bytes))
        return 0;
    made = kernel_add_global(image, name, bytes);
    if (!made)
        return 0;
    made->constant = !strcmp(section.name, ".nv.constant3");
    made->managed = (symbol[5] & KERNEL_MANAGED) != 0;
    if (section.data.at)
        made->data = kernel_copy(section.data.at + value, (size_t)bytes);
    image->failed |= section.data.at && !made->data;
    return 1;
}

/* Returns 0 if a symbol is damaged. */
static int kernel_read_symbols(cai_kernel_image *image, const kernel_elf *elf, const kernel_section *table)
{
    kernel_section names;
    uint64_t at;
    int right = 1;
    if (!table->data.at || !kernel_section_at(elf, table->link, &names) || !names.data.at)
        return 0;
    for (at = 0; kernel_has(table->data, at, KERNEL_SYMBOL); at += KERNEL_SYMBOL) {
        const uint8_t *symbol = table->data.at + at;
        const int type = symbol[4] & 15;
        const int is_kernel = type == KERNEL_FUNCTION && (symbol[5] & KERNEL_ENTRY) && kernel_u16(symbol + 6);
        const char *name;
        if (!is_kernel && type != KERNEL_OBJECT && type != KERNEL_VARIABLE)
            continue;
        name = kernel_text(names.data, kernel_u32(symbol));
        if (!name || !*name)
            right = 0;
        else if (is_kernel)
            kernel_add(image, name, elf->architecture);
        else
            right &= kernel_add_variable(image, elf, symbol, name);
    }
    return right;
}

/* The next record of a section .nv.info. Returns 0 at its end, and sets *right to 0 if it is damaged. */
static int kernel_next_record(kernel_bytes *info, uint32_t *attribute, kernel_bytes *payload, int *right)
{
    uint32_t bytes;
    if (!info->bytes)
        return 0;
    if (info->bytes < 4) {
        *right = 0;
        return 0;
    }
    bytes = info->at[0] == 4 ? kernel_u16(info->at + 2) : 0;
    if (info->at[0] < 1 || info->at[0] > 4 || bytes > info->bytes - 4) {
        *right = 0;
        return 0;
    }
    *attribute = info->at[1];
    *payload = kernel_part(*info, 4, bytes);
    *info = kernel_part(*info, 4 + (uint64_t)bytes, info->bytes - 4 - bytes);
    return 1;
}

/* 0x17 describes a parameter by a number, its ordinal, its offset and its size. 0x45 does for large ones. */
static int kernel_is_parameter(uint32_t attribute, kernel_bytes payload)
{
    return (attribute == 0x17 || attribute == 0x45) && payload.bytes == 12;
}

/* Stores the parameters, which must be whole. Returns 0 if they are not. */
static int kernel_store_parameters(cai_kernel *kernel, kernel_bytes info, cai_kernel_parameter *parameters,
                                   int32_t count)
{
    kernel_bytes payload;
    uint32_t attribute = 0, end = 0, block = 0;
    int right = 1;
    while (kernel_next_record(&info, &attribute, &payload, &right)) {
        uint32_t ordinal, size;
        if (attribute == 0x0a && payload.bytes == 8)
            block = kernel_u16(payload.at + 6);
        if (!kernel_is_parameter(attribute, payload))
            continue;
        ordinal = kernel_u16(payload.at + 4);
        size = attribute == 0x17 ? kernel_u32(payload.at + 8) >> 18 : kernel_u16(payload.at + 8);
        if (ordinal >= (uint32_t)count || parameters[ordinal].bytes || !size || size > KERNEL_MOST_BYTES)
            return 0;
        parameters[ordinal].offset = kernel_u16(payload.at + 6);
        parameters[ordinal].bytes = size;
        if (parameters[ordinal].offset + size > end)
            end = parameters[ordinal].offset + size;
    }
    kernel->parameter_bytes = block ? block : end;
    if (block && !count)
        return 0;
    return right && end <= kernel->parameter_bytes && end <= KERNEL_MOST_BYTES;
}

/* PyTorch's kernels for element after element have the number of elements, the function, and one pointer for each
 * tensor: the result first, then what is read (its TensorIterator). They have no PTX, but their names tell this. */
static void kernel_name_tells(cai_kernel_image *image, cai_kernel *kernel)
{
    static const char *const names[] = {"_ZN2at6native29vectorized_elementwise_kernelI",
                                        "_ZN2at6native27unrolled_elementwise_kernelI"};
    const cai_kernel_parameter *tensors = kernel->parameter_count > 2 ? &kernel->parameters[2] : NULL;
    const int known = !strncmp(kernel->name, names[0], strlen(names[0])) ||
                      !strncmp(kernel->name, names[1], strlen(names[1]));
    uint8_t *words;
    if (!known || !tensors || tensors->offset % 8 || tensors->bytes % 8 ||
        !strstr(kernel->name, "St5arrayIPcLm") || tensors->offset + tensors->bytes > kernel->parameter_bytes)
        return;
    words = (uint8_t *)malloc((size_t)kernel->parameter_bytes / 8 + 1);
    image->failed |= !words;
    if (!words)
        return;
    memset(words, CAI_KERNEL_UNKNOWN, (size_t)kernel->parameter_bytes / 8 + 1);
    memset(words + tensors->offset / 8, CAI_KERNEL_READS, tensors->bytes / 8);
    words[tensors->offset / 8] = CAI_KERNEL_WRITES;
    kernel->words = words;
}

static void kernel_read_parameters(cai_kernel_image *image, cai_kernel *kernel, kernel_bytes info)
{
    kernel_bytes rest = info, payload;
    cai_kernel_parameter *parameters;
    uint32_t attribute = 0;
    int32_t count = 0;
    int right = 1;
    while (kernel_next_record(&rest, &attribute, &payload, &right))
        count += kernel_is_parameter(attribute, payload);
    if (!right || !kernel->opaque)
        return;
    parameters = (cai_kernel_parameter *)calloc((size_t)count + 1, sizeof *parameters);
    image->failed |= !parameters;
    if (!parameters || !kernel_store_parameters(kernel, info, parameters, count)) {
        free(parameters);
        kernel->parameter_bytes = 0;
        return;
    }
    kernel->parameters = parameters;
    kernel->parameter_count = count;
    kernel->opaque = 0;
    kernel_name_tells(image, kernel);
}

/* The place of a name in sorted kernels. NULL: there is none. */
static cai_kernel *kernel_search(cai_kernel *kernels, int32_t count, const char *name)
{
    int32_t low = 0, high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = strcmp(kernels[middle].name, name);
        if (!order)
            return &kernels[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Returns 1, or 0 if the names cannot be told. */
static int kernel_read_elf(cai_kernel_image *image, kernel_bytes file)
{
    static const char head[] = ".nv.info.";
    kernel_elf elf;
    kernel_section section;
    const int32_t first = image->kernel_count;
    uint32_t i;
    int right = 1, tables = 0;
    if (!kernel_elf_open(file, &elf))
        return 0;
    for (i = 1; i < elf.count; ++i) {
        if (!kernel_section_at(&elf, i, &section))
            right = 0;
        else if (section.type == KERNEL_SYMBOLS && !tables++)
            right &= kernel_read_symbols(image, &elf, &section);
    }
    if (image->kernel_count > first)
        qsort(image->kernels + first, (size_t)(image->kernel_count - first), sizeof *image->kernels,
              kernel_compare);
    for (i = 1; i < elf.count; ++i) {
        cai_kernel *kernel;
        if (!kernel_section_at(&elf, i, &section) || !section.data.at || strncmp(section.name, head, 9))
            continue;
        kernel = kernel_search(image->kernels + first, image->kernel_count - first, section.name + 9);
        if (kernel)
            kernel_read_parameters(image, kernel, section.data);
    }
    return right && tables;
}

/* How long a file in memory says that it is. 0: not known. */
static uint64_t kernel_elf_bytes(const uint8_t *at)
{
    const uint64_t table = kernel_u64(at + 40);
    const uint64_t count = kernel_u16(at + 60);
    uint64_t i, end = table + count * KERNEL_HEADER;
    if (kernel_u16(at + 58) != KERNEL_HEADER || table > UINT32_MAX)
        return 0;
    for (i = 0; i < count; ++i) {
        const uint8_t *row = at + table + i * KERNEL_HEADER;
        const uint64_t offset = kernel_u64(row + 24), bytes = kernel_u64(row + 32);
        if (kernel_u32(row + 4) == KERNEL_NOBITS)
            continue;
        if (offset > UINT32_MAX || bytes > UINT32_MAX)
            return 0;
        if (offset + bytes > end)
            end = offset + bytes;
    }
    return end < KERNEL_HEADER ? KERNEL_HEADER : end;
}

/* ------------------------------------------------------------------------------ >>PTX */
/* A name that ends with a zero. */
static char *kernel_name(cai_kernel_image *image, const char *name, size_t bytes)
{
    char *copy = (char *)calloc(1, bytes + 1);
    image->failed |= !copy;
    if (copy)
        memcpy(copy, name, bytes);
    return copy;
}

static int kernel_ptx_kernel(void *context, const char *name, size_t name_bytes,
                             const cai_kernel_parameter *parameters, int32_t count, uint32_t bytes,
                             const uint8_t *words, int32_t follows)
{
    cai_kernel_image *image = (cai_kernel_image *)context;
    char *copy = kernel_name(image, name, name_bytes);
    cai_kernel *made = copy ? kernel_add(image, copy, 0) : NULL;
    free(copy);
    if (!made)
        return 0;
    made->parameters = (cai_kernel_parameter *)kernel_copy(parameters, (size_t)count * sizeof *parameters);
    made->words = (uint8_t *)kernel_copy(words, bytes / 8 + 1);
    image->failed |= !made->parameters || !made->words;
    made->parameter_count = count;
    made->parameter_bytes = bytes;
    made->opaque = image->failed;
    made->follows = follows;
    return !image->failed;
}

static int kernel_ptx_global(void *context, const char *name, size_t name_bytes, uint64_t bytes,
                             int32_t constant)
{
    cai_kernel_image *image = (cai_kernel_image *)context;
    char *copy = kernel_name(image, name, name_bytes);
    cai_kernel_global *made = copy ? kernel_add_global(image, copy, bytes) : NULL;
    free(copy);
    if (made)
        made->constant = constant;
    return made != NULL;
}

static int kernel_read_ptx(cai_kernel_image *image, kernel_bytes text)
{
    cai_ptx_visitor visitor;
    visitor.context = image;
    visitor.kernel = kernel_ptx_kernel;
    visitor.global = kernel_ptx_global;
    return cai_ptx_read((const char *)text.at, (size_t)text.bytes, &visitor);
}

/* ------------------------------------------------------------------------- >>fat binary */
static int kernel_read_any(cai_kernel_image *image, kernel_bytes file, int depth);

#ifdef __unix__
/* libzstd, if it is there. It is not closed. */
typedef struct kernel_zstd {
    unsigned long long (*content)(const void *, size_t);
    size_t (*decompress)(void *, size_t, const void *, size_t);
} kernel_zstd;

static int kernel_find_zstd(kernel_zstd *out)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    void *content = library ? dlsym(library, "ZSTD_getFrameContentSize") : NULL;
    void *decompress = library ? dlsym(library, "ZSTD_decompress") : NULL;
    memcpy(&out->content, &content, sizeof content);
    memcpy(&out->decompress, &decompress, sizeof decompress);
    return content && decompress;
}

/* Reads an entry that is compressed with Zstandard. What it says of its size is not believed above a limit. */
static int kernel_read_compressed(cai_kernel_image *image, kernel_bytes packed, int depth)
{
    kernel_zstd zstd;
    kernel_bytes file;
    uint8_t *made;
    int read = 0;
    if (packed.bytes < 4 || kernel_u32(packed.at) != KERNEL_MAGIC_ZSTD || !kernel_find_zstd(&zstd))
        return 0;
    file.bytes = zstd.content(packed.at, (size_t)packed.bytes);
    if (!file.bytes || file.bytes > KERNEL_MOST_IMAGE || file.bytes / KERNEL_MOST_RATIO > packed.bytes)
        return 0;
    made = (uint8_t *)malloc((size_t)file.bytes);
    file.at = made;
    image->failed |= !made;
    if (made && zstd.decompress(made, (size_t)file.bytes, packed.at, (size_t)packed.bytes) == file.bytes)
        read = kernel_read_any(image, file, depth);
    free(made);
    return read;
}
#else
static int kernel_read_compressed(cai_kernel_image *image, kernel_bytes packed, int depth)
{
    (void)image;
    (void)packed;
    (void)depth;
    return 0;
}
#endif

/* A compressed entry that stands for others of its kind. */
typedef struct kernel_packed {
    kernel_bytes data; /* `at` is NULL: none */
    uint32_t architecture;
} kernel_packed;

/* Of machine code for several architectures one is enough. The newest up to that of the simulated device is best. */
static void kernel_choose(kernel_packed *best, kernel_bytes data, uint32_t architecture)
{
    const int fits = architecture <= KERNEL_ARCHITECTURE, had = best->architecture <= KERNEL_ARCHITECTURE;
    if (best->data.at && (fits != had ? had : fits == (architecture <= best->architecture)))
        return;
    best->data = data;
    best->architecture = architecture;
}

/* The bytes of a compressed entry, without what fills it up. */
static kernel_bytes kernel_packed_bytes(const uint8_t *entry, kernel_bytes data)
{
    const uint32_t bytes = kernel_u32(entry + 16);
    if (bytes && bytes < data.bytes)
        data.bytes = bytes;
    return data;
}

/* The entries of a fat binary are the same code for several architectures: one that can be read tells the
 * names. Those of a linked image are different code. */
static int kernel_read_fatbin(cai_kernel_image *image, kernel_bytes file, int depth)
{
    const int linked = kernel_u16(file.at + 4) == KERNEL_LINKED;
    const uint64_t size = kernel_u64(file.at + 8);
    uint64_t at = kernel_u16(file.at + 6);
    kernel_packed code, ptx;
    int read = 0, unread = 0;
    memset(&code, 0, sizeof code);
    memset(&ptx, 0, sizeof ptx);
    if (at < KERNEL_FATBIN_HEADER || at > file.bytes)
        return 0;
    if (size < file.bytes - at)
        file.bytes = at + size;
    while (kernel_has(file, at, KERNEL_FATBIN_ENTRY)) {
        const uint8_t *entry = file.at + at;
        const uint64_t head = kernel_u32(entry + 4), bytes = kernel_u64(entry + 8);
        const uint64_t flags = kernel_u64(entry + 40);
        const int compressed = kernel_u32(entry + 16) || flags & KERNEL_COMPRESSED;
        kernel_bytes data;
        if (head < KERNEL_FATBIN_ENTRY || !kernel_has(file, at, head) || !kernel_has(file, at + head, bytes))
            break;
        data = kernel_part(file, at + head, bytes);
        if (compressed)
            kernel_choose(kernel_u16(entry) == KERNEL_PTX_ENTRY ? &ptx : &code, kernel_packed_bytes(entry, data),
                          kernel_u32(entry + 28));
        else if (kernel_read_any(image, data, depth + 1))
            read = 1;
        else
            unread = 1;
        at += head + bytes;
    }
    if (linked)
        return read && !unread && !code.data.at && !ptx.data.at && !kernel_has(file, at, KERNEL_FATBIN_ENTRY);
    if (!read && code.data.at)
        read = kernel_read_compressed(image, code.data, depth + 1);
    if (ptx.data.at)
        read |= kernel_read_compressed(image, ptx.data, depth + 1);
    return read;
}

/* 1: the bytes begin as PTX does. Reads no byte behind a '\0'. */
static int kernel_is_text(const uint8_t *at, uint64_t bytes)
{
    static const char begin[] = ".version";
    uint64_t i = 0, k;
    int comment = 0; /* 1: to the end of the line, 2: to its mark */
    for (; i < bytes && at[i]; ++i) {
        if (comment == 1)
            comment = at[i] != '\n';
        else if (comment == 2)
            comment = at[i] == '/' && at[i - 1] == '*' ? 0 : 2;
        else if (at[i] == '/' && i + 1 < bytes && (at[i + 1] == '/' || at[i + 1] == '*'))
            comment = at[++i] == '/' ? 1 : 2;
        else if (at[i] != ' ' && (at[i] < 9 || at[i] > 13))
            break;
    }
    for (k = 0; k < 8 && i + k < bytes && at[i + k] == (uint8_t)begin[k]; ++k)
        continue;
    return k == 8;
}

static uint32_t kernel_magic(const uint8_t *at, uint64_t bytes)
{
    uint64_t i;
    for (i = 0; i < 4; ++i)
        if (i >= bytes || !at[i])
            return 0;
    return kernel_u32(at);
}

/* Returns 1, or 0 if the names cannot be told. */
static int kernel_read_any(cai_kernel_image *image, kernel_bytes file, int depth)
{
    const uint32_t magic = kernel_magic(file.at, file.bytes);
    if (depth > KERNEL_DEPTH)
        return 0;
    if (magic == KERNEL_MAGIC_ELF)
        return kernel_read_elf(image, file);
    if (magic == KERNEL_MAGIC_FATBIN && file.bytes >= KERNEL_FATBIN_HEADER)
        return kernel_read_fatbin(image, file, depth);
    return kernel_is_text(file.at, file.bytes) && kernel_read_ptx(image, file);
}

/* The bytes of an image in memory. `bytes` 0: not known. */
static kernel_bytes kernel_measure(const void *image)
{
    kernel_bytes file;
    uint32_t magic = kernel_magic((const uint8_t *)image, 4);
    file.at = (const uint8_t *)image;
    file.bytes = 0;
    if (magic == KERNEL_MAGIC_WRAPPER) {
        const void *inner;
        memcpy(&inner, file.at + 8, sizeof inner);
        if (!inner)
            return file;
        file.at = (const uint8_t *)inner;
        magic = kernel_magic(file.at, 4);
    }
    if (magic == KERNEL_MAGIC_FATBIN)
        file.bytes = kernel_u16(file.at + 6) + kernel_u64(file.at + 8);
    else if (magic == KERNEL_MAGIC_ELF)
        file.bytes = kernel_elf_bytes(file.at);
    else if (kernel_is_text(file.at, UINT32_MAX))
        file.bytes = strlen((const char *)file.at);
    return file;
}

/* ---------------------------------------------------------------------------- >>image */
cai_kernel_image *cai_kernel_image_read(const void *image, size_t bytes)
{
    cai_kernel_image *made;
    kernel_bytes file;
    if (!image)
        return NULL;
    made = (cai_kernel_image *)calloc(1, sizeof *made);
    if (!made)
        return NULL;
    file.at = (const uint8_t *)image;
    file.bytes = bytes;
    if (!bytes)
        file = kernel_measure(image);
    made->opaque = !file.bytes || !kernel_read_any(made, file, 0);
    kernel_sort_kernels(made);
    kernel_sort_globals(made);
    if (!made->failed)
        return made;
    cai_kernel_image_free(made);
    return NULL;
}

size_t cai_kernel_image_bytes(const void *image, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)image;
    const uint64_t limit = bytes ? bytes : UINT64_MAX;
    uint64_t table, end;
    if (!image || limit < KERNEL_HEADER || kernel_magic(at, KERNEL_HEADER) != KERNEL_MAGIC_ELF)
        return 0;
    table = kernel_u64(at + 40);
    if (table > limit || kernel_u16(at + 60) * (uint64_t)KERNEL_HEADER > limit - table)
        return 0;
    end = kernel_elf_bytes(at);
    return end <= limit ? (size_t)end : 0;
}

/* What is known of the parameters becomes that of the other kernel. */
static void kernel_explain(cai_kernel *kernel, cai_kernel *source)
{
    cai_kernel before = *kernel;
    if (kernel_rank(source) <= kernel_rank(kernel))
        return;
    if (!kernel->opaque && kernel->parameter_bytes != source->parameter_bytes)
        return;
    *kernel = *source;
    kernel->name = before.name;
    kernel->architecture = before.architecture ? before.architecture : source->architecture;
    before.name = source->name;
    *source = before; /* what is not needed is freed with it */
}

void cai_kernel_image_explain(cai_kernel_image *image, const void *source, size_t bytes)
{
    cai_kernel_image *other = image && bytes ? cai_kernel_image_read(source, bytes) : NULL;
    int32_t i;
    for (i = 0; other && i < other->kernel_count; ++i) {
        cai_kernel *kernel = kernel_search(image->kernels, image->kernel_count, other->kernels[i].name);
        if (kernel)
            kernel_explain(kernel, &other->kernels[i]);
    }
    cai_kernel_image_free(other);
}

void cai_kernel_image_free(cai_kernel_image *image)
{
    int32_t i;
    if (!image)
        return;
    for (i = 0; i < image->kernel_count; ++i)
        kernel_drop(&image->kernels[i]);
    for (i = 0; i < image->global_count; ++i)
        kernel_drop_global(&image->globals[i]);
    free(image->kernels);
    free(image->globals);
    free(image);
}

int32_t cai_kernel_image_is_opaque(const cai_kernel_image *image)
{
    return !image || image->opaque;
}

int32_t cai_kernel_count(const cai_kernel_image *image)
{
    return image ? image->kernel_count : 0;
}

const cai_kernel *cai_kernel_at(const cai_kernel_image *image, int32_t index)
{
    return image && index >= 0 && index < image->kernel_count ? &image->kernels[index] : NULL;
}

const cai_kernel *cai_kernel_find(const cai_kernel_image *image, const char *name)
{
    return image && name ? kernel_search(image->kernels, image->kernel_count, name) : NULL;
}

int32_t cai_kernel_global_count(const cai_kernel_image *image)
{
    return image ? image->global_count : 0;
}

const cai_kernel_global *cai_kernel_global_at(const cai_kernel_image *image, int32_t index)
{
    return image && index >= 0 && index < image->global_count ? &image->globals[index] : NULL;
}

const cai_kernel_global *cai_kernel_global_find(const cai_kernel_image *image, const char *name)
{
    int32_t i;
    for (i = 0; image && name && i < image->global_count; ++i)
        if (!strcmp(image->globals[i].name, name))
            return &image->globals[i];
    return NULL;
}

/* ----------------------------------------------------------------------------- >>link */
static void kernel_put(uint8_t *at, uint64_t value, int bytes)
{
    int i;
    for (i = 0; i < bytes; ++i)
        at[i] = (uint8_t)(value >> 8 * i & 0xff);
}

void *cai_kernel_link(const void *const *images, const size_t *bytes, int32_t count, size_t *size)
{
    size_t whole = KERNEL_FATBIN_HEADER, at = KERNEL_FATBIN_HEADER;
    uint8_t *made;
    int32_t i;
    if (!images || !bytes || !size || count < 1)
        return NULL;
    for (i = 0; i < count; ++i) {
        if (!images[i] || !bytes[i] || bytes[i] > SIZE_MAX / 4 || whole > SIZE_MAX / 4)
            return NULL;
        whole += KERNEL_FATBIN_ENTRY + bytes[i];
    }
    made = (uint8_t *)calloc(1, whole);
    if (!made)
        return NULL;
    kernel_put(made, KERNEL_MAGIC_FATBIN, 4);
    kernel_put(made + 4, KERNEL_LINKED, 2);
    kernel_put(made + 6, KERNEL_FATBIN_HEADER, 2);
    kernel_put(made + 8, whole - KERNEL_FATBIN_HEADER, 8);
    for (i = 0; i < count; ++i) {
        kernel_put(made + at + 4, KERNEL_FATBIN_ENTRY, 4);
        kernel_put(made + at + 8, bytes[i], 8);
        memcpy(made + at + KERNEL_FATBIN_ENTRY, images[i], bytes[i]);
        at += KERNEL_FATBIN_ENTRY + bytes[i];
    }
    *size = whole;
    return made;
}

/* ------------------------------------------------------------------------- >>accesses */
/* One launch: its arguments in a block, and what was found. */
typedef struct kernel_launch {
    const cai_kernel *kernel;
    const uint8_t *block;
    cai_kernel_range range;
    void *context;
    cai_sim_access *out;
    int32_t capacity;
    int32_t count;
} kernel_launch;

/* The axes of an array, with steps in bytes. */
typedef struct kernel_view {
    uint64_t lengths[KERNEL_AXES], steps[KERNEL_AXES];
    int32_t axes;
} kernel_view;

static void kernel_emit(kernel_launch *launch, uint64_t address, uint64_t bytes, int32_t write)
{
    cai_sim_access *out;
    if (launch->count++ >= launch->capacity)
        return;
    out = &launch->out[launch->count - 1];
    *out = cai_sim_reads(address, bytes);
    out->write = write;
}

/* What the kernel does through the pointer at an offset of the block. 0: nothing. */
static uint8_t kernel_does(const kernel_launch *launch, uint32_t offset)
{
    return launch->kernel->words ? launch->kernel->words[offset / 8] : CAI_KERNEL_UNKNOWN;
}

/* Memory that the kernel uses for sure. */
static void kernel_emit_exact(kernel_launch *launch, uint64_t address, uint64_t bytes, uint8_t does)
{
    const int32_t write = does & CAI_KERNEL_WRITES ? 1 : does & CAI_KERNEL_UNKNOWN ? CAI_SIM_MAY_WRITE : 0;
    if (does)
        kernel_emit(launch, address, bytes, write);
}

/* A pointer of which nothing says how far the kernel goes, forwards or backwards: the byte that it points to is
 * used, all of its memory may be. */
static void kernel_emit_pointer(kernel_launch *launch, uint64_t address, uint64_t first, uint64_t bytes,
                                uint8_t does)
{
    if (!does)
        return;
    kernel_emit_exact(launch, address, 1, does);
    kernel_emit(launch, first, bytes, does == CAI_KERNEL_READS ? CAI_SIM_MAY_READ : CAI_SIM_MAY_ACCESS);
}

/* An axis of an array, in the order of steps. */
static void kernel_add_axis(kernel_view *view, uint64_t length, uint64_t stride)
{
    const uint64_t step = length == 1 ? 0 : stride >> 63 ? 0 - stride : stride;
    int32_t i = view->axes++;
    for (; i && view->steps[i - 1] > step; --i) {
        view->steps[i] = view->steps[i - 1];
        view->lengths[i] = view->lengths[i - 1];
    }
    view->steps[i] = step;
    view->lengths[i] = length;
}

/* An array from its lowest byte on. One with gaps is several accesses, as another part of the memory may be in the
 * gaps: columns beside columns. With too many gaps it is one range that may be accessed. */
static void kernel_emit_view(kernel_launch *launch, uint64_t low, uint64_t item_bytes, const kernel_view *view,
                             uint8_t does)
{
    uint64_t run = item_bytes, behind = item_bytes, pieces = 1, piece;
    int32_t i, inner = 0;
    for (; inner < view->axes && view->steps[inner] <= run; ++inner)
        run += view->steps[inner] * (view->lengths[inner] - 1);
    for (i = 0; i < view->axes; ++i)
        behind += view->steps[i] * (view->lengths[i] - 1);
    for (i = inner; i < view->axes && pieces <= KERNEL_PIECES; ++i)
        pieces = view->lengths[i] <= KERNEL_PIECES ? pieces * view->lengths[i] : KERNEL_PIECES + 1;
    if (pieces > KERNEL_PIECES) {
        if (does)
            kernel_emit(launch, low, behind, does == CAI_KERNEL_READS ? CAI_SIM_MAY_READ : CAI_SIM_MAY_ACCESS);
        return;
    }
    for (piece = 0; piece < pieces; ++piece) {
        uint64_t at = low, rest = piece;
        for (i = inner; i < view->axes; rest /= view->lengths[i++])
            at += view->steps[i] * (rest % view->lengths[i]);
        kernel_emit_exact(launch, at, run, does);
    }
}

/* 1: the memory around an address is known. Small numbers are no addresses. */
static int kernel_knows(const kernel_launch *launch, uint64_t address, uint64_t *first, uint64_t *bytes)
{
    return address >= 4096 && launch->range(launch->context, address, first, bytes);
}

/* Parameter `index` as a word, if it is one. */
static int kernel_word(const kernel_launch *launch, int32_t index, uint64_t *value)
{
    const cai_kernel_parameter *parameter;
    if (index >= launch->kernel->parameter_count)
        return 0;
    parameter = &launch->kernel->parameters[index];
    if (parameter->bytes != 8 || parameter->offset % 8)
        return 0;
    *value = kernel_u64(launch->block + parameter->offset);
    return 1;
}

/* The bytes before and behind the first element that `axes` axes span. Returns 0 if the words from `index` on
 * are not a shape of `items` elements and its strides, which go to `view`. */
static int kernel_span(const kernel_launch *launch, int32_t index, int32_t axes, uint64_t items,
                       uint64_t item_bytes, uint64_t *before, uint64_t *behind, kernel_view *view)
{
    const uint64_t most = (uint64_t)1 << 48;
    uint64_t product = 1;
    int32_t i;
    view->axes = 0;
    *before = 0;
    *behind = item_bytes;
    for (i = 0; i < axes; ++i) {
        uint64_t length, stride, step;
        if (!kernel_word(launch, index + i, &length) || !kernel_word(launch, index + axes + i, &stride))
            return 0;
        if (!length || length > items || product > items / length)
            return 0;
        product *= length;
        step = stride >> 63 ? 0 - stride : stride;
        kernel_add_axis(view, length, stride);
        if (length == 1)
            continue;
        if ((step && step < item_bytes) || step > most / length)
            return 0;
        *(stride >> 63 ? before : behind) += step * (length - 1);
    }
    return product == items;
}

/* An array argument of Numba is these parameters: meminfo 0, parent 0, items, bytes of an item, data, shape,
 * strides. Returns how many they are, or 0 if it is none. The axes are the fewest that fit. */
static int32_t kernel_numba(kernel_launch *launch, int32_t index)
{
    uint64_t meminfo, parent, items, item_bytes, data, first = 0, bytes = 0, before, behind;
    const uint32_t offset = index + 4 < launch->kernel->parameter_count
                                ? launch->kernel->parameters[index + 4].offset : 0;
    kernel_view view;
    int32_t axes;
    if (!kernel_word(launch, index, &meminfo) || !kernel_word(launch, index + 1, &parent) ||
        !kernel_word(launch, index + 2, &items) || !kernel_word(launch, index + 3, &item_bytes) ||
        !kernel_word(launch, index + 4, &data))
        return 0;
    if (meminfo || parent || !items || !item_bytes || item_bytes >> 32 || items >> 48)
        return 0;
    if (!kernel_knows(launch, data, &first, &bytes))
        return 0;
    for (axes = 0; axes <= KERNEL_AXES; ++axes) {
        if (!kernel_span(launch, index + 5, axes, items, item_bytes, &before, &behind, &view))
            continue;
        if (before > data - first || behind > bytes - (data - first))
            continue;
        kernel_emit_view(launch, data - before, item_bytes, &view, kernel_does(launch, offset));
        return 5 + 2 * axes;
    }
    return 0;
}

/* A number of a mangled name. */
static const char *kernel_decimal(const char *at, int32_t *value)
{
    *value = 0;
    for (; *at >= '0' && *at <= '9' && *value < 100000; ++at)
        *value = 10 * *value + (*at - '0');
    return at;
}

/* The bytes of an element, by its type in a mangled name. Behind it, or NULL: a type that is not known here. */
static const char *kernel_item(const char *at, uint64_t *bytes)
{
    static const char *const types[] = {"bah", "stDh", "ijf", "lmxyd"};
    int32_t length = 0, i;
    if (*at >= '1' && *at <= '9') { /* 9complex64 */
        const char *name = kernel_decimal(at, &length);
        *bytes = !strncmp(name, "complex128", 10) ? 16 : 8;
        if (strlen(name) < (size_t)length || (strncmp(name, "complex", 7) && strncmp(name, "datetime64", 10) &&
                                              strncmp(name, "timedelta64", 11)))
            return NULL;
        return name + length;
    }
    for (i = 0; *at && i < 4; ++i)
        if (strncmp(at, "Dh", 2) ? *at != 'D' && strchr(types[i], *at) != NULL : i == 1) {
            *bytes = (uint64_t)1 << i;
            return at + (*at == 'D' ? 2 : 1);
        }
    return NULL;
}

/* An array argument of numba-cuda-mlir, in the kernel's mangled name: 5ArrayIfLi2E1C7mutable7alignedE. Behind it, or
 * NULL. */
static const char *kernel_array_type(const char *at, int32_t *axes, uint64_t *item_bytes)
{
    int32_t length = 0;
    at = kernel_item(at + 7, item_bytes);
    if (!at || strncmp(at, "Li", 2))
        return NULL;
    at = kernel_decimal(at + 2, axes);
    for (at += *at == 'E'; *at >= '1' && *at <= '9';) {
        at = kernel_decimal(at, &length);
        if (strlen(at) < (size_t)length)
            return NULL;
        at += length;
    }
    return *at == 'E' && *axes <= KERNEL_AXES ? at + 1 : NULL;
}

/* Behind the name of a function: 3add, or N4main3addE. */
static const char *kernel_unqualified(const char *at)
{
    const int nested = *at == 'N';
    int32_t length = 0;
    at += nested;
    do {
        at = kernel_decimal(at, &length);
        if (!length || strlen(at) < (size_t)length)
            return NULL;
        at += length;
    } while (nested && *at != 'E');
    return at + nested;
}

/* 1: an array begins at parameter `index`, by the mangled name. Arrays are 3 + 2 * axes parameters, numbers are one.
 * A name with other types, or of other kernels, does not give as many parameters as there are. */
static int kernel_named_array(const cai_kernel *kernel, int32_t index, int32_t *axes, uint64_t *item_bytes)
{
    const char *at = kernel->name;
    int32_t place = 0, some = 0, found = 0;
    uint64_t bytes = 0;
    if (!at || strncmp(at, "_Z", 2) || !strstr(at, "5ArrayI"))
        return 0;
    at = kernel_unqualified(at + 2);
    for (; at && *at; place += some) {
        const int is_array = !strncmp(at, "5ArrayI", 7);
        const int is_here = is_array && place == index;
        const int is_tuple = !strncmp(at, "5TupleI", 7) || *at == 'E'; /* its members follow, and its end */
        int32_t dimensions = 0;
        some = 0;
        if (is_tuple) {
            at += *at == 'E' ? 1 : 7;
            continue;
        }
        at = is_array ? kernel_array_type(at, &dimensions, &bytes) : kernel_item(at, &bytes);
        some = is_array ? 3 + 2 * dimensions : 1;
        if (!is_here)
            continue;
        found = 1;
        *axes = dimensions;
        *item_bytes = bytes;
    }
    return found && at && place == kernel->parameter_count;
}

/* An array of numba-cuda-mlir is a memref: allocated, aligned, offset, shape, strides in elements. Returns how many
 * parameters it is, or 0 if it is none. */
static int32_t kernel_memref(kernel_launch *launch, int32_t index)
{
    const cai_kernel_parameter *parameters = launch->kernel->parameters;
    uint64_t allocated, aligned, start, items = 1, item_bytes = 0, first = 0, bytes = 0, low = 0, high = 0;
    kernel_view view;
    int32_t axes = 0, i;
    view.axes = 0;
    if (!kernel_named_array(launch->kernel, index, &axes, &item_bytes) || !kernel_word(launch, index, &allocated) ||
        !kernel_word(launch, index + 1, &aligned) || !kernel_word(launch, index + 2, &start))
        return 0;
    for (i = 0; i < axes; ++i) {
        uint64_t length, stride, step;
        if (!kernel_word(launch, index + 3 + i, &length) || !kernel_word(launch, index + 3 + axes + i, &stride))
            return 0;
        step = stride >> 63 ? 0 - stride : stride;
        if (length >> 40 || step >> 40 || (length && step > ((uint64_t)1 << 40) / length))
            return 0;
        kernel_add_axis(&view, length, stride * item_bytes);
        items = length ? items : 0;
        *(stride >> 63 ? &low : &high) += length ? step * (length - 1) : 0;
    }
    if (!items)
        return 3 + 2 * axes; /* an empty array */
    if (!kernel_knows(launch, aligned, &first, &bytes))
        return 0;
    start = aligned + (start - low) * item_bytes;
    if (start < first || start - first > bytes || (low + high + 1) * item_bytes > bytes - (start - first))
        return 0;
    kernel_emit_view(launch, start, item_bytes, &view, kernel_does(launch, parameters[index + 1].offset));
    if (launch->kernel->words)
        kernel_emit_view(launch, start, item_bytes, &view, kernel_does(launch, parameters[index].offset));
    return 3 + 2 * axes;
}

/* The words of a parameter that are addresses. */
static void kernel_parameter_accesses(kernel_launch *launch, const cai_kernel_parameter *parameter)
{
    uint32_t offset = (parameter->offset + 7) / 8 * 8;
    for (; offset + 8 <= parameter->offset + parameter->bytes; offset += 8) {
        const uint64_t address = kernel_u64(launch->block + offset);
        uint64_t first = 0, bytes = 0;
        if (kernel_knows(launch, address, &first, &bytes))
            kernel_emit_pointer(launch, address, first, bytes, kernel_does(launch, offset));
    }
}

/* The block of the arguments. NULL: no memory. */
static uint8_t *kernel_pack(const cai_kernel *kernel, const void *const *arguments, const void *buffer,
                            size_t buffer_bytes)
{
    uint8_t *block = (uint8_t *)calloc(1, (size_t)kernel->parameter_bytes + 8);
    int32_t i;
    if (!block)
        return NULL;
    if (buffer && buffer_bytes)
        memcpy(block, buffer,
               buffer_bytes < kernel->parameter_bytes ? buffer_bytes : kernel->parameter_bytes);
    for (i = 0; arguments && i < kernel->parameter_count; ++i)
        if (arguments[i])
            memcpy(block + kernel->parameters[i].offset, arguments[i], kernel->parameters[i].bytes);
    return block;
}

int32_t cai_kernel_accesses(const cai_kernel *kernel, const void *const *arguments, const void *buffer,
                            size_t buffer_bytes, cai_kernel_range range, void *context, cai_sim_access *out,
                            int32_t capacity)
{
    kernel_launch launch;
    uint8_t *block;
    int32_t i = 0;
    if (!kernel || kernel->opaque || !range || !(out || capacity < 1))
        return 0;
    block = kernel_pack(kernel, arguments, buffer, buffer_bytes);
    if (!block)
        return 0;
    memset(&launch, 0, sizeof launch);
    launch.kernel = kernel;
    launch.block = block;
    launch.range = range;
    launch.context = context;
    launch.out = out;
    launch.capacity = capacity;
    while (i < kernel->parameter_count) {
        int32_t used = kernel_numba(&launch, i);
        used = used ? used : kernel_memref(&launch, i);
        if (!used)
            kernel_parameter_accesses(&launch, &kernel->parameters[i]);
        i += used ? used : 1;
    }
    free(block);
    return launch.count;
}
