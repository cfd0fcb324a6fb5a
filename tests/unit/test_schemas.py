"""The published JSON Schemas, and what commands that need no torch print."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from golden_files import compare_golden
from helpers import allocation_of, capture_of
from peaksight.cli import peaksight
from peaksight.cli.schemas import SCHEMAS, file_of, identifier_of, published_schema
from peaksight.gpus import find_card, room_on
from peaksight.records.capture_file import write_capture_file
from peaksight.units import GIB
from schemas import validated

TESTS = Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
SAVED = TESTS / "data" / "captures" / "version-1.capture"
LOG = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 13 GiB already)"


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """What a command prints, as JSON."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = CliRunner().invoke(peaksight, list(map(str, words)))
        assert not done.exception, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("name", SCHEMAS)
def test_published_schemas_are_up_to_date(name):
    """docs/ has what the records say, under the name that the JSON itself has."""
    schema = json.loads(published_schema(name))

    Draft202012Validator.check_schema(schema)
    assert identifier_of(name) == schema["$id"]
    compare_golden(published_schema(name), file_of(name), golden=DOCS)


def test_every_schema_is_in_the_docs():
    """With its file and its identifier, and no file is there beside them."""
    page = (DOCS / "exports.md").read_text()

    assert all(f"[{file_of(name)}]({file_of(name)})" in page and f"`{identifier_of(name)}`" in page for name in SCHEMAS)
    assert {file_of(name) for name in SCHEMAS} == {path.name for path in DOCS.glob("*.schema.json")}


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name not in ("peaksight.gpus/1", "peaksight.replay/1")])
def test_a_schema_takes_no_other_answer(name):
    """What says that it is something else does not follow it."""
    with pytest.raises(ValidationError):
        validated({"schema": "peaksight.other/1"}, name)


def test_a_report(answer):
    """Of a run that fails."""
    assert validated(answer("report", SAVED, "--json", "-"))["oom"]


def test_a_comparison(answer, tmp_path):
    """Of two saved runs."""
    write_capture_file(tmp_path / "b", [capture_of(allocation_of(GIB, born=1))], room_on(find_card("t4")))

    assert validated(answer("compare", "--json", "-", SAVED, "b"))["b"]


def test_readings(answer, tmp_path):
    """Of a log, of the logs of two ranks, and of a memory snapshot."""
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.log").write_text(f"[rank{rank}]: {LOG}\n")
    answer("report", SAVED, "--format", "memory_viz", "--output", "run.pickle", "--json", "-")

    assert "peaksight.reading/1" == validated(answer("read", "--json", "-", "rank0.log"))["schema"]
    assert "peaksight.job/1" == validated(answer("read", "--json", "-", "rank0.log", "rank1.log"))["schema"]
    assert "peaksight.recording/1" == validated(answer("read", "--json", "-", "run.pickle"))["schema"]


def test_cards(answer):
    """And the slices of cards."""
    assert validated(answer("gpus", "--json"), "peaksight.gpus/1")


def test_a_replay(answer, tmp_path):
    """Of a trace."""
    (tmp_path / "trace.json").write_text('[["segment_alloc", 0, 2097152, 0], ["alloc", 0, 512, 0]]')

    assert validated(answer("replay", "trace.json"), "peaksight.replay/1")
