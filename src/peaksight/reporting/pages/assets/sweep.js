// The page of a run at several values: what it needs at each.

startPage((found) => {
  const rows = found.rows.filter((row) => !row.tried.outcome.error);
  const bytesOf = (field) => rows.map((row) => row.tried.outcome[field]);
  const limits = new Set(rows.map((row) => row.limit_bytes));
  heightOf("values", rows.length, 2);
  drawChart("values", "Reserved and allocated bytes at each value; the table below says them", barsOption, {
    names: rows.map((row) => row.value),
    series: [
      { name: "reserved", color: "var(--accent)", bytes: bytesOf("reserved_bytes") },
      { name: "allocated", color: "var(--activation)", bytes: bytesOf("allocated_bytes") },
    ],
    limit: limits.size === 1 ? { bytes: [...limits][0] } : null,
  });
});
