"""The training: its data, modules, passes and steps, and when enough of them were seen."""
