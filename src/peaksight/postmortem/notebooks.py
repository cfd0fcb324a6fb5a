"""A Jupyter notebook as a log: what its cells printed, and the tracebacks that ended them."""

import io
import json
from collections.abc import Iterator
from typing import Any, BinaryIO


def printed_by(stream: BinaryIO) -> BinaryIO:
    """The outputs of the cells in their order, as one text; a file that is no notebook as it is."""
    content = stream.read()
    try:
        notebook = json.loads(content)
        text = "\n".join(filter(None, _texts(notebook)))
    except (ValueError, TypeError, LookupError, AttributeError):
        return io.BytesIO(content)
    return io.BytesIO(text.encode(errors="replace"))


def _texts(notebook: dict[str, Any]) -> Iterator[str]:
    """Each output, as nbformat has it: of a stream, the plain text of a result, or the lines of a traceback."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            yield _joined(output.get("text") or output.get("data", {}).get("text/plain") or "").rstrip("\n")
            yield "\n".join(output.get("traceback", ()))


def _joined(text: str | list[str]) -> str:
    """A text that nbformat keeps whole, or as lines with their ends."""
    return text if isinstance(text, str) else "".join(text)
