/* The page of the playground: judges what stands in the text field, and shows the verdict. */
(() => {
  const MOST = 50; /* verdicts that are shown */
  const field = document.getElementById("dictionary");
  const example = document.getElementById("example");
  const lenient = document.getElementById("lenient");
  const verdict = document.getElementById("verdict");
  const share = document.getElementById("share");

  const binary = Uint8Array.from(atob(globalThis.CAI_INSPECT_WASM), (each) => each.charCodeAt(0));
  const compiled = WebAssembly.compile(binary);

  /* element("p", {className: "x"}, "text", element(...)) */
  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  /* Addresses and handles may be larger than what a number of JavaScript holds, and become text. */
  function parsed(line) {
    return JSON.parse(line.replace(/"(?:\\.|[^"\\])*"|-?\d{16,}/g, (part) => part[0] === '"' ? part : `"${part}"`));
  }

  function tuple(items) {
    if (items === null) return "none";
    return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
  }

  function layout(array) {
    if (array.c_contiguous && array.f_contiguous) return "C and F contiguous";
    if (array.c_contiguous) return "C contiguous";
    return array.f_contiguous ? "F contiguous" : "strided";
  }

  function stream(array) {
    const names = { none: "no pending work", unknown: "not said" };
    const known = { 1: "1, the legacy default stream", 2: "2, the per-thread default stream" };
    return names[array.sync] || known[array.stream] || `stream ${array.stream}`;
  }

  function facts(array) {
    const yes = (is) => is ? "yes" : "no";
    const rows = [
      ["dtype", `${array.dtype}, ${array.typestr}`], ["shape", tuple(array.shape)],
      ["strides in bytes", tuple(array.strides)], ["layout", layout(array)],
      ["elements", array.size], ["bytes", array.nbytes],
      ["memory, from data on", `[${array.extent.join(", ")})`], ["data", array.data],
      ["read-only", yes(array.read_only)], ["aligned", yes(array.aligned)],
      ["elements share memory", array.self_overlap], ["pending work", stream(array)], ["version", array.version],
    ];
    if (array.byte_swapped) rows.push(["bytes", "swapped"]);
    for (const it of array.fields || []) {
      const shape = it.shape.length ? ` ${tuple(it.shape)}` : "";
      rows.push([`field ${it.name}`, `${it.typestr}${shape} at ${it.offset}`]);
    }
    if (array.mask) rows.push(["mask", `${array.mask.dtype} ${tuple(array.mask.shape)}`]);
    const cells = ([name, value]) => element("tr", {}, element("th", { scope: "row" }, name),
                                             element("td", {}, String(value)));
    return element("table", { className: "cai-facts" }, element("tbody", {}, ...rows.map(cells)));
  }

  function problem(error) {
    const links = [element("a", { href: `docs/errors.html#${error.status}` }, error.status)];
    if (error.rule) links.push(", ", element("a", { href: `docs/rules.html#R${error.rule}` }, `rule R${error.rule}`));
    return element("li", {}, error.message, " (", ...links, ")");
  }

  function advice(lint) {
    return element("li", {}, lint.entry ? `${lint.entry}: ` : "", `some consumers lose ${lint.loses}. `, lint.advice);
  }

  function shown(line) {
    const answer = parsed(line);
    const title = answer.ok ? `Accepted: ${answer.dtype} ${tuple(answer.shape)}` : "Rejected";
    const parts = [element("h3", {}, title)];
    const forgiven = answer.ok && answer.message ? [answer] : [];
    const problems = answer.ok ? forgiven : answer.errors;
    if (problems.length) parts.push(element("ul", { className: "cai-problems" }, ...problems.map(problem)));
    if (answer.lint.length) parts.push(element("ul", { className: "cai-advice" }, ...answer.lint.map(advice)));
    if (answer.ok) parts.push(facts(answer));
    parts.push(element("details", {}, element("summary", {}, "The same as JSON"), element("pre", {}, line)));
    const section = element("section", { className: "cai-verdict" }, ...parts);
    section.dataset.ok = answer.ok;
    return section;
  }

  async function judge() {
    const text = field.value;
    const options = ["--all", "--lint", ...(lenient.checked ? ["--lenient"] : [])];
    share.href = "#" + new URLSearchParams({ d: text, ...(lenient.checked ? { lenient: 1 } : {}) });
    const module = await compiled;
    if (text !== field.value) return; /* a later call shows what stands there now */
    const { out, err } = globalThis.cai_run(module, options, text + "\n");
    const lines = out.split("\n").filter(Boolean);
    const parts = lines.slice(0, MOST).map(shown);
    if (lines.length > MOST) parts.push(element("p", {}, `and ${lines.length - MOST} more`));
    if (err) parts.push(element("p", {}, err));
    verdict.replaceChildren(...(parts.length ? parts : [element("p", {}, "Nothing to judge yet.")]));
  }

  function failed(reason) {
    verdict.replaceChildren(element("p", {}, `cai_inspect did not run: ${reason}`));
  }

  function read_link() {
    const given = new URLSearchParams(location.hash.slice(1));
    if (!given.has("d")) return false;
    field.value = given.get("d");
    lenient.checked = given.has("lenient");
    return true;
  }

  const update = () => judge().catch(failed);
  example.append(...globalThis.CAI_EXAMPLES.map((each, i) => new Option(each.name, i)));
  example.addEventListener("change", () => {
    field.value = globalThis.CAI_EXAMPLES[example.value].text;
    update();
  });
  field.addEventListener("input", update);
  lenient.addEventListener("change", update);
  addEventListener("hashchange", () => read_link() && update());
  if (!read_link()) field.value = globalThis.CAI_EXAMPLES[0].text;
  update();
})();
