// The live set at the peak: a treemap, its path, and the same as a table with which it is used from the keyboard.

class LiveSet {
  constructor(report) {
    this.all = report.live_at_peak;
    this.trees = new Map();
    this.matches = null;
    this.chart = makeChart("treemap", "What is alive at the peak as a treemap; the table beside it says the same");
    this.buttons = [...document.querySelectorAll("[data-view]")];
    for (const button of this.buttons) button.addEventListener("click", () => this.show(button.dataset.view));
    this.chart.on("click", (event) => this.enter(this.nodes[event.data?.number]));
    onTheme(() => this.draw());
    this.show("module");
  }

  /** Change the order of the tree. */
  show(view) {
    press(this.buttons, this.buttons.find((button) => button.dataset.view === view));
    if (!this.trees.has(view)) this.trees.set(view, treeOf(this.all, view));
    this.path = [this.trees.get(view)];
    while (isNearlyAll(this.node.children[0], this.node)) this.path.push(this.node.children[0]);
    this.draw();
  }

  /** Let only `rows` stand out, all of them for null. */
  highlight(rows) {
    this.matches = rows === null ? null : new Set(rows);
    this.draw();
  }

  /** Go into `node`, wherever below the present one it is. */
  enter(node) {
    const way = node && wayTo(this.node, node);
    if (!way || node.children.length === 0) return;
    this.path.push(...way);
    this.draw();
  }

  get node() {
    return this.path[this.path.length - 1];
  }

  draw() {
    this.nodes = [];
    const area = this.chart.getWidth() * this.chart.getHeight();
    this.chart.setOption(treemapOption(this.node, this.matches, themeColors(), area, this.nodes), true);
    byId("path").replaceChildren(...this.path.flatMap((node, depth) => this.crumb(node, depth)));
    byId("rows").replaceChildren(makeTable(["#bytes", "#share", "in this part"], this.rows()));
  }

  crumb(node, depth) {
    const name = depth === 0 ? "All" : node.name;
    const text = [name, " ", makeSize(node.bytes)];
    if (node === this.node) return [make("span", { "aria-current": "location" }, ...text)];
    const back = () => {
      this.path.length = depth + 1;
      this.draw();
    };
    return [make("button", { type: "button", click: back }, name), make("span", { class: "note", "aria-hidden": "true" }, "\u203a")];
  }

  rows() {
    const parts = this.node.children.length ? this.node.children : [this.node];
    return parts.map((part) => [makeSize(part.bytes), formatShare(part.bytes, this.node.bytes), this.partName(part)]);
  }

  partName(part) {
    const swatch = makeSwatch(mainCategory(part));
    const isLeaf = part.children.length === 0;
    const name = isLeaf ? part.name : make("button", { type: "button", click: () => this.enter(part) }, part.name);
    return make("div", { class: "part-name" }, swatch, name);
  }
}

/** Whether `part` is so much of `whole` that the map of the one is that of the other. */
const isNearlyAll = (part, whole) => part?.children.length > 0 && part.bytes > 0.98 * whole.bytes;

/** The nodes from below `from` to `node`, null where it is not there. */
function wayTo(from, node) {
  for (const child of from.children) {
    if (child === node) return [child];
    const way = wayTo(child, node);
    if (way) return [child, ...way];
  }
  return null;
}
