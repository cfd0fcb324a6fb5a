// Light or dark: as the system, or as the person chose for this page.

const THEMES = ["auto", "light", "dark"];
const redraws = [];

/** Call `draw` when the colours of the page change. */
const onTheme = (draw) => redraws.push(draw);

/** The custom property of a category. */
const colorName = (part) => `var(--${part.replaceAll("_", "-")})`;

/** The colour that `value` of CSS has in the present theme, which a canvas needs as numbers. */
function colorOf(value) {
  const probe = make("span", { hidden: "" });
  probe.style.color = value;
  document.body.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

/** The colours of the page that charts use. */
function themeColors() {
  const names = ["ink", "faint", "rule", "panel", "sunk", "accent", "bad"];
  return Object.fromEntries(names.map((name) => [name, colorOf(`var(--${name})`)]));
}

const partsOf = (color) => color.match(/[\d.]+/g).slice(0, 3).map(Number);

/** `share` of `color` on `ground`, both `rgb(...)`. */
function mixed(color, ground, share) {
  const under = partsOf(ground);
  return `rgb(${partsOf(color).map((part, at) => Math.round(share * part + (1 - share) * under[at])).join(", ")})`;
}

/** Black or white, whichever is read better on `color`, an `rgb(...)`. */
function inkOn(color) {
  const [red, green, blue] = partsOf(color).map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? "#000000" : "#ffffff";
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = `Theme: ${theme}`;
  for (const draw of redraws) draw();
}

/** The switch, the system's change of mind, and paper, which is light. */
function offerThemes() {
  let chosen = "auto";
  byId("theme").addEventListener("click", () => {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
    setTheme(chosen);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(chosen));
  addEventListener("beforeprint", () => setTheme("light"));
  addEventListener("afterprint", () => setTheme(chosen));
  addEventListener("beforeprint", () => setOpen(true));
  addEventListener("afterprint", () => setOpen(false));
}

/** Open what is folded, for paper; afterwards as it was. */
function setOpen(open) {
  for (const fold of document.querySelectorAll(open ? "details:not([open])" : "details[data-opened]")) {
    fold.open = open;
    fold.toggleAttribute("data-opened", open);
  }
}

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
