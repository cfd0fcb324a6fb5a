"""`fix --write`: GIVEN a plan of which a part is an edit WHEN it is written THEN nothing of the script is lost."""

import json
import subprocess
from pathlib import Path

import pytest

from helpers_commands import peaksight
from peaksight.cli.edited_copy import edited_copy
from peaksight.cli.kept_files import check_can_keep, copy_of, replace_file
from peaksight.errors import UsageError

SCRIPT = Path(__file__).parents[1] / "scripts" / "plans" / "parameters.py"


def git(folder, *words):
    """Of nobody in particular."""
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.mark.torch
def test_the_edit_is_made_and_the_script_kept(tmp_path):
    """It needs what was predicted; the plan beside it is of the script as edited, and has nothing left to change."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.read_text())
    script.chmod(0o755)
    words = ["--gpu", "t4", "--memory", "1040MiB"]
    done = peaksight("fix", *words, "--candidates", "1", "--write", "--apply", "plan.json", "--json", "-",
                     "train.py", cwd=tmp_path)  # fmt: skip
    answer = json.loads(done.stdout)

    report = json.loads(peaksight("run", *words, "--plan", "plan.json", "--json", "-", "train.py", cwd=tmp_path).stdout)

    assert (tmp_path / "train.py.orig").read_text() == SCRIPT.read_text()
    assert script.read_text() == SCRIPT.read_text().replace("# a usual one\n", "# a usual one\n    fused=True,\n")
    assert script.stat().st_mode & 0o777 == 0o755
    assert json.loads((tmp_path / "plan.json").read_text())["changes"] == []
    assert report["peak"]["reserved_bytes"] == answer["best"]["outcome"]["reserved_bytes"]
    assert report["oom"] is None


def test_a_copy_that_has_no_place(tmp_path):
    """One sentence before the search, and nothing written."""
    (tmp_path / "train.py").write_text("mine\n")
    (tmp_path / "train.py.orig").write_text("mine too\n")

    done = peaksight("fix", "--write", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "train.py.orig exists, and git does not have the file. Commit the file, or move" in done.stderr
    assert (tmp_path / "train.py.orig").read_text() == "mine too\n"


def test_what_git_has_needs_no_copy(tmp_path):
    """A change that is not committed does, staged or not, and so does a file that is ignored."""
    file, ignored = tmp_path / "train.py", tmp_path / "local.py"
    file.write_text("a\n")
    ignored.write_text("b\n")
    (tmp_path / ".gitignore").write_text("local.py\n")
    git(tmp_path, "init")
    assert copy_of(file) == tmp_path / "train.py.orig"

    git(tmp_path, "add", ".")
    assert copy_of(file) is not None
    git(tmp_path, "commit", "-m", "first")
    assert copy_of(file) is None and copy_of(ignored) is not None
    file.write_text("c\n")
    (tmp_path / "train.py.orig").write_text("other\n")
    with pytest.raises(UsageError, match=r"train\.py\.orig exists"):
        check_can_keep(file)


def test_a_link_stays_one(tmp_path):
    """What it points to is written."""
    (tmp_path / "real.py").write_text("a\n")
    (tmp_path / "train.py").symlink_to("real.py")

    replace_file(tmp_path / "train.py", b"b\n")

    assert (tmp_path / "train.py").is_symlink() and (tmp_path / "real.py").read_text() == "b\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["real.py", "train.py"]


def test_a_folder_with_an_edit(tmp_path):
    """Everything is there, the edited file in its folder too, and the original is as it was."""
    (tmp_path / "pkg").mkdir()
    for file in ("train.py", "data.bin", "pkg/model.py", "pkg/names.txt"):
        (tmp_path / file).write_text(file)

    with edited_copy(tmp_path, {"pkg/model.py": b"edited"}) as folder:
        found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}

    assert found == {"train.py": "train.py", "data.bin": "data.bin", "pkg/model.py": "edited",
                     "pkg/names.txt": "pkg/names.txt"}  # fmt: skip
    assert (tmp_path / "pkg/model.py").read_text() == "pkg/model.py" and not folder.exists()
