// Bars and lines of bytes: charts of what a table of the page says as well.

/** The scale of `most` bytes, in round numbers. */
function scaleOf(most, colors) {
  const distance = distanceOf(most);
  return {
    type: "value",
    min: 0,
    max: Math.ceil(most / distance) * distance,
    interval: distance,
    axisLabel: { color: colors.faint, formatter: roundBytes, hideOverlap: true },
    splitLine: { lineStyle: { color: colors.rule } },
  };
}

/** A line at the bytes of `limit`, which has a `name`; none without one. */
const limitLine = (limit, axis, colors) => (limit ? {
  silent: true,
  symbol: "none",
  data: [{ [axis]: limit.bytes, lineStyle: { color: colors.bad, width: 2, type: "solid" }, label: { show: false } }],
} : undefined);

const bytesTip = (colors) => ({
  trigger: "axis",
  confine: true,
  backgroundColor: colors.panel,
  borderColor: colors.rule,
  textStyle: { color: colors.ink },
  axisPointer: { type: "shadow" },
  valueFormatter: (bytes) => (bytes === null || bytes === undefined ? "none" : formatBytes(bytes)),
});

const legendOf = (series, colors) => ({
  data: series.map((each) => each.name),
  top: 0,
  left: 0,
  itemWidth: 12,
  itemHeight: 12,
  textStyle: { color: colors.ink },
});

const mostOf = (series, limit) => 1.05 * Math.max(1, limit?.bytes ?? 0, ...series.flatMap((each) => each.bytes.map((bytes) => bytes ?? 0)));

/** The options of bars from the left: one row for each of `names`, in it a bar for each of `series`. */
function barsOption({ names, series, limit }, colors) {
  return {
    animation: false,
    grid: { left: 4, right: 24, top: 34, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    legend: legendOf(series, colors),
    tooltip: bytesTip(colors),
    xAxis: scaleOf(mostOf(series, limit), colors),
    yAxis: { type: "category", inverse: true, data: names, axisTick: { show: false }, axisLine: { lineStyle: { color: colors.rule } }, axisLabel: { color: colors.ink, width: Math.min(7 * Math.max(...names.map((name) => name.length)), 220, innerWidth / 3), overflow: "break", lineHeight: 13, interval: 0 } },
    series: series.map((each, at) => ({
      name: each.name,
      type: "bar",
      barGap: "10%",
      barMaxWidth: 18,
      itemStyle: { color: colorOf(each.color) },
      data: each.bytes,
      markLine: at ? undefined : limitLine(limit, "xAxis", colors),
    })),
  };
}

/** The options of lines over `names`, steps or commits, of which `title` says what they are. */
function linesOption({ title, names, series, limit }, colors) {
  return {
    animation: false,
    grid: { left: 4, right: 16, top: 34, bottom: 26, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    legend: legendOf(series, colors),
    tooltip: { ...bytesTip(colors), axisPointer: { type: "line", lineStyle: { color: colors.ink } } },
    xAxis: { type: "category", name: title, nameLocation: "middle", nameGap: 26, nameTextStyle: { color: colors.faint }, data: names, boundaryGap: names.length < 2, axisLabel: { color: colors.faint, hideOverlap: true }, axisLine: { lineStyle: { color: colors.rule } }, axisTick: { show: false } },
    yAxis: scaleOf(mostOf(series, limit), colors),
    series: series.map((each, at) => ({
      name: each.name,
      type: "line",
      step: each.step ?? false,
      symbol: names.length > 60 ? "none" : each.symbol ?? "circle",
      symbolSize: 7,
      connectNulls: true,
      lineStyle: { color: colorOf(each.color), width: 2, type: each.dashed ? "dashed" : "solid" },
      itemStyle: { color: colorOf(each.color) },
      areaStyle: each.filled ? { color: colorOf(each.color), opacity: 0.25 } : undefined,
      data: each.bytes,
      markLine: at ? undefined : limitLine(limit, "yAxis", colors),
    })),
  };
}

/** Draw `option(what, colors)` into the element `id` where the page has it, anew in another theme. */
function drawChart(id, label, option, what) {
  if (!byId(id)) return;
  const chart = makeChart(id, label);
  onTheme(() => chart.setOption(option(what, themeColors()), true));
  chart.setOption(option(what, themeColors()));
  chart.getZr().dom.setAttribute("role", "img");
  chart.getZr().dom.setAttribute("aria-label", label);
}

/** As high as its rows need. */
const heightOf = (id, rows, bars) => byId(id)?.style.setProperty("height", `${64 + rows * (18 + 18 * bars)}px`);
