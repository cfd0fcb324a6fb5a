// Elements of the page.

/** The element with `id`, null where the page has none. */
const byId = (id) => document.getElementById(id);

/** A new element; attributes that are functions listen, children that are no nodes become text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "color") element.style.setProperty("--color", value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
}

/** A number of bytes, as every number on the page is marked. */
const makeSize = (bytes) => make("data", { value: bytes }, formatBytes(bytes));

/** The colour of a category. */
const makeSwatch = (part) => make("span", { class: "swatch", color: colorName(part), "aria-hidden": "true" });

/** A path or a module that may be broken between its parts, as `frame.breakable`. */
const makeName = (text) => make("code", {}, text.split(/(?<=[/_]|\.(?!py\b))/).flatMap((part, at) => (at ? [make("wbr"), part] : [part])));

/** A table with a head; cells are texts, nodes or arrays of them, and `size` columns stand to the right. */
function makeTable(columns, rows) {
  const style = (column) => (column.startsWith("#") ? { class: "size" } : {});
  const title = (column) => column.replace("#", "");
  const head = columns.map((column) => make("th", { scope: "col", ...style(column) }, title(column)));
  const lines = rows.map((cells) => make("tr", {}, ...cells.map((cell, n) => make("td", style(columns[n]), cell))));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
}

/** Press one button of a group, and release the others. */
function press(group, pressed) {
  for (const button of group) button.setAttribute("aria-pressed", String(button === pressed));
}

/** A chart in the element `id` that keeps its size; `label` tells what it is and where else that is told. */
function makeChart(id, label) {
  const element = byId(id);
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  const chart = echarts.init(element);
  new ResizeObserver(() => chart.resize()).observe(element);
  return chart;
}
