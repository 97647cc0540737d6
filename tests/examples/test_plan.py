"""cai_inspect --plan: the strips of memory that it draws are the bytes of the elements, for random pairs; and what it
refuses.

    test_plan.py --inspect build/cai_inspect [--pairs N]
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import subprocess
import sys

SIDE = re.compile(r"  (to|from) +at ([+-]\d+)  ([#.]+)$")
HEAD = re.compile(r"(\d+) bytes: (\d+) runs? of (\d+), in (\d+) pieces?, aligned to (\d+)$")
PIECE = re.compile(r"piece \d+: (?:(\d+) planes of )?(?:(\d+) rows of )?(\d+) bytes$")


def run(inspect: str, *dictionaries: str) -> tuple[int, str]:
    done = subprocess.run([inspect, "--plan", *dictionaries], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def dictionary(shape: tuple[int, ...], strides: tuple[int, ...], address: int) -> str:
    return str({"shape": shape, "typestr": "<i2", "data": (address, False), "strides": strides, "version": 3})


def bytes_of(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    """The bytes of each element, from the first one on, in C order."""
    starts = [sum(i * s for i, s in zip(index, strides)) for index in itertools.product(*map(range, shape))]
    return [start + byte for start in starts for byte in range(2)]


def strides_of(shape: tuple[int, ...], chance: random.Random) -> tuple[int, ...]:
    """Any order of the axes, with gaps and axes that go backward."""
    strides, step = [0] * len(shape), 2
    for axis in chance.sample(range(len(shape)), len(shape)):
        strides[axis] = step * chance.choice((1, 1, -1))
        step *= shape[axis]
        step += 2 * chance.choice((0, 0, 1))
    return tuple(strides)


def drawn(text: str) -> tuple[list[int], dict[str, list[int]], int]:
    """The numbers of the head, the bytes drawn of each side, and the bytes that the pieces say."""
    lines = text.splitlines()
    head = next(match for line in lines if (match := HEAD.match(line)))
    sides: dict[str, list[int]] = {"to": [], "from": []}
    said = 0
    for line in lines:
        if found := PIECE.match(line):
            said += int(found[1] or 1) * int(found[2] or 1) * int(found[3])
        if found := SIDE.match(line):
            sides[found[1]] += [int(found[2]) + at for at, byte in enumerate(found[3]) if byte == "#"]
    return [int(number) for number in head.groups()], sides, said


def check_pair(inspect: str, chance: random.Random) -> bool:
    """False: the picture would have several bytes in a character, or not all pieces."""
    shape = tuple(chance.randint(1, 3) for _ in range(chance.randint(1, 3)))
    to, of = strides_of(shape, chance), strides_of(shape, chance)
    both = bytes_of(shape, to), bytes_of(shape, of)
    if any(max(side) - min(side) >= 64 for side in both):
        return False
    status, text = run(inspect, dictionary(shape, to, 4096), dictionary(shape, of, 65536))
    if "pieces more" in text:
        return False
    (nbytes, runs, length, pieces, alignment), sides, said = drawn(text)
    good = status == 0 and nbytes == runs * length == said == len(both[0]) and text.count("piece ") == pieces
    good = good and sorted(sides["to"]) == sorted(both[0]) and sorted(sides["from"]) == sorted(both[1])
    if not good or alignment % 2:
        sys.exit(f"shape {shape}, strides {to} and {of}:\n{text}")
    return True


def check_refused(inspect: str) -> None:
    good, other = dictionary((2, 3), (6, 2), 4096), dictionary((3, 2), (4, 2), 65536)
    far, repeated = dictionary((2, 3), (6, 2), 65536), dictionary((2, 3), (0, 2), 65536)
    rows = [((good, other), 1, "no copy: shape[0] = 2 in to, 3 in from"), ((good, good), 1, "share bytes"),
            ((repeated, good), 1, "to has elements that share bytes"), ((good, "{}"), 1, '"entry": '),
            (("x",), 1, '"ok": false'), ((), 2, "one dictionary, or two"), ((good, far, far), 2, "one dictionary, or two"),
            (("--table", good), 2, "--plan goes with --lenient only"), (("--all", good), 2, "--plan goes with"),
            ((good, repeated), 0, "to    int16 (2, 3), strides (6, 2)\nfrom  int16 (2, 3), strides (0, 2)\n"),
            ((good,), 0, "12 bytes: 1 run of 12, in 1 piece, aligned to 4"),
            ((dictionary((12, 3, 3, 3), (1002, 330, 70, 8), 4096),), 0, "and 19 pieces more")]  # fmt: skip
    for arguments, status, words in rows:
        found = run(inspect, *arguments)
        if found[0] != status or words not in found[1]:
            sys.exit(f"{arguments}: status {found[0]}, not {status}, or without {words!r}:\n{found[1]}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inspect", required=True)
    parser.add_argument("--pairs", type=int, default=300)
    args = parser.parse_args()
    chance = random.Random(1)
    pairs = 0
    while pairs < args.pairs:
        pairs += check_pair(args.inspect, chance)
    check_refused(args.inspect)
    print(f"{pairs} pairs drawn, 0 wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
