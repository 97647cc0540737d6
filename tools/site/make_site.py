#!/usr/bin/env python3
"""Makes the documentation site of the Markdown in the tree, with MkDocs.

    make_site.py --work FOLDER --clang CLANG [--no-html]

Run it with the Python that has tools/site/requirements.txt. FOLDER/source gets the pages, FOLDER/html the site.

Pages keep their place in the tree, so their links hold: docs/rules.md becomes docs/rules.html. The menu is that of
docs/README.md. docs/reference.md becomes one page for each header. A source file or a folder that a page links becomes
a page, too. The playground is tools/cai_inspect.c as WebAssembly, which CLANG compiles.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import make_reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tools" / "site"
INDEX = "docs/README.md"
REFERENCE = "docs/reference.md"
PLAYGROUND = "playground.md"
LANGUAGES = {".h": "c", ".c": "c", ".hpp": "cpp", ".cpp": "cpp", ".cu": "cpp", ".py": "python", ".rs": "rust",
             ".go": "go", ".f90": "fortran", ".cmake": "cmake", ".sh": "bash", ".json": "json", ".toml": "toml"}
LINK = re.compile(r"(?<=\]\()([^()#:\s]*)(#[^()\s]*)?(?=\))")
FENCE = re.compile(r"^\s*(```|~~~)")


# ------------------------------------------------------------------------------------------- text


def outside_code(text, change):
    """The text, with `change` made to each run of lines that is not in a fence."""
    out, run, fenced = [], [], False
    for line in text.split("\n"):
        if FENCE.match(line):
            if not fenced:
                out += change(run)
                run = []
            fenced = not fenced
            out.append(line)
        elif fenced:
            out.append(line)
        else:
            run.append(line)
    return "\n".join(out + change(run))


def in_row(line):
    """In a row of a table a bar in code is `\\|` for GitHub, and a bare one for Python's Markdown."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line


def plain(line):
    """`\\<` is a character of GitHub's Markdown alone."""
    return re.sub(r"(`[^`]*`)|\\<", lambda match: match[1] or "&lt;", line)


ITEM = re.compile(r"^( *)([-*]|\d+\.)( +)(?=\S)")


def lists(lines):
    """GitHub lets an item begin below a paragraph, and indents by the width of the marker. Python's Markdown wants
    an empty line there, and four spaces."""
    out, stack = [], []  # stack: the column of the text of each open item
    for line in lines:
        indent, item = len(line) - len(line.lstrip()), ITEM.match(line)
        if not line.strip():
            out.append("")
            continue
        ends = item or not out or not out[-1].strip()  # another line goes on with the paragraph above it
        while stack and ends and indent < stack[-1]:
            stack.pop()
        if item and not stack and out and out[-1].strip() and not ITEM.match(out[-1]) and out[-1][0] != " ":
            out.append("")
        shift = stack[-1] if stack else 0
        out.append("    " * len(stack) + (line[shift:] if indent >= shift else line.lstrip()))
        if item:
            stack.append(len(item[0]))
    return out


def for_mkdocs(text):
    text = outside_code(text, lists)
    return outside_code(text, lambda lines: [plain(in_row(line)) for line in lines])


# ------------------------------------------------------------------------------------------ pages


class Site:
    """The pages by their path in the tree, and the files that pages link."""

    def __init__(self):
        self.pages, self.files, self.sources = {}, set(), set()
        for path in self.markdown():
            self.pages[path.relative_to(ROOT).as_posix()] = path.read_text()
        self.pages[PLAYGROUND] = (HERE / PLAYGROUND).read_text()
        self.pages[REFERENCE] = make_reference.page()
        self.split_reference()

    @staticmethod
    def markdown():
        """The pages of the documents, and the README of each folder."""
        found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "sim" / "docs").rglob("*.md")]
        for folder in ("examples", "packaging", "sim", "tests", "tools", "vectors"):
            found += (ROOT / folder).rglob("README.md")
        return sorted(found)

    def split_reference(self):
        """One page for each header of the reference. self.anchors: the page of each anchor."""
        introduction, *parts = re.split(r"^## (?=\S)", self.pages[REFERENCE], flags=re.M)
        self.anchors, self.headers = {}, []
        for part in parts:
            header = part.split("\n")[0].strip()
            name = f"docs/reference/{header.replace('/', '_')}.md"
            # links of the reference are those of a page in docs: one folder up from here
            text = outside_code("## " + part, lambda lines: [self.moved(line) for line in lines])
            self.pages[name] = outside_code(text, lambda lines: [re.sub(r"^##(#*) ", r"#\1 ", line) for line in lines])
            self.headers.append(name)
            for anchor in anchors(part):
                self.anchors[anchor] = name
            self.anchors[slug(header)] = name
        self.pages[REFERENCE] = introduction

    @staticmethod
    def moved(line):
        return LINK.sub(lambda link: f"../{link[1]}{link[2] or ''}" if link[1] else link[0], line)

    # -- links

    def target(self, page, path, anchor):
        """Where a link of a page leads on the site, relative to the page."""
        here = os.path.dirname(page)
        to = os.path.normpath(os.path.join(here, path)) if path else page
        if to in (REFERENCE, *self.headers) and anchor[1:] in self.anchors:
            to = self.anchors[anchor[1:]]
        elif path and to not in self.pages:
            to = self.linked(page, to)
        return (os.path.relpath(to, here or ".") if to != page else "") + anchor

    def linked(self, page, path):
        """The page, picture or folder that stands for a file of the tree."""
        full = ROOT / path
        if not full.exists():
            sys.exit(f"{page} links to {path}, which does not exist")
        if full.is_dir():
            name = f"{path}/README.md"
            if name not in self.pages:
                self.sources.add(path)
            return name
        if full.suffix in (".svg", ".png", ".webp"):
            self.files.add(path)
            return path
        self.sources.add(path)
        return f"{path}.md"

    def with_links(self, page, text):
        def change(lines):
            return [LINK.sub(lambda link: self.target(page, link[1], link[2] or ""), line) for line in lines]
        return outside_code(text, change)

    # -- writing

    def write(self, folder):
        for page, text in self.pages.items():
            put(folder / page, head(page) + for_mkdocs(self.with_links(page, text)))
        for path in self.sources:
            if (ROOT / path).is_dir():
                put(folder / path / "README.md", folder_page(path))
            else:
                put(folder / f"{path}.md", source_page(path))
        for path in self.files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)

    def menu(self):
        """The sections and rows of docs/README.md, the headers below the reference, and what stands in the root."""
        sections, listed = [], {INDEX, REFERENCE}
        for title, rows in re.findall(r"^## (.*)\n((?:(?!## ).*\n?)*)", (ROOT / INDEX).read_text(), re.M):
            pages = [os.path.normpath(f"docs/{page}") for page in re.findall(r"^\| \[[^\]]*\]\(([^)#]*\.md)\)", rows, re.M)]
            listed.update(pages)
            reference = [self.reference()] if title == "To look things up" else []
            sections.append({title: reference + [{self.title(page): page} for page in pages]})
        others = [page for page in self.pages if page.startswith(("docs/", "sim/docs/")) and page not in listed
                  and page not in self.headers]
        if others:
            sys.exit(f"docs/README.md has no row for {', '.join(others)}")
        project = ["CHANGELOG.md", "CONTRIBUTING.md", *sorted(page for page in self.pages if "/" in page
                   and page.count("/") == 1 and not page.startswith("docs/"))]
        return [{"Overview": "README.md"}, {"Playground": PLAYGROUND}, {"All pages": INDEX}, *sections,
                {"The project": [{self.title(page): page} for page in project]}]

    def reference(self):
        headers = [{self.title(header): header} for header in self.headers]
        return {"Reference": [{"All headers": REFERENCE}, *headers]}

    def title(self, page):
        heading = re.search(r"^# (.*)$", self.pages[page], re.M)[1]
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        return {"CONTRIBUTING.md": "Contributing", "CHANGELOG.md": "Changelog"}.get(page, heading)


