"""Every rule, from the files of `rules/`, and the text that each file begins with."""

import pkgutil
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import ModuleType
from typing import Any

from peaksight.diagnosis import jax_rules as jax_rule_files
from peaksight.diagnosis import rules
from peaksight.diagnosis.jax_rule import JaxRule
from peaksight.diagnosis.rule import Rule


@cache
def all_rules() -> dict[str, Rule]:
    """The rules on a run of PyTorch by their slugs, in the order of these."""
    return _rules_in(rules)


@cache
def jax_rules() -> dict[str, JaxRule]:
    """The rules on a jitted program of JAX, likewise."""
    return _rules_in(jax_rule_files)


def every_rule() -> dict[str, Rule | JaxRule]:
    """Both, those on JAX last."""
    return {**all_rules(), **jax_rules()}


def _rules_in(folder: ModuleType) -> dict[str, Any]:
    modules = [import_module(f"{folder.__name__}.{found.name}") for found in pkgutil.iter_modules(folder.__path__)]
    return dict(sorted((module.RULE.slug, module.RULE) for module in modules if hasattr(module, "RULE")))


@cache
def text_of(slug: str) -> str:
    """What the rule finds, why that costs memory, an example, fixes and known misses, in Markdown.

    Raises:
        KeyError: there is no such rule.
    """
    return cleandoc(import_module(every_rule()[slug].examine.__module__).__doc__ or "")


def title_of(slug: str) -> str:
    """The heading of the text of a rule."""
    return text_of(slug).splitlines()[0].removeprefix("# ")


def finds_of(slug: str) -> str:
    """What the rule finds: the first section of its text, in one line."""
    section = text_of(slug).partition("## What it finds\n")[2].partition("\n#")[0]
    return " ".join(section.split())


_HEAD = """# Rules

What `peaksight run` may name under *Why*, as `peaksight explain RULE` prints it. This page is the output of
`peaksight explain --markdown`.

A rule reads what the run showed: lifetimes of blocks, what autograd saved, the names by which the script reaches its
tensors. The bytes of a finding are those by which the peak of the run would fall without it, from lifetimes: the run
is not simulated again. Where a record lacks what a rule needs, as one of a real run may, the answer is *cannot
tell*.

The rules whose names begin with `jax-` read a jitted program of JAX. What they propose is simulated on that program,
wherever its equations allow it."""


def all_texts() -> str:
    """The texts of all rules as one page, with the slug of each behind its title."""
    texts = (f"#{text_of(slug)}".replace("\n##", "\n###").replace("\n", f"\n\n`{slug}`\n", 1) for slug in every_rule())
    return "\n\n".join([_HEAD, *texts])
