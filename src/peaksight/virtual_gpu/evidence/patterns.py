"""Statements that matter to a rule, by what they look like in the tree of a file."""

import ast
from collections.abc import Set

# transformers and diffusers; timm and open_clip; Swin and what follows it; mmcv; others.
CHECKPOINT_FLAGS = (
    "gradient_checkpointing",
    "grad_checkpointing",
    "use_checkpoint",
    "with_cp",
    "use_checkpointing",
    "use_gradient_checkpointing",
    "use_grad_checkpoint",
    "activation_checkpointing",
    "checkpoint_activations",
)


def frozen_value(node: ast.AST) -> ast.expr | None:
    """What `node` gives to `requires_grad`, None if it does not or if that is `True`.

    `p.requires_grad = False`, `module.requires_grad_(False)`, `p.requires_grad = "head" in name`.
    """
    value = None
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=given):
            value = given
        case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=args, keywords=keywords):
            value = next(iter([*args, *(keyword.value for keyword in keywords)]), None)
    return None if isinstance(value, ast.Constant) and value.value is True else value


def is_named_in(names: Set[str], node: ast.AST) -> bool:
    """Whether one of `names` is read in `node`."""
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def bound_names(node: ast.AST) -> frozenset[str]:
    """The names that are assigned anywhere in `node`, by loops and comprehensions too."""
    return frozenset(
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )


# transformers, timm and open_clip, diffusers; torch.distributed.
_ASKING = {
    "gradient_checkpointing_enable",
    "set_grad_checkpointing",
    "enable_gradient_checkpointing",
    "apply_activation_checkpointing",
}


def asks_for_checkpointing(node: ast.AST) -> bool:
    """Whether `node` is a call that asks a model to checkpoint, or sets a flag of it that does."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=args):
            return name in _ASKING and not any(_is_false(each) for each in args)
        case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Constant(value=True)):
            return name in CHECKPOINT_FLAGS
    return False


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False
