// The search: what matches stands out in the map, and is listed with its total.

const MOST_MATCHES = 50;
const SEARCHED = ["module", "source", "op", "tensor", "category", "library", "kept_by", "phase"];

/** Rows of which every word of `words` is in some field. */
function matchesOf(rows, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const said = SEARCHED.map((field) => row[field] ?? "").join("\n").toLowerCase();
    return wanted.every((word) => said.includes(word) || said.includes(word.replaceAll(" ", "_")));
  });
}

/** Highlight what the field says, as it is typed. */
function offerSearch(live) {
  const field = byId("search");
  const look = () => showMatches(live, field.value.trim() ? matchesOf(live.all, field.value) : null, field.value);
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    look();
  });
}

/** Let `rows` stand out and list them, named `what`; null is the end of a search. */
function showMatches(live, rows, what) {
  live.highlight(rows);
  byId("matches").replaceChildren(...(rows === null ? [] : listOf(live, rows, what)));
}

function listOf(live, rows, what) {
  const clear = make("button", { type: "button", click: () => clearMatches(live) }, "Clear");
  const total = sumOf(rows);
  const said = make("p", {}, make("b", {}, what), ": ", makeSize(total), ` in ${countOf(rows.length, "row")} of ${live.all.length.toLocaleString("en")}, ${formatShare(total, sumOf(live.all))} of the peak `, clear);
  if (rows.length === 0) return [said];
  const lines = rows.slice(0, MOST_MATCHES).map(cellsOf);
  const rest = rows.slice(MOST_MATCHES);
  if (rest.length) lines.push([makeSize(sumOf(rest)), "", `${rest.length.toLocaleString("en")} others`, "", ""]);
  const table = makeTable(["#bytes", "category", "module", "line", "tensor and operator"], lines);
  return [said, make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matches" }, table)];
}

const cellsOf = (row) => [
  makeSize(row.bytes),
  make("span", { class: "words" }, makeSwatch(row.category), " ", wordsOf(row.category)),
  makeName(row.module || OUTSIDE.module),
  makeName(lineOf(row)),
  makeName(leafOf(row)),
];

function clearMatches(live) {
  byId("search").value = "";
  showMatches(live, null, "");
}
