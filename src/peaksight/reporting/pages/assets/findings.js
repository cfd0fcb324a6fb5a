// From a finding to its rectangles: the rows of the lines and modules that it names.

/** A button for each line, or else module, that the sentences of `finding` name and that is alive at the peak. */
function placesOf(finding, rows) {
  const said = [finding.at, finding.title, ...finding.evidence].join("\n");
  const named = (field) => [...new Set(rows.map((row) => row[field]))].filter((name) => name && isNamed(name, said));
  const lines = named("source").map((name) => [name, rows.filter((row) => row.source === name)]);
  const modules = named("module").map((name) => [name, rows.filter((row) => isInside(row.module, name))]);
  return [...lines, ...modules].sort((a, b) => sumOf(b[1]) - sumOf(a[1])).slice(0, 4);
}

const isInside = (module, outer) => module === outer || module.startsWith(`${outer}.`);

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
    live.show(name.includes(":") ? "line" : "module");
    showMatches(live, rows, name);
    byId("live").scrollIntoView({ behavior: isStill() ? "auto" : "smooth" });
  };
  return make("button", { type: "button", click: show }, `Show ${name} in the map: `, makeSize(sumOf(rows)));
}