def slug(heading):
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def anchors(text):
    """The anchors of a part of the reference."""
    text = outside_code(text, list)
    return [slug(each) for each in re.findall(r"^#+ (.*)$", text, re.M)] + re.findall(r'<a id="([^"]+)">', text)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def head(page):
    return "---\nhide: [toc]\n---\n\n" if page == PLAYGROUND else ""


NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"


def source_page(path):
    text = (ROOT / path).read_text(errors="replace")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    language = LANGUAGES.get(pathlib.Path(path).suffix, "text")
    return f"{NOT_SEARCHED}# {path}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def folder_page(path):
    files = sorted(each.relative_to(ROOT / path).as_posix() for each in (ROOT / path).rglob("*") if each.is_file()
                   and "__pycache__" not in each.parts)
    return f"{NOT_SEARCHED}# {path}\n\nThe files of this folder:\n\n" + "".join(f"- `{each}`\n" for each in files)


# ------------------------------------------------------------------------------------- playground


def make_wasm(clang, out):
    """cai_inspect for WASI. A stack that overflows must not reach the data: it lies first."""
    subprocess.run([clang, "--target=wasm32-wasi", "-Oz", "-std=c99", f"-I{ROOT}", f"-I{ROOT}/ext",
                    str(ROOT / "tools" / "cai_inspect.c"), "-o", str(out),
                    "-Wl,--strip-all,--stack-first,-z,stack-size=1048576"], check=True)


def make_assets(folder, clang):
    """The program as a script, so that the page works from a folder on the disk, where nothing can be fetched."""
    shutil.copytree(HERE / "assets", folder / "assets", dirs_exist_ok=True)
    wasm = folder.parent / "cai_inspect.wasm"
    make_wasm(clang, wasm)
    code = base64.b64encode(wasm.read_bytes()).decode()
    put(folder / "assets" / "cai_inspect.wasm.js", f'globalThis.CAI_INSPECT_WASM = "{code}";\n')
    cases = json.loads((HERE / "examples.json").read_text())
    put(folder / "assets" / "examples.js", f"globalThis.CAI_EXAMPLES = {json.dumps(cases)};\n")


# ------------------------------------------------------------------------------------------- main


def configuration(site, work):
    """MkDocs reads JSON as YAML. What does not depend on the tree stands in tools/site/mkdocs.yml."""
    return json.dumps({"INHERIT": str(HERE / "mkdocs.yml"), "docs_dir": str(work / "source"),
                       "site_dir": str(work / "html"), "nav": site.menu()}, indent=1)


def make_html(work):
    """Every warning is an error. With --quiet MkDocs would count none."""
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(work / "mkdocs.yml")],
                          capture_output=True, text=True, env=dict(os.environ, NO_MKDOCS_2_WARNING="1"))
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="the folder for source and html")
    parser.add_argument("--clang", default="clang", help="a clang with wasi-libc")
    parser.add_argument("--no-html", action="store_true", help="the source alone")
    options = parser.parse_args()
    work = options.work.resolve()
    for old in ("source", "html"):
        shutil.rmtree(work / old, ignore_errors=True)
    site = Site()
    site.write(work / "source")
    make_assets(work / "source", options.clang)
    put(work / "mkdocs.yml", configuration(site, work))
    print(f"pages {len(site.pages)}, source files and folders {len(site.sources)}, pictures {len(site.files)}")
    if not options.no_html:
        return make_html(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
