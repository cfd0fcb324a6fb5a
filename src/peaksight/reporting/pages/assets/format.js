// Numbers and names in the words of the page; the same as units.py and rows.py say.

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** `8.09 GiB`, `85.00 MiB`, `512 B`, as `units.format_bytes`. */
function formatBytes(bytes) {
  const [unit, name] = [[GIB, "GiB"], [MIB, "MiB"], [KIB, "KiB"]].find(([size]) => Math.abs(bytes) >= size) ?? [1, "B"];
  return unit === 1 ? `${bytes} B` : `${(halfToEven((bytes * 100) / unit) / 100).toFixed(2)} ${name}`;
}

/** `2.5 GiB`, `4 GiB`: a number of a scale. */
const roundBytes = (bytes) => formatBytes(bytes).replace(/\.00 /, " ").replace(/(\.\d)0 /, "$1 ");

/** Python rounds a half to the even neighbour, Math.round upwards. */
function halfToEven(value) {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/** `12.5 %`. */
const formatShare = (part, whole) => `${((100 * part) / whole).toFixed(1)} %`;

const WORDS = { optimizer_state: "optimizer state", unallocated: "reserved, unused" };

/** A category as a person reads it. */
const wordsOf = (category) => WORDS[category] ?? category.replaceAll("_", " ");

/** `1 block`, `12 blocks`. */
const countOf = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

const PHASES = {
  init: "before the first forward",
  forward: "in the forward",
  backward: "in the backward",
  optimizer: "in the optimizer step",
  evaluation: "in the evaluation",
  save: "while saving",
};

/** `step 2, in the backward`. */
const momentOf = (step, phase) => `step ${step}${PHASES[phase] ? `, ${PHASES[phase]}` : ""}`;

// What stays lies below what comes and goes.
const ORDER = ["parameter", "optimizer_state", "gradient", "buffer", "activation", "temporary", "input", "workspace", "communication", "other"];

/** `parts` in the order of their categories. */
const ordered = (parts, categoryOf) => [...parts].sort((a, b) => ORDER.indexOf(categoryOf(a)) - ORDER.indexOf(categoryOf(b)));
