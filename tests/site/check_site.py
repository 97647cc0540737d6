#!/usr/bin/env python3
"""Builds the site, and checks each link and each anchor of its HTML.

    check_site.py --work FOLDER --clang CLANG [--check-only]

Run it with the Python that has tools/site/requirements.txt. Nothing may come from another host. Each page of docs
and sim/docs, each header of the reference, each rule and each status must be there. Exit status 1 if something is not
so.
"""

import argparse
import collections
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import make_reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
failures = []


class Page(html.parser.HTMLParser):
    """The links, the resources and the anchors of a page, and the text outside of code that looks like Markdown."""

    def __init__(self, text):
        super().__init__()
        self.links, self.resources, self.anchors = [], [], collections.Counter()
        self.within, self.raw = collections.Counter(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "id" in attributes:
            self.anchors[attributes["id"]] += 1
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag == "link" and attributes.get("href") or tag in ("script", "img", "iframe", "source"):
            self.resources += [value for key, value in attributes.items() if key in ("href", "src") and value]
        if tag in ("code", "pre", "script", "style"):
            self.within["code"] += 1

    def handle_endtag(self, tag):
        if tag in ("code", "pre", "script", "style"):
            self.within["code"] -= 1

    def handle_data(self, text):
        if not self.within["code"]:
            self.raw += re.findall(r"\]\([^)]*\)|^\s*(?:```|\|[ -]+\|).*|\\[<|]", text, re.M)


def fail(where, what):
    failures.append(f"{where}: {what}")


def check_link(folder, pages, path, link):
    """A link of the page `path`, in the folder of the site."""
    where = path.relative_to(folder)
    url = urllib.parse.urlsplit(link)
    if url.scheme or url.netloc:
        if url.scheme != "https":
            fail(where, f"links to {link}")
        return
    to = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
    if to.is_dir():
        to = to / "index.html"
    anchor = urllib.parse.unquote(url.fragment)
    if not to.is_file():
        fail(where, f"links to {link}, which is not there")
    elif anchor and to.suffix == ".html" and anchor not in pages[to].anchors:
        fail(where, f"links to {link}, which is no anchor there")


def check_pages(folder):
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(folder)
        for anchor in (anchor for anchor, count in page.anchors.items() if count > 1):
            fail(where, f"has the anchor {anchor} twice")
        for text in page.raw:
            fail(where, f"shows Markdown: {text[:80]}")
        for link in page.resources:
            if urllib.parse.urlsplit(link).netloc:
                fail(where, f"takes {link} from another host")
        if path.name != "404.html":  # its links are from the root of a server
            for link in [*page.links, *page.resources]:
                check_link(folder, pages, path, link)
    return pages


def documents():
    return [path for folder in ("docs", "sim/docs") for path in sorted((ROOT / folder).rglob("*.md"))]


def check_contents(folder, pages):
    """What must be there, whatever links to it."""
    wanted = {f"{path.relative_to(ROOT).with_suffix('.html')}": [] for path in documents()
              if path.name != "README.md"}
    wanted["docs/index.html"] = wanted["index.html"] = []
    wanted["playground.html"] = ["dictionary", "verdict"]
    rules, errors = (ROOT / "docs" / "rules.md").read_text(), (ROOT / "docs" / "errors.md").read_text()
    wanted["docs/rules.html"] = re.findall(r'<a id="(R\d+)">', rules)
    wanted["docs/errors.html"] = re.findall(r"^\| .*`(CAI_ERR_\w+)` \|", errors, re.M)
    headers = re.findall(r"^## (\S+)$", make_reference.page(), re.M)
    for header in headers:
        wanted[f"docs/reference/{header.replace('/', '_')}.html"] = []
    for name, anchors in wanted.items():
        if folder / name not in pages:
            fail(name, "is not there")
            continue
        for anchor in anchors:
            if anchor not in pages[folder / name].anchors:
                fail(name, f"has no anchor {anchor}")
    return sum(len(anchors) for anchors in wanted.values())


def check_search(folder):
    """The index knows each page of docs, and no source file."""
    index = json.loads((folder / "search" / "search_index.json").read_text())
    found = {entry["location"].split("#")[0] for entry in index["docs"]}
    for path in documents():
        name = path.relative_to(ROOT).with_suffix(".html").as_posix().replace("README", "index")
        if name not in found:
            fail("search", f"does not know {name}")
    for name in found:
        if re.search(r"\.(c|h|py|cu)\.html$", name) and not name.startswith("docs/reference/"):
            fail("search", f"finds the source file {name}")
    return len(index["docs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--clang", default="clang")
    parser.add_argument("--check-only", action="store_true", help="check what is there")
    options = parser.parse_args()
    folder = options.work.resolve() / "html"
    if not options.check_only:
        made = subprocess.run([sys.executable, str(ROOT / "tools" / "site" / "make_site.py"),
                               "--work", str(options.work), "--clang", options.clang])
        if made.returncode:
            return 1
    pages = check_pages(folder)
    contents, searched = check_contents(folder, pages), check_search(folder)
    for failure in failures:
        print(failure)
    links = sum(len(page.links) + len(page.resources) for page in pages.values())
    print(f"pages {len(pages)}, links {links}, anchors {sum(len(page.anchors) for page in pages.values())}, "
          f"anchors that must be there {contents}, entries of the search {searched}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
