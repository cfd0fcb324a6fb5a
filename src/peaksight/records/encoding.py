"""Records as JSON."""

import json
from typing import Any

import msgspec


def encode_json(content: Any) -> bytes:
    """The JSON of `content`, which may hold records; bytes of a file name that are not UTF-8 become question marks."""
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(content), ensure_ascii=False, separators=(",", ":"))
        return text.encode(errors="replace")
