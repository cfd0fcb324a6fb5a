"""Renames what scripts name themselves, so that nothing can be told by names: lines and behaviour stay.

Tests of torch have a helper for this that needs libcst; where JAX is, neither is installed.
"""

import ast
import builtins
import hashlib
import io
import tokenize


def renamed(directory, target):
    """Write the scripts of `directory` to `target`, under the same names of files, renamed alike in all of them."""
    texts = {path.name: path.read_text() for path in sorted(directory.glob("*.py"))}
    names = own_names([ast.parse(text) for text in texts.values()], {name.removesuffix(".py") for name in texts})
    for name, text in texts.items():
        (target / name).write_text(_renamed(text, names))
    return names


def own_names(trees, modules):
    """What the scripts bind, but for names that a library or a string has too."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    kept = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    kept = {part.strip("-").replace("-", "_") for part in kept} | modules | set(dir(builtins))
    fields, bound = set(), set()
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            fields |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
            fields |= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.alias) and node.asname:
            kept.add(node.asname)
    of_others = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    of_others |= {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
    return {name for name in bound if not name.startswith("__")} - kept - (of_others - fields)


def _renamed(text, names):
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    for token in reversed(tokens):
        if token.type == tokenize.NAME and token.string in names:
            (row, start), (_, end) = token.start, token.end
            lines[row - 1] = lines[row - 1][:start] + new_name(token.string) + lines[row - 1][end:]
    return "".join(lines)


def new_name(name):
    """A name that says nothing, always the same for `name`."""
    return "x" + hashlib.sha1(name.encode()).hexdigest()[:10]
