#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in ext/cai_place.h, ext/cai_ipc.h and ext/cai_tensor_map.h, one at a time; the program that an entry
names must see each.

    tests/ext/planted.py [--operations N] [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

place_model.c is the random model of places, test_ipc.c has a context that ends under an import, test_tensor_map.c and
test_im2col_map.c have CUDA's documents as tables. Prints one line per defect: the first check that fails. A defect
that is not found, or that does not apply to the header any more, is a failure, and so is a failing check without a
defect. Exit status 0: all found; 1: not; 77: no C compiler.
"""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planting import NONE, Defect, Subject, compile_each, execute_until, folders_of, judge_all, parser  # noqa: E402

# What it is, where it is, what stands there instead
PLACES = [
    # waits and events
    ("a stream waits for no stream", r"status = one->stream \? cai_stream_order\(pool, one->stream, stream, err\)",
     r"status = one->stream ? CAI_OK"),
    ("a stream waits for no event", r": cai_priv_work_wait\(&work, stream, one->event\);", r": CAI_OK;"),
    ("only the first work is waited for", r"for \(i = 0; i < count && !status; \+\+i\) \{\n        const cai_work \*one = &depends\[i\];\n        status = one->stream \? ",
     r"for (i = 0; i < count && i < 1; ++i) {\n        const cai_work *one = &depends[i];\n        status = one->stream ? "),
    ("the wrong stream waits", r"cai_stream_order\(pool, one->stream, stream, err\)", r"cai_stream_order(pool, stream, one->stream, err)"),
    ("works are checked as they come", r"    CAI_TRY\(cai_priv_work_check\(&work, depends, count, &events\)\);",
     r"    (void)!cai_priv_work_check(&work, depends, count, &events);"),
    ("an event is waited for in a capture", r"    if \(events\) CAI_TRY\(cai_priv_work_ask_capture\(&work, stream\)\);\n", r""),
    ("an event of a capture is handed out", r"    status = cai_priv_work_no_capture\(&work, stream\);\n    if \(!status\) \{\n        status = cai_priv_work_did\(&work, work\.cuda->event_create",
     r"    if (!status) {\n        status = cai_priv_work_did(&work, work.cuda->event_create"),
    ("an event is not recorded", r"work\.cuda->event_record\(work\.cuda->self, made, stream\)", r"0"),
    ("an event is stored before it is recorded", r"    if \(!status\) \*event = made;\n    else if", r"    *event = made;\n    if (status) if"),
    ("an event whose record failed is left", r"    else if \(made\) \(void\)work\.cuda->event_destroy\(work\.cuda->self, made\);\n", r""),
    ("an event is not destroyed", r"    error = pool->cuda->event_destroy\(pool->cuda->self, event\);\n", r"    error = 0;\n"),
    ("an event is of the current context",
     r"    CAI_TRY\(cai_priv_work_enter_stream\(&work, stream\)\);\n    status = cai_priv_work_no_capture",
     r"    work.inside = 0;\n    status = cai_priv_work_no_capture"),
    ("a context stays pushed", r"    error = cai_priv_context_leave\(work->cuda, work->inside\);", r"    error = 0;"),
    ("a pop that failed is not told", r"return status \? status : cai_priv_work_did\(work, error, \"context_pop\"\);", r"return status;"),
    ("a stream's context is not asked", r"    if \(cai_priv_is_handle\(stream\)\)\n        CAI_TRY\(cai_priv_work_did\(work, cuda->stream_context",
     r"    if (0)\n        CAI_TRY(cai_priv_work_did(work, cuda->stream_context"),
    ("900 is no capture", r"    if \(error < 900 \|\| error > 908\) return status;", r"    return status;"),
    # migrations
    ("a migration waits for nothing", r"    CAI_TRY\(cai_exchange_begin_with\(&ex, pool, &array, 1, stream, &options, err\)\);\n    CAI_TRY\(cai_exchange_end\(&ex, CAI_OK, err\)\);\n", r"    (void)ex, (void)options;\n"),
    ("a migration has the mode of the pool", r"\(uint32_t\)CAI_PRIV_KEEP_MODE \| \(uint32_t\)CAI_PRIV_ONE_WAY, 0\}", r"(uint32_t)CAI_PRIV_ONE_WAY, 0}"),
    ("a migration takes what nobody named as idle", r"\{CAI_MODE_EVENT, CAI_UNKNOWN_SYNCHRONIZE, 0,", r"{CAI_MODE_EVENT, CAI_UNKNOWN_ASSUME_IDLE, 0,"),
    ("memory goes to another device", r"device != info\.device\) \{", r"device != info.device && 0) {"),
    ("1 and 2 of another context", r"    if \(array->size\) CAI_TRY\(cai_priv_migrate_default[^;]*;\n", r""),
    ("where memory is, is not asked", r"    status = cai_priv_work_did\(work, cuda->pointer_info\(cuda->self, array->data, info\), \"pointer_info\"\);\n",
     r"    status = CAI_OK;\n"),
    ("1 and 2 without a current context are of device 0", r"\*device = data_device >= 0 \? data_device : 0;", r"*device = 0;"),
    ("stream 2 has no thread", r"    array->thread = thread;\n", r""),
    ("the mask stays in its stream", r"    if \(array->mask\) cai_priv_migrate_store\([^;]*;\n", r""),
    ("the owner gets an edge back", r"    if \(array->release\) array->flags \|= CAI_NO_BACK_EDGE;[^\n]*\n", r""),
    ("an event of before stays", r"    if \(cai_stream_drop_event\(array, pool, NULL\)\) array->event = 0;[^\n]*\n", r""),
    ("an array changes before it is known that it can", r"    CAI_TRY\(cai_priv_migrate_check\(array, pool, stream, &thread, err\)\);\n",
     r"    array->stream = stream;\n    CAI_TRY(cai_priv_migrate_check(array, pool, stream, &thread, err));\n"),
    # caches
    ("one stream for all contexts", r"        if \(cache->streams\[i\]\.context == context\) return &cache->streams\[i\];", r"        return &cache->streams[i];"),
    ("a stream of the current context, of whatever device", r"return here == device \? CAI_OK : cai_priv_work_primary\(work, device, context\);", r"return *current ? CAI_OK : cai_priv_work_primary(work, device, context);"),
    ("a stream of the primary context", r"return here == device \? CAI_OK : cai_priv_work_primary\(work, device, context\);", r"return cai_priv_work_primary(work, device, context);"),
    ("a full cache makes streams", r"    if \(cache->count == cache->capacity\) return NULL;\n", r"    if (cache->count == cache->capacity) --cache->count;\n"),
    ("a failed stream is stored", r"    if \(stream\) cache->streams\[i\]\.stream = stream;\n    else .*\n", r"    cache->streams[i].stream = stream ? stream : 1;\n"),
    ("a stream is made where the caller is", r"    cai_status status = cai_priv_work_enter\(work, current, context\);", r"    cai_status status = CAI_OK;\n    (void)current;"),
    ("forget leaves the stream", r"        if \(context && cache->streams\[i\]\.context != context\) cache", r"        if (context) cache"),
    ("the default device is device 0", r"    if \(at\.device < 0\) at\.device = cache->device;", r"    if (at.device < 0) at.device = 0;"),
    ("a stream of another device is taken", r"        if \(named != at\.device\) at\.stream = 0;[^\n]*\n", r""),
    ("1 of another device is taken", r"        else if \(!cai_priv_is_handle\(at\.stream\) && named != array->device\)\n            at\.stream = 0;[^\n]*\n", r""),
    ("devices that are named may differ", r"    if \(\*device >= 0\)\n        return cai_priv_error\(err, CAI_ERR_PLACEMENT, \"%s is on device %ld, but",
     r'    if (0)\n        return cai_priv_error(err, CAI_ERR_PLACEMENT, "%s is on device %ld, but'),
    ("an array's stream is not its", r"    if \(!stream && array\) at\.stream = cai_priv_place_pending\(array\);\n", r""),
    # cai_place
    ("the last stream is taken", r"    if \(!place->at\.stream \|\| \(better && place->item < place->count\)\) \{", r"    if (place->item < place->count) {"),
    ("identical streams may differ", r"    if \(stream != place->at\.stream\)\n        return", r"    if (0)\n        return"),
    ("default streams of two devices are identical", r"    if \(device != place->device\) \{\n        status", r"    if (0) {\n        status"),
    ("default streams of two threads are identical", r"thread == CAI_PRIV_PLACE_ANY_THREAD \|\| thread == place->thread\)", r"1)"),
    ("a mask's stream is nothing", r"return array->mask \? cai_priv_place_pends\(place, array->mask, bound\) : CAI_OK;", r"return CAI_OK;"),
    ("inputs on two devices", r"    if \(place->at\.device == device\) return CAI_OK;\n", r"    return CAI_OK;\n"),
]  # fmt: skip

IMPORTS = [
    ("an import of a context that is gone is joined", r"    while \(mapping && !opens && !cai_priv_ipc_may_join\(mapping\)\);", r"    while (0);"),
    ("memory is closed in a context that came after its own", r"    if \(!cai_priv_ipc_lives\(mapping\)\) error = 709;[^\n]*\n    else if", r"    if"),
    ("the context's id is not asked", r"    error = cuda->context_id \? cuda->context_id\([^;]*: 0;\n", r"    error = 0;\n"),
    ("who may not join keeps the place", r"    cai_priv_ipc_drop\(mapping\);\n    return 0;", r"    return 0;"),
    ("an import has the packed axis of new arrays", r"    out->packed_axis = in->packed_axis;\n    out->packed_extent = in->packed_extent;\n", r""),
    ("a mapping that is gone is found again", r"    mapping->state = CAI_PRIV_IPC_GONE;\n", r"    mapping->state = CAI_PRIV_IPC_OPEN; if (mapping->references > 1) return 1;\n"),
]  # fmt: skip

# Of tensor maps: a condition that is not asked, or a bound that is beside the right one; what the plan has
TENSOR_MAPS = [
    ("a rank of 0", r"array->ndim >= least &&", r"array->ndim >= 0 &&"),
    ("a rank of 6", r"CAI_TENSOR_MAP_MAX_NDIM\) return CAI_OK;", r"6) return CAI_OK;"),
    ("interleave with two dimensions", r"least = im2col \|\| plan->interleave \? 3 : 1;", r"least = im2col ? 3 : 1;"),
    ("three dimensions for all", r"least = im2col \|\| plan->interleave \? 3 : 1;", r"least = 3;"),
    ("an extent of 0", r"extent < 1 \|\| extent > most / 8", r"extent < 0 || extent > most / 8"),
    ("a packed extent of 0", r"extent < 1 \|\| extent > most\)", r"extent < 0 || extent > most)"),
    ("packed extents below 2^32", r"extent > most\)", r"extent >= most)"),
    ("a packed axis that is not the last", r"    if \(array->packed_axis != axis\)\n", r"    if (0)\n"),
    ("packed extents of any number", r"    if \(extent % unit\)\n(?=[^;]*\n[^;]*packed_extent)", r"    if (0)\n"),
    ("packed dtypes are bytes", r"    if \(dtype->itemsize && dtype->bits && \(", r"    if (0 && ("),
    ("a byte for each value is packed", r"    if \(values == 1\)\n", r"    if (values == 1) return CAI_OK;\n    if (0)\n"),
    ("extents below 2^32", r"extent > most / 8 \* per", r"extent >= most / 8 * per"),
    ("extents of any size", r"extent < 1 \|\| extent > most / 8 \* per", r"extent < 1"),
    ("packed extents in bytes up to 2^32", r"extent > most / 8 \* per", r"extent > most"),
    ("packed extents count bytes", r"\(uint64_t\)\(extent \* 8 / per\)", r"(uint64_t)extent"),
    ("all extents of packed types count bytes", r"per = dim \|\| bits >= 8 \?", r"per = bits >= 8 ?"),
    ("wide types have any extent", r"    if \(extent % unit\)\n(?=[^;]*\n[^;]*\"shape)", r"    if (0)\n"),
    ("wide types have extents of 64 bytes", r"\? 16 \* bits : 1;", r"? 64 : 1;"),
    ("strides of 8", r"stride % unit == 0;", r"stride % 8 == 0;"),
    ("interleave of 32 bytes with strides of 16", r"unit = plan->interleave == CAI_TENSOR_MAP_INTERLEAVE_32B \|\| ", r"unit = "),
    ("interleave of 16 bytes with strides of 32", r"unit = plan->interleave == CAI_TENSOR_MAP_INTERLEAVE_32B \|\| ", r"unit = plan->interleave || "),
    ("wide types with strides of 16", r" \|\| cai_priv_map_wide\(plan->type\) \? 32 : 16;", r" ? 32 : 16;"),
    ("16U4_ALIGN8B is wide", r"return type >= CAI_TENSOR_MAP_16U4_ALIGN16B;", r"return type >= CAI_TENSOR_MAP_16U4_ALIGN8B;"),
    ("16U6_ALIGN16B alone is wide", r"return type >= CAI_TENSOR_MAP_16U4_ALIGN16B;", r"return type > CAI_TENSOR_MAP_16U4_ALIGN16B;"),
    ("strides of 2^40", r"most = \(1ll << 40\) - 1;", r"most = 1ll << 40;"),
    ("strides below 2^39", r"most = \(1ll << 40\) - 1;", r"most = (1ll << 39) - 1;"),
    ("negative strides", r"stride >= 0 && stride <= most", r"stride <= most"),
    ("no stride of 0", r"stride >= 0 && stride <= most", r"stride > 0 && stride <= most"),
    ("the last axis has a stride", r"    if \(dim == 0 && stride != array->dtype\.itemsize\) return cai_priv_map_apart[^;]*;\n", r""),
    ("a transposed array is not named", r"while \(axis < last && array->strides\[axis\] != size\) \+\+axis;", r"axis = last;"),
    ("an extent of 1 counts", r"    if \(array->shape\[axis\] == 1\) return CAI_OK;\n", r""),
    ("a stride that no element uses is passed on", r"\(uint64_t\)\(fits \? stride : unit\)", r"(uint64_t)stride"),
    ("a stride that no element uses is replaced", r"\(uint64_t\)\(fits \? stride : unit\)", r"(uint64_t)(fits && array->shape[axis] > 1 ? stride : unit)"),
    ("any address", r"    if \(array->data % \(uint64_t\)unit\)\n", r"    if (0)\n"),
    ("addresses of 16", r"    if \(array->data % \(uint64_t\)unit\)\n", r"    if (array->data % 16)\n"),
    ("a box of 0", r"box < 1 \|\| box > 256", r"box < 0 || box > 256"),
    ("a box of 257", r"box < 1 \|\| box > 256", r"box < 1 || box > 257"),
    ("a box of 255 at most", r"box < 1 \|\| box > 256", r"box < 1 || box > 255"),
    ("a box of an axis that is not there", r"dim < 0 \? box != 0 :", r"dim < 0 ? 0 :"),
    ("the box in the order of axes", r"plan->box\[dim\] = \(uint32_t\)box;", r"plan->box[axis] = (uint32_t)box;"),
    ("steps in the order of axes", r"plan->steps\[dim\] =", r"plan->steps[axis] ="),
    ("steps of 0", r"step \? \(uint32_t\)step : 1;", r"(uint32_t)step;"),
    ("steps of 9", r"plan->interleave \? 8 : 1;", r"plan->interleave ? 9 : 1;"),
    ("steps below 0", r"step < 0 \|\| step > most", r"step > most"),
    ("steps of the last axis", r"dim > 0 \|\| plan->interleave \?", r"1 ?"),
    ("interleave without steps of the last axis", r"dim > 0 \|\| plan->interleave \?", r"dim > 0 ?"),
    ("an inner box of any size", r"    if \(bits % 128\)\n", r"    if (0)\n"),
    ("an inner box of 8 bytes", r"    if \(bits % 128\)\n", r"    if (bits % 64)\n"),
    ("interleave counts the inner box", r"    if \(plan->interleave\) return CAI_OK;\n    if \(bits", r"    if (bits"),
    ("an inner box as large as the swizzle is refused", r"bits > 8 \* span\)", r"bits >= 8 * span)"),
    ("the span of no swizzle", r"    if \(span && bits > 8 \* span\)\n", r"    if (0)\n"),
    ("the span of 64B is 128", r"spans\[7\] = \{0, 32, 64,", r"spans[7] = {0, 32, 128,"),
    ("the span of the atoms is none", r"64, 128, 128, 128, 128\};", r"64, 128, 0, 0, 0};"),
    ("wide types with any box", r"    if \(cai_priv_map_wide\(plan->type\) && box != 128\)\n", r"    if (0)\n"),
    ("INTERLEAVE_32B with any swizzle", r"    if \(plan->interleave == CAI_TENSOR_MAP_INTERLEAVE_32B && swizzle != CAI_TENSOR_MAP_SWIZZLE_32B\)\n", r"    if (0)\n"),
    ("16U6 with interleave", r"    if \(plan->interleave && type == CAI_TENSOR_MAP_16U6_ALIGN16B\)\n", r"    if (0)\n"),
    ("16U4_ALIGN16B without interleave", r"type == CAI_TENSOR_MAP_16U6_ALIGN16B\)\n", r"type >= CAI_TENSOR_MAP_16U4_ALIGN16B)\n"),
    ("wide types with any swizzle", r"    if \(cai_priv_map_wide\(plan->type\) && !cai_priv_map_wide_swizzle\(plan->type, plan->swizzle\)\)\n", r"    if (0)\n"),
    ("16U4_ALIGN16B with 128B_ATOM_64B", r"return type == CAI_TENSOR_MAP_16U6_ALIGN16B;", r"return 1;"),
    ("16U6_ALIGN16B without 128B_ATOM_64B", r"return type == CAI_TENSOR_MAP_16U6_ALIGN16B;", r"return 0;"),
    ("wide types without 128B_ATOM_32B", r" \|\|\n           swizzle == CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_32B;", r";"),
    ("NaN for integers", r"type < CAI_TENSOR_MAP_FLOAT16 \|\|", r"type < 0 ||"),
    ("NaN for packed types", r" \|\| type > CAI_TENSOR_MAP_TFLOAT32_FTZ\)\)\n", r"))\n"),
    ("no NaN for tf32", r"type > CAI_TENSOR_MAP_TFLOAT32_FTZ", r"type > CAI_TENSOR_MAP_FLOAT32_FTZ"),
    ("any type", r"    CAI_TRY\(cai_priv_map_option\(\"type\", tile->type, CAI_TENSOR_MAP_UINT8, err\)\);\n",
     r"    if (tile->type < 0 || tile->type > 16) return CAI_OK;\n"),
    ("a plan has the number of a tile", r"    if \(\*type == CAI_TENSOR_MAP_UINT8\) \*type = CAI_PRIV_MAP_UINT8;\n", r"    if (*type == CAI_TENSOR_MAP_UINT8 && dtype->itemsize > 1) *type = CAI_PRIV_MAP_UINT8;\n"),
    ("UINT8 cannot be named", r"    int32_t bytes;\n    \*type = given", r"    int32_t bytes;\n    if (given == CAI_TENSOR_MAP_UINT8) given = 0;\n    *type = given"),
    ("a message has no named type", r"given \? \" is not \" : \"\", given \?", r'"", 0 ?'),
    ("any interleave", r"tile->interleave, CAI_TENSOR_MAP_INTERLEAVE_32B, err", r"tile->interleave, 100, err"),
    ("any swizzle", r"tile->swizzle, CAI_TENSOR_MAP_SWIZZLE_128B_ATOM_64B, err", r"tile->swizzle & 7, 7, err"),
    ("any promotion", r"tile->l2_promotion, CAI_TENSOR_MAP_L2_256B, err", r"tile->l2_promotion, 100, err"),
    ("any fill", r"tile->fill, CAI_TENSOR_MAP_FILL_NAN, err", r"tile->fill, 100, err"),
    ("a type of another size", r"    if \(dtype->itemsize == bytes\) return CAI_OK;\n", r"    return CAI_OK;\n"),
    ("a dtype of any order of bytes", r"switch \(dtype->code\)", r"switch (dtype->code & 0xffffff)"),
    ("the named type is not taken", r"\*type = given \|\| cai_dtype_values\(dtype\) > 1 \? given :", r"*type ="),
    ("bytes of a box without steps", r"\(plan->box\[dim\] \+ plan->steps\[dim\] - 1\) / plan->steps\[dim\]", r"plan->box[dim]"),
    ("bytes of a box, rounded down", r"\(plan->box\[dim\] \+ plan->steps\[dim\] - 1\) / plan->steps\[dim\]", r"plan->box[dim] / plan->steps[dim]"),
    ("bytes of a box without gaps", r"    if \(cai_priv_map_wide\(plan->type\)\) return plan->box\[0\];\n", r""),
    ("out changes before it is known that it can", r"    CAI_TRY\(cai_priv_map_box\(tile, &plan, err\)\);\n    \*out = plan;", r"    *out = plan;\n    CAI_TRY(cai_priv_map_box(tile, &plan, err));\n    *out = plan;"),
]

# Of im2col mode
COLUMNS = [
    ("im2col: two dimensions", r"least = im2col \|\| plan->interleave \? 3 : 1;", r"least = plan->interleave ? 3 : im2col ? 2 : 1;"),
    ("im2col: corners of 16 bits for all", r"mosts\[6\] = \{0, 0, 0, 32767, 127, 15\}", r"mosts[6] = {0, 0, 0, 32767, 32767, 32767}"),
    ("im2col: corners up to 16 with five dimensions", r"32767, 127, 15\}", r"32767, 127, 16}"),
    ("im2col: corners up to 126 with four dimensions", r"32767, 127, 15\}", r"32767, 126, 15}"),
    ("im2col: corners up to 32766 with three dimensions", r"32767, 127, 15\}", r"32766, 127, 15}"),
    ("im2col: a lower corner is not below -most", r"lower, dim < 1 \? 0 : -most - 1, most", r"lower, -most, most"),
    ("im2col: an upper corner is not below -most", r"upper, dim < 1 \? 0 : -most - 1, most", r"upper, -most, most"),
    ("im2col: any lower corner", r"    CAI_TRY\(cai_priv_map_within\(\"lower\"[^\n]*\n", r""),
    ("im2col: any upper corner", r"    CAI_TRY\(cai_priv_map_within\(\"upper\"[^\n]*\n", r""),
    ("im2col: any steps", r"    CAI_TRY\(cai_priv_map_within\(\"steps\"[^\n]*\n", r""),
    ("im2col: steps of 9", r"step, 0, dim < 1 \? 0 : 8, err", r"step, 0, dim < 1 ? 0 : 9, err"),
    ("im2col: steps of an axis that is not there", r"step, 0, dim < 1 \? 0 : 8, err", r"step, 0, 8, err"),
    ("im2col: steps below 0", r"step, 0, dim < 1 \? 0 : 8, err", r"step, dim < 1 ? 0 : -8, dim < 1 ? 0 : 8, err"),
    ("im2col: a box without pixels", r"    if \(\(int64_t\)plan->dims\[dim\] \+ upper <= lower\)\n", r"    if (0)\n"),
    ("im2col: a box of one pixel is refused", r"\+ upper <= lower\)", r"+ upper - 1 <= lower)"),
    ("im2col: a box that ends one before it begins", r"\+ upper <= lower\)", r"+ upper < lower)"),
    ("im2col: the upper corner is counted from the first pixel", r"if \(\(int64_t\)plan->dims\[dim\] \+ upper <= lower\)", r"if (upper < lower)"),
    ("im2col: extents of a box in 32 bits", r"\(int64_t\)plan->dims\[dim\] \+ upper <= lower", r"(int32_t)plan->dims[dim] + upper <= lower"),
    ("im2col: the box of the axis before", r"plan->rank - 2 - at, most", r"plan->rank - 1 - at, most"),
    ("im2col: corners in the order of axes", r"plan->lower\[dim - 1\] = lower;", r"plan->lower[at] = lower;"),
    ("im2col: upper corners in the order of axes", r"plan->upper\[dim - 1\] = upper;", r"plan->upper[at] = upper;"),
    ("im2col: steps in the order of axes", r"(?<= = upper;\n)    plan->steps\[dim\] =", r"    plan->steps[at + 1] ="),
    ("im2col: steps of 0", r"(?<= = upper;\n)    plan->steps\[dim\] = step \? \(uint32_t\)step : 1;", r"    plan->steps[dim] = (uint32_t)step;"),
    ("im2col: N has no step", r"plan\.steps\[0\] = plan\.steps\[array->ndim - 1\] = 1;", r"plan.steps[0] = 1;"),
    ("im2col: C has no step", r"plan\.steps\[0\] = plan\.steps\[array->ndim - 1\] = 1;", r"plan.steps[array->ndim - 1] = 1;"),
    ("im2col: no channels", r"tile->channels < 1 \|\|", r"tile->channels < 0 ||"),
    ("im2col: 257 channels", r"tile->channels > 256", r"tile->channels > 257"),
    ("im2col: 255 channels at most", r"tile->channels > 256", r"tile->channels > 255"),
    ("im2col: no pixels", r"tile->pixels < 1 \|\|", r"tile->pixels < 0 ||"),
    ("im2col: 1025 pixels", r"tile->pixels > 1024", r"tile->pixels > 1025"),
    ("im2col: 1023 pixels at most", r"tile->pixels > 1024", r"tile->pixels > 1023"),
    ("im2col: any channels for the type and the swizzle", r"    CAI_TRY\(cai_priv_map_inner\(inner, \"channels\", -1, err\)\);\n", r""),
    ("im2col: bytes of a column with interleave", r"    if \(!plan->interleave\) plan->column_bytes", r"    plan->column_bytes"),
    ("im2col: bytes of a pixel for the column", r"plan->pixels \* cai_priv_map_inner_bytes\(inner\)", r"cai_priv_map_inner_bytes(inner)"),
    ("im2col: bytes of a column without gaps", r"    if \(cai_priv_map_wide\(plan->type\)\) return plan->box\[0\];\n", r""),
    ("im2col: the swizzle is not passed on", r"    plan\.swizzle = common\.swizzle;\n", r""),
    ("im2col: the promotion is not passed on", r"    modes\.l2_promotion = tile->l2_promotion;\n", r""),
    ("im2col: the fill is not passed on", r"    modes\.fill = tile->fill;\n", r""),
    ("im2col: the interleave is not passed on", r"    modes\.interleave = tile->interleave;\n", r""),
    ("im2col: the type is not passed on", r"    modes\.type = tile->type;\n", r""),
    ("im2col: out changes before it is known that it can", r"    CAI_TRY\(cai_priv_map_column\(tile, &common, &plan, err\)\);\n    \*out = plan;", r"    *out = plan;\n    CAI_TRY(cai_priv_map_column(tile, &common, &plan, err));\n    *out = plan;"),
]

DEFECTS = ([Defect(name, "ext/cai_place.h", *change, ("place_model",)) for name, *change in PLACES]
           + [Defect(name, "ext/cai_ipc.h", *change, ("test_ipc",)) for name, *change in IMPORTS]
           + [Defect(name, "ext/cai_tensor_map.h", *change, ("test_tensor_map",)) for name, *change in TENSOR_MAPS]
           + [Defect(name, "ext/cai_tensor_map.h", *change, ("test_im2col_map",)) for name, *change in COLUMNS])  # fmt: skip


class Ext(Subject):
    """The programs; a defect is shown to the one that must see it."""

    def build(self, options, tree, folder):
        names = "place_model", "test_ipc", "test_tensor_map", "test_im2col_map"
        sources = [HERE / f"{name}.c" for name in names]
        return compile_each(options, folder, sources, "-O1", *folders_of(tree), f"-I{HERE}")

    def run(self, options, tree, folder, environment, defect):
        commands = {"place_model": [folder / "place_model", options.operations], "test_ipc": [folder / "test_ipc"],
                    "test_tensor_map": [folder / "test_tensor_map", "20000"],
                    "test_im2col_map": [folder / "test_im2col_map", "50000"]}
        printed = []
        for name in commands if defect is NONE else defect.more:
            mark = r"place_\w+\.[ch]:\d+: |test_(?:ipc|tensor_map|im2col_map)\.c:\d+: "
            status, output = execute_until(commands[name], 60, mark, environment)
            first = re.search(rf"({mark})[^\n]*", output)
            if defect is NONE and status != 0:
                return False, f"A FAILURE: {output}"
            if defect is not NONE:
                if status != 0 and (first or (status or 0) < 0):
                    return True, first.group(0) if first else f"{name}: signal {-status}"
                return False, f"NOT FOUND by {name}: {output[-300:]}"
            printed.append(output.strip().splitlines()[-1])
        return True, "; ".join(printed)


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--operations", type=int, default=60000, metavar="N", help="of the model")
    return judge_all(arguments.parse_args(), DEFECTS, Ext())


if __name__ == "__main__":
    sys.exit(main())
