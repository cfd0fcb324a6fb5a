// The jitted functions of a job under JAX: what each takes.

const MOST_PROGRAMS = 12;

function drawPrograms(programs) {
  const shown = [...programs].sort((a, b) => b.peak_bytes - a.peak_bytes).slice(0, MOST_PROGRAMS);
  const series = [["peak", "var(--accent)"], ["argument", "var(--parameter)"], ["output", "var(--activation)"], ["temporary", "var(--temporary)"]];
  heightOf("programs", shown.length, series.length);
  drawChart("programs", "What each jitted function takes; the table below says it", barsOption, {
    names: shown.map((each) => each.name),
    series: series.map(([name, color]) => ({ name, color, bytes: shown.map((each) => each[`${name}_bytes`]) })),
  });
}
