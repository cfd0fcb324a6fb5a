// The page of two runs: what each holds at its peak, and the most of each phase, side by side.

startPage((found) => {
  drawPairs("categories", "What each category holds at the two peaks", found.by_category, (row) => wordsOf(row.category));
  drawPairs("phases", "The most allocated in each phase of the two runs", found.by_phase, (row) => wordsOf(row.phase));
});

function drawPairs(id, label, rows, nameOf) {
  heightOf(id, rows.length, 2);
  drawChart(id, `${label}; the table below says it`, barsOption, {
    names: rows.map(nameOf),
    series: [
      { name: "A", color: "var(--faint)", bytes: rows.map((row) => row.a_bytes) },
      { name: "B", color: "var(--accent)", bytes: rows.map((row) => row.b_bytes) },
    ],
  });
}
