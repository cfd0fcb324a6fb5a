"""Worker processes of the script share its files, and harm the person's as little."""

import shutil
from pathlib import Path

import pytest

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import Scratch, run_script

EXPECTED = """(False, ['a.txt', 'sub'], 'worker')
0 7 parent and worker False
[1, 2]
[1, 2]
"""


@pytest.fixture
def worker_script(home, tmp_path):
    """The script, in a directory beside `home`."""
    return shutil.copy(Path(__file__).with_name("worker_script.py"), tmp_path)


SLOW_METHODS = [pytest.param(method, marks=pytest.mark.slow) for method in ("spawn", "forkserver")]


@pytest.mark.parametrize("method", ["fork", *SLOW_METHODS])
def test_workers_share_the_overlay(method, worker_script, capfd):
    """By every start method, a worker sees what the run wrote and deleted, and the run what the worker did."""
    with Scratch() as scratch:
        exit_code = run_script(ScriptCommand(target=worker_script, args=(method,))).exit_code

    captured = capfd.readouterr()
    assert (EXPECTED, "", 0) == (captured.out, captured.err, exit_code)
    assert {
        ("by_parent.txt", "written"),
        ("by_worker.txt", "written"),
        ("notes.txt", "deleted"),
        ("old.txt", "deleted"),
        ("starts.txt", "written"),
    } == {(write.path, write.kind) for write in scratch.writes()}


@pytest.mark.torch
def test_data_loader_workers(home):
    """DataLoader's workers, their shared memory and their locks work."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Files(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            Path(f"cache-{index}.txt").write_text(str(index))
            return torch.tensor(int(Path(f"cache-{index}.txt").read_text()))

    with Scratch() as scratch:
        batches = [batch.tolist() for batch in DataLoader(Files(), batch_size=2, num_workers=2)]

    assert [[0, 1], [2, 3]] == batches
    assert [f"cache-{index}.txt" for index in range(4)] == [write.path for write in scratch.writes()]
