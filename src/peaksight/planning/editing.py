"""Keyword arguments of calls in a script, changed in its text; everything else in it stays, character by character."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider, QualifiedNameProvider

from peaksight.planning.knob_values import CannotEditError, Edit

_NO_SPACE = cst.SimpleWhitespace("")


@dataclass(frozen=True, kw_only=True)
class CallEdit:
    """Calls of one of `names` (`torch.optim.AdamW`, whatever the script imports it as) get `arguments`.

    So do those whose name is `matching`. With `lines` it is only the calls that begin there, with `places` the first,
    second, ... (0, 1, ...) of them.
    """

    arguments: Mapping[str, Edit]
    names: Collection[str] = ()
    matching: re.Pattern[str] | None = None
    lines: Collection[int] | None = None
    places: Collection[int] | None = None

    def is_of(self, names: Iterable[str]) -> bool:
        """Whether a call of what may have these `names` is meant."""
        return any(name in self.names or (self.matching and self.matching.fullmatch(name)) for name in names)

    def is_at(self, line: int, place: int) -> bool:
        """Whether a call there is meant."""
        return (self.lines is None or line in self.lines) and (self.places is None or place in self.places)


def edited(source: bytes, edit: CallEdit) -> tuple[bytes, list[int]]:
    """`source` with all such calls changed, and the lines on which these begin; as it was where one cannot be changed.

    A call with `**` in it cannot: what it has there is not known.
    """
    changed, found = _edited(source, edit)
    return changed, [line for line, _ in found]


def pinned(source: bytes, edit: CallEdit) -> CallEdit:
    """`edit` for the calls that it changes in `source`, wherever other edits move their lines to."""
    return replace(edit, lines=None, places=[place for _, place in _edited(source, edit)[1]])


def _edited(source: bytes, edit: CallEdit) -> tuple[bytes, list[tuple[int, int]]]:
    """With the line and the place of each call."""
    try:
        source.decode()  # a diff is in UTF-8
        wrapper = MetadataWrapper(cst.parse_module(source))
        editor = _Editor(edit)
        changed = wrapper.visit(editor)
    except (cst.ParserSyntaxError, CannotEditError, UnicodeDecodeError):
        return source, []
    return changed.bytes, editor.found


class _Editor(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (QualifiedNameProvider, PositionProvider)

    def __init__(self, edit: CallEdit) -> None:
        super().__init__()
        self._edit = edit
        self._num_seen = 0
        self.found: list[tuple[int, int]] = []

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        names = {each.name for each in self.get_metadata(QualifiedNameProvider, original_node, frozenset())}
        if not self._edit.is_of(names):
            return updated_node
        line, place = self.get_metadata(PositionProvider, original_node).start.line, self._num_seen
        self._num_seen += 1
        if not self._edit.is_at(line, place):
            return updated_node
        if any(arg.star == "**" for arg in updated_node.args):
            raise CannotEditError
        self.found.append((line, place))
        for name, edit in self._edit.arguments.items():
            updated_node = _with_argument(updated_node, name, edit)
        return updated_node


def _with_argument(call: cst.Call, name: str, edit: Edit) -> cst.Call:
    given = next((arg for arg in call.args if arg.keyword and arg.keyword.value == name), None)
    text = edit(cst.Module([]).code_for_node(given.value) if given else None)
    if text is None:
        return call.with_changes(args=[arg for arg in call.args if arg is not given])
    value = cst.parse_expression(text)
    if given:
        return call.with_changes(args=[arg.with_changes(value=value) if arg is given else arg for arg in call.args])
    equal = cst.AssignEqual(whitespace_before=_NO_SPACE, whitespace_after=_NO_SPACE)
    return _appended(call, cst.Arg(value=value, keyword=cst.Name(name), equal=equal))


def _appended(call: cst.Call, new: cst.Arg) -> cst.Call:
    """`call` with `new` at its end: on a line of its own where its arguments are, with a comma where the last has."""
    if not call.args:
        return call.with_changes(args=[new])
    *others, last = call.args
    before = _plain(others[-1].comma.whitespace_after if others else call.whitespace_before_args)  # type: ignore[union-attr]
    if isinstance(last.comma, cst.Comma):
        after = last.comma.whitespace_after
        new = new.with_changes(comma=last.comma.with_changes(whitespace_after=_plain(after)))
        before = _with_comment_of(before, after)
    else:
        new = new.with_changes(whitespace_after_arg=_plain(last.whitespace_after_arg))
        before = _with_comment_of(before, last.whitespace_after_arg)
    if isinstance(before, cst.SimpleWhitespace):
        before = cst.SimpleWhitespace(" ")
    last = last.with_changes(comma=cst.Comma(whitespace_after=before), whitespace_after_arg=_NO_SPACE)
    return call.with_changes(args=[*others, last, new])


def _plain(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    """Without comments and empty lines."""
    if isinstance(space, cst.ParenthesizedWhitespace):
        newline = space.first_line.newline
        return space.with_changes(first_line=cst.TrailingWhitespace(newline=newline), empty_lines=[])
    return space


def _with_comment_of(
    space: cst.BaseParenthesizableWhitespace, other: cst.BaseParenthesizableWhitespace
) -> cst.BaseParenthesizableWhitespace:
    if isinstance(space, cst.ParenthesizedWhitespace) and isinstance(other, cst.ParenthesizedWhitespace):
        return space.with_changes(first_line=other.first_line)
    return space
