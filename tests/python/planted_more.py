#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_python.h, one at a time; check_more.py must find each of them.

    tests/python/planted_more.py [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first thing that was wrong. A defect that is not found, or that does not apply to the
file any more, is a failure, and so is a test that fails without a defect. Exit status 0: all found; 1: not; 77: no C
compiler, no Python.h, or no NumPy.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planted_parts import HEADER, Script, judge_parts  # noqa: E402
from planting import Defect, execute, parser  # noqa: E402

ALL = "formats,arrays,objects,held,fields,narrow,after,streams,types,memory"
SETTLED = r"return cai_priv_py_is_ordered\(array\) &&"

# Parts that must find it, what it is, what is there, what stands there instead
DEFECTS = [
    # what a format means
    ("formats", "items of another size than the format's", r"if \(size != itemsize\) return 0;", r""),
    ("formats", "text of another size than the format's", r"if \(count \* [^\n]* != itemsize\) return 0;", r""),
    ("formats", "standard sizes are those of the platform", r"standard = \*at != '@';", r"standard = 0;"),
    ("formats", "the order of networks is native", r"if \(\*at == '!'\) order = '>';", r""),
    ("formats", "every order is native", r"order = \*at;", r";"),
    ("formats", "text has no order", r"at\[0\] == 'w' \? order : '\|'", r"'|'"),
    ("formats", "complex numbers are as large as their parts", r"if \(is_complex\) size \*= 2;", r""),
    ("formats", "complex numbers of ints", r" \|\| \(is_complex && kind != 'f'\)", r""),
    ("formats", "a count is ignored", r" \|\| count != 1", r""),
    ("formats", "what follows the letter is ignored", r" \|\| at\[1\]( \|\| count)", r"\1"),
    ("formats", "no format is signed bytes", r"format \? format : \"B\";", r'format ? format : "b";'),
    ("formats", "an unsigned type is signed", r"\"biuiuiuiuiuiuffff\"", r'"biiiuiuiuiuiuffff"'),
    ("formats", "half precision is no format", r"\"\?bBhHiIlLqQnNefdg\"", r'"?bBhHiIlLqQnN.fdg"'),
    ("formats", "a refusal does not name the format", r"the buffer's format '%s' with", r"the buffer with %.0s"),
    # what a buffer says
    ("held", "suboffsets are not looked at", r"indirect \|= view->suboffsets\[i\] >= 0;", r"indirect |= 0;"),
    ("held", "suboffsets that lead nowhere are refused", r"view->suboffsets\[i\] >= 0;", r"view->suboffsets[i] >= -1;"),
    ("held", "suboffsets are read past their end", r"(view->suboffsets && i < view->ndim)[^;]*;", r"\1;"),
    ("held", "any number of dimensions", r"view->ndim < 0 \|\| view->ndim > CAI_MAX_NDIM \|\|", r""),
    ("held", "no shape is none too few", r" \|\| \(view->ndim && !view->shape\)", r""),
    ("objects,arrays", "strides are not looked at", r"view->strides != NULL, out, &err", r"0, out, &err"),
    ("objects,arrays,types", "all buffers are writable", r"read_only\(out, view->readonly\)", r"read_only(out, 0)"),
    ("objects,arrays", "the address is that of the view", r"\(uintptr_t\)view->buf", r"(uintptr_t)&view->buf"),
    ("objects,arrays", "only writable buffers are read", r"PyBUF_FULL_RO", r"PyBUF_FULL"),
    ("objects", "buffers are read unasked", r"if \(on_host && PyObject_CheckBuffer", r"if (PyObject_CheckBuffer"),
    ("objects,arrays", "a buffer is memory of no known kind", 
     r"(read_only\(out, view->readonly\);\n)    cai_priv_py_put_on_host\(out\);\n", r"\1"),
    # ndarray, which is read by its buffer
    ("types", "a derived ndarray is read by its buffer",
     r"if \(!is_static \|\| at\[CAI_PRIV_PY_ARRAY\] \|\| at\[CAI_PRIV_PY_STRUCT\] \|\|", r"if ("),
    ("types", "any ndarray is read by its buffer", r"if \(!is_static \|\|", r"if ("),
    ("types", "a dictionary comes with a buffer in any type", r"if \(!is_static \|\| at\[CAI_PRIV_PY_ARRAY\] \|\| at\[CAI_PRIV_PY_STRUCT\]",
     r"if (at[CAI_PRIV_PY_ARRAY] >= places->count"),
    ("arrays,types", "strides are those of the buffer", r"if \(view->shape\[i\] == 1\) return 0;", r";"),
    ("types", "contiguous strides are said", r"&dtype, !dense, out", r"&dtype, 1, out"),
    ("types", "what the buffer of an ndarray lacks is refused", r"if \(!good\) PyErr_Clear\(\);[^\n]*\n    return good;", r"return 1;"),
    ("types", "a borrowed ndarray has an owner", r"if \(good && !\(in->flags & CAI_PYTHON_BORROW\)\)", r"if (good)"),
    ("types,memory", "leak: the buffer of an ndarray", r"PyBuffer_Release\(&view\);", r""),
    # how long a buffer is held
    ("held", "a buffer is not returned", r"if \(owner->buffer\) PyBuffer_Release\(owner->buffer\);", r""),
    ("held", "a buffer is returned at once", r"(owner->buffer && !cai_priv_py_judge_buffer\(view, out\)\) \{)",
     r"\1 PyBuffer_Release(view);"),
    ("held", "a borrowed array's buffer is returned at once", r"(judge_buffer\(view, out\)\) \{\n)(        cai_priv_py_attach)",
     r"\1        if (in->flags & CAI_PYTHON_BORROW) { cai_priv_py_forget(owner); return 0; }\n\2"),
    ("held", "a buffer that is refused is kept", r"if \(owner\) cai_priv_py_forget\(owner\);(\n    return -1;\n\}\n\n/\* Describes a buffer as)",
     r"PyMem_Free(owner);\1"),
    ("memory", "leak: the description of a buffer", r"    if \(owner->buffer\) PyMem_Free\(owner->buffer\);", r""),
    ("memory", "leak: the description of a buffer that was refused", r"else PyMem_Free\(view\);", r""),
    # rows of a descr
    ("fields", "names are the exporter's", r"field->name = at;", r";"),
    ("fields", "titles are the exporter's", r"field->title = at;", r";"),
    ("fields", "names lie one over the other", r"at \+= field->name_length;", r""),
    ("fields", "names have no room", r"rows \* sizeof\(cai_field\) \+ text\)", r"rows * sizeof(cai_field) + text / 2)"),
    ("fields", "the rows are those that were counted with", r"array->fields = owner->fields;", r""),
    ("fields", "no rows are kept", r"if \(!failed && out->fields\) failed = cai_priv_py_keep_fields",
     r"out->fields = NULL;\n    if (0) failed = cai_priv_py_keep_fields"),
    ("fields", "rows that nobody asked for", r"if \(in->flags & CAI_PYTHON_FIELDS && entries", r"if (entries"),
    ("fields", "rows of a borrowed array have no owner", r"\(uint32_t\)CAI_PYTHON_MASK \| \(uint32_t\)CAI_PYTHON_FIELDS;",
     r"(uint32_t)CAI_PYTHON_MASK;"),
    ("memory", "leak: rows", r"    if \(owner->fields\) PyMem_Free\(owner->fields\);", r""),
    ("memory", "leak: the room for rows", r"    PyMem_Free\(fields\);", r""),
    # narrow formats
    ("narrow", "a format of another size", r"size == itemsize && ", r""),
    ("narrow", "the beginning of a name is enough", r"end - start == sizeof name - 1 &&", r"end - start <= sizeof name - 1 &&"),
    ("narrow", "formats that have a typestr", r"CAI_FORMAT_DTYPES\(CAI_PRIV_PY_NARROW\)", r"CAI_DTYPE_LIST(CAI_PRIV_PY_NARROW)"),
    ("narrow", "only a name alone counts", r"for \(start = end; start && [^;]*; --start\) \{\}", r"start = 0;"),
    ("narrow", "a dtype without a name says nothing", r"name = PyObject_Str\(dtype\);", r"name = NULL;"),
    ("narrow", "a name that is no text is taken", r"if \(!PyErr_Occurred\(\) && !\(name && PyUnicode_Check\(name\)\)\)",
     r"if (!PyErr_Occurred() && !name)"),
    ("narrow", "an error of the name is lost", r"if \(!name && PyErr_ExceptionMatches\(PyExc_AttributeError\)\) PyErr_Clear",
     r"if (!name) PyErr_Clear"),
    ("narrow", "an error of the dtype is no failure", r"if \(!code\) return PyErr_Occurred\(\) \? -1 : 0;", r"if (!code) return 0;"),
    ("narrow", "narrow formats unasked", r"if \(!\(in->flags & CAI_PYTHON_NARROW\)\) return 0;", r""),
    ("narrow", "the other byte order is this one", r"if \([^\n]*cai_priv_py_is_swapped\([^\n]*\) return 0;", r""),
    ("narrow", "a byte has an order", r"out->dtype\.itemsize != 1 && ", r""),
    ("narrow", "any item may be narrow", r"array->dtype\.itemsize > 2 \|\| \(kind[^)]*\)", r"0"),
    ("narrow", "the mask is lost", r"array->mask = mask;", r""),
    ("narrow", "strides are said that were not", r"array->flags = \(array->flags & [^;]*;", r""),
    ("narrow", "leak: the dtype", r"    Py_DECREF\(dtype\);", r""),
    ("narrow", "leak: its name", r"(narrow_of\([^;]*;\n)    Py_XDECREF\(name\);", r"\1"),
    # release after a stream
    ("after", "everything is released at once", SETTLED, r"return 1 || cai_priv_py_is_ordered(array) &&"),
    ("after", "nothing is released at once", SETTLED, r"return 0 && cai_priv_py_is_ordered(array) &&"),
    ("after", "an owner that frees at once gets its array at once", r"if \(array->size && !\(array->flags & CAI_ORDERED_FREE\)\)",
     r"if (0)"),
    ("after", "a mask has no say", r" && cai_priv_py_is_ordered\(array->mask\);", r";"),
    ("after", "an event has a stream", r"member->sync == CAI_SYNC_EVENT && member->stream", r"member->sync == CAI_SYNC_EVENT"),
    ("after", "an event has none", r"\(member->sync == CAI_SYNC_EVENT && member->stream\)", r"0"),
    ("after", "pending somewhere is settled", r"return member->sync == CAI_SYNC_STREAM",
     r"return member->sync == CAI_SYNC_UNKNOWN || member->sync == CAI_SYNC_STREAM"),
    ("after", "each array has its own event", r"AT_A_TIME = 16", r"AT_A_TIME = 1"),
    ("after", "the last ones are forgotten", r"if \(!n \|\| \(n < AT_A_TIME && i \+ 1 < count\)\)", r"if (n < AT_A_TIME)"),
    ("after", "more than there is room for", r"\(n < AT_A_TIME && i \+ 1 < count\)", r"(i + 1 < count)"),
    ("after", "nobody polls", r"status = cai_keepalive_poll\(pool, NULL, err\);", r"status = CAI_OK;"),
    ("after", "the legacy stream is waited for", r"cai_exchange_begin\(&none, pool, NULL, 0, stream, err\)",
     r"cai_exchange_begin(&none, pool, NULL, 0, CAI_STREAM_LEGACY, err)"),
    ("after", "what fails is forgotten", r"for \(i = 0; i < count && !status; \+\+i\) \{(\n        if \(cai_priv_py_is_settled)",
     r"for (i = 0; i < count; ++i) {\1"),
    ("after", "what fails is released", r"(cai_python_drain\(py\);\n)(    if \(status\) cai_python_raise)",
     r"\1    if (status) cai_python_release(py, arrays, count);\n\2"),
    ("after", "what was polled is dropped by the next call", r"cai_python_drain\(py\);\n(    if \(status\) cai_python_raise)", r"\1"),
    # streams
    ("streams", "a stream has a sign", r"\"\(iK\)\", 0, \(unsigned long long\)stream", r'"(iL)", 0, (long long)stream'),
    ("streams", "a list of two", r"\"\(iK\)\"", r'"[iK]"'),
    ("streams", "another protocol", r"\"\(iK\)\", 0,", r'"(iK)", 1,'),
    ("streams", "leak: the pair", r"return Py_BuildValue\(\"\(iK\)\", 0, \(unsigned long long\)stream\);",
     r'PyObject *pair = Py_BuildValue("(iK)", 0, (unsigned long long)stream);\n    Py_XINCREF(pair);\n    return pair;'),
]  # fmt: skip


def main():
    options = parser(__doc__).parse_args()
    if execute([sys.executable, "-c", "import numpy"], 60)[0]:
        print("planted_more.py: skipped, no NumPy")
        return 77
    defects = [Defect(name, HEADER, *change, parts) for parts, name, *change in DEFECTS]
    return judge_parts(options, defects, Script("check_more.py", ALL, "--rounds", "3000", "--count", "500"))


if __name__ == "__main__":
    raise SystemExit(main())
