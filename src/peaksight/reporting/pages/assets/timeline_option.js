// How the course of the run looks: categories stacked, phases shaded, steps, the peak and the failure marked.

// A run that takes less of the card than this is drawn in a scale of its own, unless the person wants another.
const LITTLE = 0.3;
const SHADES = { forward: 0, backward: 0.07, optimizer: 0.14, evaluation: 0.1, save: 0.1 };

const lastTick = (course) => course.spans[course.spans.length - 1].last_tick;

/** Whether the run takes so little of the card that it could not be seen in the scale of the card. */
const isLittle = (report) => Math.max(...report.course.allocated_bytes) < LITTLE * report.gpu.usable_bytes;

/** The options of the chart of `report.course`, up to the card where `toCard`. */
function timelineOption(report, colors, toCard) {
  const { course } = report;
  const most = 1.16 * Math.max(...course.allocated_bytes, toCard ? report.gpu.usable_bytes : 0);
  const distance = distanceOf(most);
  const columns = ordered(course.held, (column) => column.category);
  return {
    animation: false,
    grid: { left: 8, right: 12, top: 56, bottom: 60, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    legend: { type: "scroll", data: columns.map((column) => column.category), top: 0, left: 0, itemWidth: 12, itemHeight: 12, icon: "roundRect", textStyle: { color: colors.ink }, pageIconColor: colors.ink, pageTextStyle: { color: colors.ink }, formatter: wordsOf },
    tooltip: { trigger: "axis", confine: true, backgroundColor: colors.panel, borderColor: colors.rule, padding: 10, textStyle: { color: colors.ink }, axisPointer: { type: "line", lineStyle: { color: colors.ink } }, formatter: (shown) => momentTip(report, shown[0].dataIndex) },
    xAxis: { type: "value", min: course.spans[0].first_tick, max: course.ticks[course.ticks.length - 1], axisLabel: { color: colors.faint, formatter: (tick) => tick.toLocaleString("en"), hideOverlap: true }, axisLine: { lineStyle: { color: colors.rule } }, splitLine: { show: false }, axisPointer: { label: { show: false } } },
    yAxis: { type: "value", min: 0, max: Math.ceil(most / distance) * distance, interval: distance, axisLabel: { color: colors.faint, formatter: roundBytes }, splitLine: { lineStyle: { color: colors.rule } } },
    dataZoom: [
      { type: "slider", height: 22, bottom: 10, filterMode: "none", borderColor: colors.rule, fillerColor: "rgba(120, 140, 170, 0.2)", textStyle: { color: colors.faint }, labelFormatter: "", dataBackground: { lineStyle: { color: colors.faint }, areaStyle: { color: colors.rule } } },
      { type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: true },
    ],
    series: [marksOf(report, colors), ...columns.map((column) => areaOf(column, course))],
  };
}

/** The distance of lines across: a round number of the unit in which `most` is read, four to eight of them. */
function distanceOf(most) {
  const unit = [GIB, MIB, KIB, 1].find((size) => most >= 2 * size) ?? 1;
  const tenth = 10 ** Math.floor(Math.log10(most / unit / 4));
  return Math.max([1, 2, 2.5, 5, 10].findLast((part) => 4 * part * tenth * unit <= most) * tenth, 1 / 4) * unit;
}

function areaOf(column, course) {
  const color = colorOf(colorName(column.category));
  return {
    name: column.category,
    type: "line",
    stack: "held",
    step: "middle",
    symbol: "none",
    lineStyle: { width: 0 },
    itemStyle: { color },
    areaStyle: { color, opacity: 0.92 },
    emphasis: { disabled: true },
    data: column.bytes.map((bytes, at) => [course.ticks[at], bytes]),
  };
}

/** A series without a line of its own, for what is marked: the legend does not switch it off. */
function marksOf(report, colors) {
  const { course } = report;
  const isWide = (span) => span.last_tick - span.first_tick > 0.07 * lastTick(course);
  return {
    name: "marks",
    type: "line",
    symbol: "none",
    lineStyle: { width: 0 },
    tooltip: { show: false },
    data: course.ticks.map((tick, at) => [tick, course.allocated_bytes[at]]),
    z: 5,
    markArea: { silent: true, data: course.spans.map((span) => shadeOf(span, isWide(span), colors)) },
    markLine: { silent: true, symbol: "none", data: [...limitOf(report, colors), ...stepsOf(course, colors), ...failureLine(course, colors)] },
    markPoint: { silent: true, data: [peakOf(course, colors), ...failureOf(course, colors)] },
  };
}

/** The phase of a span as a shade, with its name where it has room. */
function shadeOf(span, isWide, colors) {
  const color = mixed(colors.ink, colors.panel, SHADES[span.phase] ?? 0);
  const label = { show: isWide, formatter: span.phase, position: "insideTop", color: colors.faint, fontSize: 11 };
  return [{ xAxis: span.first_tick, itemStyle: { color }, label }, { xAxis: span.last_tick }];
}

/** The card, where it is known which one it is. */
const limitOf = (report, colors) => (report.gpu.usable_bytes === null ? [] : [{
  yAxis: report.gpu.usable_bytes,
  lineStyle: { color: colors.bad, width: 2, type: "solid" },
  label: { formatter: `usable ${formatBytes(report.gpu.usable_bytes)}`, position: "insideEndTop", color: colors.bad, fontWeight: "bold", textBorderColor: colors.panel, textBorderWidth: 3 },
}]);

/** A line where each step begins; no more labels than can be read. */
function stepsOf(course, colors) {
  const first = new Map();
  for (const span of course.spans) if (!first.has(span.step)) first.set(span.step, span.first_tick);
  const every = Math.ceil(first.size / 12);
  return [...first].map(([step, tick], at) => ({
    xAxis: tick,
    lineStyle: { color: colors.faint, width: 1, type: "dashed", opacity: at % every ? 0.25 : 0.8 },
    label: { show: at % every === 0 && tick < 0.95 * lastTick(course), formatter: step ? `step ${step}` : "init", position: "end", color: colors.faint, distance: 4, align: "left" },
  }));
}

const failureLine = (course, colors) => (course.failed_tick === null ? [] : [{
  xAxis: course.failed_tick,
  lineStyle: { color: colors.bad, width: 1.5, type: "dotted" },
  label: { show: false },
}]);

function peakOf(course, colors) {
  const at = partAt(course, course.peak_tick);
  const label = { formatter: `peak ${formatBytes(course.allocated_bytes[at])}`, position: "top", distance: 7 };
  return pointAt(course, at, "circle", colors.ink, label, colors);
}

function failureOf(course, colors) {
  if (course.failed_tick === null) return [];
  const at = partAt(course, course.failed_tick);
  const side = at > course.ticks.length / 4 ? { position: [-4, -14], align: "right" } : { position: [15, -14] };
  const label = { formatter: "out of memory", ...side };
  return [pointAt(course, at, "diamond", colors.bad, label, colors)];
}

/** The part of the course that `tick` falls into: the last one that does not begin after it. */
const partAt = (course, tick) => Math.max(course.ticks.findLastIndex((first) => first <= tick), 0);

/** A mark on the course at the part `at`. */
const pointAt = (course, at, symbol, color, label, colors) => ({
  coord: [course.ticks[at], course.allocated_bytes[at]],
  symbol,
  symbolSize: 11,
  itemStyle: { color, borderColor: colors.panel, borderWidth: 2 },
  label: { color, fontWeight: "bold", textBorderColor: colors.panel, textBorderWidth: 3, ...label },
});
