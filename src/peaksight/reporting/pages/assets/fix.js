// The page of plans: what each needs beside the run as it is, and the most of each phase before and after.

startPage((found) => {
  const plans = [found.original, ...(found.best ? [found.best] : [found.smallest]), ...found.runners_up, ...found.next_plans];
  const shown = [...new Map(plans.map((each) => [each.candidate.title, each])).values()];
  const bytesOf = (field) => shown.map((each) => each.outcome[field]);
  heightOf("plans", shown.length, 2);
  drawChart("plans", "Reserved and allocated bytes of each plan; the table below says them", barsOption, {
    names: shown.map((each) => (each === found.original ? "as it is" : each.candidate.title)),
    series: [
      { name: "reserved", color: "var(--accent)", bytes: bytesOf("reserved_bytes") },
      { name: "allocated", color: "var(--activation)", bytes: bytesOf("allocated_bytes") },
    ],
    limit: { bytes: found.limit_bytes },
  });
  drawPhases(found);
});

/** The most that is allocated in each phase, as it is and under the plan. */
function drawPhases(found) {
  const [before, after] = [found.original, found.best ?? found.smallest].map((tried) => new Map(tried.outcome.phases.map((each) => [each.phase, each.allocated_bytes])));
  const phases = [...new Set([...before.keys(), ...after.keys()])];
  heightOf("phases", phases.length, 2);
  drawChart("phases", "The most allocated in each phase, before and after; the table below says it", barsOption, {
    names: phases.map((phase) => wordsOf(phase)),
    series: [
      { name: "as it is", color: "var(--faint)", bytes: phases.map((phase) => before.get(phase) ?? null) },
      { name: "under the plan", color: "var(--accent)", bytes: phases.map((phase) => after.get(phase) ?? null) },
    ],
  });
}
