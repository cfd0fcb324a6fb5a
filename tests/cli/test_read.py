"""`peaksight read`, as a command."""

import json
import subprocess
import sys

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 6 has a total capacity of 23.65 GiB "
    "of which 208.06 MiB is free. Process 2271801 has 23.44 GiB memory in use. Of the allocated memory 22.87 GiB is "
    "allocated by PyTorch, and 6.23 MiB is reserved by PyTorch but unallocated.\n"
)


def test_a_log_on_stdin():
    """The page begins with what happened."""
    done = subprocess.run(
        [sys.executable, "-m", "peaksight", "read", "-"], input=MESSAGE, capture_output=True, text=True, timeout=600
    )

    assert done.returncode == 0
    assert done.stdout.startswith("Card 6 ran out of memory, asked for 270.00 MiB")
    assert done.stderr == ""


def test_json_is_alone_on_stdout(peaksight, tmp_path):
    """With `--json -`; the message is in it with its bytes."""
    (tmp_path / "train.log").write_text(f"step 1\n[rank6]: {MESSAGE}")
    done = peaksight("read", "--json", "-", "train.log")
    reading = json.loads(done.stdout)

    assert done.returncode == 0
    assert (reading["messages"][0]["requested_bytes"], reading["first_failing_rank"]) == (270 << 20, 6)


def test_a_notebook(peaksight, tmp_path):
    """What its cells printed is read, as if it had come out of a script; not how the file writes it down."""
    lines = ["batch size 32\n", "step 1\n"]
    error = {"output_type": "error", "ename": "OutOfMemoryError", "evalue": MESSAGE, "traceback": ["\x1b[31m", MESSAGE]}
    outputs = [{"output_type": "stream", "name": "stdout", "text": lines}, error]
    cells = [{"cell_type": "markdown", "source": []}, {"cell_type": "code", "source": "train()", "outputs": outputs}]
    (tmp_path / "train.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (tmp_path / "pasted.ipynb").write_text(MESSAGE)
    reading = json.loads(peaksight("read", "--json", "-", "train.ipynb").stdout)
    pasted = json.loads(peaksight("read", "--json", "-", "pasted.ipynb").stdout)

    (message,) = reading["messages"]
    assert (message["requested_bytes"], message["line"]) == (270 << 20, 4)
    assert [fact["value"] for fact in reading["facts"] if fact["name"] == "batch"] == [32]
    assert 270 << 20 == pasted["messages"][0]["requested_bytes"]


def test_several_logs(peaksight, tmp_path):
    """One page each, those that say nothing left out; the JSON is an array."""
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(MESSAGE)
    (tmp_path / "c.log").write_text("fine\n")
    done = peaksight("read", "a.log", "b.log", "c.log", "--json", "all.json")

    assert done.stdout.count("Card 6 ran out of memory") == 2
    assert [reading["sources"] for reading in json.loads((tmp_path / "all.json").read_text())] == [["a.log"], ["b.log"]]


def test_the_logs_of_the_ranks_of_one_job(peaksight, tmp_path):
    """One page and one object: which failed first, the others as one line each."""
    (tmp_path / "rank0.log").write_text("NCCL communicator was aborted on rank 0.\n")
    (tmp_path / "rank6.log").write_text(MESSAGE)
    done = peaksight("read", "rank0.log", "rank6.log", "--json", "job.json")
    job = json.loads((tmp_path / "job.json").read_text())

    assert done.stdout.startswith("Rank 6 failed first of 2, by the cause: it alone ran out of memory")
    assert done.stdout.count("ran out of memory, asked for") == 1
    assert "rank 0 Missed another rank: NCCL communicator was aborted" in done.stdout
    assert ("peaksight.job/1", 6, "cause") == (job["schema"], job["first_failing_rank"], job["told_by"])
    assert (["rank6.log"], [0]) == (job["reading"]["sources"], [end["rank"] for end in job["others"]])


def test_a_log_without_memory(peaksight, tmp_path):
    """One sentence and exit 2."""
    words = (
        "model = AutoModel.from_pretrained(name)\nuse_cache: true\nlora attention cross_entropy "
        "resume_from_checkpoint\n"
    )
    (tmp_path / "train.log").write_text(words + "step 1 loss 2.3 eval torchmetrics\n" * 1000)
    done = peaksight("read", "train.log")

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "peaksight: train.log: nothing about memory that peaksight knows.\n"


def test_a_file_that_does_not_exist(peaksight):
    """One sentence and exit 2."""
    done = peaksight("read", "nowhere.log")

    assert done.returncode == 2
    assert "Can't read nowhere.log: No such file or directory" in done.stderr


def test_reading_a_log_imports_no_torch(tmp_path):
    """A log is read where torch is not installed."""
    (tmp_path / "train.log").write_text(MESSAGE)
    code = (
        "import sys; from peaksight.cli import main; main(['read', 'train.log']); "
        "print(sorted({'torch', 'jax', 'numpy'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[]"
