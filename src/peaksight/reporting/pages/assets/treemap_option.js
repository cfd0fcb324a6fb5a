// How the tree looks: nested rectangles, coloured by category, with what does not match faded.

// In pixels: what makes the parts of a rectangle worth showing, a name above it, and one inside.
const AREA_OF_PART = 5000;
const AREA_OF_HEAD = 5000;
const [LEAST_WIDTH, LEAST_HEIGHT] = [58, 34];

/** The options of the chart that shows `node` on `area` pixels; rows in `matches` (null: all) stand out.
 *
 * The chart copies what it is given: its rectangles name nodes by their place in `nodes`, which is filled here.
 */
function treemapOption(node, matches, colors, area, nodes) {
  const fills = new Map();
  const fillOf = (category) => {
    if (!fills.has(category)) fills.set(category, colorOf(colorName(category)));
    return fills.get(category);
  };
  const look = { matches, colors, fillOf, numberOf: (part) => nodes.push(part) - 1, areaOf: (part) => (area * part.bytes) / node.bytes };
  const parts = node.children.length ? node.children : [node];
  return {
    animation: false,
    tooltip: { confine: true, backgroundColor: colors.panel, borderColor: colors.rule, padding: 10, textStyle: { color: colors.ink }, formatter: (shown) => tipOf(nodes[shown.data?.number]) },
    series: [{ ...TREEMAP, data: parts.map((part) => rectangleOf(part, look)) }],
  };
}

const TREEMAP = {
  type: "treemap",
  left: 0, top: 0, right: 0, bottom: 0,
  roam: false,
  nodeClick: false,
  breadcrumb: { show: false },
  visibleMin: 6,
  labelLayout: ({ rect }) => (rect.width < LEAST_WIDTH || rect.height < LEAST_HEIGHT ? { y: -100 } : {}),
  squareRatio: 1.2,
};

/** The rectangle of `node` and those in it. */
function rectangleOf(node, look) {
  if (look.areaOf(node) > AREA_OF_PART * node.children.length && node.children.length) {
    return boxOf(node, node.children.map((child) => rectangleOf(child, look)), look);
  }
  const tiles = [...node.categories.keys()].flatMap((category) => tilesOf(node, category, look));
  return tiles.length === 1 ? tiles[0] : boxOf(node, tiles, look);
}

/** What `category` holds of `node`: one tile, or one that matches and one that does not. */
function tilesOf(node, category, look) {
  const rows = rowsOf(node).filter((row) => row.category === category);
  const name = node.categories.size === 1 ? node.name : wordsOf(category);
  const parts = look.matches === null ? [rows] : [rows.filter((row) => look.matches.has(row)), rows.filter((row) => !look.matches.has(row))];
  return parts.map((part, at) => tileOf(node, name, sumOf(part), category, at === 1 || look.matches?.size === 0, look)).filter((tile) => tile.value);
}

/** A rectangle around others, with its name above them where there is room. */
function boxOf(node, children, { colors, areaOf, numberOf }) {
  const hasHead = areaOf(node) > AREA_OF_HEAD;
  return {
    number: numberOf(node),
    name: node.name,
    value: node.bytes,
    children,
    itemStyle: { color: colors.sunk, borderColor: colors.sunk, borderWidth: hasHead ? 2 : 1, gapWidth: 1 },
    upperLabel: { show: hasHead, height: 18, color: colors.ink, fontSize: 12, overflow: "truncate", padding: [0, 4], formatter: `${node.name}  ${formatBytes(node.bytes)}` },
  };
}

/** A rectangle of one category, for `bytes` of `node`. */
function tileOf(node, name, bytes, category, isFaded, { colors, fillOf, numberOf }) {
  const fill = isFaded ? mixed(fillOf(category), colors.panel, 0.18) : fillOf(category);
  return {
    number: numberOf(node),
    name,
    value: bytes,
    itemStyle: { color: fill, borderColor: colors.panel, borderWidth: 0, gapWidth: 0 },
    label: { show: true, color: isFaded ? colors.faint : inkOn(fill), fontSize: 12, lineHeight: 16, overflow: "truncate", formatter: `${name}\n${formatBytes(bytes)}` },
  };
}

/** What the rectangle of `node` holds, as an element. */
function tipOf(node) {
  if (!node) return "";
  const held = [...node.categories].sort((a, b) => b[1] - a[1]).slice(0, 6);
  const lines = held.map(([name, bytes]) => make("tr", {}, make("td", {}, makeSwatch(name)), make("td", {}, wordsOf(name)), make("td", { class: "size" }, makeSize(bytes))));
  const only = node.children.length === 0 && node.rows.length === 1 ? detailsOf(node.rows[0]) : [];
  return make("div", { class: "tip" }, make("b", {}, node.name), make("div", {}, makeSize(node.bytes)), make("table", {}, make("tbody", {}, ...lines)), ...only);
}

/** What the record tells of one row beyond its name. */
function detailsOf(row) {
  const said = [row.kept_by && `kept by ${row.kept_by}`, row.library && `in ${row.library}`, `born in step ${row.step}, ${row.phase}`, countOf(row.count, "block")];
  return said.filter(Boolean).map((text) => make("div", { class: "note" }, text));
}
