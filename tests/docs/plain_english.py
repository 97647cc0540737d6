#!/usr/bin/env python3
"""Counts what makes prose hard to read: semicolons, colons, long sentences.

    plain_english.py [--before REVISION] [--longest NUMBER] [FILE...]

Without files: the pages, and the declaration comments of the headers. Of a page it counts paragraphs and lists,
not code, tables or headings. Of a header it counts the comments that stand above declarations. Labels ("Errors:",
"shape: ndim extents") are counted apart, as they are no sentences. --before shows the same figures of a revision.
The figures are a help for authors, and no gate. Python's standard library is enough.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import make_reference  # noqa: E402

LABEL = re.compile(r"(?:^|(?<=[.;] ))(?:\*\*)?(?:\w+(?: \w+)?)(?:\*\*)?:(?= )")
LONG = 30  # words


def page_prose(text):
    """The paragraphs and list items of a page."""
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"^(?:\[[^]]*\]: |<!--|#|\||!\[).*$", "\n", text, flags=re.M)
    text = re.sub(r"\[((?:[^][]|\[[^]]*\])*)\](?:\([^)]*\)|\[[^]]*\])", r"\1", text)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [" ".join(re.sub(r"^\s*(?:[-*>]|\d+\.) ", "", part).split()) for part in parts if part.strip()]


def header_prose(text):
    """The comments above declarations of a header."""
    comments = re.findall(r"^/\*\*(.*?)\*/", "\n".join(make_reference.declarations(text)), re.M | re.S)
    found = []
    for comment in comments:
        comment = re.sub(r"^ \* ?", "", comment, flags=re.M)
        found += [" ".join(part.split()) for part in re.split(r"\n\s*\n", comment) if part.strip()]
    return found


def sentences(paragraph):
    return [part for part in re.split(r"(?<=[.!?])[)*\"]* (?=[A-Z\"(*]|cai\b|[\w/-]+\.\w)", paragraph) if part]


class Figures:
    def __init__(self, paragraphs):
        """Code in a sentence counts as one word without marks."""
        plain = [re.sub(r"`[^`]*`", "Code", paragraph) for paragraph in paragraphs]
        self.labels = sum(len(LABEL.findall(paragraph)) for paragraph in plain)
        self.words = sum(len(paragraph.split()) for paragraph in plain)
        self.marks = sum(len(re.findall(r"[;:](?=\s|$)", paragraph)) for paragraph in plain)
        self.sentences = sorted(((len(one.split()), one) for paragraph in plain for one in sentences(paragraph)),
                                key=lambda pair: -pair[0])

    def per_hundred(self, count):
        return 100 * count / self.words if self.words else 0.0

    def row(self):
        longest = self.sentences[0][0] if self.sentences else 0
        over = sum(words > LONG for words, _ in self.sentences)
        return (f"{self.words:6} {self.per_hundred(self.marks):6.1f} {self.per_hundred(self.marks - self.labels):6.1f}"
                f" {longest:5} {over:5}")


def figures(name, text):
    return Figures((page_prose if name.endswith(".md") else header_prose)(text))


def at_revision(revision, name):
    run = subprocess.run(["git", "show", f"{revision}:{name}"], cwd=ROOT, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def everything():
    made = {"docs/errors.md"}
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
             *sorted(path for folder in ("docs", "sim/docs") for path in (ROOT / folder).glob("*.md"))]
    names = [page.relative_to(ROOT).as_posix() for page in pages]
    return [name for name in names if name not in made] + [name for name, _ in make_reference.headers()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--before", metavar="REVISION", help="also show the figures of this revision")
    parser.add_argument("--longest", type=int, default=0, metavar="NUMBER",
                        help="print so many of the longest sentences")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    print("words, semicolons and colons per 100 of them, the same without labels, longest sentence, sentences of more")
    print(f"than {LONG} words" + (f"; on the left those of {options.before}" if options.before else ""))
    for name in options.files or everything():
        name = pathlib.Path(name).resolve().relative_to(ROOT).as_posix() if options.files else name
        now = figures(name, (ROOT / name).read_text())
        row = f"{name:30}"
        if options.before:
            text = at_revision(options.before, name)
            row += (figures(name, text).row() if text else " " * 32) + "  |"
        print(row + now.row())
        for words, sentence in now.sentences[: options.longest]:
            print(f"    {words}: {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
