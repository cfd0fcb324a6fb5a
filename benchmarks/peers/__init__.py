"""Other tools that predict memory, on the same workloads, each used as its own documentation says."""
