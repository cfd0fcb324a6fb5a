"""`peaksight read` of a memory snapshot, as a command."""

import gzip
import json
import pickle
import subprocess
import sys

from helpers_page_numbers import json_of_page, text_of_page

MIB = 1 << 20
BASE = 140 << 40


def stack(line):
    return [
        {"filename": "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py", "line": 5, "name": "_call_impl"},
        {"filename": "/home/me/train.py", "line": line, "name": "<module>"},
    ]


def snapshot():
    """Two blocks in one segment, of which the first is freed; then the card has too little."""
    events = [
        {"action": "segment_alloc", "addr": BASE, "size": 20 * MIB},
        {"action": "alloc", "addr": BASE, "size": 12 * MIB, "frames": stack(10)},
        {"action": "alloc", "addr": BASE + 12 * MIB, "size": 2 * MIB, "frames": stack(11)},
        {"action": "free_requested", "addr": BASE, "size": 12 * MIB},
        {"action": "free_completed", "addr": BASE, "size": 12 * MIB},
        {"action": "oom", "device_free": 3 * MIB, "size": 16 * MIB, "frames": stack(12)},
    ]
    return {"segments": [], "device_traces": [[], events]}


def test_the_page(peaksight, tmp_path):
    """Says what happened, who holds the peak and what keeps reserved memory."""
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(snapshot()))
    done = peaksight("read", "snapshot.pickle")
    first = " ".join(done.stdout.partition("\n\n")[0].split())

    assert (0, "") == (done.returncode, done.stderr)
    assert first == (
        "Ran out of memory at train.py:12 in the forward: asked for 16.00 MiB with 2.00 MiB allocated and 20.00 MiB "
        "reserved, 3.00 MiB of the card free; 18.00 MiB were reserved and not used, in pieces of up to 12.00 MiB."
    )
    assert "train.py:10" in done.stdout
    assert "cuda:1" in done.stdout


def test_json(peaksight, tmp_path):
    """Has the keys of a report, null for what no snapshot tells; a gzipped file is read as it is."""
    (tmp_path / "snapshot.pickle.gz").write_bytes(gzip.compress(pickle.dumps(snapshot())))
    done = peaksight("read", "--json", "-", "snapshot.pickle.gz")
    report = json.loads(done.stdout)

    assert "peaksight.recording/1" == report["schema"]
    assert {"total_bytes": None, "usable_bytes": 23 * MIB, "name": ""} == report["gpu"]
    assert (14 * MIB, "train.py:11") == (report["peak"]["allocated_bytes"], report["peak"]["at"])
    assert ["train.py:10", "train.py:11"] == [holder["source"] for holder in report["live_at_peak"]]
    assert (16 * MIB, 3 * MIB, False) == (report["oom"]["requested_bytes"], report["oom"]["free_bytes"], report["fits"])
    assert [("train.py:11", 1, 18 * MIB)] == [
        (pin["source"], pin["num_segments"], pin["alone_bytes"]) for pin in report["fragmentation"]["pins"]
    ]


def test_a_web_page(peaksight, tmp_path):
    """One file that fetches nothing, also of a snapshot and a log; what the file's names hold is text."""
    told = snapshot()
    told["device_traces"][1][1]["frames"][1]["filename"] = "/home/me/<script>\x1b[2J.py"
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(told))
    done = peaksight("read", "--html", "page.html", "snapshot.pickle")
    page = (tmp_path / "page.html").read_text()

    assert 0 == done.returncode
    assert "Ran out of memory at train.py:12" in text_of_page(page)
    assert "<script>" in text_of_page(page)
    assert "/<script" not in page
    assert "\x1b" not in page + done.stdout

    (tmp_path / "train.log").write_text("CUDA out of memory. Tried to allocate 2.00 GiB\n")
    done = peaksight("read", "--html", "both.html", "--json", "both.json", "train.log", "snapshot.pickle")
    page = (tmp_path / "both.html").read_text()

    assert 0 == done.returncode
    assert (tmp_path / "both.json").read_text() == json_of_page(page)
    assert "Ran out of memory at train.py:12" in text_of_page(page)


def test_a_hostile_file(peaksight, tmp_path):
    """One sentence and exit 2; nothing ran."""
    (tmp_path / "snapshot.pickle").write_bytes(b"\x80\x04cos\nsystem\n(\x8c\x0ftouch it-worked\x94tR.")
    done = peaksight("read", "snapshot.pickle")

    assert 2 == done.returncode
    assert done.stderr == (
        "peaksight: Can't read the snapshot 'snapshot.pickle': it asks for os.system, and no snapshot needs code; give "
        "the file of torch.cuda.memory._dump_snapshot(). See docs/messages.md#bad-snapshot.\n"
    )
    assert not (tmp_path / "it-worked").exists()


def test_reading_imports_no_torch(tmp_path):
    """Nor jax, nor numpy."""
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot()))
    code = (
        "import sys; from peaksight.cli import main; main(['read', sys.argv[1]]); "
        "print(sorted({'torch', 'jax', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.splitlines()[-1]
