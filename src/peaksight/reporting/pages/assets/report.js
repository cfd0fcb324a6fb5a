// The page of a run: its course, what is alive at the peak, and the findings that lead there.

startPage((report) => {
  if (report.course) new Timeline(report);
  if (report.programs?.length) drawPrograms(report.programs);
  if (!byId("treemap")) return;
  const live = new LiveSet(report);
  offerSearch(live);
  if (report.findings) linkFindings(report, live);
});
