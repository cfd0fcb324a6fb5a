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

/** Black or white, whichever is read better on `color`, an `rgb(...)`. */
function inkOn(color) {
  const [red, green, blue] = color.match(/[\d.]+/g).map((part) => (Number(part) / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? "#000000" : "#ffffff";
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const said = { auto: ["Auto", "as the system"], light: ["Light", "light"], dark: ["Dark", "dark"] }[theme];
  byId("theme").textContent = said[0];
  byId("theme").setAttribute("aria-label", `Theme: ${said[1]}`);
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

/** A chart in the element `id` that keeps its size, and draws no motion for those who want none. */
function makeChart(id) {
  const chart = echarts.init(byId(id));
  new ResizeObserver(() => chart.resize()).observe(byId(id));
  return chart;
}

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
