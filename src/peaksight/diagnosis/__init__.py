"""Why it happened: rules that read records, each with its evidence, and none that guesses."""
