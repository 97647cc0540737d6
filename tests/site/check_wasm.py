#!/usr/bin/env python3
"""Compares cai_inspect as WebAssembly, under the playground's shim for WASI, with the native program.

    check_wasm.py --inspect PROGRAM --clang CLANG --node NODE --work FOLDER [--self-test]

Every descriptor case with three sets of options, all of them at once, pictures of copies, and wrong usage: exit status,
output and messages are the same, byte for byte. --self-test breaks the shim, and each time a case must differ.
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "site"), str(ROOT / "tests" / "oracle")]
import make_site  # noqa: E402
import vector_cases  # noqa: E402

SHIM = ROOT / "tools" / "site" / "assets" / "wasi.js"
DEFECTS = [  # what is replaced in the shim
    ("buffer.set(part);", "buffer.set(part.slice(0, 1000));"),
    ("at - from, true", "at - from > 9 ? at - from - 1 : at - from, true"),
    ("written[file].push(...parts);", "written[file].unshift(...parts);"),
    ("status = reason.exit;", "status = 0;"),
    ("pointers += 4;", "pointers += 8;"),
    ("{ stream: true }", "{ stream: false }"),
]


def cases():
    """[options, input] of each run."""
    inputs = vector_cases.inputs()
    demo = (ROOT / "tools" / "demo" / "interfaces.txt").read_text()
    everything = "".join(f"{each}\n" for each in inputs)
    found = [[options, f"{each}\n"] for each in inputs for options in ([], ["--lenient"], ["--all", "--lint"])]
    found += [[options, text] for text in (everything, demo, everything * 40)
              for options in ([], ["--table"], ["--all", "--lint", "--lenient"])]
    found += [[["--plan", each], ""] for each in inputs[:20]]
    # an answer of several parts, which are cut within a character in one of these
    for more in range(3):
        fields = [("x" * more + "\u20ac" * 40 + str(number), "<f4") for number in range(1000)]
        text = f"{{'shape': (1,), 'typestr': '|V4000', 'descr': {fields}, 'data': (4096, False), 'version': 3}}\n"
        found += [[["--lint"], text]]
    found += [[["--help"], ""], [["--nothing"], ""], [["--plan"], ""], [["absent.txt"], ""], [[], ""],
              [[], "\n\n# x\n"]]
    return found


def native(program, runs):
    answers = []
    for options, text in runs:
        done = subprocess.run([program, *options], input=text.encode(), capture_output=True, check=False)
        answers.append({"status": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode()})
    return answers


def in_node(node, wasm, shim, runs):
    script = str(pathlib.Path(__file__).with_name("run_cases.js"))
    try:
        done = subprocess.run([node, script, str(wasm), str(shim)], input=json.dumps(runs), capture_output=True,
                              text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return "no end after 60 s"
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def different(runs, wanted, got):
    """The first runs that differ; all of them if nothing came."""
    if isinstance(got, str):
        return [f"node: {got.strip()[-300:]}"]
    return [f"{options} {text[:200]!r}\n native {want}\n wasm   {have}"[:1500]
            for (options, text), want, have in zip(runs, wanted, got) if want != have]


def self_test(options, wasm, runs, wanted):
    survived = 0
    for old, new in DEFECTS:
        text = SHIM.read_text()
        if text.count(old) != 1:
            sys.exit(f"{SHIM.name} does not have once: {old}")
        broken = options.work / "broken.js"
        broken.write_text(text.replace(old, new))
        if not different(runs, wanted, in_node(options.node, wasm, broken, runs)):
            print(f"not found: {old} -> {new}")
            survived += 1
    print(f"planted defects {len(DEFECTS)}, not found {survived}")
    return 1 if survived else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("inspect", "clang", "node"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    wasm = options.work / "cai_inspect.wasm"
    make_site.make_wasm(options.clang, wasm)
    runs = cases()
    wanted = native(options.inspect, runs)
    if options.self_test:
        return self_test(options, wasm, runs, wanted)
    found = different(runs, wanted, in_node(options.node, wasm, SHIM, runs))
    for each in found[:5]:
        print(each)
    print(f"runs {len(runs)}, different {len(found)}, bytes of WebAssembly {wasm.stat().st_size}")
    return 1 if found or len(runs) < 400 else 0


if __name__ == "__main__":
    sys.exit(main())
