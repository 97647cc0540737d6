#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in what cai_python.h has of the exchange in C, one at a time; check_exchange.py must find each of them.

    tests/python/planted_exchange.py [--cc CC] [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first thing that was wrong. A defect that is not found, or that does not apply to the
file any more, is a failure, and so is a test that fails without a defect. Exit status 0: all found; 1: not; 77: no C
compiler, or no Python.h.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planted_parts import HEADER, Script, judge_parts  # noqa: E402
from planting import Defect, parser  # noqa: E402

PARTS = "facts,pending,offers,refused,references,elsewhere,interpreters,group,threads,try,gone,cache,memory,proof"

DESCRIBE = r"if \(exchange->describe\(object, out\)\) return cai_priv_py_failed\(\"describe\"\);"
OTHER = r"if \(!in->type\.exchange && !in->type\.dlpack\) return cai_priv_py_import_within"
HOST = r"\(array->memory != CAI_MEMORY_HOST \|\| flags & CAI_PYTHON_HOST\)"
KNOWN = r"exchange->abi != CAI_ABI \|\| exchange->struct_size < sizeof \*exchange"

# What it is, what is there, what stands there instead
DEFECTS = [
    # what an exchange is
    ("another abi is the same", KNOWN, r"exchange->struct_size < sizeof *exchange"),
    ("the layout of an exchange is not told", r"if \(other && other->abi != CAI_ABI\)", r"if (0)"),
    ("any layout is another one", r"if \(other && other->abi != CAI_ABI\)", r"if (other)"),
    ("an empty array needs an owner", r"if \(has_memory && !array->release\) \{", r"if (!array->release) {"),
    ("no elements are no memory", r"array->release \|\| array->size \|\| array->mask \|\| array->fields;", r"array->release || array->size;"),
    ("adopt gets a borrowed array", r"    if \(!has_memory\) cai_array_own\(array, cai_priv_py_release_nothing, NULL\);[^\n]*\n", r""),
    ("a shorter struct is enough", KNOWN, r"exchange->abi != CAI_ABI"),
    ("a longer struct is another one",
     r"exchange->struct_size < sizeof \*exchange", r"exchange->struct_size != sizeof *exchange"),
    ("describe is always there", r"return exchange->describe \? exchange : NULL;", r"return exchange;"),
    ("a capsule of any name",
     r"if \(!capsule \|\| !PyCapsule_IsValid\(capsule, CAI_PYTHON_EXCHANGE\)\) return NULL;",
     r"if (!capsule || !PyCapsule_CheckExact(capsule)) return NULL; (void)PyCapsule_SetName(capsule, CAI_PYTHON_EXCHANGE);"),
    ("what is no capsule hides nothing", r"out->at\[name\] = at;\n        if \(!is_capsule\) continue;",
     r"if (is_capsule) { PyObject *v = PyObject_GetItem(dictionary, py->names[name]); const int c = v && PyCapsule_CheckExact(v);"
     r" Py_XDECREF(v); if (!c) continue; } out->at[name] = at;\n        if (!is_capsule) continue;"),
    ("offered under another name", r"exchange, CAI_PYTHON_EXCHANGE, NULL\);", r'exchange, "cai_exchange", NULL);'),
    ("what was not offered is not said",
     r"(CAI_PYTHON_EXCHANGE, capsule\);\n    Py_XDECREF\(capsule\);\n    )return failed \? -1 : 0;",
     r"\1PyErr_Clear(); return 0 * failed;"),
    # what comes first
    ("a dictionary comes first", OTHER,
     r"if (!in->type.exchange || PyObject_HasAttr(object, in->py->names[CAI_PRIV_PY_CUDA])) return cai_priv_py_import_within"),
    ("what describe refuses is asked again", r"if \(!how && !cai_priv_py_import_one\(&in,", r"if (!cai_priv_py_import_one(&in,"),
    ("no exchange at all", r"out->exchange = comes_first \? ", r"out->exchange = comes_first && 0 ? "),
    ("several objects are one", r"count != 1 \|\| !cai_priv_py_at_hand", r"!count || !cai_priv_py_at_hand"),
    # what is remembered
    ("the type of before, whatever it is",
     r"\*known != type; (.*\n.*\n    return )cai_priv_py_leads_to\(at->weak, type\) \? at : NULL;", r"!*known; \1at;"),
    ("nothing is remembered", r"cai_priv_py_recall\(py, type, out\) \? 0 :", r""),
    ("a type is remembered by its address alone",
     r"return cai_priv_py_leads_to\(at->weak, type\) \? at : NULL;", r"return at;"),
    ("leak: what led to a type before", r"    Py_XDECREF\(before\);\n", r""),
    ("what led to a type before is dropped twice",
     r"    Py_XDECREF\(before\);", r"    Py_XDECREF(before); Py_XDECREF(before);"),
    ("a type stays because it is remembered", r"(py->known\[at\] = type;)", r"\1 Py_INCREF(type);"),
    ("leak: a type that is asked", r"(remember\(py, type, out\);\n    )Py_DECREF\(type\);", r"\1"),
    ("leak: the attribute of a type", r"Py_XDECREF\(places\.capsules\[0\]\);", r""),
    ("leak: the capsule that is offered", r"(CAI_PYTHON_EXCHANGE, capsule\);\n    )Py_XDECREF\(capsule\);", r"\1"),
    ("leak: what a state remembers",
     r"for \(i = 0; i < CAI_PYTHON_TYPES; \+\+i\) Py_CLEAR\(py->types\[i\]\.weak\);", r""),
    ("leak: the context of a capsule", r"Py_XDECREF\(\(PyObject \*\)PyCapsule_GetContext\(capsule\)\);", r"(void)capsule;"),
    # what describe says
    ("an array is not checked", r"!cai_priv_py_is_ordinary\(out, flags\)", r"out->memory == CAI_MEMORY_HOST || out->mask"),
    ("an array of another abi is checked no more", r"array->abi == CAI_ABI && ", r""),
    ("a short array is checked no more", r"array->struct_size >= sizeof \*array && ", r""),
    ("a negative ndim is ordinary", r"array->ndim >= 0 &&", r""),
    ("too many axes are ordinary", r"array->ndim <= CAI_MAX_NDIM && !array->fields", r"!array->fields"),
    ("rows are ordinary", r"!array->fields && !array->field_count && !array->mask", r"!array->mask"),
    ("a mask is ordinary", r"!array->field_count && !array->mask &&", r"!array->field_count &&"),
    ("a bit of a later version is ordinary", r" && !array->must_understand &&", r" &&"),
    ("host memory is ordinary", HOST, r"1"),
    ("host memory is taken unasked", r"\} else if \(array->memory == CAI_MEMORY_HOST && !\(flags & CAI_PYTHON_HOST\)\) \{", r"} else if (0) {"),
    ("what is in host memory is a failure", r"how = CAI_PRIV_PY_HOST_MEMORY;", r";"),
    ("a mask is always welcome", r"array->mask && !\(flags & CAI_PYTHON_MASK\)", r"0"),
    ("a mask is never welcome", r"array->mask && !\(flags & CAI_PYTHON_MASK\)", r"array->mask"),
    ("rows are always kept", r"if \(!\(flags & CAI_PYTHON_FIELDS\)\) array->fields = NULL;", r""),
    ("rows are counted without being there", r"if \(!\(flags & CAI_PYTHON_FIELDS\)\) array->field_count = 0;", r""),
    ("rows are never kept", r"if \(!\(flags & CAI_PYTHON_FIELDS\)\) array->field_count = 0;", r"array->field_count = 0;"),
    ("leak: what is refused", r"cai_priv_py_undo\(py, array, 1\);(\n    return how;)", r"\1"),
    ("what describe left after it failed is released", r"return cai_priv_py_failed\(\"describe\"\);",
     r'{ cai_array_release(out); return cai_priv_py_failed("describe"); }'),
    ("a failure without a word stays one", r"return cai_priv_py_failed\(\"describe\"\);", r"return -1;"),
    ("a failure without a word is none", r"return cai_priv_py_failed\(\"describe\"\);", r"return PyErr_Occurred() ? -1 : 0;"),
    # who owns what
    ("an owned array gets another owner", r"    if \(out->release\) return 0;\n", r""),
    ("a borrowed array is always borrowed", r"return flags & CAI_PYTHON_BORROW \? 0 : ", r"return 1 ? 0 : "),
    ("a borrowed array is never borrowed", r"return flags & CAI_PYTHON_BORROW \? 0 : ", r"return 0 ? 0 : "),
    ("an owned array is taken for borrowed", r"    if \(out->release\) return 0;\n",
     r"    if (out->release) { if (flags & CAI_PYTHON_BORROW) out->release = NULL; return 0; }\n"),
    ("a borrowed array owns an event", r"    out->flags &= ~\(uint32_t\)\(CAI_OWN_EVENT \| CAI_ORDERED_FREE\);[^\n]*\n", r""),
    ("the object is not kept", r"Py_XINCREF\(object\);\n    owner->object", r"owner->object"),
    ("leak: the object of an array", r"(is_simple\(owner\)\) \{\n        )Py_CLEAR\(owner->object\);",
     r"\1owner->object = NULL;"),
    ("leak: what every array owns", r"home->spare = owner;\n        return;", r"return;"),
    ("two arrays have one owner", r"home->spare = NULL;\n        return owner;", r"return owner;"),
    ("an array is not counted",
     r"(cai_array_own\(array, cai_priv_py_let_go, owner\);\n    )cai_priv_py_count\(owner->home, 1\);", r"\1"),
    ("a release is not counted", r"\(void\)cai_priv_py_count\(home, -1\);", r"(void)home;"),
    ("a release elsewhere drops at once", r"cai_priv_py_push\(home, owner\);(\n    if \(at_once)",
     r"Py_DECREF(owner->object); home->holders -= 1;\1"),
    ("what was released is not visited", r"Py_VISIT\(owner->object\);", r""),
    ("who outlives the module is forgotten", r"\(void\)cai_priv_py_add\(&home->closed, 1\);[^\n]*", r""),
    ("a release leaves itself behind", r"array->release = NULL;\n    cai_priv_py_give_back", r"cai_priv_py_give_back"),
    ("an import drops nothing", r"(in->refusal = 0;\n    )cai_priv_py_drain\(py->home\);", r"\1"),
    ("an import by an exchange at hand drops nothing", r"cai_priv_py_load\(&py->home->released\) \|\| ", r""),
    ("an import by an exchange at hand takes any flags", r"released\) \|\| flags & ~\(uint32_t\)CAI_PRIV_PY_FLAGS\)", r"released))"),
    ("what failed keeps its arrays", r"cai_priv_py_undo\(py, out, i\);", r""),
    ("what is undone is one too few", r"cai_priv_py_undo\(py, out, i\);", r"cai_priv_py_undo(py, out, i ? i - 1 : 0);"),
    ("what is undone is one too many", r"cai_priv_py_undo\(py, out, i\);", r"cai_priv_py_undo(py, out, i + 1);"),
    ("those after the one that fails are described, too", r"cai_priv_py_undo\(py, out, i\);",
     r"{ Py_ssize_t k; for (k = i + 1; k < count; ++k) { PyObject *t, *v, *b; PyErr_Fetch(&t, &v, &b);"
     r" if (!cai_priv_py_import_one(&in, objects[k], &out[k])) cai_array_release(&out[k]);"
     r" PyErr_Restore(t, v, b); } } cai_priv_py_undo(py, out, i);"),
    # what an exchange is of
    ("an attribute that is copied is one", r"if \(!cai_priv_py_is_made_for\(capsule, places\)\) return NULL;", r""),
    ("a type alone, and none that derives from it",
     r"while \(i < places->count && !cai_priv_py_leads_to", r"while (i < 1 && !cai_priv_py_leads_to"),
    ("a metaclass is asked", r"(out->capsules\[0\] = out->capsules\[1\] = NULL;)",
     r"\1 { PyObject *asked = PyObject_GetAttrString(type, CAI_PYTHON_EXCHANGE); if (!asked) PyErr_Clear(); Py_XDECREF(asked); }"),
    ("a base's exchange comes before a dictionary", r"at\[CAI_PRIV_PY_EXCHANGE\] <= others && ", r""),
    ("a mixin behind comes before the exchange", r"at\[CAI_PRIV_PY_EXCHANGE\] <= others", r"others == places->count"),
    ("leak: the order of the classes", r"Py_XDECREF\(places\.mro\);", r""),
    ("leak: the dictionary of a class",
     r"(cai_priv_py_find_in\(py, dictionary, i, out\);\n        )Py_XDECREF\(dictionary\);", r"\1"),
    ("adopted twice", r"    if \(made \|\| !has_memory\) array->release = NULL;[^\n]*\n", r""),
    # where references are dropped
    ("whoever releases drops", r"&& cai_priv_py_is_attached\(home\)", r""),
    ("an attached thread of any interpreter drops",
     r"return PyInterpreterState_GetID\(PyInterpreterState_Get\(\)\) == home->interpreter;", r"return 1;"),
    ("cai_python_release takes any array for its own", r" \|\| owner->home != py->home", r""),
    ("nobody is asked to drop", r"if \(at_once \|\| cai_priv_py_add\(&home->closed, 0\)\) cai_priv_py_schedule\(home\);[^\n]*", r""),
    ("a thread waits for the GIL", r"(const int at_once = owner->at_once;\n)",
     r"\1 if (cai_priv_py_add(&home->closed, 0)) { PyGILState_STATE s = PyGILState_Ensure(); cai_priv_py_drop(owner);"
     r" PyGILState_Release(s); return; }"),
    ("a module is closed after its list was dropped",
     r"\(void\)cai_priv_py_add\(&home->closed, 1\);[^\n]*\n    cai_priv_py_drain\(home\);",
     r"cai_priv_py_drain(home); { volatile long w; for (w = 0; w < 2000000; ++w) {} } (void)cai_priv_py_add(&home->closed, 1);"),
    ("an exception that is set goes", r"(cai_priv_py_drop_held\(owner\);\n    )cai_priv_py_put_back\(&kept\);",
     r"\1Py_XDECREF(kept.type); Py_XDECREF(kept.value); Py_XDECREF(kept.trace);"),
    ("code of an object runs with the exception that is set", r"\} else if \(PyErr_Occurred\(\)\) \{", r"} else if (0) {"),
    # what is said
    ("what is not ours is a failure", r"if \(in\.refusal\) return CAI_PYTHON_NOT_MINE;", r""),
    ("every failure is not ours", r"if \(in\.refusal\) return CAI_PYTHON_NOT_MINE;",
     r"PyErr_Clear(); return CAI_PYTHON_NOT_MINE;"),
    ("arguments are counted from 0", r"cai_priv_py_name_argument\(objects\[i\], i \+ 1,", r"cai_priv_py_name_argument(objects[i], i,"),
    ("a note is added again", r"if \(!there\) method = ", r"method = "),
    ("every exception is said anew", r"if \(!trace && !cause\) return PyObject_Str\(value\);", r"return PyObject_Str(value);"),
    ("an empty array of the host has no address",
     r"if \(!address->number\) address->number = [^;]*;", r"(void)nothing;"),
]  # fmt: skip


def main():
    script = Script("check_exchange.py", PARTS, "--imports", "12000", "--count", "600")
    defects = [Defect(name, HEADER, *change) for name, *change in DEFECTS]
    return judge_parts(parser(__doc__).parse_args(), defects, script)


if __name__ == "__main__":
    raise SystemExit(main())
