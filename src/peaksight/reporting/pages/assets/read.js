// The page of what was read: the course and the live set of the first recording, and the steps before a failure.

startPage((found) => {
  const answers = Array.isArray(found) ? found : [found];
  const recordings = answers.map((answer) => (answer.fragmentation ? answer : answer.report?.recording)).filter(Boolean);
  if (recordings[0]) drawRecording(recordings[0]);
  const capsule = answers.find((answer) => answer.report?.steps?.length)?.report;
  if (capsule) drawSteps(capsule.steps.filter((step) => step.device === null || step.device === capsule.failure.card.device));
});

function drawRecording(recording) {
  if (byId("timeline")) new Timeline(recording);
  if (byId("treemap")) offerSearch(new LiveSet(recording));
}

function drawSteps(steps) {
  drawChart("last-steps", "The peaks of the last steps; the table below says them", linesOption, {
    title: "step",
    names: steps.map((step) => String(step.step)),
    series: [
      { name: "reserved", color: "var(--accent)", bytes: steps.map((step) => step.peak_reserved_bytes) },
      { name: "allocated", color: "var(--activation)", bytes: steps.map((step) => step.peak_allocated_bytes), filled: true },
    ],
  });
}
