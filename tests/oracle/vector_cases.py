"""The dictionaries of vectors/vectors.json, as the tests take them: dicts with id, input (as Python's repr prints the
dictionary), verdict, the facts or the entry at fault, and basis, the rules."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"
sys.path.insert(0, str(VECTORS))
import check_vectors  # noqa: E402


def cases() -> list[dict[str, Any]]:
    """The vectors of dictionaries."""
    found = []
    for vector in check_vectors.load(mask=dict):
        if vector["kind"] != "dictionary":
            continue
        case = {"id": vector["id"], "input": repr(vector["input"]), "verdict": vector["verdict"]}
        case.update(vector["facts"] or {"entry": "|".join(vector["entry"])})
        found.append({**case, "basis": " ".join(vector["rules"])})
    return found


def inputs() -> list[str]:
    """The dictionaries alone."""
    return [case["input"] for case in cases()]
