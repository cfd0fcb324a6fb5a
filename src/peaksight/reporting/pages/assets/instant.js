// What is alive at one moment of the course: categories and the largest holders.

/** The categories at the part `at`, largest first, as [category, bytes]. */
const heldAt = (course, at) => course.held.map((column) => [column.category, column.bytes[at]]).filter((each) => each[1]).sort((a, b) => b[1] - a[1]);

/** A line over the numbers of a moment. */
const titleOf = (course, at) => [make("b", {}, makeSize(course.allocated_bytes[at]), " allocated"), `, ${momentOf(course.steps[at], course.phases[at])}`];

/** The moment in the box at the pointer. */
function momentTip(report, at) {
  const { course } = report;
  const held = heldAt(course, at).map(([name, bytes]) => make("tr", {}, make("td", {}, makeSwatch(name)), make("td", {}, wordsOf(name)), make("td", { class: "size" }, makeSize(bytes))));
  const most = course.top[at].slice(0, 1).map((each) => make("div", { class: "note" }, "most: ", makeSize(each.bytes), ` at ${lineOf(course.places[each.place])}`));
  return make("div", { class: "tip" }, make("div", {}, ...titleOf(course, at)), make("table", {}, make("tbody", {}, ...held)), ...most);
}

/** The moment below the chart, with who holds most of it. */
function showInstant(report, at) {
  const { course } = report;
  const held = heldAt(course, at).map(([name, bytes]) => [makeSize(bytes), [makeSwatch(name), " ", wordsOf(name)]]);
  byId("instant").replaceChildren(
    make("p", {}, ...titleOf(course, at), make("span", { class: "note" }, ` (event ${course.ticks[at].toLocaleString("en")} of the allocator; `, makeSize(course.least_allocated_bytes[at]), " at least in this part of the run)")),
    makeTable(["#bytes", "category"], held),
    make("div", { class: "scroll" }, makeTable(["#bytes", "largest holders", "line", "module", "operator"], course.top[at].map((each) => holderOf(course.places[each.place], each.bytes)))),
  );
}

const holderOf = (place, bytes) => [
  makeSize(bytes),
  [makeSwatch(place.category), " ", wordsOf(place.category)],
  makeName(lineOf(place)),
  makeName(place.module || OUTSIDE.module),
  makeName(place.op),
];
