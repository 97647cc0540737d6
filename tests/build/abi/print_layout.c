/* print_layout - prints size and offsets of the ABI structs in the form of layout.txt
 * SPDX-License-Identifier: MIT
 *
 * Exit status 1 if the members listed here do not tile a struct: one was added and not listed. */
#include "cai_access.h"
#include "cai_ipc.h"
#include "cai_manager.h"

#include <stddef.h>
#include <stdio.h>

static const char *of; /* the struct being printed */
static size_t end;     /* of its last member */
static int holes;

static void begin(const char *name, size_t size)
{
    printf("%s sizeof %lu\n", name, (unsigned long)size);
    of = name;
    end = 0;
}

static void expect_end(size_t offset, const char *name)
{
    if (offset == end) return;
    fprintf(stderr, "%s: bytes %lu to %lu, before %s, belong to no member\n", of,
            (unsigned long)end, (unsigned long)offset, name);
    holes++;
}

static void member(const char *name, size_t offset, size_t size)
{
    printf("%s %s %lu\n", of, name, (unsigned long)offset);
    expect_end(offset, name);
    end = offset + size;
}

#define MEMBER(name) member(#name, offsetof(STRUCT, name), sizeof(((STRUCT *)0)->name))

static void print_dtype(void)
{
#define STRUCT struct cai_dtype_v0
    begin("cai_dtype_v0", sizeof(STRUCT));
    MEMBER(code);
    MEMBER(itemsize);
    MEMBER(bits);
    MEMBER(unit);
    MEMBER(unit_count);
    MEMBER(alignment);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_field(void)
{
#define STRUCT struct cai_field_v0
    begin("cai_field_v0", sizeof(STRUCT));
    MEMBER(name);
    MEMBER(title);
    MEMBER(name_length);
    MEMBER(title_length);
    MEMBER(dtype);
    MEMBER(offset);
    MEMBER(nbytes);
    MEMBER(parent);
    MEMBER(child_count);
    MEMBER(ndim);
    MEMBER(reserved);
    MEMBER(shape);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_array(void)
{
#define STRUCT struct cai_array_v0
    begin("cai_array_v0", sizeof(STRUCT));
    MEMBER(abi);
    MEMBER(struct_size);
    MEMBER(release);
    MEMBER(owner);
    MEMBER(flags);
    MEMBER(version);
    MEMBER(data);
    MEMBER(dtype);
    MEMBER(device);
    MEMBER(memory);
    MEMBER(sync);
    MEMBER(ndim);
    MEMBER(stream);
    MEMBER(event);
    MEMBER(thread);
    MEMBER(size);
    MEMBER(nbytes);
    MEMBER(lo);
    MEMBER(hi);
    MEMBER(fields);
    MEMBER(mask);
    MEMBER(field_count);
    MEMBER(packed_extent);
    MEMBER(packed_axis);
    MEMBER(backend);
    MEMBER(must_understand);
    MEMBER(reserved);
    MEMBER(shape);
    MEMBER(strides);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_capture(void)
{
#define STRUCT struct cai_cuda_capture_v0
    begin("cai_cuda_capture_v0", sizeof(STRUCT));
    MEMBER(status);
    MEMBER(reserved);
    MEMBER(id);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_pointer(void)
{
#define STRUCT struct cai_cuda_pointer_v0
    begin("cai_cuda_pointer_v0", sizeof(STRUCT));
    MEMBER(memory);
    MEMBER(device);
    MEMBER(flags);
    MEMBER(reserved);
    MEMBER(context);
    MEMBER(device_pointer);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_copy(void)
{
#define STRUCT struct cai_cuda_copy_v0
    begin("cai_cuda_copy_v0", sizeof(STRUCT));
    MEMBER(to);
    MEMBER(from);
    MEMBER(to_pitch);
    MEMBER(from_pitch);
    MEMBER(to_height);
    MEMBER(from_height);
    MEMBER(width);
    MEMBER(height);
    MEMBER(depth);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

#define STRUCT struct cai_cuda_v0
static void print_cuda_order(void)
{
    begin("cai_cuda_v0", sizeof(STRUCT));
    MEMBER(struct_size);
    MEMBER(version);
    MEMBER(flags);
    MEMBER(reserved);
    MEMBER(self);
    MEMBER(context_current);
    MEMBER(context_push);
    MEMBER(context_pop);
    MEMBER(context_synchronize);
    MEMBER(context_device);
    MEMBER(device_context);
    MEMBER(stream_context);
    MEMBER(stream_capture);
    MEMBER(stream_id);
    MEMBER(stream_wait_event);
    MEMBER(stream_synchronize);
    MEMBER(event_create);
    MEMBER(event_destroy);
    MEMBER(event_record);
    MEMBER(event_query);
    MEMBER(event_synchronize);
    MEMBER(capture_mode);
    MEMBER(pointer_info);
    MEMBER(pointer_range);
    MEMBER(device_attribute);
    MEMBER(host_thread);
}

static void print_cuda_memory(void)
{
    MEMBER(memory_alloc);
    MEMBER(memory_free);
    MEMBER(memory_alloc_async);
    MEMBER(memory_free_async);
    MEMBER(host_alloc);
    MEMBER(host_free);
    MEMBER(host_register);
    MEMBER(host_unregister);
    MEMBER(managed_alloc);
    MEMBER(memory_info);
    MEMBER(ipc_export);
    MEMBER(ipc_open);
    MEMBER(ipc_close);
    MEMBER(device_uuid);
    MEMBER(copy_async);
    MEMBER(copy_3d_async);
    MEMBER(set_async);
    MEMBER(set_2d_async);
    MEMBER(copy_peer_async);
    MEMBER(copy_3d_peer_async);
    MEMBER(context_id);
    MEMBER(context_record);
    MEMBER(stream_flags);
    MEMBER(pool_create);
    MEMBER(pool_destroy);
    MEMBER(memory_alloc_from_pool);
    MEMBER(primary_retain);
    MEMBER(primary_release);
    MEMBER(capture_retain);
    expect_end(sizeof(STRUCT), "the end");
}
#undef STRUCT

static void print_hooks(void)
{
#define STRUCT struct cai_emm_hooks_v0
    begin("cai_emm_hooks_v0", sizeof(STRUCT));
    MEMBER(struct_size);
    MEMBER(version);
    MEMBER(flags);
    MEMBER(kind);
    MEMBER(ctx);
    MEMBER(device_alloc);
    MEMBER(device_free);
    MEMBER(name);
    MEMBER(initialize);
    MEMBER(reset);
    MEMBER(memory_info);
    MEMBER(defer);
    MEMBER(ipc_handle);
    MEMBER(host_alloc);
    MEMBER(host_free);
    MEMBER(pin);
    MEMBER(unpin);
    MEMBER(managed_alloc);
    MEMBER(managed_free);
    MEMBER(open);
    MEMBER(close);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_handles(void)
{
    begin("cai_memory_handle", sizeof(cai_memory_handle));
#define STRUCT cai_memory_ipc
    begin("cai_memory_ipc", sizeof(STRUCT));
    MEMBER(handle);
    MEMBER(offset);
    MEMBER(size);
    MEMBER(device);
    MEMBER(reserved);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_access(void)
{
#define STRUCT struct cai_access_v0
    begin("cai_access_v0", sizeof(STRUCT));
    MEMBER(struct_size);
    MEMBER(version);
    MEMBER(array);
    MEMBER(dims);
    MEMBER(halo_low);
    MEMBER(halo_high);
    MEMBER(newer);
    MEMBER(ctx);
    MEMBER(acquire);
    MEMBER(touch);
    MEMBER(release);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

static void print_ipc(void)
{
#define STRUCT struct cai_ipc_v0
    begin("cai_ipc_v0", sizeof(STRUCT));
    MEMBER(abi);
    MEMBER(struct_size);
    MEMBER(flags);
    MEMBER(ndim);
    MEMBER(handle);
    MEMBER(device_uuid);
    MEMBER(offset);
    MEMBER(size);
    MEMBER(data_offset);
    MEMBER(process);
    MEMBER(cookie);
    MEMBER(dtype);
    MEMBER(packed_extent);
    MEMBER(packed_axis);
    MEMBER(reserved);
    MEMBER(shape);
    MEMBER(strides);
    expect_end(sizeof(STRUCT), "the end");
#undef STRUCT
}

int main(void)
{
    print_dtype();
    print_field();
    print_array();
    print_capture();
    print_pointer();
    print_copy();
    print_cuda_order();
    print_cuda_memory();
    print_hooks();
    print_handles();
    print_access();
    print_ipc();
    return holes > 0;
}
