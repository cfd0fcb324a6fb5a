"""The pages whose commands are run, and the folder they are run in."""

import json
import pickle
import shutil
import tempfile
from pathlib import Path

from tests.helpers_capsules import ended_by_memory, failure_of, process_of, steps_of, write_capsule, write_record
from tools.site.transcripts import commands_of, rewrite, run

REPOSITORY = Path(__file__).parents[2]
MIB = 1 << 20
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 14.56 GiB "
    "of which 778.45 MiB is free. Of the allocated memory 12.60 GiB is allocated by PyTorch, and 1.06 GiB is reserved "
    "by PyTorch but unallocated."
)
# What it says on stderr is the log of a crash, which pages read.
A_CRASH = "peaksight run --gpu t4 train.py"
# First those that make files which others read.
FIRST = ("docs/tutorial.md", "docs/start.md", "README.md")
PAGES = [
    *FIRST,
    *sorted(
        str(path.relative_to(REPOSITORY))
        for folder in ("docs", "examples", "src")
        for path in (REPOSITORY / folder).rglob("*.md")
        if str(path.relative_to(REPOSITORY)) not in FIRST
    ),
]


def text_of(page):
    """A page as it stands in the repository."""
    return (REPOSITORY / page).read_text("utf-8")


def run_all(folder):
    """What each tested command printed, by its text; one that several pages show is run once."""
    furnish(folder)
    done = {}
    for page in PAGES:
        for command in commands_of(text_of(page)):
            if command.reason is None and command.text not in done:
                where = folder / "systems" / Path(page).parent.name if page.startswith("examples/systems") else folder
                done[command.text] = run(command.text, where)
                if command.text == A_CRASH:
                    (folder / "crash.log").write_text(done[command.text].stderr)
    return done


def furnish(folder):
    """A copy of examples/, and beside it what crashes and watched runs leave."""
    shutil.copytree(REPOSITORY / "examples", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "snapshot.pickle").write_bytes(pickle.dumps(_snapshot()))
    (folder / "trace.json").write_text(json.dumps([["segment_alloc", 0, 20 * MIB, 0], ["alloc", 0, 4 * MIB, 0]]))
    for rank, text in enumerate(("NCCL timeout: Watchdog caught collective operation timeout", OUT_OF_MEMORY)):
        (folder / f"rank{rank}.log").write_text(text)
    watched = folder / "peaksight-watch" / "RUN"
    write_capsule(watched, process_of(1), failure_of(), steps=steps_of(until=3), ending=ended_by_memory())
    write_record(watched, process_of(0), steps=steps_of(until=3), error="NCCL timeout", exit_code=1)
    shutil.copy(next(watched.glob("*.capsule")), folder / "rank1.capsule")


def _snapshot():
    def stack(line):
        return [{"filename": "/home/me/train.py", "line": line, "name": "<module>"}]

    start = 140 << 40
    events = [
        {"action": "segment_alloc", "addr": start, "size": 20 * MIB},
        {"action": "alloc", "addr": start, "size": 12 * MIB, "frames": stack(10)},
        {"action": "oom", "device_free": 3 * MIB, "size": 16 * MIB, "frames": stack(12)},
    ]
    return {"segments": [], "device_traces": [events]}


def main():
    """Write what the commands print today into the pages: `python -m tests.docs.pages`."""
    with tempfile.TemporaryDirectory() as folder:
        printed = {text: done.stdout for text, done in run_all(Path(folder)).items()}
    for page in PAGES:
        (REPOSITORY / page).write_text(rewrite(text_of(page), printed), "utf-8")


if __name__ == "__main__":
    main()
