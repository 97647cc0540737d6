#!/usr/bin/env python3
"""Looks at the site in Chromium.

    check_browser.py --work FOLDER --inspect PROGRAM --chromium PROGRAM [--self-test]

FOLDER/html is a site that check_site.py built. Run it with the Python that has tools/site/requirements.txt.

- Each page of the documents at phone width: nothing is wider than the page, no error on the console, nothing from
  another host. Some pages also at desktop width, light and dark: texts have the contrast of WCAG, level AA.
- The playground's verdict of each descriptor case is that of the native cai_inspect.
- The search, links from a verdict to its rule, the shared link, light and dark by hand, the menu of a phone; the
  playground and the search also from the disk, without a server.
FOLDER/pictures gets the screenshots. --self-test breaks the site, and each time a check must fail.
"""

import argparse
import contextlib
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import threading

from playwright.sync_api import Error, sync_playwright

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import vector_cases  # noqa: E402

SIZES = {"phone": (390, 844), "desktop": (1280, 800)}
LOOKED_AT = ["index", "playground", "docs/rules", "docs/reference/cai.h", "docs/streams"]
PICTURES = ["index", "playground", "docs/rules", "docs/reference/cai.h"]
NO_INDEX = '{"config": {"lang": ["en"], "separator": " ", "pipeline": [], "fields": {}}, "docs": []}'
WAIT = 10000  # milliseconds
failures = []


def fail(where, what):
    failures.append(f"{where}: {what}")


