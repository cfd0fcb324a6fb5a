"""`peaksight compare --each-commit`: GIVEN a repository, THEN by how much each commit moves the peak."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import capture_of
from helpers_commands import peaksight
from peaksight.cli.commits import Checkout, Repository
from peaksight.errors import UsageError
from peaksight.records import SourceLine
from peaksight.units import MIB
from schemas import validated

SCRIPT = "import torch\nfrom size import SIZE\nx = torch.ones(SIZE << 18, device='cuda')\n"


class Repo:
    """A repository of one folder with a script and the size that it allocates in MiB."""

    def __init__(self, root):
        self.root = root
        (root / "job").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (root / "job" / "train.py").write_text(SCRIPT)
        self.commit("Begin", 1)

    def git(self, *words):
        """What git prints."""
        who = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, subject, size):
        """One more commit, at which the script allocates `size` MiB; it is Python, so it may be no number."""
        (self.root / "job" / "size.py").write_text(f"SIZE = {size}\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", subject)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path):
    """With its first commit."""
    return Repo(tmp_path / "repo")


@pytest.fixture
def in_job(repo, monkeypatch):
    """With the folder of the script as the working directory."""
    monkeypatch.chdir(repo.root / "job")
    return repo


def compare(repo, *words, folder="job"):
    """`peaksight compare` in `folder`, by default that of the script."""
    return peaksight("compare", "--steps", "0", *words, cwd=repo.root / folder)


@pytest.mark.torch
def test_the_marginal_peak_of_every_commit(repo):
    """GIVEN one that breaks and one that mends and grows, THEN what each does, and the working tree as it was."""
    repo.commit("Break", "1 / 0")
    repo.commit("Mend", 4)
    (repo.root / "job" / "size.py").write_text("SIZE = 100  # not committed")
    done = compare(repo, "--json", "-", "--each-commit", "main~2..main", "train.py", "--json", "mine")
    found = validated(json.loads(done.stdout))
    begin, broken, mend = found["commits"]

    assert done.returncode == 0
    assert [commit["subject"] for commit in found["commits"]] == ["Begin", "Break", "Mend"]
    assert found["argv"] == ["train.py", "--json", "mine"]
    assert (begin["allocated_bytes"], begin["since"]) == (MIB, None)
    assert (broken["allocated_bytes"], "ZeroDivisionError" in broken["failure"]) == (None, True)
    assert (mend["allocated_difference_bytes"], mend["since"]) == (3 * MIB, begin["commit"])
    assert mend["largest"]["b_source"] == "train.py:3"
    assert repo.git("status", "--porcelain") == "M job/size.py"
    assert len(repo.git("worktree", "list").splitlines()) == 1
    assert "3 of 3" in done.stderr


def test_no_commit_with_an_answer(repo):
    """GIVEN a working directory that no commit has, THEN exit 2, and the reason of the last one."""
    repo.commit("Grow", 2)
    (repo.root / "new").mkdir()
    done = compare(repo, "--each-commit", "main~1..main", "train.py", folder="new")

    assert (done.returncode, done.stdout) == (2, "")
    assert "it does not have the working directory" in done.stderr.splitlines()[-1]
    assert done.stderr.endswith("docs/messages.md#no-peak.\n")


def test_of_merges_the_first_parent_is_followed(in_job):
    """What a branch did is the merge's; the commit that a range starts after comes first."""
    begin = in_job.git("rev-parse", "HEAD")
    in_job.git("checkout", "-q", "-b", "side")
    in_job.commit("On the side", 2)
    in_job.git("checkout", "-q", "main")
    in_job.git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")
    in_job.commit("Last", 5)
    commits = Repository().commits("main~2..main")

    assert [commit.subject for commit in commits] == ["Begin", "Merge the side", "Last"]
    assert commits[0].id == begin


@pytest.mark.parametrize("range_", ["main", "main...main", "main..main", "main..nowhere", "--output=a..b"])
def test_what_is_no_range_of_commits(in_job, range_):
    """One sentence with a slug."""
    with pytest.raises(UsageError) as refused:
        Repository().commits(range_)

    assert refused.value.slug == "commits"


def test_no_repository(tmp_path, monkeypatch):
    """Nor one above."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(UsageError, match="not a git repository"):
        Repository()


def test_a_commit_has_its_own_files_and_runs_no_hook(in_job):
    """They are gone afterwards, and may be checked out again."""
    hook = in_job.root / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran\n")
    hook.chmod(0o755)
    second = in_job.commit("Grow", 2)
    (in_job.root / "job" / "size.py").write_text("SIZE = 100")
    repository = Repository()
    first, last = repository.commits("main~1..main")
    with repository.checkout() as checkout:
        sizes = []
        for commit in (first, last, first):
            with checkout.holding(commit):
                sizes.append((checkout.directory / "size.py").read_text())
                assert not (checkout.root / "ran").exists()

    assert sizes == ["SIZE = 1\n", "SIZE = 2\n", "SIZE = 1\n"]
    assert last.id == second
    assert not checkout.root.exists()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Of a repository with a package in `src` and an environment in `.venv`, which is in no commit."""
    root, original = tmp_path / "copy", tmp_path / "repo"
    for folder in (root / "src", original / "src", original / ".venv" / "site-packages"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(original / "src")
    return Checkout(root=root, original=original)


def test_folders_of_the_repository_are_those_of_the_commit(checkout, monkeypatch):
    """Installed packages stay, also those in an environment below the repository."""
    original = checkout.original
    monkeypatch.setattr(sys, "path", ["", str(original / "src"), str(original / ".venv" / "site-packages"), "/usr/lib"])

    assert checkout.directory == checkout.root / "src"
    assert checkout.search_path == [
        "",
        str(checkout.root / "src"),
        str(original / ".venv" / "site-packages"),
        "/usr/lib",
    ]


def test_a_script_by_its_absolute_path_is_that_of_the_commit(checkout):
    """Data is where it is."""
    words = ("python", str(checkout.original / "train.py"), "--data", str(checkout.original / "data"))

    assert checkout.words(words) == ("python", str(checkout.root / "train.py"), *words[2:])


def test_a_temporary_directory_inside_the_repository(checkout):
    """What lies in it is the commit's."""
    inside = Checkout(root=checkout.original / "tmp", original=checkout.original)
    line = SourceLine(at=f"{inside.root / 'm.py'}:1", text="x", file_sha256="1")

    assert inside.left_by(capture_of(source_lines=(line,))) is None


def test_a_link_into_the_repository_leads_to_the_commit(checkout, tmp_path, monkeypatch):
    """As where a home directory is a link."""
    (tmp_path / "link").symlink_to(checkout.original)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "link" / "src")])

    assert checkout.search_path == [str(checkout.root / "src")]


def test_files_of_the_working_tree_are_noticed(checkout):
    """As those of a package that is installed as editable; lines of the commit are shown without its place."""
    lines = [
        SourceLine(at=f"{place}{os.sep}m.py:1", text="x", file_sha256="1")
        for place in (checkout.root, checkout.original)
    ]

    assert checkout.left_by(capture_of(source_lines=(lines[0],))) is None
    assert checkout.left_by(capture_of(source_lines=tuple(lines))) == str(checkout.original / "m.py")
    assert checkout.shown(lines[0].at) == "m.py:1"
    assert checkout.shown(None) is None
    assert Path(checkout.shown("train.py:3")) == Path("train.py:3")
