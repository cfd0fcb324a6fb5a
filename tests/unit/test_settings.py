"""`[tool.peaksight]`: where it is found, and what it may say."""

from dataclasses import fields

import pytest

from peaksight.cli import COMMANDS, main
from peaksight.cli.configured import SIMULATING, defaults
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import UsageError
from peaksight.settings import OF_A_SIMULATION, find_settings


def written(folder, *lines):
    path = folder / "pyproject.toml"
    path.write_text("\n".join(lines))
    return path


def test_the_nearest_file_with_the_table(tmp_path):
    """Files without it are passed over, broken ones too."""
    inner = tmp_path / "inner" / "deep"
    inner.mkdir(parents=True)
    outer = written(tmp_path, "[tool.peaksight]", 'gpu = "t4"')
    written(tmp_path / "inner", "[project", "{{ template }}")

    found = find_settings(inner)

    assert (found.path, found.shared) == (outer, {"gpu": "t4"})
    assert find_settings(tmp_path.parent / "elsewhere") is None


def test_shared_settings_are_options_of_what_simulates():
    """The list is that of the options."""
    assert {name.replace("-", "_") for name in OF_A_SIMULATION} == {field.name for field in fields(SimulationOptions)}
    for name in SIMULATING:
        assert {f"--{key}" for key in OF_A_SIMULATION} <= {option for p in COMMANDS[name].params for option in p.opts}


def test_tables_of_commands_win_over_the_shared_one(tmp_path):
    """Names are those of the parameters, paths begin at the file."""
    written(
        tmp_path,
        "[tool.peaksight]",
        'gpu = "t4"',
        "steps = 3",
        "[tool.peaksight.fix]",
        'class = "bitwise"',
        "steps = 4",
        'vary = ["--batch 8,4"]',
        'report = "why.md"',
    )
    settings = find_settings(tmp_path)

    assert defaults(settings, "run", COMMANDS) == {"gpu": "t4", "steps": 3}
    assert defaults(settings, "read", COMMANDS) == {}
    assert defaults(settings, "fix", COMMANDS) == {
        "gpu": "t4",
        "steps": 4,
        "allowed": "bitwise",
        "vary": ["--batch 8,4"],
        "report": str(tmp_path / "why.md"),
    }


@pytest.mark.parametrize(
    "lines, why",
    [
        (["[tool.peaksight]", "gpuu = 't4'"], "[tool.peaksight] has no key 'gpuu': did you mean 'gpu'? Write that"),
        (["[tool.peaksight]", "colour = 1"], "[tool.peaksight] has no key 'colour': take one of gpu, gpus, "),
        (["[tool.peaksight.runs]", "gpu = 't4'"], "has no key 'runs': did you mean 'run'?"),
        (["[tool.peaksight.fix]", "head_room = 3"], "[tool.peaksight.fix] has no key 'head_room': did you mean"),
        (["[tool.peaksight.gpu]", "name = 't4'"], "'gpu' in [tool.peaksight] is a table: write `gpu = ` and its value"),
        (["[tool.peaksight]", "steps = 'many'"], "'steps' cannot be 'many' ('many' is not a valid integer range)"),
        (["[tool.peaksight]", "steps = true"], "'steps' cannot be True: give one value"),
        (["[tool.peaksight]", "worst-batch = 1"], "'worst-batch' cannot be 1: give true or false"),
        (["[tool.peaksight]", "memory = 'lots'"], "'memory' cannot be 'lots' (not a size: 'lots'"),
        (["[tool.peaksight.fix]", "vary = '--batch 8,4'"], "'vary' cannot be '--batch 8,4': give a list of values"),
        (["[tool.peaksight]", "gpu ="], "this is no TOML ("),
        (["[tool]", "peaksight = 1", "# tool.peaksight"], "[tool.peaksight] is no table"),
    ],
)
def test_a_mistake_names_key_and_file(tmp_path, lines, why):
    """In one sentence with the way out."""
    path = written(tmp_path, *lines)

    with pytest.raises(UsageError) as raised:
        defaults(find_settings(tmp_path), "run", COMMANDS)

    assert str(raised.value).startswith(f"{path}: ")
    assert why in str(raised.value)
    assert "peaksight --isolated" in str(raised.value)


def test_the_help_and_the_command_say_where_a_value_is_from(tmp_path, monkeypatch, capsys):
    """And nothing is from there with --isolated."""
    path = written(tmp_path, "[tool.peaksight.gpus]", "mig = true")
    monkeypatch.chdir(tmp_path)

    assert main(["gpus", "--help"]) == 0
    assert f"From{path}:--mig" in "".join(capsys.readouterr().out.split())
    assert main(["gpus"]) == 0
    said = capsys.readouterr()
    assert "3g.20gb" in said.out and f"peaksight: From {path}: --mig" in said.err
    assert main(["--isolated", "gpus"]) == 0
    said = capsys.readouterr()
    assert "3g.20gb" not in said.out and not said.err
