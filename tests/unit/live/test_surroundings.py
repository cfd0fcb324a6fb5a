"""What surrounds a process."""

import pytest

from peaksight.live.surroundings import host_memory, processes_on, scheduler
from peaksight.records.capsule import HostMemory


def write(root, **files):
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_slurm():
    """Only what names job, step, node and task."""
    assert {"SLURM_JOB_ID": "7"} == scheduler({"SLURM_JOB_ID": "7", "SLURM_CONF": "/etc", "HOME": "/root"})
    assert {} == scheduler({})


def test_control_groups(tmp_path):
    """The tightest limit on the way up counts, of which the outermost may be in another folder."""
    group = tmp_path / "sys" / "fs" / "cgroup" / "slurm" / "job_7"
    write(tmp_path, proc__self__cgroup="0::/slurm/job_7\n")
    write(group, **{"memory.max": "max\n", "memory.current": "500\n", "memory.events": "oom 3\noom_kill 2\n"})
    write(group.parent, **{"memory.max": "1000\n", "memory.current": "900\n", "memory.events": "oom_kill 9\n"})

    assert HostMemory(limit_bytes=1000, used_bytes=500, oom_kills=2) == host_memory(tmp_path)


def test_control_groups_of_the_first_version(tmp_path):
    """Of which memory is a tree of its own, and no limit is nearly 2^63."""
    group = tmp_path / "sys" / "fs" / "cgroup" / "memory" / "job"
    write(tmp_path, proc__self__cgroup="5:cpu,cpuacct:/\n4:memory:/job\n")
    write(group, **{"memory.limit_in_bytes": "4096\n", "memory.usage_in_bytes": "10\n"})
    write(group, **{"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"})
    write(group.parent, **{"memory.limit_in_bytes": "9223372036854771712\n"})

    assert HostMemory(limit_bytes=4096, used_bytes=10, oom_kills=1) == host_memory(tmp_path)


@pytest.mark.parametrize("text", ["", "nonsense\n", "0::/gone\n"])
def test_without_control_groups(tmp_path, text):
    """Nothing is known, and nothing fails."""
    write(tmp_path, proc__self__cgroup=text)

    assert HostMemory() == host_memory(tmp_path)
    assert HostMemory() == host_memory(tmp_path / "nowhere")


def test_without_a_driver():
    """No card, no processes."""
    assert ("", ()) == processes_on("00000000:01:00.0")
