"""Shared by the oracles: lines to cai_inspect, answers compared with the reference."""

from __future__ import annotations

import json
import subprocess
from typing import Any, Iterable, Sequence

import reference
from reference import Verdict

FORGIVABLE = "(accepted with --lenient)"


# The words of cai_inspect in place of those of cai.h
WORDS = {FORGIVABLE: "(accepted by CAI_LENIENT)",
         "mask must be None or the dictionary of a mask": "mask must be None or an object with the interface"}  # fmt: skip


def words_of_headers(message: str) -> str:
    """A message of cai_inspect as cai.h says it."""
    for own, theirs in WORDS.items():
        message = message.replace(own, theirs)
    return message


def run(program: str, lines: Sequence[str], lenient: bool) -> subprocess.CompletedProcess[bytes]:
    """One process over all lines."""
    command = [program] + (["--lenient"] if lenient else [])
    text = "".join(line + "\n" for line in lines)
    return subprocess.run(command, input=text.encode(), capture_output=True, check=False)


def inspect(program: str, lines: Sequence[str], lenient: bool = False) -> list[dict[str, Any]]:
    """Feeds all lines to one process and returns its answers, one for each line."""
    done = run(program, lines, lenient)
    if done.returncode not in (0, 1):
        while len(lines) > 1:  # the first half that still breaks it, until one line is left
            half = lines[: len(lines) // 2]
            broken = run(program, half, lenient).returncode not in (0, 1)
            lines = half if broken else lines[len(lines) // 2 :]
        raise SystemExit(f"{program}: exit status {done.returncode}, broken by: {''.join(lines)[:1000]}")
    answers = [json.loads(line) for line in done.stdout.split(b"\n") if line]
    if len(answers) != len(lines):
        raise SystemExit(f"{program}: {len(answers)} answers to {len(lines)} lines")
    expected = 0 if all(answer["ok"] for answer in answers) else 1
    if done.returncode != expected:
        raise SystemExit(f"{program}: exit status {done.returncode}, not {expected}")
    return answers


def dtype_of(typestr: object) -> reference.DType | None:
    """What a printed typestr means; a typestr with any fault means nothing."""
    verdict = Verdict()
    dtype = reference.parse_typestr(typestr, "typestr", verdict)
    return None if verdict.faults else dtype


def compare_facts(answer: dict[str, Any], facts: dict[str, Any], where: str = "") -> list[str]:
    """Each fact of the reference against the answer; the differences in words."""
    found = []

    def same(key: str, got: object, expected: object) -> None:
        if got != expected or type(got) is not type(expected):
            found.append(f"{where}{key}: cai {got!r}, reference {expected!r}")

    for key in (
        "itemsize size nbytes ndim shape strides c_contiguous f_contiguous extent "
        "read_only byte_swapped version sync stream data"
    ).split():
        same(key, answer.get(key, "absent"), facts[key])
    if facts["aligned"] is not None:
        same("aligned", answer.get("aligned", "absent"), facts["aligned"])
    if facts["self_overlap"] is not None and answer.get("self_overlap") != "undecided":
        same("self_overlap", answer.get("self_overlap"), "yes" if facts["self_overlap"] else "no")
    if dtype_of(answer.get("typestr")) != facts["dtype"]:
        found.append(f"{where}typestr: cai {answer.get('typestr')!r}, reference {facts['dtype']}")
    found += compare_fields(answer.get("fields", "absent"), facts["fields"], where)
    found += compare_mask(answer.get("mask", "absent"), facts["mask"], where)
    return found


def compare_mask(got: Any, expected: dict[str, Any] | None, where: str) -> list[str]:
    """The mask's facts."""
    if isinstance(got, dict) and expected is not None:
        return compare_facts(got, expected, where + "mask.")
    return [] if got is expected else [f"{where}mask: cai {got!r}, reference {expected!r}"]


def compare_fields(got: Any, expected: Iterable[reference.Field] | None, where: str) -> list[str]:
    """The flat table of fields."""
    if expected is None or got is None or got == "absent":
        return [] if got is expected else [f"{where}fields: cai {got!r}, reference {expected!r}"]
    table = [
        (f.name, f.title, f.offset, f.nbytes, list(f.shape), -1 if f.parent is None else f.parent)
        for f in expected
    ]
    answers = [tuple(f.get(k) for k in ("name", "title", "offset", "nbytes", "shape", "parent")) for f in got]
    if table != answers:
        return [f"{where}fields: cai {answers!r}, reference {table!r}"]
    return [
        f"{where}fields: typestr of {f.name!r}: cai {a.get('typestr')!r}, reference {f.dtype}"
        for f, a in zip(expected, got)
        if f.dtype is not None and dtype_of(a.get("typestr")) != f.dtype
    ]


def report(title: str, differences: Sequence[str], most: int = 10) -> None:
    """Prints the first few differences."""
    for text in differences[:most]:
        print(f"{title}: {text}"[:1200])
    if len(differences) > most:
        print(f"{title}: and {len(differences) - most} more")
