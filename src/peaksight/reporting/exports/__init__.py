"""A report in the formats of other tools, one file each."""
