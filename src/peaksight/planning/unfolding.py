"""Statements that share a line, each put on its own: how a person writes what a plan keeps on one line."""

from collections.abc import Collection

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider


def unfolded(source: bytes, lines: Collection[int]) -> bytes:
    """`source` with what begins on `lines` unfolded: `a; b` on two lines, the body of `with x: a` below it."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    return wrapper.visit(_Unfolder(lines)).bytes


class _Unfolder(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, lines: Collection[int]) -> None:
        super().__init__()
        self._lines = lines

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.SimpleStatementLine]:
        if not self._is_meant(original_node) or len(updated_node.body) == 1:
            return updated_node
        return cst.FlattenSentinel(
            _apart(updated_node.body, updated_node.leading_lines, updated_node.trailing_whitespace)
        )

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:
        body = updated_node.body
        if not self._is_meant(original_node) or not isinstance(body, cst.SimpleStatementSuite):
            return updated_node
        return updated_node.with_changes(
            body=cst.IndentedBlock(body=_apart(body.body, (), body.trailing_whitespace)),
        )

    def _is_meant(self, node: cst.CSTNode) -> bool:
        return self.get_metadata(PositionProvider, node).start.line in self._lines


def _apart(
    statements: Collection[cst.BaseSmallStatement],
    leading_lines: Collection[cst.EmptyLine],
    comment: cst.TrailingWhitespace,
) -> list[cst.SimpleStatementLine]:
    """A line for each; what is written before and behind them belongs to the first, as the person's own."""
    first, *others = (each.with_changes(semicolon=cst.MaybeSentinel.DEFAULT) for each in statements)
    begin = cst.SimpleStatementLine(body=[first], leading_lines=list(leading_lines), trailing_whitespace=comment)
    return [begin, *(cst.SimpleStatementLine(body=[each]) for each in others)]
