"""Whether the first finding names the cause that people accepted, and what going without it saves on a real GPU."""
