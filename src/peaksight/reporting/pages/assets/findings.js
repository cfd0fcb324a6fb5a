// From a finding to its rectangles: the rows of the lines, modules and tensors that it names.

const MOST_PLACES = 4;

/** What the sentences of `finding` name and is alive at the peak, as [name, rows]; tensors are those of its lines. */
function placesOf(finding, rows) {
  const said = [finding.at, finding.title, ...finding.evidence].join("\n");
  const named = (field) => [...new Set(rows.map((row) => row[field]))].filter((name) => name && isNamed(name, said));
  const lines = named("source").map((name) => [name, rows.filter((row) => row.source === name)]);
  const modules = named("module").map((name) => [name, rows.filter((row) => isInside(row.module, name))]);
  const onLines = lines.length ? lines.flatMap(([, ofLine]) => ofLine) : rows;
  const tensors = named("tensor").map((name) => [name, onLines.filter((row) => row.tensor === name)]);
  const places = [...lines, ...modules, ...tensors].filter(([, found]) => found.length);
  return places.sort((a, b) => sumOf(b[1]) - sumOf(a[1])).slice(0, MOST_PLACES);
}

const isInside = (module, outer) => module === outer || module.startsWith(`${outer}.`) || module.startsWith(`${outer}[`);

/** Whether `name` stands in `text` as a whole: not `train.py:4` in `train.py:40`. */
function isNamed(name, text) {
  const before = /[\w.]/;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const [left, right] = [text[at - 1] ?? " ", text.slice(at + name.length, at + name.length + 2)];
    if (!before.test(left) && !/^(\w|\.\w)/.test(right)) return true;
  }
  return false;
}

/** Give each finding its links into the map. */
function linkFindings(report, live) {
  for (const links of document.querySelectorAll("[data-finding]")) {
    const finding = report.findings[Number(links.dataset.finding)];
    links.replaceChildren(...placesOf(finding, live.all).map(([name, rows]) => placeButton(live, name, rows)));
  }
}

function placeButton(live, name, rows) {
  const show = () => {
    live.show(rows.some((row) => row.source === name) ? "line" : "module");
    showMatches(live, rows, name);
    byId("live").scrollIntoView({ behavior: isStill() ? "auto" : "smooth" });
    byId("search").focus({ preventScroll: true });
  };
  return make("button", { type: "button", click: show }, "Show ", make("code", {}, name), ": ", makeSize(sumOf(rows)));
}
