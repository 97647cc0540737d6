#!/usr/bin/env python3
"""The readers of the folder vectors: each finds the vectors right, and each planted mistake.

    check_readers.py c --cc CC
    check_readers.py rust --rustc RUSTC
    check_readers.py python

Planted, in a copy: each verdict turned round, and one fact of each vector changed. Both must be reported for each vector
that the reader judges, by its id.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTORS = ROOT / "vectors"
REFUSED = {"P54", "P83", "P86", "P87"}  # by cai: ROCm, rows that end within a byte, lanes of whole bytes, opaque handles
LAYOUT = ("shape", "itemsize", "size", "nbytes", "strides", "extent", "c_contiguous")
ARRAY = LAYOUT + ("dtype", "f_contiguous", "read_only", "byte_swapped", "address")
Row = dict
failures: list[str] = []


def check(right: object, what: str) -> None:
    if not right:
        failures.append(what)


def run(command: list[object], cwd: pathlib.Path | None = None) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout + done.stderr


def rows() -> tuple[str, list[Row]]:
    """The first line of the table, and its rows."""
    comment, names, *lines = (VECTORS / "vectors.tsv").read_text(encoding="utf-8").splitlines()
    return comment, [dict(zip(names.split("\t"), line.split("\t"))) for line in lines]


def write(path: pathlib.Path, comment: str, table: list[Row]) -> None:
    lines = [comment, "\t".join(table[0]), *("\t".join(row.values()) for row in table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def turned(verdict: str) -> str:
    return {"accept": "reject", "reject": "accept"}[verdict]


def changed(fact: str) -> str:
    """Another fact of the same form."""
    if fact in ("0", "1"):
        return str(1 - int(fact))
    numbers = list(re.finditer(r"-?\d+", fact))
    if not numbers:
        return "[7]" if fact.startswith("[") else "uint16" if fact[0] != "u" else "legacy"
    last = numbers[-1]
    return fact[: last.start()] + str(int(last[0]) + 1) + fact[last.end() :]


def check_program(program: list[object], judged: Callable[[Row], bool], facts: Callable[[Row], tuple[str, ...]],
                  refused: set[str]) -> None:  # fmt: skip
    """judged: is the verdict looked at? facts: which are compared?"""
    comment, table = rows()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "vectors.tsv"
        status, said = run([*program, VECTORS / "vectors.tsv"])
        check(status == 0 and re.search(r"\b0 wrong\n$", said), f"the vectors: {said[-400:]}")
        check(set(re.findall(r"^(\w+): refused", said, re.M)) == refused, f"refused: {said}")
        write(path, comment, [{**row, "verdict": turned(row["verdict"])} for row in table])
        status, said = run([*program, path])
        found, wanted = set(re.findall(r"^(\w+): ", said, re.M)), {row["id"] for row in table if judged(row)}
        check(status == 1 and found >= wanted, f"verdicts that nobody misses: {sorted(wanted - found)}")
        print(f"{len(wanted)} verdicts turned round, {len(wanted & found)} found")
        count = missed = 0
        for number in range(max(len(facts(row)) for row in table)):  # the first fact of each row, the second, ...
            planted = [dict(row) for row in table]
            wanted = set()
            for row in planted:
                names = [name for name in facts(row) if row[name] != "-" and row["id"] not in refused]
                if row["verdict"] == "accept" and number < len(names):
                    row[names[number]] = changed(row[names[number]])
                    wanted.add(row["id"])
            write(path, comment, planted)
            found = set(re.findall(r"^(\w+): ", run([*program, path])[1], re.M))
            check(found >= wanted, f"facts that nobody misses, number {number}: {sorted(wanted - found)}")
            count, missed = count + len(wanted), missed + len(wanted - found)
        print(f"{count} facts changed, {count - missed} found")


def check_shown(word: str, folder: pathlib.Path) -> None:
    """The line of README.md that begins with this word, in a copy of the folder, beside the headers that it names."""
    (line,) = re.findall(rf"^{word} .*$", (VECTORS / "README.md").read_text(encoding="utf-8"), re.M)
    shutil.copytree(VECTORS, folder / "shown" / "vectors")
    shutil.copy(ROOT / "cai.h", folder / "shown")
    (folder / "shown" / "ext").mkdir()
    shutil.copy(ROOT / "ext" / "cai_dlpack.h", folder / "shown" / "ext")
    status, said = run(["sh", "-c", line], folder / "shown" / "vectors")
    check(status == 0 and said.endswith(" 0 wrong\n"), f"{line}: {said[-400:]}")


def check_c(options: argparse.Namespace, folder: pathlib.Path) -> None:
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT}", f"-I{ROOT}/ext"]
    status, said = run([options.cc, *flags, VECTORS / "check_vectors.c", "-o", folder / "reader"])
    check(status == 0, said)

    def looks(row: Row) -> bool:
        if row["kind"] == "stream":
            return "splatform scuda" in row["input"]
        return row["id"] not in REFUSED

    def facts(row: Row) -> tuple[str, ...]:
        more = ("order", "stream", "mask_shape") if row["kind"] == "dictionary" else ()
        return () if not looks(row) else ("order", "stream") if row["kind"] == "stream" else ARRAY + more

    if not failures:
        check_program([folder / "reader"], looks, facts, REFUSED)
    if shutil.which("cc"):
        check_shown("cc", folder)


def check_rust(options: argparse.Namespace, folder: pathlib.Path) -> None:
    flags = ["--edition", "2021", "-D", "warnings", "-o", folder / "reader"]
    status, said = run([options.rustc, *flags, VECTORS / "check_vectors.rs"])
    check(status == 0, said)

    def facts(row: Row) -> tuple[str, ...]:
        if row["kind"] == "stream":
            return ("order", "stream")
        whole = row["strides"] != "-" and row["id"] not in ("P84", "P95")
        return LAYOUT if whole else ()

    if not failures:
        check_program([folder / "reader"], lambda row: True, facts, set())
    if shutil.which("rustc"):
        check_shown("rustc", folder)


def check_shown_reader(folder: pathlib.Path) -> None:
    """The reader of README.md, if NumPy is here. NumPy accepts more than it should."""
    if importlib.util.find_spec("numpy") is None:
        return
    (text,) = re.findall(r"^```python\n(.*?)^```$", (VECTORS / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    (folder / "mine.py").write_text(text, encoding="utf-8")
    status, said = run([sys.executable, "-B", VECTORS / "check_vectors.py", "mine:read"], folder)
    check(status == 1 and re.search(r"^\d+ vectors, \d+ wrong$", said, re.M), f"README.md, mine.py: {said[-400:]}")
    check("T16 is accepted" in said and "B01" not in said, f"README.md, mine.py: {said}")


def check_python(options: argparse.Namespace, folder: pathlib.Path) -> None:
    """Arithmetic, and the oracle as a reader of each kind; then with planted mistakes."""
    shutil.copy(VECTORS / "check_vectors.py", folder)
    text = (VECTORS / "vectors.json").read_text(encoding="utf-8")
    kinds = ["dictionary", "stream", "dlpack"]

    def ask(master: str) -> dict[str, tuple[int, str]]:
        (folder / "vectors.json").write_text(master, encoding="utf-8")
        command = [sys.executable, "-B", folder / "check_vectors.py"]
        asked = {kind: [f"oracle:read_{kind}", kind] for kind in kinds}
        return {who: run([*command, *words], pathlib.Path(__file__).parent) for who, words in {"": [], **asked}.items()}

    for who, (status, said) in ask(text).items():
        check(status == 0 and said.endswith(" 0 wrong\n"), f"the vectors, {who}: {said[-400:]}")
    master = json.loads(text)
    for vector in master["vectors"]:
        vector["verdict"] = turned(vector["verdict"])
    answers = ask(json.dumps(master))
    found = {who: set(re.findall(r"^([A-Z]\d\d) ", said, re.M)) for who, (_, said) in answers.items()}
    for kind in kinds:
        wanted = {vector["id"] for vector in master["vectors"] if vector["kind"] == kind}
        check(found[kind] >= wanted, f"verdicts that nobody misses: {sorted(wanted - found[kind])}")
        check(found[""] >= wanted, f"verdicts that arithmetic misses: {sorted(wanted - found[''])}")
    count = 0
    for key in ("shape", "nbytes", "strides", "extent", "order", "stream", "read_only", "dtype"):
        master, wanted = json.loads(text), set()
        for vector in master["vectors"]:
            if vector.get("facts", {}).get(key) is not None:
                fact = vector["facts"][key]
                vector["facts"][key] = [*fact, 3] if isinstance(fact, list) else "other" if isinstance(fact, str) else -7
                wanted.add(vector["id"])
        said = "".join(answer for _, answer in ask(json.dumps(master)).values())
        missed = wanted - set(re.findall(r"^([A-Z]\d\d) ", said, re.M))
        check(not missed, f"{key} that nobody misses: {sorted(missed)}")
        count += len(wanted)
    check_shown_reader(folder)
    print(f"{len(master['vectors'])} verdicts turned round, {count} facts changed")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("reader", choices=("c", "rust", "python"))
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--rustc", default="rustc")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        {"c": check_c, "rust": check_rust, "python": check_python}[options.reader](options, pathlib.Path(folder))
    print("".join(f"{failure}\n" for failure in failures) or f"{options.reader}: right\n", end="")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
