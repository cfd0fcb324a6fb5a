"""A file that is compiled with probes is the same program."""

import argparse
import asyncio.base_events
import contextlib
import dataclasses
import inspect
import io
import pickle
import tarfile
import traceback
import typing
import unittest.mock
from pathlib import Path
from types import CodeType

import pytest

from peaksight.virtual_gpu.unreached.probes import Hits, Probe, compile_with_probes

pytestmark = pytest.mark.torch

LIBRARIES = (argparse, asyncio.base_events, contextlib, dataclasses, inspect, tarfile, typing, unittest.mock)
PROGRAM = Path(__file__).with_name("probed_program.py")


def compiled(source, filename):
    """Plain, and with probes."""
    return compile(source, filename, "exec", dont_inherit=True), compile_with_probes(source, filename)[0]


def codes_in(code):
    """`code` and all code inside."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def facts(code):
    """What inspection sees of `code`."""
    lines = sorted({line for _, _, line in code.co_lines() if line is not None})
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_qualname, code.co_firstlineno, code.co_flags, code.co_consts[:1], lines, names


def run(code):
    """What the program prints, and the traceback that it ends in."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(code, {"__name__": "__main__", "__file__": str(PROGRAM)})
        except ZeroDivisionError:
            return out.getvalue(), traceback.format_exc()


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda module: module.__name__)
def test_inspection_sees_no_difference(library):
    """Names, first lines, lines, flags and docstrings of every function are those of the plain code."""
    plain, probed = compiled(Path(library.__file__).read_bytes(), library.__file__)
    without_code = [(fact[:3], fact[4:]) for fact in map(facts, codes_in(probed))]

    assert [(fact[:3], fact[4:]) for fact in map(facts, codes_in(plain))] == without_code
    for one, other in zip(codes_in(plain), codes_in(probed), strict=True):
        is_text = isinstance(one.co_consts[0] if one.co_consts else None, str)
        assert not is_text or one.co_consts[0] == other.co_consts[0]


def test_a_program_of_everything_runs_alike():
    """Futures, decorators, generators, async, match, dataclasses, closures, classes; its traceback is the same."""
    plain, probed = compiled(PROGRAM.read_bytes(), str(PROGRAM))
    printed, trace = run(plain)

    assert "the end of main" in printed
    assert (printed, trace) == run(probed)


def test_code_with_probes_is_hashed_and_pickled():
    """As caches and cloudpickle do with the parts of a function."""
    code = compile_with_probes(b"def train(x):\n    return x", "train.py")[0]
    hits = next(constant for each in codes_in(code) for constant in each.co_consts if isinstance(constant, Hits))

    assert hash(code) == hash(code)
    assert isinstance(pickle.loads(pickle.dumps(hits)), Hits)


def test_functions_that_do_not_train_have_no_probes():
    """Their code is hashed by caches of prepared datasets, and compiled by other compilers."""
    source = b"def tokenize(x):\n    if x:\n        return f(x)\n\ndef prepare(x):\n    return tokenize(x)\n"
    code = compile_with_probes(source, "train.py")[0]
    plain = compile(source, "train.py", "exec", dont_inherit=True)

    assert list(codes_in(plain))[1:] == list(codes_in(code))[1:]


def test_what_calls_a_training_function_may_train():
    """By name, through others."""
    tree = compile_with_probes(b"def go():\n    start()\n\ndef start():\n    opt.step()\n", "train.py")[1]

    assert [isinstance(function.body[0], Probe) for function in tree.body if hasattr(function, "body")] == [True, True]


def test_a_syntax_error_is_pythons():
    """It is the script's to have."""
    with pytest.raises(SyntaxError):
        compile_with_probes(b"if", "train.py")
