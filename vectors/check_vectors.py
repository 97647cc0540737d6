#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gives each vector of vectors.json to a reader. Python 3.8, the standard library alone.

    check_vectors.py [MODULE:FUNCTION [KIND]]

FUNCTION(input) raises an exception if the input is wrong, else it returns a dict with any of the facts. KIND is
"dictionary" (default), "stream" or "dlpack". Without arguments the facts are checked by arithmetic.
"""
import importlib, itertools, json, pathlib, re, sys  # noqa: E401

HERE = pathlib.Path(__file__).resolve().parent


class Mask:
    def __init__(self, interface):
        self.__cuda_array_interface__ = interface


def value(coded, mask=Mask):
    """The Python value of an input: a JSON array is a list, {"tuple": [...]} a tuple, {"mask": {...}} an object."""
    if isinstance(coded, list):
        return [value(item, mask) for item in coded]
    if not isinstance(coded, dict):
        return coded
    ((kind, what),) = coded.items()
    if kind == "mask":
        return mask({key: value(item, mask) for key, item in what.items()})
    return {"tuple": lambda: tuple(value(what, mask)), "int": lambda: int(what), "float": lambda: float(what)}[kind]()


def facts(coded):
    """Facts, with the integers above 2^53, which are text in JSON, as integers."""
    if isinstance(coded, dict):
        return {key: facts(item) for key, item in coded.items()}
    if isinstance(coded, list):
        return [facts(item) for item in coded]
    return int(coded) if isinstance(coded, str) and re.fullmatch(r"-?\d+", coded) else coded


def load(mask=Mask):
    """The vectors, with inputs and facts as Python values."""
    for vector in json.loads((HERE / "vectors.json").read_text(encoding="utf-8"))["vectors"]:
        decoded = {key: value(item, mask) for key, item in vector["input"].items()}
        yield {**vector, "input": decoded, "facts": facts(vector.get("facts"))}


def judge(vector, read):
    """What the reader gets wrong, or ""."""
    try:
        found = read(vector["input"])
    except Exception as error:
        fine = vector["verdict"] == "reject" or "needs" in vector
        return "" if fine else f"is refused: {type(error).__name__}: {error}"
    if vector["verdict"] == "reject":
        return f"is accepted, but {vector['note']} ({', '.join(vector['rules'])})"
    same = {key: (found[key], fact) for key, fact in vector["facts"].items() if key in found}
    return "; ".join(f"{key} is {a!r}, not {b!r}" for key, (a, b) in same.items() if a != b)


def arithmetic(vector):
    """The facts that follow from others: sizes, strides and bytes, element by element."""
    known = vector["facts"]
    if (vector["verdict"] == "accept") != (known is not None):
        return "has facts, or lacks them, against its verdict"
    if not known or known.get("strides") is None or known["size"] > 3000:
        return ""
    shape, strides, itemsize = known["shape"], known["strides"], known["itemsize"]
    at = [sum(map(int.__mul__, index, strides)) for index in itertools.product(*map(range, shape))]
    rows = list(itertools.accumulate([1, *shape[:0:-1]], lambda a, b: a * max(b, 1)))[: len(shape)]
    extent = [min(at), max(at) + itemsize] if at else [0, 0]
    right = {"size": len(at), "nbytes": len(at) * itemsize, "extent": extent,
             "c_contiguous": at == list(range(0, len(at) * itemsize, itemsize))}  # fmt: skip
    if vector["input"].get("strides") is None:
        right["strides"] = [row * itemsize for row in reversed(rows)]
    return "; ".join(f"{k} is {known[k]}, not {v}" for k, v in right.items() if known[k] != v)


def main():
    module, _, name = sys.argv[1].partition(":") if len(sys.argv) > 1 else ("", "", "")
    kind = sys.argv[2] if len(sys.argv) > 2 else "dictionary"
    sys.path.insert(0, "")
    read = getattr(importlib.import_module(module), name) if module else None
    vectors = [vector for vector in load() if not read or vector["kind"] == kind]
    answers = [(vector["id"], judge(vector, read) if read else arithmetic(vector)) for vector in vectors]
    print("".join(f"{id} {wrong}\n" for id, wrong in answers if wrong), end="")
    bad = sum(1 for _, wrong in answers if wrong)
    print(f"{len(answers)} vectors, {bad} wrong")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
