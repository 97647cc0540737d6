#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_python_dlpack.h, and in what cai_python.h does for it, one at a time; check_dlpack.py, or for
those that are named order or table check_dlpack_order.py and check_dlpack_table.py, must find each of them.

    tests/python/planted_dlpack.py --dlpack FOLDER [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first thing that was wrong. A defect that is not found, or that does not apply to the
file any more, is a failure, and so is a test that fails without a defect. Exit status 0: all found; 1: not; 77: no C
compiler, no Python.h, or no dlpack.h that is new enough.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planted_parts import HEADER, Script, judge_parts  # noqa: E402
from planting import Defect, execute, parser  # noqa: E402

PARTS = "numpy_in,numpy_out,device,table,order,lies,arguments,exports,references,no_memory,memory,threads"

DLPACK_HEADER = "ext/cai_python_dlpack.h"

# What it is, what is there, what stands there instead
DEFECTS = [
    # tables of types
    ("the version of a table does not matter",
     r"while \(header && header->version\.major != CAI_DL_MAJOR\)[^;]*;", r""),
    ("what is behind a table is not looked at", r"header = header->prev_api;", r"header = NULL;"),
    ("a table without managed tensors", r"!table->managed_tensor_from_py_object_no_sync \|\| ", r""),
    ("a table without a current stream", r" \|\| !table->current_work_stream\)", r")"),
    ("a capsule of any name is a table",
     r"if \(!PyCapsule_IsValid\(capsule, \"dlpack_exchange_api\"\)\)",
     r"if (!capsule || !PyCapsule_CheckExact(capsule) ||\n"
     r'        PyCapsule_SetName(capsule, "dlpack_exchange_api"))'),
    ("a table may be lenient always", r"\(flags & CAI_LENIENT\) \| cai_priv_py_copied",
     r"(uint32_t)CAI_LENIENT | cai_priv_py_copied"),
    ("a table is never lenient", r"\(flags & CAI_LENIENT\) \| cai_priv_py_copied", r"cai_priv_py_copied"),
    ("the current stream is not asked for", r"array->sync = CAI_SYNC_STREAM;\n(\s*)array->stream = stream \?",
     r"array->sync = CAI_SYNC_NONE;\n\1array->stream = 0 ? 0 : !stream ?"),
    ("the current stream of NULL is none",
     r"(array->stream = stream \? \(uint64_t\)\(uintptr_t\)stream : )\(uint64_t\)CAI_STREAM_LEGACY",
     r"\g<1>0"),
    ("the current stream of NULL is per-thread", r"(: \(uint64_t\))CAI_STREAM_LEGACY;\n    return 0;",
     r"\1CAI_STREAM_PER_THREAD;\n    return 0;"),
    ("the current stream of device 0", r"CAI_DL_CUDA, device\.device_id, &stream", r"CAI_DL_CUDA, 0, &stream"),
    ("managed memory has no current stream",
     r"if \(array->memory != CAI_MEMORY_DEVICE && array->memory != CAI_MEMORY_MANAGED\)",
     r"if (array->memory != CAI_MEMORY_DEVICE)"),
    ("the host has a current stream",
     r"if \(array->memory != CAI_MEMORY_DEVICE && array->memory != CAI_MEMORY_MANAGED\) return 0;", r""),
    ("a failure to say the current stream is ignored", r"if \((table->current_work_stream\(\(cai_dl_device_type\)CAI_DL_CUDA, [^)]*\))\)",
     r"if (\1 && 0)"),
    ("leak: a tensor of a table that is refused",
     r"(status != CAI_ERR_VERSION && seen->deleter\) )seen->deleter\(managed\)", r"\1(void)0"),
    ("a tensor of another version is deleted twice", r"status != CAI_ERR_VERSION && seen->deleter",
     r"seen->deleter"),
    ("leak: what a table's array would own", r"(if \(!how\) cai_priv_py_take_tensor[^\n]*\n)    else if \(owner\) cai_priv_py_free_owner\(owner\);\n", r"\1"),
    ("leak: a tensor of a table that is not wanted", r"if \(how\) cai_priv_py_undo\(py, out, 1\);\n", r""),
    ("a deleter runs with the exception of a table", r"if \(how\) cai_priv_py_undo\(py, out, 1\);",
     r"if (how) cai_array_release(out);"),
    ("a deleter runs with the exception of a table's tensor",
     r"(if \(status != CAI_ERR_VERSION && seen->deleter\) seen->deleter\(managed\);\n)"
     r"(\s*cai_python_raise\(err\);\n)",
     r"\2\1"),
    ("a table succeeds without a tensor", r" \|\| !managed\)", r")"),
    # __dlpack__ is asked
    ("imports read no DLPack", r"if \(!failed\) py->dlpack = &reader;\n", r""),
    ("max_version is not said", r"PyDict_SetItemString\(keywords, \"max_version\", value\)", r"0"),
    ("max_version is 1.0", r"(\"\(ii\)\", \(int\)CAI_DL_MAJOR, )\(int\)CAI_DL_MINOR", r"\g<1>0"),
    ("an exporter of before DLPack 1.0 is not asked again",
     r"&& !capsule && cai_priv_py_is_keyword_refused\(\)", r"&& 0"),
    ("asked again after any error", r"&& !capsule && cai_priv_py_is_keyword_refused\(\)", r"&& !capsule"),
    ("asked again with max_version", r"PyDict_DelItemString\(keywords, \"max_version\"\)", r"0"),
    ("asked again without stream", r"PyDict_DelItemString\(keywords, \"max_version\"\)",
     r"(PyDict_Clear(keywords), 0)"),
    ("no stream is said", r"if \(!failed && cai_priv_py_has_streams\(device_type\)\)", r"if (0)"),
    ("a stream is said to the host", r"if \(!failed && cai_priv_py_has_streams\(device_type\)\)", r"if (!failed)"),
    ("managed memory has no streams",
     r"return device_type == CAI_DL_CUDA \|\| device_type == CAI_DL_CUDA_MANAGED;",
     r"return device_type == CAI_DL_CUDA;"),
    ("the stream that is said is the default one", r"PyLong_FromUnsignedLongLong\(in->stream\)",
     r"PyLong_FromUnsignedLongLong(1)"),
    ("the stream is not remembered", r"options\.stream = in->stream;", r"options.stream = 1;"),
    ("nothing is pending", r"options\.sync = CAI_SYNC_STREAM;\n\s*options\.stream = in->stream;",
     r"options.sync = CAI_SYNC_NONE;"),
    ("host memory of __dlpack__ is for all", r"device\[0\] == CAI_DL_CPU && !\(in->flags & CAI_PYTHON_HOST\)",
     r"0"),
    ("any device will do", r"device\[0\] != CAI_DL_CPU && device\[0\] != CAI_DL_CUDA_HOST &&", r"0 &&"),
    ("the device is any tuple", r"!PyTuple_Check\(pair\) \|\| PyTuple_Size\(pair\) != 2", r"!PyTuple_Check(pair)"),
    ("the device is any pair", r"!PyTuple_Check\(pair\) \|\| PyTuple_Size\(pair\) != 2", r"PyObject_Size(pair) != 2"),
    # what it answers
    ("a capsule keeps its name",
     r"if \(!status \|\| status == CAI_ERR_VERSION\) \(void\)PyCapsule_SetName\(capsule, used\);",
     r"if (status == CAI_ERR_VERSION) (void)PyCapsule_SetName(capsule, used);"),
    ("a capsule of another version keeps its name", r"if \(!status \|\| status == CAI_ERR_VERSION\)", r"if (!status)"),
    ("a capsule that is refused is used", r"if \(!status \|\| status == CAI_ERR_VERSION\)", r"if (1)"),
    ("a capsule has the other name", r"used = \"used_dltensor_versioned\";", r""),
    ("without version it may be written to", r"read_only\.flags \|= \(uint32_t\)CAI_DLPACK_READ_ONLY;", r""),
    ("anything is a capsule", r"\} else if \(PyCapsule_IsValid\(capsule, \"dltensor_versioned\"\)\) \{",
     r"} else if (PyCapsule_CheckExact(capsule)) {"),
    ("the device may be another",
     r"if \(array->memory == memory && \(memory != CAI_MEMORY_DEVICE \|\| array->device == device\[1\]\)\) return 0;",
     r"(void)memory; if (array) return 0;"),
    ("the number of the device may be another", r"array->memory == memory && \([^)]*\)", r"array->memory == memory"),
    ("leak: a tensor on another device",
     r"(array->device == device\[1\]\)\) return 0;\n\s*)cai_array_release\(array\);", r"\1"),
    ("a deleter runs with the exception of another device",
     r"(\s*cai_array_release\(array\);)(\s*PyErr_Format\(PyExc_BufferError, \"__dlpack_device__[^;]*;)", r"\2\1"),
    ("a deleter runs with the exception of its tensor",
     r"cai_priv_py_keep\(&kept\);[^\n]*\n(\s*Py_XDECREF\(capsule\);\n)\s*cai_priv_py_put_back\(&kept\);",
     r"(void)kept;\n\1"),
    ("without a deleter nothing is kept",
     r"(if \(!array->release\) \{[^\n]*\n\s*)Py_INCREF\(object\);\n\s*owner->object = object;", r"\1"),
    ("an export waits for the next call", r"owner->at_once = 1;", r""),
    ("leak: what a device is", r"(for \(i = 0; i < 2 && !PyErr_Occurred\(\); \+\+i\)[^;]*;\n\s*)Py_DECREF\(pair\);",
     r"\1"),
    ("no __dlpack_device__ is no error",
     r"else if \(!PyErr_Occurred\(\)\)\n\s*PyErr_SetString\(PyExc_TypeError, \"the object has __dlpack__[^;]*;",
     r""),
    ("leak: the method of a device", r"Py_XDECREF\(method\);\n(\s*if \(!pair\) return -1;)", r"\1"),
    ("leak: keywords", r"Py_XDECREF\(keywords\);\n", r"\n"),
    ("leak: the number of the stream", r"(\"stream\", value\);\n\s*)Py_XDECREF\(value\);", r"\1"),
    ("leak: the version", r"(\"max_version\", value\);\n\s*)Py_XDECREF\(value\);", r"\1"),
    ("leak: the capsule", r"(if \(!failed\) cai_priv_py_take_tensor\(out, owner, object\);\n[^}]*?)Py_XDECREF\(capsule\);",
     r"\1"),
    ("leak: what an array would own", r"(if \(!failed\) cai_priv_py_take_tensor[^\n]*\n)    else if \(owner\) cai_priv_py_free_owner\(owner\);\n", r"\1"),
    # what a consumer asks
    ("None is no stream", r"if \(!of_device && stream == Py_None\) return 0;", r"if (stream == Py_None) return 0;"),
    ("-1 waits for the order", r"out->flags \|= \(uint32_t\)CAI_DLPACK_ORDERED;", r""),
    ("the array's own stream is to wait", r"if \(sync == CAI_SYNC_NONE \|\| there\)",
     r"if (sync == CAI_SYNC_NONE || (there && 0))"),
    ("the per-thread stream is that of all threads", r" &&\n\s*out->stream != CAI_STREAM_PER_THREAD;", r";"),
    ("any stream is the array's own", r"array->sync == CAI_SYNC_STREAM && array->stream == out->stream",
     r"array->sync == CAI_SYNC_STREAM"),
    ("a stream waits for nothing", r"if \(array->sync == CAI_SYNC_NONE\) out->stream = 0;", r""),
    ("a stream of the host", r"if \(of_device \|\| sync == CAI_SYNC_NONE\) return 0;", r"if (1) return 0;"),
    ("pinned memory has streams",
     r"(of_device = array->memory == CAI_MEMORY_DEVICE \|\| array->memory == CAI_MEMORY_)MANAGED", r"\1PINNED"),
    ("managed memory is the host's",
     r"(of_device = array->memory == CAI_MEMORY_DEVICE) \|\| array->memory == CAI_MEMORY_MANAGED", r"\1"),
    ("a copy is said to be made", r"if \(wanted\) return -1;", r"if (wanted < 0) return -1;"),
    ("a copy that is not wanted", r"if \(copy != Py_None\) \{", r"if (copy == Py_False) {"),
    ("any device can be had", r"return same > 0 \? 0 : -1;", r"PyErr_Clear(); return 0;"),
    ("no device can be had", r"PyObject_RichCompareBool\(own, device, Py_EQ\)",
     r"PyObject_RichCompareBool(own, device, Py_NE)"),
    ("any version has a version", r"major >= CAI_DL_MAJOR", r"major >= 0"),
    ("a later version has none", r"major >= CAI_DL_MAJOR", r"major == CAI_DL_MAJOR"),
    ("a version of three numbers", r"!PyTuple_Check\(version\) \|\| PyTuple_Size\(version\) != 2",
     r"!PyTuple_Check(version)"),
    ("arguments need no names", r"\"\|\$OOOO:__dlpack__\"", r'"|OOOO:__dlpack__"'),
    ("leak: the array's own device", r"(dl_device=%R, but[^\n]*\n\s*)Py_XDECREF\(own\);", r"\1"),
    ("host memory of a table is for all", r"else if \(!\(flags & CAI_PYTHON_HOST\)\) how", r"else if (0) how"),
    # what is exported
    ("the device and its number change places", r"\(int\)device\.device_type, \(int\)device\.device_id",
     r"(int)device.device_id, (int)device.device_type"),
    ("always with version", r"if \(request->versioned\) return", r"if (1) return"),
    ("never with version", r"if \(request->versioned\) return", r"if (0) return"),
    ("the name of the other struct", r"if \(request->versioned\) name = cai_priv_py_versioned_name;", r""),
    ("flags are forgotten", r"fill_versioned\(lent, array, request->flags,", r"fill_versioned(lent, array, 0,"),
    ("flags are forgotten without version", r"cai_dlpack_lend\(array, request->flags,", r"cai_dlpack_lend(array, 0,"),
    ("everything is ordered", r"fill_versioned\(lent, array, request->flags,",
     r"fill_versioned(lent, array, request->flags | CAI_DLPACK_ORDERED,"),
    ("the object is not kept", r"cai_priv_py_owner_with\(py, object, ", r"cai_priv_py_owner_with(py, NULL, "),
    ("leak: a capsule that nobody used", r"(owner\)->tensor, name, )cai_priv_py_drop_capsule\);", r"\1NULL);"),
    ("read-only is not marked", r"made->flags = writable \| copied \| padded;", r"made->flags = copied | padded;"),
    ("a copy is not marked", r"made->flags = writable \| copied \| padded;", r"made->flags = writable | padded;"),
    ("what is lent is not counted", r"\(void\)cai_priv_py_count\(py->home, 1\);", r""),
    ("what is lent waits for the next call", r"owner->at_once = 1;\n    if \(cai_priv_py_fill", r"if (cai_priv_py_fill"),
    ("leak: what cannot be lent", r"cai_priv_py_forget\(owner\);\n        \(void\)cai_python_raise", r"(void)cai_python_raise"),
    ("leak: what no capsule was made for", r"if \(!capsule\) cai_priv_py_drop\(owner\);", r""),
    ("there is room for one axis less", r"2 \* sizeof\(int64_t\) \* \(size_t\)array->ndim;", r"sizeof(int64_t) * (size_t)array->ndim;"),
    ("leak: a capsule without version that nobody used",
     r"        \(\(cai_dl_managed \*\)found\)->deleter\(.*\n", r""),
    ("a capsule of the new struct that got its name back is not dropped",
     r"    if \(PyCapsule_IsValid\(capsule, cai_priv_py_versioned_name\)\) return.*\n", r""),
    ("a capsule that got its name back is not dropped",
     r"return PyCapsule_IsValid\(capsule, cai_priv_py_plain_name\) \? cai_priv_py_plain_name : NULL;", r"return NULL;"),
    ("a capsule that was used is dropped, too",
     r"const char \*const name = cai_priv_py_name_of\(capsule\);", r"const char *const name = PyCapsule_GetName(capsule);"),
    ("no memory for what an array owns is no error",
     r"if \(!owner\) return NULL;\n(\s*owner->at_once = 1;\n\s*if)", r"\1"),
    ("no memory for what a table's array owns is no error",
     r"(owner = cai_priv_py_owner_new\(py, NULL\);\n)(    if \(owner\) how = cai_priv_py_open)", r"\1    if (!owner) how = 0;\n\2"),
    ("no memory for what a tensor's array owns is no error",
     r"owner \? cai_priv_py_call_dlpack\(in, method, device\[0\]\) : NULL;",
     r"cai_priv_py_call_dlpack(in, method, device[0]);"),
    ("no memory for keywords is no error", r"if \(failed\) Py_CLEAR\(keywords\);", r""),
    ("asked again after any TypeError", r"refused = !said \|\| !\*said;", r"refused = 1;"),
    ("a copy may be written to", r"is_copied \? \(uint32_t\)CAI_DLPACK_READ_ONLY : 0", r"is_copied * 0"),
    # both ends: check_dlpack_order.py
    ("order: the consumer's stream is forgotten", r"    out->consumer = out->stream;\n", r""),
    ("order: an export is never in order", r"    of\.pool = pool;\n", r"    (void)pool;\n"),
    ("order: flags of an ordered export", r"request->consumer, request->flags, ordered,\n", r"request->consumer, 0, ordered,\n"),
]  # fmt: skip
# In cai_python.h, which asks a type and an object for DLPack, and drops what was imported
BELOW = [
    ("an exception of a deleter stays", r"        if \(PyErr_Occurred\(\)\) PyErr_Clear\(\);\n", r""),
    ("a table of an instance", r"\(PyObject \*\)Py_TYPE\(object\), &in->type",
     r"PyObject_HasAttr(object, in->py->names[CAI_PRIV_PY_TABLE]) ? object : (PyObject *)Py_TYPE(object), &in->type"),
    ("the table of another type", r"\*known != type; (.*\n.*\n    return )cai_priv_py_leads_to\(at->weak, type\) \? at : NULL;",
     r"!*known; \1at;"),
    ("types are remembered by their addresses alone",
     r"return cai_priv_py_leads_to\(at->weak, type\) \? at : NULL;", r"return at;"),
    ("types are kept for ever", r"(py->known\[at\] = type;)", r"\1 Py_INCREF(type);"),
    ("bits of PyTorch are ignored", r"out->is_neg = cai_[^;]*;", r"out->is_neg = NULL;"),
    ("the negative bit is ignored", r"&&\n        !cai_priv_py_refuse_bit\(object, is_neg, [^;]*\)\)", r")"),
    ("the conjugate bit is ignored", r"is_complex = kind == 'c';", r"is_complex = 0;"),
    ("ints are asked for the negative bit", r"if \(array->dtype\.itemsize == 1 \|\| kind == 'i'\) return 0;[^\n]*\n", r""),
    ("bfloat16 is not asked for the negative bit", r"itemsize == 1 \|\| kind == 'i'", r"itemsize <= 2 || kind == 'i'"),
    ("any dtype is asked for the conjugate bit", r"is_complex = kind == 'c';", r"is_complex = 1;"),
    ("the method of a type that can change is kept", r"& Py_TPFLAGS_HEAPTYPE\) return name;", r"& 0) return name;"),
    ("no method is kept", r"is_c = method && [^;]*;", r"is_c = 0;"),
    ("a refused tensor is not released", r"(IS_NEG\]\)\)\n        return 0;\n)    cai_priv_py_undo\(py, array, 1\);", r"\1"),
    ("a failure without a word",
     r"if \(!PyErr_Occurred\(\)\)\n\s*PyErr_Format\(PyExc_RuntimeError, \"%s of the producer[^;]*;",
     r"(void)function;"),
    ("the default is no stream", r"options && options->stream \? options->stream : \(uint64_t\)CAI_STREAM_LEGACY",
     r"options && options->stream ? options->stream : (uint64_t)CAI_STREAM_PER_THREAD"),
    ("a class is asked", r"if \(in->py->dlpack && !PyType_Check\(object\)\)", r"if (in->py->dlpack)"),
    ("DLPack is missed where it is not read", r"in->py->dlpack \? (\", no __dlpack__\") : \"\"", r"\1"),
    ("DLPack is not missed where it is read", r"in->py->dlpack \? \", no __dlpack__\" : ", r""),
    ("deleters are not called", r"if \(owner->release\) cai_priv_py_release_inner\(owner\);", r""),
    ("deleters are called where the array is released", r"(const int at_once = owner->at_once;\n)",
     r"\1    if (owner->release) { cai_array of; of.owner = owner->inner; of.release = owner->release; of.release(&of); }\n"),
    ("leak: the method", r"(import_tensor\(in, object, method, out\) : -1;\n\s*)Py_XDECREF\(method\);", r"\1"),
    ("a base's table comes before a dictionary", r"if \(at\[CAI_PRIV_PY_TABLE\] <= others && ", r"if ("),
    # the device first
    ("the device is never first", r"in->type\.device_first;", r"0;"),
    ("the device is first before a dictionary was missing", r"if \(before == 2\)", r"if (before)"),
    ("a device is first for good", r"before && done >= 0 && before != 1 \+ done", r"before && done > 0"),
    ("the device of a base is first", r" &&\n\s*places\.at\[CAI_PRIV_PY_DEVICE\] <= places\.at\[CAI_PRIV_PY_CUDA\]", r""),
    ("the buffer is after __dlpack__", r"if \(PyObject_CheckBuffer\(object\) && !cai_priv_py_import_buffer", r"if (0 && !cai_priv_py_import_buffer"),
    ("a buffer that fails is the end", r"if \(PyErr_Occurred\(\) && !cai_priv_py_excuse\(\)\)", r"if (PyErr_Occurred())"),
    ("a device that raises stops no program", r"if \(!PyErr_ExceptionMatches\(PyExc_Exception\)\) return 0;\n", r""),
    ("no __array_interface__ if the device is first", r"(done = cai_priv_py_import_named\(in, object, CAI_PRIV_PY_ARRAY, out\);\n\s*)if \(done <= 0\) return done;",
     r"\1if (done < 0) return done;"),
    ("the host is taken without leave if the device is first",
     r"if \(!\(in->flags & CAI_PYTHON_HOST\)\) return cai_priv_py_refuse\(in, CAI_PRIV_PY_HOST_MEMORY\);\n", r""),
]  # fmt: skip
# A type's table: check_dlpack_table.py
TABLE = [
    ("table: pending work elsewhere", r"if \(pool && array->sync != CAI_SYNC_UNKNOWN\) return 0;",
     r"if (array->sync != CAI_SYNC_UNKNOWN) return 0;"),
    ("table: unknown pending work", r"if \(pool && array->sync != CAI_SYNC_UNKNOWN\) return 0;", r"if (pool) return 0;"),
    ("table: nothing is in order", r"of\.pool = offered->pool;", r"of.pool = NULL;"),
    ("table: the consumer's stream is the array's", r"out->consumer = stream \? \(uint64_t\)\(uintptr_t\)stream :",
     r"out->consumer = array->stream ? array->stream :"),
    ("table: a copy is a proof", r"return proven && out->py->home != NULL;", r"(void)proven; return 1;"),
    ("table: any exchange will do", r"failed = cai_priv_py_know\(offered->py, type, known\);",
     r"failed = cai_priv_py_know(offered->py, (PyObject *)((PyTypeObject *)type)->tp_base, known);"),
    ("table: the object is not kept", r"cai_priv_py_owner_with\(py, object, ", r"cai_priv_py_owner_with(py, NULL, "),
    ("table: the object of an array in order is not kept", r"cai_priv_py_owner_new\(offered->py, object\)",
     r"cai_priv_py_owner_new(offered->py, NULL)"),
    ("table: the object waits for the next call",
     r"owner->at_once = 1;\n    if \(cai_priv_py_fill", r"if (cai_priv_py_fill"),
    ("table: the object of an array in order waits for the next call", r"owner->at_once = 1;\n        cai_priv_py_attach", r"cai_priv_py_attach"),
    ("table: what is refused is forgotten", r"    cai_priv_py_undo\(offered\.py, &array, 1\);\n    return -1;", r"    return -1;"),
    ("order: a graph keeps nothing of a capsule", r"if \(!\(\(cai_dlpack_ordered \*\)storage\)->graph\) ", r""),
    ("table: a tensor that is refused is deleted", r"owner->release = NULL; /\* the tensor[^/]*/", r""),
    ("table: a tensor of another version is deleted", r"\(\(cai_dl_managed_versioned \*\)tensor\)->version\.major != CAI_DL_MAJOR\)", r"0)"),
    ("table: what comes back has no pending work", r"!cai_priv_py_current_stream\(table, tensor, out\)", r"1 || !table"),
    ("table: the type is forgotten", r" \|\| PyDict_SetItem\(types, key, offered\.weak\)", r""),
    ("table: the type is kept alive", r"PyDict_SetItem\(types, key, offered\.weak\)",
     r"(Py_INCREF(type), PyDict_SetItem(types, key, offered.weak))"),
]  # fmt: skip
# In cai_dlpack.h
TENSOR = [
    ("table: strides in bytes", r"array->strides\[i\] / array->dtype\.itemsize;", r"array->strides[i];"),
    ("table: the deleter does nothing",
     r"(static void cai_priv_dlpack_delete_versioned[^{]*\{\n\s*if \(self) ?\)", r"\1 && 0)"),
    ("table: the mark for read-only is lost", r"made->flags = \(array->flags & CAI_WRITABLE \?", r"made->flags = (1 ?"),
]  # fmt: skip
OWN = {"order": "check_dlpack_order.py", "table": "check_dlpack_table.py"}


class Dlpack(Script):
    """check_dlpack.py, or for the defects that are named order or table a script that builds its own module."""

    def run(self, options, tree, folder, environment, defect):
        script = OWN.get(defect.name.partition(":")[0])
        if not script:
            return super().run(options, tree, folder, environment, defect)
        command = [sys.executable, HERE / script, "--cc", options.cc, "--dlpack", options.dlpack, "--root", tree]
        status, output = execute(command, 300, environment)
        if script == OWN["table"] and status is not None and status < 0:
            return True, f"signal {-status}"
        said = [line for line in output.splitlines() if ": WRONG" in line or "taken" in line or "Error: " in line]
        return status == 1 and bool(said), said[0][:150] if said else f"NOT FOUND, status {status}: {output[-400:]}"


def main():
    made = parser(__doc__)
    made.add_argument("--dlpack", type=pathlib.Path, help="where dlpack/dlpack.h is")
    options = made.parse_args()
    header = ["--dlpack", options.dlpack] if options.dlpack else []
    script = Dlpack("check_dlpack.py", PARTS, "--rounds", "2500", "--count", "600", *header)
    defects = [Defect(name, DLPACK_HEADER, *change) for name, *change in DEFECTS]
    defects += [Defect(name, HEADER, *change) for name, *change in BELOW]
    defects += [Defect(name, DLPACK_HEADER, *change) for name, *change in TABLE]
    defects += [Defect(name, "ext/cai_dlpack.h", *change) for name, *change in TENSOR]
    return judge_parts(options, defects, script)


if __name__ == "__main__":
    raise SystemExit(main())
