// The page of a watched run: the peaks of the steps of each rank, measured and predicted.

startPage((report) => {
  for (const element of document.querySelectorAll("[data-rank]")) drawRank(element.id, report.ranks[Number(element.dataset.rank)]);
});

function drawRank(id, rank) {
  const steps = rank.parts.map((part) => part.step);
  const line = (name, color, field, more = {}) => ({ name, color, bytes: steps.map((step) => step[field] ?? null), ...more });
  const predicted = steps.some((step) => step.predicted_allocated_bytes !== null);
  drawChart(id, `The peaks of the steps of rank ${rank.rank}; tables below say the largest`, linesOption, {
    title: "step",
    names: steps.map((step) => step.step.toLocaleString("en")),
    series: [
      line("reserved", "var(--accent)", "peak_reserved_bytes"),
      line("allocated", "var(--activation)", "peak_allocated_bytes", { filled: true }),
      ...(predicted ? [line("predicted allocated", "var(--ink)", "predicted_allocated_bytes", { dashed: true, symbol: "none" })] : []),
    ],
    limit: rank.card ? { bytes: rank.card.total_bytes } : null,
  });
}
