// The live set as a tree: what the treemap draws and the table beside it lists.

const OUTSIDE = { module: "(outside any module)", source: "(outside the script)", op: "(no operator)" };
const MOST_CHILDREN = 150;

/** The names from the root to a row, in each order; the last one tells the row itself. */
const VIEWS = {
  module: (row) => [...modulePath(row.module), lineOf(row), leafOf(row)],
  line: (row) => [lineOf(row), ...modulePath(row.module), leafOf(row)],
  category: (row) => [wordsOf(row.category), ...modulePath(row.module), lineOf(row), leafOf(row)],
  op: (row) => [row.op || OUTSIDE.op, ...modulePath(row.module), lineOf(row), row.tensor || wordsOf(row.category)],
};

const lineOf = (row) => row.source || OUTSIDE.source;

/** The parts of `model.layers.3`, or of `params['llm'][0]` under JAX. */
const modulePath = (module) => (module ? module.split(/\.|(?=\[)/).map((name) => ({ name, isModule: true })) : [OUTSIDE.module]);
const joinedName = (outer, inner) => (inner.startsWith("[") ? outer + inner : `${outer}.${inner}`);
const leafOf = (row) => [row.tensor || wordsOf(row.category), row.op].filter(Boolean).join(" by ");

/** The tree of `rows` in the order of `view`: nodes have name, bytes, children, and rows at the leaves. */
function treeOf(rows, view) {
  const root = newNode("all");
  for (const row of rows) {
    let node = root;
    for (const step of VIEWS[view](row)) {
      const { name, isModule } = step.name ? step : { name: step, isModule: false };
      if (!node.byName.has(name)) node.byName.set(name, newNode(name, isModule));
      node = node.byName.get(name);
    }
    node.rows.push(row);
  }
  return finished(root);
}

const newNode = (name, isModule = false) => ({ name, isModule, byName: new Map(), rows: [], children: [], bytes: 0, categories: new Map() });

/** Sums from the leaves up, a chain of modules without anything else as one node, children by size, the smallest as one. */
function finished(node) {
  node.children = [...node.byName.values()].map(finished);
  node.children.sort((a, b) => b.bytes - a.bytes);
  node.bytes = sumOf(node.rows) + sumOf(node.children);
  for (const row of node.rows) addTo(node.categories, row.category, row.bytes);
  for (const child of node.children) for (const [name, bytes] of child.categories) addTo(node.categories, name, bytes);
  const [child] = node.children;
  if (node.children.length === 1 && node.isModule && child.isModule) return { ...child, name: joinedName(node.name, child.name) };
  if (node.children.length > MOST_CHILDREN) node.children = withOthers(node.children);
  return node;
}

/** The largest children, and one that the rest is in. */
function withOthers(children) {
  const rest = children.slice(MOST_CHILDREN - 1);
  const others = newNode(`${rest.length.toLocaleString("en")} others`);
  others.children = rest.length > MOST_CHILDREN ? withOthers(rest) : rest;
  others.bytes = sumOf(rest);
  for (const child of rest) for (const [name, bytes] of child.categories) addTo(others.categories, name, bytes);
  return [...children.slice(0, MOST_CHILDREN - 1), others];
}

/** All rows in and below `node`. */
const rowsOf = (node) => [...node.rows, ...node.children.flatMap(rowsOf)];

const sumOf = (parts) => parts.reduce((sum, part) => sum + part.bytes, 0);
const addTo = (sums, name, bytes) => sums.set(name, (sums.get(name) ?? 0) + bytes);

/** The category that holds most of `node`. */
const mainCategory = (node) => [...node.categories].reduce((most, each) => (each[1] > most[1] ? each : most), ["other", -1])[0];