# ---------------------------------------------------------------------------------------- server


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a server of this folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@contextlib.contextmanager
def opened(browser, site, size="desktop", scheme="light", searches=True):
    """A page of the browser. What goes wrong in it is a failure. The index of the search takes most of the time of a
    page; unless it `searches`, there is none."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                  reduced_motion="reduce")
    context.set_default_timeout(WAIT)
    page = context.new_page()

    def judge_request(request):
        if not request.url.startswith((site, "data:", "blob:", "about:")):
            fail(page.url, f"asks for {request.url}")

    if not searches:
        page.route("**/search_index.json", lambda route: route.fulfill(body=NO_INDEX, content_type="application/json"))
    page.on("request", judge_request)
    page.on("console", lambda said: said.type in ("error", "warning") and fail(page.url, f"console: {said.text}"))
    page.on("pageerror", lambda error: fail(page.url, f"error: {error}"))
    page.on("response", lambda got: got.status >= 400 and fail(page.url, f"{got.status} for {got.url}"))
    try:
        yield page
    finally:
        context.close()


# ----------------------------------------------------------------------------------------- looks


def ask(page, question):
    if not page.evaluate("typeof cai_ask !== 'undefined'"):
        page.evaluate((HERE / "in_page.js").read_text())
    return page.evaluate(f"cai_ask.{question}()")


def show(page, site, name):
    page.goto(f"{site}/{name}.html", wait_until="load")
    if name == "playground":
        page.wait_for_selector(".cai-verdict")


def look_at_all(browser, site, folder):
    """The pages of the menu, as wide as a phone."""
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in sorted(folder.rglob("*.html"))]
    names = [name for name in names
             if name.startswith("docs/") or "/" not in name and "." not in name and name != "404"]
    with opened(browser, site, "phone", searches=False) as page:
        for name in names:
            show(page, site, name)
            for each in ask(page, "wide"):
                fail(f"{name}, phone", f"too wide: {each}")
    return len(names)


def show_closely(page, site, name):
    show(page, site, name)
    if name == "playground":
        page.select_option("#example", label="A size in bits, and no version")
        page.wait_for_selector(".cai-verdict[data-ok='false']")


def look_closely(browser, site, pictures):
    texts, least = 0, 99.0
    for size in SIZES:
        for scheme in ("light", "dark"):
            with opened(browser, site, size, scheme, searches=False) as page:
                for name in LOOKED_AT:
                    show_closely(page, site, name)
                    where = f"{name}, {size}, {scheme}"
                    for each in ask(page, "wide"):
                        fail(where, f"too wide: {each}")
                    found = ask(page, "pale")
                    texts, least = texts + found["count"], min(least, found["least"])
                    for each in found["wrong"]:
                        fail(where, f"too pale: {each}")
                    if name in PICTURES:
                        page.screenshot(path=pictures / f"{name.replace('/', '_')}-{size}-{scheme}.png")
    return texts, least


# ------------------------------------------------------------------------------------ playground


def native(program, text, options=("--all", "--lint")):
    done = subprocess.run([program, *options], input=text.encode() + b"\n", capture_output=True, check=False)
    return [line for line in done.stdout.decode().split("\n") if line]


LINKS = "(all) => all.map((each) => each.getAttribute('href'))"
SHOWN = "[...document.querySelectorAll('.cai-verdict pre')].map((each) => each.textContent)"


def judged(page, program, text, options=("--all", "--lint")):
    """Types the text, and waits for the verdict of the native program. Returns what that says."""
    wanted = native(program, text, options)
    page.fill("#dictionary", text)
    try:
        page.wait_for_function(f"(wanted) => JSON.stringify({SHOWN}) === wanted", timeout=3000,
                               arg=json.dumps(wanted, ensure_ascii=False, separators=(",", ":")))
    except Error:
        fail("playground", f"{text[:200]}\n shows {page.evaluate(SHOWN)}\n not   {wanted}")
    for verdict, line in zip(page.query_selector_all(".cai-verdict"), wanted):
        answer, title = json.loads(line), verdict.query_selector("h3").inner_text()
        if not title.startswith("Accepted: " + answer["dtype"] if answer["ok"] else "Rejected"):
            fail("playground", f"says {title} of {text[:200]}")
        said = verdict.inner_text()
        for problem in answer["errors"]:
            if problem["message"] not in said or problem["status"] not in said:
                fail("playground", f"does not say {problem} of {text[:200]}")
    return [json.loads(line) for line in wanted]


def check_verdicts(page, site, options):
    """Each descriptor case; what a verdict links must be an anchor of the site."""
    show(page, site, "playground")
    inputs = vector_cases.inputs()
    links, before = set(), len(failures)
    for done, text in enumerate(inputs, 1):
        judged(page, options.inspect, text)
        links.update(page.eval_on_selector_all(".cai-problems a", LINKS))
        if len(failures) > before + 3:
            break
    for link in sorted(links):
        name, _, anchor = link.partition("#")
        if f'id="{anchor}"' not in (options.work / "html" / name).read_text():
            fail("playground", f"links to {link}, which is no anchor")
    return done, len(links)


def check_controls(page, site, options):
    show(page, site, "playground")
    answers = judged(page, options.inspect, "\n".join(["{'shape': (2,), 'typestr': '<f4'}", "5", "{'shape': ()"]))
    if len(answers) != 3:
        fail("playground", f"{len(answers)} verdicts of three dictionaries")
    judged(page, options.inspect, "{'<img src=x onerror=alert(1)>': 1, 'shape': ('<b>',), '\u20ac': 2}")
    if page.query_selector("#verdict img, #verdict b"):
        fail("playground", "takes text for HTML")
    large = "{'shape': (1,), 'typestr': '|u1', 'data': (18446744073709551615, True), 'version': 3}"
    judged(page, options.inspect, large)
    if "18446744073709551615" not in page.inner_text(".cai-facts"):
        fail("playground", "does not show the whole address")
    page.check("#lenient")
    judged(page, options.inspect, "{'shape': (2, 3), 'typestr': 'f4', 'data': (4096, 0), 'version': 3}",
           ("--all", "--lint", "--lenient"))
    share = page.get_attribute("#share", "href")
    page.goto("about:blank")
    page.goto(f"{site}/playground.html{share}")
    page.wait_for_selector(".cai-verdict[data-ok='true']")
    if "'f4'" not in page.input_value("#dictionary") or not page.is_checked("#lenient"):
        fail("playground", "does not read the link that it gives")
    page.uncheck("#lenient")
    page.select_option("#example", label="Stream 0")
    page.wait_for_selector(".cai-verdict[data-ok='false']")
    page.click("text=rule R71")
    page.wait_for_url("**/docs/rules.html#R71")
    check_target(page, "R71")


def check_target(page, anchor):
    """The place that a link names is in view, below the bar at the top."""
    page.wait_for_timeout(300)
    place = page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", anchor)
    bar = page.evaluate("document.querySelector('.md-header').getBoundingClientRect().bottom")
    if not bar <= place < page.viewport_size["height"]:
        fail(page.url, f"shows {anchor} at {place}, and the bar ends at {bar}")


# ---------------------------------------------------------------------------------------- others


def check_search(page, site):
    show(page, site, "index")
    for words, wanted in (("cai_exchange_begin", "docs/reference/cai_stream.h.html"),
                          ("host thread", "docs/order.html")):
        page.fill(".md-search__input", "")
        page.type(".md-search__input", words)
        try:
            page.wait_for_selector(f".md-search-result__link[href*='{wanted}']", state="attached")
        except Error:
            fail(site, f"the search for {words} finds nothing in {wanted}")


def check_switches(browser, site):
    with opened(browser, site) as page:
        show(page, site, "index")
        seen = []
        for _ in range(3):
            seen.append(page.get_attribute("body", "data-md-color-scheme"))
            page.click("form[data-md-component='palette'] label:not([hidden])")
            page.wait_for_timeout(100)
        if set(seen) != {"default", "slate"}:
            fail("switch of colours", f"gives {seen}")
    with opened(browser, site, "phone") as page:
        show(page, site, "index")
        page.click("label.md-header__button[for='__drawer']")
        page.click(".md-nav--primary >> text=Playground")
        page.wait_for_url("**/playground.html")
        page.wait_for_selector(".cai-verdict")


def check_anchors(browser, site):
    with opened(browser, site, "phone") as page:
        for name, anchor in (("docs/errors", "CAI_ERR_MPI"), ("docs/rules", "R103"),
                             ("docs/reference/cai.h", "cai_import"), ("docs/reference/cai.h", "cai_kernel_at3")):
            page.goto("about:blank")
            page.goto(f"{site}/{name}.html#{anchor}")
            check_target(page, anchor)


def check_all(browser, options):
    html, pictures = options.work / "html", options.work / "pictures"
    pictures.mkdir(exist_ok=True)
    disk = html.as_uri()
    with served(html) as site:
        pages = look_at_all(browser, site, html)
        texts, least = look_closely(browser, site, pictures)
        with opened(browser, site) as page:
            cases, links = check_verdicts(page, site, options)
            check_controls(page, site, options)
            check_search(page, site)
        check_switches(browser, site)
        check_anchors(browser, site)
    with opened(browser, disk, "phone") as page:
        check_search(page, disk)
        show(page, disk, "playground")
        judged(page, options.inspect, "{'shape': (2,), 'typestr': '<f4', 'data': (0, False), 'version': 3}")
    return (f"pages at phone width {pages}, texts {texts}, least contrast {least:.2f}, verdicts {cases}, "
            f"rules and errors linked {links}")


# ------------------------------------------------------------------------------------- self test

NO_DEFECT = ("assets/site.css", None, "")
DEFECTS = [  # what is planted in which file
    ("assets/site.css", None, ".md-typeset { color: #999; }"),
    ("assets/site.css", None, ".md-typeset p { min-width: 500px; }"),
    ("assets/site.css", None, ".md-typeset pre code { color: #888; }"),
    ("assets/playground.js", "answer.ok ? `Accepted", "!answer.ok ? `Accepted"),
    ("assets/playground.js", "rules.html#R${", "rules.html#r${"),
    ("assets/playground.js", '"--all", "--lint"', '"--lint"'),
    ("assets/playground.js", "\\d{16,}", "\\d{30,}"),
    ("assets/playground.js", 'given.get("d")', 'given.get("e")'),
    ("assets/wasi.js", "buffer.set(part);", "buffer.set(part.slice(0, 100));"),
    ("assets/iframe-worker.js", "inside.postMessage =", "inside.sent ="),
    ("docs/rules.html", 'id="R71"', 'id="R71x"'),
    ("index.html", "</body>", "<img src='https://example.org/x.png'></body>"),
    ("index.html", "</body>", "<script>nothing()</script></body>"),
]


def planted(options, defect):
    """Is a broken copy of the site found? The pages that need not be looked at for it are left out."""
    name, old, new = defect
    path = options.work / "html" / name
    text = path.read_text()
    if old and old not in text:
        sys.exit(f"{name} does not have {old}")
    path.write_text(text.replace(old, new) if old else text + new)
    del failures[:]
    try:
        with sync_playwright() as driver, launched(driver, options) as browser:
            check_all(browser, options)
    except Error as error:
        failures.append(str(error))
    path.write_text(text)
    return bool(failures)


def self_test(options):
    global LOOKED_AT, look_at_all
    LOOKED_AT = ["index", "playground", "docs/rules"]
    look_at_all = lambda *arguments: 0  # noqa: E731
    copy = options.work / "broken"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(options.work / "html", copy / "html")
    options.work = copy
    if planted(options, NO_DEFECT):
        print("\n".join(["without a defect:", *failures[:10]]))
        return 1
    survived = [defect for defect in DEFECTS if not planted(options, defect)]
    for defect in survived:
        print(f"not found: {defect}")
    print(f"planted defects {len(DEFECTS)}, not found {len(survived)}")
    return 1 if survived else 0


def launched(driver, options):
    """A browser that finds no host but this machine."""
    return driver.chromium.launch(executable_path=options.chromium, args=["--no-sandbox",
                                  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("inspect", "chromium"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    options.work = options.work.resolve()
    if options.self_test:
        return self_test(options)
    with sync_playwright() as driver, launched(driver, options) as browser:
        figures, version = check_all(browser, options), browser.version
    for failure in failures[:40]:
        print(failure)
    print(f"Chromium {version}: {figures}, failures {len(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
