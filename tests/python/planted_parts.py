# SPDX-License-Identifier: MIT
"""What the lists of defects of cai_python.h have in common: the module of a script of parts.py is built once with
many defects, and the script runs on it until its first finding."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
from parts import FINDING  # noqa: E402
from planting import NONE, Subject, execute, judge_all  # noqa: E402

HEADER = "ext/cai_python.h"


class Script(Subject):
    """A script of parts.py. arguments: of each run. parts: all that may find a defect; what a defect has as `more` are
    those that must find it. They run in one process: that a part crashes is a finding as well."""

    def __init__(self, script, parts, *arguments):
        self.script, self.parts = [sys.executable, HERE / script, "--seed", "1"], parts
        self.arguments = list(arguments)

    def why_skipped(self, options):
        status, output = execute([*self.script, "--cc", options.cc, *self.arguments, "--parts", ""], 60)
        return output.partition("skipped, ")[2].strip() if status == 77 else None

    def build(self, options, tree, folder):
        command = [*self.script, "--cc", options.cc, "--root", tree, "--optimize", "0", "--build", folder, *self.arguments]
        status, output = execute(command, 300)
        return output if status else None

    def run(self, options, tree, folder, environment, defect):
        command = [*self.script, "--cc", options.cc, "--root", tree, "--built", folder, "--here", "--first", *self.arguments]
        kept = {"PYTHONPYCACHEPREFIX": str(folder / "pycache")}
        status, output = execute([*command, "--parts", defect.more or self.parts], 300, {**environment, **kept})
        if defect is NONE:
            return status == 0, "nothing found" if status == 0 else output[:3000]
        found = next((line for line in output.splitlines() if re.search(FINDING, line)), None)
        if status is None or status < 0:
            return True, "did not end" if status is None else f"signal {-status}"
        return bool(status and found), found[:150] if found else f"NOT FOUND, status {status}: {output[-400:]}"


def judge_parts(options, defects, script):
    """Exit status."""
    reason = script.why_skipped(options)
    if reason:
        print(f"{pathlib.Path(sys.argv[0]).name}: skipped, {reason}")
        return 77
    return judge_all(options, defects, script)
