"""What is published: built, and installed as a new user does, without torch."""

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import peaksight
from helpers import allocation_of, capture_of
from peaksight.gpus import find_card, room_on
from peaksight.records.capture_file import write_capture_file

ROOT = Path(__file__).parents[1]
PACKAGE = Path(peaksight.__file__).parent
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.56 GiB "
    "of which 1.00 GiB is free.\n"
)
# What a fresh environment gets, in megabytes: torch alone has thousands.
MOST_MEGABYTES = 25


def run(*words, **options):
    """The standard output of a command that succeeds; what it says on stderr where it does not."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder of the sdist and of the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def environment(published, tmp_path_factory):
    """The scripts of a fresh environment with the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    (wheel,) = published.glob("*.whl")
    run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", wheel)
    return folder / "bin"


def files_of_the_package():
    return {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(published):
    """Templates, tables and assets too, and beside them only what a wheel says of itself."""
    (wheel,) = published.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    about = f"peaksight-{peaksight.__version__}.dist-info"
    assert {name for name in names if not name.startswith(f"{about}/")} == files_of_the_package()
    assert f"{about}/licenses/LICENSE" in names
    assert "peaksight/py.typed" in names


@pytest.mark.slow
def test_the_sdist_has_what_builds_the_wheel(published):
    """And not the measurements of the benchmarks, which are larger than everything else."""
    (sdist,) = published.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {name.partition("/")[0] for name in names} == {
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "src",
    }
    assert {f"src/{name}" for name in files_of_the_package()} <= names


@pytest.mark.slow
def test_a_fresh_environment(environment, tmp_path):
    """Nothing heavy comes with it, and what needs no torch works."""
    (tmp_path / "train.log").write_text(MESSAGE)
    (tmp_path / "train.py").write_text("import torch\n")
    held = capture_of(allocation_of(1 << 30, born=1))
    write_capture_file(tmp_path / "run.capture", [held], room_on(find_card("t4")))
    ours = environment / "peaksight"
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def say(*words):
        return run(ours, *words, cwd=tmp_path, env=outside)

    assert say("--version") == f"peaksight, version {peaksight.__version__}\n"
    assert "asked for 2.00 GiB, with 1.00 GiB free of 14.56 GiB" in say("read", "train.log")
    assert "1.00 GiB allocated" in say("report", "run.capture", "--html", "run.html")
    assert (tmp_path / "run.html").stat().st_size > 0
    done = subprocess.run([ours, "run", "train.py"], cwd=tmp_path, env=outside, capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'peaksight[torch]'" in done.stderr


@pytest.mark.slow
def test_nothing_heavy_is_installed(environment):
    """Neither torch nor jax nor numpy, and a few megabytes in all."""
    (packages,) = environment.parent.glob("lib/*/site-packages")
    unmeant = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
    files = [path for path in packages.rglob("*") if path.is_file()]
    ours = [path for path in files if not path.relative_to(packages).parts[0].startswith(unmeant)]

    assert not {"torch", "jax", "numpy", "libcst"} & {path.name for path in packages.iterdir()}
    assert sum(path.stat().st_size for path in ours) < MOST_MEGABYTES * 1e6


def test_the_version_has_one_home():
    """That of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/peaksight/__init__.py"


def test_the_extras():
    """What few need, and torch for who has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert {"torch", "jax", "live", "codemod"} <= set(project["optional-dependencies"])


def test_fragments_are_named_as_the_changelog_takes_them():
    """Each of a type that it has, with one sentence in it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    types = "|".join(each["directory"] for each in project["tool"]["towncrier"]["type"])
    for path in (ROOT / "changes").iterdir():
        assert re.fullmatch(rf"(\+[a-z0-9-]+|\d+)(\.(?:{types}))(\.\d+)?\.md", path.name), path.name
        text = path.read_text("utf-8").strip()
        assert text.endswith(".") and "\n\n" not in text, path.name


def test_the_changelog_can_be_made():
    """By towncrier, which writes nothing here; the sections of releases are below its mark."""
    draft = run(sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9", cwd=ROOT)

    assert "## 9.9 (" in draft
    assert draft.count("\n- ") == len(list((ROOT / "changes").iterdir()))
    released = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("<!-- towncrier release notes start -->")[2]
    assert "## 0.1.0 (2026-11-28)" in released


# What comes with another requirement, and what only code imports that is there with it.
WITH_OTHERS = {"markupsafe": "jinja2"}
OF_EXTRAS = {"planning/editing.py": "libcst", "planning/unfolding.py": "libcst"}
OF_PYTEST = {"pytest_plugin.py", "limited_tests.py"}
BESIDE_TORCH = {"virtual_gpu", "overlays", "live", "verification", "jax"}


def imported_at_once(path):
    """The roots of what `path` imports when it is imported itself."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_what_is_imported_is_required():
    """A module that needs no torch imports nothing that a fresh environment lacks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    required = {re.split(r"[<>=\[]", each)[0] for each in project["dependencies"]}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.partition("/")[0] in BESIDE_TORCH or name in OF_PYTEST:
            continue
        theirs = {WITH_OTHERS.get(root, root) for root in imported_at_once(path)} - sys.stdlib_module_names
        assert theirs - {"peaksight"} - {OF_EXTRAS.get(name)} <= required, name
