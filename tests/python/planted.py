#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plants defects in cai_python.h, one at a time; check_python.py must find each of them.

    tests/python/planted.py [--cc CC] [--inspect build/cai_inspect]
        [--root FOLDER] [--only TEXT] [--share N] [--jobs N]

Prints one line per defect: the first thing that was wrong. A defect that is not found, or that does not apply to the
file any more, is a failure, and so is a test that fails without a defect. Exit status 0: all found; 1: not; 77: no C
compiler, or no Python.h.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from planted_parts import HEADER, Script, judge_parts  # noqa: E402
from planting import Defect, compile_with, parser  # noqa: E402

PARTS = "cases,exports,numpy,streams,group,lies,references,memory,threads"

# What it is, what is there, what stands there instead
DEFECTS = [
    # what things mean
    ("a bool is an int", r"if \(PyBool_Check\(object\)\) return[^;]*;", r""),
    ("a list is a tuple", r"tuple, CAI_TOKEN_LIST,", r"tuple, CAI_TOKEN_TUPLE,"),
    ("a number by __index__ is an int", r"cai_priv_py_put_int\(reader, number, CAI_TOKEN_INDEX\)",
     r"cai_priv_py_put_int(reader, number, CAI_TOKEN_INT)"),
    ("a number by __index__ may be larger than int64", r"if \(kind == CAI_TOKEN_INDEX\) return[^;]*;", r""),
    ("an int above int64 is too big", r"cai_priv_py_put\(reader, CAI_TOKEN_UINT, 0, above, NULL\)",
     r"cai_priv_py_put(reader, CAI_TOKEN_BIG_INT, 0, 0, NULL)"),
    ("bytes are a str", r"put\(reader, CAI_TOKEN_BYTES, ", r"put(reader, CAI_TOKEN_STR, "),
    ("text ends at its NUL", r"CAI_TOKEN_STR, \(size_t\)length, 0, text\)", r"CAI_TOKEN_STR, strlen(text), 0, text)"),
    ("a float is never zero", r"value < 0 \|\| value > 0 \|\| value != value", r"1"),
    ("a descr is read up to 65 items", r"reader->whole = i == CAI_PRIV_PY_DESCR;", r"reader->whole = 0;"),
    ("two keys are exchanged", r"\"strides\", \"stream\"", r'"stream", "strides"'),
    ("every error is a ValueError", r"type = PyExc_##exception", r"type = PyExc_ValueError"),
    ("an error of another number is none", r"PyObject \*type = PyExc_RuntimeError, \*text;",
     r"PyObject *type = PyExc_ValueError, *text;"),
    ("lenient is for all", r"options\.flags = in->flags & CAI_LENIENT;", r"options.flags = CAI_LENIENT;"),
    ("a class is an array (R1)", r"if \(!PyType_Check\(object\)\) [^\n]*\n", r""),
    ("a mapping is a dictionary",
     r"if \(!found \|\| PyDict_Check\(found\)\)",
     r"if (!found || PyMapping_Check(found))"),
    ("only AttributeError itself means that there is none",
     r"\(void\)_PyObject_LookupAttr\(object, py->names\[name\], &found\);",
     r"found = PyObject_GetAttr(object, py->names[name]); if (!found && PyErr_Occurred() == PyExc_AttributeError) PyErr_Clear();"),
    ("any error means that there is none",
     r"\(void\)_PyObject_LookupAttr\(object, py->names\[name\], &found\);",
     r"found = PyObject_GetAttr(object, py->names[name]); if (!found && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();"),
    ("host memory is read unasked", r"if \(done > 0 && on_host\)", r"if (done > 0)"),
    ("host memory is of no known kind", r"array->memory = CAI_MEMORY_HOST;\n", r"\n"),
    ("the memory of a borrowed scalar goes", r"CAI_PYTHON_BORROW\) \|\| in->on_host \|\|", r"CAI_PYTHON_BORROW) ||"),
    ("the memory of a scalar goes", r"if \(owner && in->on_host && !owner->also_held\)", r"if (0)"),
    ("a stream counts in host memory, too", r"if \(in->on_host\) interfaces\[0\]\.stream[^;]*;", r""),
    ("a mask is always welcome", r"in->flags & CAI_PYTHON_MASK \? &owner->mask : NULL", r"&owner->mask"),
    ("a mask is judged by the dictionary of its array",
     r"cai_priv_py_link\(&in->reader, &entries\[1\]", r"cai_priv_py_link(&in->reader, &entries[0]"),
    ("None is a stream", r"if \(object == Py_None\) \{", r"if (0) {"),
    ("the two decoders of streams are one", r"status = by_protocol \?", r"status = 0 ?"),
    ("an import of flags of no meaning", r"if \(!\(in->flags & ~\(uint32_t\)CAI_PRIV_PY_FLAGS\)\) return 0;",
     r"return 0;"),
    ("a mask is left out of an export", r"if \(!failed && mask\) failed = PyDict_SetItem[^;]*;", r""),
    ("tuples are exported as lists",
     r"cai_priv_py_sequence\(at, token->length, 0\)",
     r"cai_priv_py_sequence(at, token->length, 1)"),
    ("pointers are exported with a sign",
     r"PyLong_FromUnsignedLongLong\(token->number\)",
     r"PyLong_FromLongLong((long long)token->number)"),
    # what objects do meanwhile
    ("an entry is not held", r"Py_INCREF\(value\);\n(\s*values\[next\] = value;)", r"\1"),
    ("a list is read where it is", r"failed = PyList_Append\(reader->snapshots, tuple\);", r"failed = 0;"),
    ("nesting without end", r"if \(depth > CAI_PRIV_PY_DEPTH\) return[^;]*;", r""),
    ("what failed keeps its arrays", r"cai_priv_py_undo\(py, out, i\);", r""),
    ("what is undone is one too few",
     r"cai_priv_py_undo\(py, out, i\);",
     r"cai_priv_py_undo(py, out, i ? i - 1 : 0);"),
    ("the exception is lost when others are released", r"PyErr_Restore\(kept->type, kept->value, kept->trace\);",
     r"PyErr_Restore(kept->type, kept->value, kept->trace); PyErr_SetNone(PyExc_ValueError);"),
    # references and memory
    ("leak: the object of an array", r"(is_simple\(owner\)\) \{\n        )Py_CLEAR\(owner->object\);",
     r"\1owner->object = NULL;"),
    ("leak: the object of an array with a mask", r"(cai_priv_py_drop_rest\(owner\);\n    )Py_CLEAR\(owner->object\);",
     r"\1owner->object = NULL;"),
    ("leak: the mask of an array", r"Py_CLEAR\(owner->also_held\);", r"owner->also_held = NULL;"),
    ("leak: what an array owns", r"PyMem_Free\(owner\);", r""),
    ("leak: the dictionary", r"Py_DECREF\(in->dictionary\);", r""),
    ("leak: the dictionary of a mask", r"Py_XDECREF\(in->mask_dictionary\);", r""),
    ("leak: what is no dictionary", r"(names\[name\]\);\n    )Py_DECREF\(found\);", r"\1"),
    ("leak: the entries",
     r"while \(reader->held_count\) Py_XDECREF\(reader->held\[--reader->held_count\]\);",
     r"reader->held_count = 0;"),
    ("leak: the first entry", r"while \(reader->held_count\)", r"while (reader->held_count > 1)"),
    ("leak: what lists were", r"Py_XDECREF\(reader->snapshots\);", r""),
    ("leak: one list", r"Py_XDECREF\(tuple\);", r""),
    ("leak: a number by __index__", r"Py_DECREF\(number\);", r""),
    ("leak: tokens",
     r"if \(reader->tokens != reader->room\) PyMem_Free\(reader->tokens\);\n    Py_XDECREF",
     r"Py_XDECREF"),
    ("leak: tokens that were too few",
     r"if \(reader->tokens != reader->room\) PyMem_Free\(reader->tokens\);\n    reader->tokens = more",
     r"reader->tokens = more"),
    ("leak: what failed", r"if \(failed && owner\) cai_priv_py_forget\(owner\);", r""),
    ("leak: the text of an error", r"(PyErr_SetObject\(type, text\);\n)    Py_XDECREF\(text\);", r"\1"),
    ("leak: the method of a stream", r"(PyErr_Clear\(\);\n    )Py_XDECREF\(method\);", r"\1"),
    ("leak: what a stream says", r"(pair, 1, stream\);\n    )Py_DECREF\(pair\);", r"\1"),
    ("leak: a value of an export",
     r"(failed = !value \|\| PyDict_SetItem\(dictionary, key, value\);\n)\s*Py_XDECREF\(value\);",
     r"\1"),
    ("leak: a key", r"Py_CLEAR\(py->keys\[i\]\);", r"if (i != 3) Py_CLEAR(py->keys[i]);"),
    ("leak: the names", r"Py_CLEAR\(py->names\[i\]\);", r";"),
    ("one reference too many is dropped", r"(is_simple\(owner\)\) \{\n)", r"\1        Py_XDECREF(owner->object);\n"),
    ("the object is not kept", r"Py_XINCREF\(object\);\n    owner->object", r"owner->object"),
    ("the mask is not kept", r"Py_INCREF\(mask\);", r""),
    ("leak: the owner of an array that is released elsewhere", r"(home->spare = owner;\n        return;\n    \}\n#endif\n)    PyMem_Free\(owner\);", r"\1"),
    ("an owner without room for a mask gets one", r"owner && \(size_t\)owner->room >= room", r"owner"),
    ("what was released is not counted", r"\(void\)cai_priv_py_count\(home, -1\);", r"(void)home;"),
    ("an import drops nothing", r"(in->refusal = 0;\n    )cai_priv_py_drain\(py->home\);", r"\1"),
    ("a list that others push to is read without care",
     r"while \(!cai_priv_py_replace\(&home->released, first, owner\)\);",
     r"while (0);\n    { extern int sched_yield(void); sched_yield(); } home->released = owner;"),
    # what is read when
    ("a walk takes the next key for any", r"if \(tries == CAI_PYTHON_KEYS\) break;[^\n]*", r"tries = 0;"),
    ("what a walk finds is not held", r"Py_INCREF\(value\);\n        values\[next\] = value;", r"values[next] = value;"),
    ("leak: what a walk found before it met another key", r"Py_CLEAR\(values\[next\]\);", r"values[next] = NULL;"),
    ("a descr is left out that names a field", r"!PyUnicode_GetLength\(name\) &&", r"1 &&"),
    ("a descr is left out that has another type", r"length == as_long && !memcmp[^;]*length\) &&", r"1 &&"),
    ("a descr is left out that has more rows", r"if \(PyList_Size\(descr\) != 1\) return 0;", r""),
    ("a descr is left out that repeats a bit field", r"!memchr\(said, 't', \(size_t\)length\);", r"1;"),
    ("leak: the row of a descr", r"Py_XDECREF\(field\);\n    return same;", r"return same;"),
]  # fmt: skip


class Python(Script):
    """check_python.py, for which cai_inspect is built once if none is given."""

    def build(self, options, tree, folder):
        if "--inspect" not in self.arguments:
            inspect = options.inspect or str(folder / "cai_inspect")
            error = None if options.inspect else compile_with(
                options, "-O1", options.root / "tools" / "cai_inspect.c", "-o", inspect)  # fmt: skip
            if error:
                return error
            self.arguments += ["--inspect", inspect]
        return super().build(options, tree, folder)


def main():
    made = parser(__doc__)
    made.add_argument("--inspect", help="the program cai_inspect; built without it")
    script = Python("check_python.py", PARTS, "--small", "--imports", "12000", "--count", "500")
    return judge_parts(made.parse_args(), [Defect(name, HEADER, *change) for name, *change in DEFECTS], script)


if __name__ == "__main__":
    raise SystemExit(main())
