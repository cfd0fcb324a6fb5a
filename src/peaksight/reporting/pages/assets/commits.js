// The page of commits: how the peak goes from one to the next.

startPage((history) => {
  drawChart("commits", "The predicted peak at each commit; the table below says it", linesOption, {
    title: "commit, oldest first",
    names: history.commits.map((commit) => commit.commit.slice(0, 8)),
    series: [
      { name: "reserved", color: "var(--accent)", bytes: history.commits.map((commit) => commit.reserved_bytes) },
      { name: "allocated", color: "var(--activation)", bytes: history.commits.map((commit) => commit.allocated_bytes), filled: true },
    ],
  });
});
