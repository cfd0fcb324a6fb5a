"""Renames what a script names itself, so that nothing can be told by names: lines and behaviour stay.

Renamed are functions, classes, parameters, variables, and attributes of its own classes. Names of libraries stay, and
so do those that the text has in a string too, as flags and keys of dictionaries are.
"""

import builtins
import hashlib
from pathlib import Path

import libcst as cst
import torch
from libcst.metadata import MetadataWrapper, ParentNodeProvider

# Attributes that classes of a script override or take over: they are the library's.
_OF_LIBRARIES = {
    name
    for kind in (torch.nn.Module, torch.nn.Sequential, torch.Tensor, torch.optim.Optimizer, torch.utils.data.DataLoader)
    for name in dir(kind)
} | {"forward", "setup_context", "apply", "collate_fn", *dir(builtins)}


def renamed(directory: Path, target: Path) -> None:
    """Write the scripts of `directory` to `target`, under the same names of files, renamed alike in all of them."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.py"))}
    names = _Names({Path(name).stem for name in texts})
    modules = {name: MetadataWrapper(cst.parse_module(text)) for name, text in texts.items()}
    for wrapper in modules.values():
        wrapper.visit(names)
    for name, wrapper in modules.items():
        (target / name).write_text(wrapper.visit(_Renaming(names)).code, encoding="utf-8")


def new_name(name: str) -> str:
    """A name that says nothing, always the same for `name`; private ones stay private."""
    return ("_" if name.startswith("_") else "") + "x" + hashlib.sha1(name.encode()).hexdigest()[:10]


class _Names(cst.CSTVisitor):
    """What the scripts bind: `variables`, `attributes` of their classes, `callables`; and what is `kept`."""

    METADATA_DEPENDENCIES = (ParentNodeProvider,)

    def __init__(self, own_modules: set[str]) -> None:
        super().__init__()
        self.own_modules = own_modules
        self.variables: set[str] = set()
        self.attributes: set[str] = set()
        self.callables: set[str] = set()
        self.kept: set[str] = set(own_modules)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        (self.attributes if self._is_in_class(node) else self.variables).add(node.name.value)
        self.callables.add(node.name.value)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.variables.add(node.name.value)
        self.callables.add(node.name.value)

    def visit_Param(self, node: cst.Param) -> None:
        self.variables.add(node.name.value)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self._bind(node.target, self._is_in_class(node))

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target, self._is_in_class(node))

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._bind(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target)

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if node.asname:
            self._bind(node.asname.name)

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        if not self._is_own(node):
            self.kept.add(node.evaluated_alias or node.evaluated_name.split(".")[0])

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        text = node.evaluated_value
        if isinstance(text, str):
            self.kept.add(text.lstrip("-").replace("-", "_"))

    def _bind(self, target: cst.CSTNode, in_class: bool = False) -> None:
        if isinstance(target, cst.Name):
            (self.attributes if in_class else self.variables).add(target.value)
            if in_class:  # a field is an argument too, and keeps its name where its attribute has to
                (self.kept if target.value in _OF_LIBRARIES else self.variables).add(target.value)
        elif isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name) and target.value.value == "self":
            self.attributes.add(target.attr.value)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)

    def _is_own(self, alias: cst.ImportAlias) -> bool:
        statement = self.get_metadata(ParentNodeProvider, alias)
        module = statement.module if isinstance(statement, cst.ImportFrom) else alias.name
        return isinstance(module, cst.Name) and module.value in self.own_modules

    def _is_in_class(self, node: cst.CSTNode) -> bool:
        parent = self.get_metadata(ParentNodeProvider, node)
        while isinstance(parent, cst.SimpleStatementLine | cst.IndentedBlock | cst.Assign):
            parent = self.get_metadata(ParentNodeProvider, parent)
        return isinstance(parent, cst.ClassDef)


class _Renaming(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (ParentNodeProvider,)

    def __init__(self, names: _Names) -> None:
        super().__init__()
        self.variables = names.variables - names.kept - set(dir(builtins))
        self.attributes = names.attributes - names.kept - _OF_LIBRARIES
        self.callables = names.callables

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        name = original_node.value
        if name.startswith("__") or name not in self._renamable(original_node):
            return updated_node
        return updated_node.with_changes(value=new_name(name))

    def _renamable(self, node: cst.Name) -> set[str]:
        """The names that are renamed where `node` stands."""
        parent = self.get_metadata(ParentNodeProvider, node)
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            return self.attributes
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            return self.variables if self._calls_own(parent) else set()
        if isinstance(parent, cst.FunctionDef) and node.value in self.attributes | _OF_LIBRARIES:
            return self.attributes
        return self.variables

    def _calls_own(self, argument: cst.Arg) -> bool:
        called = self.get_metadata(ParentNodeProvider, argument).func
        name = called.attr if isinstance(called, cst.Attribute) else called
        return isinstance(name, cst.Name) and name.value in self.callables
