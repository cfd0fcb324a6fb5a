"""What stands on a page, beside the JSON that it carries."""

import base64
import gzip
import json
import re
from html.parser import HTMLParser

from peaksight.units import format_bytes

_SIZE = re.compile(r"\d+(?:\.\d\d)? (?:B|KiB|MiB|GiB)\b")


class _Text(HTMLParser):
    """The visible text of a page, and the values of its numbers."""

    def __init__(self):
        super().__init__()
        self.pieces, self.values, self.is_hidden = [], [], False

    def handle_starttag(self, tag, attrs):
        self.is_hidden = tag in ("script", "style")
        self.values += [dict(attrs)["value"]] if tag == "data" else []
        self.pieces.append("" if tag in ("wbr", "code", "span", "data") else " ")

    def handle_data(self, data):
        self.pieces.append("" if self.is_hidden else data)

    def handle_endtag(self, tag):
        self.is_hidden = False


def text_of_page(page):
    """The words that a person reads without scripts, with single spaces."""
    parsed = _Text()
    parsed.feed(page)
    return re.sub(r"\s+", " ", "".join(parsed.pieces))


def json_of_page(page):
    """The JSON that the page carries, as text."""
    packed = re.search(r'<script type="application/gzip" id="data">(.*?)</script>', page)[1]
    return gzip.decompress(base64.b64decode(packed)).decode()


def numbers_in(value):
    """All numbers anywhere in a value of JSON."""
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return {number for part in parts for number in numbers_in(part)}
    return {value} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def unknown_numbers(page, derived=()):
    """Numbers of the page that its JSON has not: neither as a number or in a sentence, nor `derived` from some."""
    text = json_of_page(page)
    known = numbers_in(json.loads(text)) | set(derived)
    parsed = _Text()
    parsed.feed(page)
    shown = {float(value) for value in parsed.values} - {float(number) for number in known}
    sizes = {format_bytes(abs(number)) for number in known if isinstance(number, int)} | set(_SIZE.findall(text))
    return shown | (set(_SIZE.findall(text_of_page(page))) - sizes)
