#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in what cai_python.h has of the exchange in C, one at a time; check_exchange.py must find each of them.

    tests/python/planted_exchange.py [--cc CC] [--root FOLDER] [--only TEXT] [--jobs N]

Prints one line per defect: the first thing that was wrong. A defect that is not found, or that does not apply to the
file any more, is a failure, and so is a test that fails without a defect. Exit status 0: all found; 1: not; 77: no C
compiler, or no Python.h.
"""

import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from planting import execute, judge_all, parser, substitute  # noqa: E402

PARTS = "facts,pending,offers,refused,references,elsewhere,group,cache,threads,memory"

TABLE = r"if \(in->type\.exchange\) return cai_priv_py_import_exchange\(in, object, out\);"
KNOWN = r"exchange && \(exchange->abi != CAI_ABI \|\| exchange->struct_size < sizeof \*exchange\)"

# What it is, what is there, what stands there instead
DEFECTS = [
    # what an exchange is
    ("another abi is the same", KNOWN, r"exchange && exchange->struct_size < sizeof *exchange"),
    ("a shorter struct is enough", KNOWN, r"exchange && exchange->abi != CAI_ABI"),
    ("a longer struct is another one",
     r"exchange->struct_size < sizeof \*exchange", r"exchange->struct_size != sizeof *exchange"),
    ("describe is always there", r"if \(exchange && !exchange->describe\) exchange = NULL;", r""),
    ("a capsule of any name",
     r"if \(PyCapsule_IsValid\(found, capsule_name\)\) \*out = PyCapsule_GetPointer\(found, capsule_name\);",
     r"if (PyCapsule_CheckExact(found)) *out = PyCapsule_GetPointer(found, PyCapsule_GetName(found));"),
    ("anything else is an error",
     r"(if \(PyCapsule_IsValid\(found, capsule_name\)\) [^;]*;)",
     r'\1 else { Py_DECREF(found); PyErr_SetString(PyExc_TypeError, "no capsule"); return -1; }'),
    ("any exception means none",
     r"(\*out = NULL;\n    )if \(!found && !PyErr_ExceptionMatches\(PyExc_AttributeError\)\) return -1;", r"\1"),
    ("only AttributeError itself means none",
     r"(\*out = NULL;\n    if \(!found && )!PyErr_ExceptionMatches\(PyExc_AttributeError\)",
     r"\1PyErr_Occurred() != PyExc_AttributeError"),
    ("offered under another name", r"exchange, CAI_PYTHON_EXCHANGE, NULL\);", r'exchange, "cai_exchange", NULL);'),
    ("what was not offered is not said",
     r"(CAI_PYTHON_EXCHANGE, capsule\);\n    Py_XDECREF\(capsule\);\n    )return failed \? -1 : 0;",
     r"\1PyErr_Clear(); return 0 * failed;"),
    # what comes first
    ("a dictionary comes first", TABLE,
     r"if (in->type.exchange && !PyObject_HasAttr(object, in->py->names[CAI_PRIV_PY_CUDA])) "
     r"return cai_priv_py_import_exchange(in, object, out);"),
    ("what describe refuses is asked for its dictionary", TABLE,
     r"if (in->type.exchange) { if (!cai_priv_py_import_exchange(in, object, out)) return 0; PyErr_Clear(); }"),
    ("no exchange at all", TABLE, r""),
    # what is remembered
    ("the type of before, whatever it is", r"if \(before == type\) \{", r"if (before) {"),
    ("nothing is remembered", r"if \(before == type\) \{", r"if (0) {"),
    ("what raises is remembered", r"(if \(cai_priv_py_ask_type\(py, type, out\)\) \{)",
     r"\1 Py_XDECREF(place->type); memset(place, 0, sizeof *place); place->type = type; Py_INCREF(type);"),
    ("a type is remembered without a reference",
     r"Py_INCREF\(type\);(\n    if \(cai_priv_py_ask_type\(py, type, out\)\) \{\n        )Py_DECREF\(type\);"
     r"(\n        return -1;\n    \}\n    before = place->type;\n    \*place = \*out;\n    )Py_XDECREF\(before\);",
     r"\1\2"),
    ("leak: the type that was remembered", r"(\*place = \*out;\n    )Py_XDECREF\(before\);", r"\1"),
    ("the type that was remembered is dropped twice",
     r"(\*place = \*out;\n    Py_XDECREF\(before\);)", r"\1 Py_XDECREF(before);"),
    ("the type in the place is remembered from before it is asked",
     r"(        return -1;\n    \}\n)    before = place->type;\n(    \*place = \*out;)", r"\1\2"),
    ("leak: a type that raises", r"(ask_type\(py, type, out\)\) \{\n        )Py_DECREF\(type\);", r"\1"),
    ("leak: the attribute of a type",
     r"(\*out = PyCapsule_GetPointer\(found, capsule_name\);\n    )Py_DECREF\(found\);", r"\1"),
    ("leak: the capsule that is offered", r"(CAI_PYTHON_EXCHANGE, capsule\);\n    )Py_XDECREF\(capsule\);", r"\1"),
    ("leak: the types of a state", r"for \(i = 0; i < CAI_PYTHON_TYPES; \+\+i\) Py_CLEAR\(py->types\[i\]\.type\);", r""),
    ("leak: the first type of a state",
     r"for \(i = 0; (i < CAI_PYTHON_TYPES; \+\+i\) Py_CLEAR)", r"for (i = 1; \1"),
    ("types are not visited",
     r"for \(i = 0; i < CAI_PYTHON_TYPES; \+\+i\) Py_VISIT\(py->types\[i\]\.type\);", r"i = 0; (void)i;"),
    ("the last type is not visited",
     r"for \(i = 0; i < CAI_PYTHON_TYPES; \+\+i\) Py_VISIT", r"for (i = 0; i < CAI_PYTHON_TYPES - 1; ++i) Py_VISIT"),
    # what describe says
    ("an array is not checked",
     r"(\(\"describe\"\);\n    if \()cai_array_check\(out, &err\)", r"\g<1>0 && cai_array_check(out, &err)"),
    ("host memory is taken unasked",
     r"\} else if \(cai_priv_py_check_host\(in, out\)\) \{(\n        /\* the exception)", r"} else if (0) {\1"),
    ("a mask is always welcome", r"out->mask && !\(in->flags & CAI_PYTHON_MASK\)", r"0"),
    ("a mask is never welcome", r"out->mask && !\(in->flags & CAI_PYTHON_MASK\)", r"out->mask"),
    ("rows are always kept", r"if \(!\(in->flags & CAI_PYTHON_FIELDS\)\) out->fields = NULL;", r""),
    ("rows are counted without being there", r"if \(!\(in->flags & CAI_PYTHON_FIELDS\)\) out->field_count = 0;", r""),
    ("rows are never kept", r"if \(!\(in->flags & CAI_PYTHON_FIELDS\)\) out->field_count = 0;", r"out->field_count = 0;"),
    ("leak: what is refused",
     r"cai_priv_py_undo\(in->py, out, 1\);(\n    return -1;\n\}\n\n/\* The dictionary of device)", r"\1"),
    ("what describe left after it failed is released", r"return cai_priv_py_failed\(\"describe\"\);",
     r'{ cai_array_release(out); return cai_priv_py_failed("describe"); }'),
    ("a failure without a word stays one", r"return cai_priv_py_failed\(\"describe\"\);", r"return -1;"),
    ("a failure without a word is none", r"return cai_priv_py_failed\(\"describe\"\);", r"return PyErr_Occurred() ? -1 : 0;"),
    # who owns what
    ("an owned array gets another owner",
     r"if \(out->release \|\| (in->flags & CAI_PYTHON_BORROW)\) return 0;", r"if (\1) return 0;"),
    ("a borrowed array is always borrowed", r"if \(out->release \|\| in->flags & CAI_PYTHON_BORROW\) return 0;", r"return 0;"),
    ("a borrowed array is never borrowed", r"if \(out->release \|\| in->flags & CAI_PYTHON_BORROW\) return 0;",
     r"if (out->release) return 0;"),
    ("an owned array is taken for borrowed",
     r"(if \(out->release \|\| in->flags & CAI_PYTHON_BORROW\)) return 0;",
     r"\1 { if (in->flags & CAI_PYTHON_BORROW) out->release = NULL; return 0; }"),
    ("the object is not kept", r"Py_XINCREF\(object\);\n    owner->object", r"owner->object"),
    ("leak: the object of an array", r"Py_XDECREF\(owner->object\);", r""),
    ("leak: what an array owns",
     r"Py_XDECREF\(owner->mask_object\);\n    PyMem_Free\(owner\);", r"Py_XDECREF(owner->mask_object);"),
    ("an array is not counted",
     r"(cai_array_own\(array, cai_priv_py_let_go, owner\);\n    )cai_priv_py_count\(owner->home, 1\);", r"\1"),
    ("a release is not counted", r"if \(!cai_priv_py_count\(home, -1\)\) PyMem_Free\(home\);", r"(void)home;"),
    ("a release elsewhere drops at once", r"(takes_gil\(owner\)\) \{\n\s*)cai_priv_py_push\(owner\);",
     r"\1cai_priv_py_count(owner->home, -1);\n        Py_DECREF(owner->object);"),
    ("what was released is not visited", r"Py_VISIT\(owner->object\);", r""),
    ("who outlives the module is forgotten", r"home->closed = 1;", r""),
    ("a release leaves itself behind", r"array->release = NULL;\n    if \(!cai_priv_py_takes_gil", r"if (!cai_priv_py_takes_gil"),
    ("an import drops nothing", r"(CAI_STREAM_LEGACY;\n    )cai_python_drain\(py\);", r"\1"),
    ("what failed keeps its arrays", r"cai_priv_py_undo\(py, out, i\);", r""),
    ("what is undone is one too few", r"cai_priv_py_undo\(py, out, i\);", r"cai_priv_py_undo(py, out, i ? i - 1 : 0);"),
    ("what is undone is one too many", r"cai_priv_py_undo\(py, out, i\);", r"cai_priv_py_undo(py, out, i + 1);"),
    ("those after the one that fails are described, too", r"cai_priv_py_undo\(py, out, i\);",
     r"{ Py_ssize_t k; for (k = i + 1; k < count; ++k) { PyObject *t, *v, *b; PyErr_Fetch(&t, &v, &b);"
     r" if (!cai_priv_py_import_one(&in, objects[k], &out[k])) cai_array_release(&out[k]);"
     r" PyErr_Restore(t, v, b); } } cai_priv_py_undo(py, out, i);"),
]  # fmt: skip


def judge(options, folder, work, defect):
    """(good, what to print)"""
    (folder / "ext").mkdir()
    shutil.copy(options.root / "cai.h", folder / "cai.h")
    find, replace = defect[1:] if len(defect) > 1 else ("", "")
    if not substitute(options.root / "ext" / "cai_python.h", folder / "ext" / "cai_python.h", find, replace):
        return False, "does not apply"
    command = [sys.executable, HERE / "check_exchange.py", "--cc", options.cc, "--root", folder, "--first", "--timeout", 60,
               "--imports", 12000, "--count", 600, "--parts", PARTS]  # fmt: skip
    status, output = execute(command, 300)
    if len(defect) == 1:
        return status == 0, "nothing found" if status == 0 else output[:3000]
    lines = [line for line in output.splitlines() if line]
    said = next((line for line in lines if re.search(": wrong: |: ended with |: did not end", line)), "no word")
    if re.search(r"\.[ch]:\d+:\d+: error: ", output):
        return False, "does not compile: " + output[-800:]
    return status == 1 and said != "no word", f"found: {said[:150]}" if status == 1 else f"status {status}, not found"


def main():
    options = parser(__doc__).parse_args()
    status, output = execute([sys.executable, HERE / "check_exchange.py", "--cc", options.cc, "--parts", ""], 60)
    if status == 77:
        print(output.replace("check_exchange.py", "planted_exchange.py"), end="")
        return 77
    return judge_all(options, DEFECTS, judge)


if __name__ == "__main__":
    raise SystemExit(main())
