"""What changed in a file, as `patch` takes it."""

import difflib

_NO_NEWLINE = "\n\\ No newline at end of file\n"


def unified_diff(before: bytes, after: bytes, name: str) -> str:
    """From `before` to `after` for the file `name`, as `patch -p1` takes it; empty where they are the same."""
    if before == after:
        return ""
    old, new = (text.decode().splitlines(keepends=True) for text in (before, after))
    found = difflib.unified_diff(old, new, fromfile=f"a/{name}", tofile=f"b/{name}")
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in found)
