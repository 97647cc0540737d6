#!/usr/bin/env python3
"""Seeds of the fuzz targets: make_seeds.py FOLDER writes FOLDER/import, FOLDER/literal and so on.

All: the inputs that earlier runs found, from corpus/TARGET.txt, one a line in base64 (run_fuzz.py --minimize).
literal: also one file per dictionary of vectors/vectors.json, and some lines that are hard to read. The other
targets take bytes as choices, so their seeds are bytes. Zeros choose what is valid, and the random ones are the
same in every run.
"""

import base64
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import vector_cases  # noqa: E402

KEPT = pathlib.Path(__file__).resolve().parent / "corpus"
OF_CHOICES = ("import", "dlpack", "layout")

HARD_LINES = [
    "", "{}", "{", "None", "({})", "{'shape': ((((()))))}", "{1: 2, 'shape': (), }",
    "{'shape': (0x10, 0o7, 0b1, 1_000, -1, +1), 'typestr': u'\\u20ac\\U0001F600\\x00\\N{DASH}'}",
    "{'shape': (np.int64(3),), 'stream': <Stream at 0x7f00>, 'mask': array([1, 2])}",
    "{'typestr': 'a' \"b\" '''c''', 'data': (1e5, 1.5, 1j, nan, inf, ...)}",
    "{'mask': {'mask': {'mask': {'shape': ()}}}, 'descr': [('a', [('b', '<f4', (2,))])]}",
    "{'data': {1, 2}, 'x': b'\\xff\\'', 'y': {'shape': 5}, 'shape': 18446744073709551616}",
    '{"shape": [2, 3], "typestr": "<f4", "data": [4096, false], "version": 3, "stream": null}',
    '{"shape": [1], "typestr": "|V8", "data": [8, true], "descr": [["x", [["y", "<f4", [1]]]], ["", "\\ud83d\\ude00\\/"]]}',
    "{'shape': (2,\n           3),\n 'stride': (4, 4), '_x': 1,\n 'typestr': '<f4'\n}\n{'shape': '\n",
    "[" * 250, "(" * 199 + ")" * 199,
]


def write(folder, name, content):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def literal_seeds(folder):
    for case in vector_cases.cases():
        write(folder, case["id"].replace("/", "_"), case["input"].encode())
    for number, line in enumerate(HARD_LINES):
        write(folder, f"hard{number:02}", line.encode())


def choice_seeds(folder):
    choices = random.Random(1)
    write(folder, "zeros", bytes(64))
    for number in range(96):
        largest = choices.choice([4, 8, 12, 16, 256])
        seed = bytes(choices.randrange(largest) for _ in range(choices.randrange(16, 400)))
        write(folder, f"random{number:02}", seed)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_seeds.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    literal_seeds(folder / "literal")
    for target in OF_CHOICES:
        choice_seeds(folder / target)
    for kept in KEPT.glob("*.txt"):
        for number, line in enumerate(kept.read_text().splitlines()):
            write(folder / kept.stem, f"kept{number:04}", base64.b64decode(line))


if __name__ == "__main__":
    main()
