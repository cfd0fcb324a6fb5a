"""The audit net: what gets past the redirection, the network, other programs, other processes."""

import ctypes.util
import io
import multiprocessing.util
import os
import pathlib
import platform
import posix
import socket
import sqlite3
import subprocess
import sys
import threading
import uuid

import pytest

from peaksight.virtual_gpu.script import Scratch
from peaksight.virtual_gpu.script.commands import is_read_only


@pytest.mark.parametrize(
    "write",
    [
        lambda: io.FileIO("notes.txt", "w"),
        lambda: posix.open("notes.txt", os.O_WRONLY | os.O_TRUNC),
        lambda: posix.open("new.txt", os.O_WRONLY | os.O_CREAT),
        lambda: posix.unlink("notes.txt"),
        lambda: posix.rmdir("empty"),
        lambda: posix.mkdir("new"),
        lambda: posix.rename("notes.txt", "new.txt"),
        lambda: posix.link("notes.txt", "new.txt"),
        lambda: posix.symlink("notes.txt", "new.txt"),
        lambda: posix.truncate("notes.txt", 0),
        lambda: posix.chmod("notes.txt", 0),
        lambda: posix.utime("notes.txt"),
        lambda: posix.setxattr("notes.txt", "user.x", b""),
        lambda: sqlite3.Connection("runs.db"),
        lambda: os.chmod(os.open("notes.txt", os.O_RDONLY), 0),
    ],
)
def test_what_is_not_redirected_is_refused(write, home):
    """A write that reaches the person's files by another door is a PermissionError, and does not happen."""
    with Scratch(), pytest.raises(PermissionError, match=r"A simulated run does not write there.*/home/"):
        write()


def test_a_pipe_of_the_persons_is_no_file_to_remove(home):
    """It may be written to, its name stays."""
    os.mkfifo("fifo")
    with Scratch(), pytest.raises(PermissionError):
        posix.unlink("fifo")
    os.unlink("fifo")


def test_the_net_says_nothing_as_python_ends(tmp_path):
    """Objects that are freed after our modules may still open files."""
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from peaksight.virtual_gpu.script import Scratch\n"
        "with Scratch(): pass\n"
        f"class Late:\n    def __del__(self, write=open): write({str(tmp_path / 'late')!r}, 'w').close()\n"
        "sys.late = Late()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert (tmp_path / "late").exists()


def test_the_net_is_inert_without_a_scratch(tmp_path):
    """Outside the context nothing is refused."""
    with Scratch():
        pass
    posix.mkdir(tmp_path / "made")

    assert (tmp_path / "made").is_dir()


def test_special_files_are_left_alone(home, capfd):
    """Devices, pipes and the process's own files are what they are."""
    reading, writing = os.pipe()
    with Scratch() as scratch:
        with open("/dev/null", "w") as null, open(f"/proc/self/fd/{writing}", "w") as pipe:
            null.write("nothing")
            pipe.write("something")
        with pytest.raises(PermissionError):
            os.chmod("/dev/null", 0o666)
        with open("/dev/stdout", "a") as stdout:
            stdout.write("printed")
        names = os.listdir("/proc/self/fd")

    assert os.read(reading, 100) == b"something"
    assert capfd.readouterr().out == "printed"
    assert str(writing) in names
    assert scratch.writes() == ()


@pytest.mark.parametrize(
    "connect",
    [
        lambda: socket.create_connection(("example.invalid", 80), timeout=1),
        lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
        lambda: socket.gethostbyname("example.invalid"),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9)),
        lambda: __import__("urllib.request").request.urlopen("http://example.invalid"),
    ],
)
def test_the_network_is_off(connect, home):
    """Connections fail as on a machine that is offline, and are listed once."""
    with Scratch() as scratch:
        for _ in range(2):
            with pytest.raises(OSError):
                connect()

    assert [note.slug for note in scratch.notes()] == ["network-off"]
    assert scratch.notes()[0].what.count("example.invalid") + scratch.notes()[0].what.count("192.0.2.1") == 1


def test_loopback_and_unix_sockets_work(home):
    """Processes of the run may talk to each other."""
    with Scratch() as scratch:
        with socket.create_server(("localhost", 0)) as server:
            socket.create_connection(server.getsockname()).close()
        left, right = socket.socketpair()
        left.send(b"x")

        assert right.recv(1) == b"x"
    assert scratch.notes() == ()


def test_offline_switches_are_set_and_put_back(home):
    """Libraries find their own offline switches; afterwards the environment is the person's."""
    before = dict(os.environ)
    with Scratch():
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        assert os.environ["WANDB_MODE"] == "disabled"
        os.environ["SET_BY_THE_SCRIPT"] = "x"

    assert before == dict(os.environ)


def test_other_programs_are_not_started(home):
    """They are not found, as on a machine that lacks them, and are listed."""
    with Scratch() as scratch:
        for start in (
            lambda: subprocess.run(["touch", "made.txt"]),
            lambda: subprocess.run("touch made.txt", shell=True),
            lambda: os.posix_spawn("/bin/touch", ["touch", "made.txt"], {}),
            lambda: os.execv("/bin/touch", ["touch", "made.txt"]),
            lambda: multiprocessing.util.spawnv_passfds("/bin/touch", ["touch", "made.txt"], []),
        ):
            with pytest.raises(FileNotFoundError):
                start()
        status = os.system("touch made.txt")

    assert os.waitstatus_to_exitcode(status) == 127
    assert [note.slug for note in scratch.notes()] == ["subprocess-refused"]
    assert "touch made.txt" in scratch.notes()[0].what


def test_libraries_learn_about_the_machine(home):
    """What platform, uuid and ctypes ask other programs still answers."""
    expected = platform.platform(), ctypes.util.find_library("c")
    with Scratch():
        assert expected == (platform.platform(), ctypes.util.find_library("c"))
        assert uuid.uuid1().node == uuid.getnode()
        assert os.uname().sysname == subprocess.check_output(["uname", "-s"], text=True).strip()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["nvidia-smi", "--query-gpu=name", "--format=csv"], True),
        (["/usr/bin/git", "rev-parse", "HEAD"], True),
        (["/bin/sh", "-c", "git describe --always"], True),
        (["git", "commit"], False),
        (["git", "-C", "x", "push"], False),
        (["hostname", "newname"], False),
        (["sysctl", "-w", "vm.x=1"], False),
        (["/bin/sh", "-c", "uname; rm x"], False),
        (["/bin/sh", "-c", "uname > x"], False),
        (["python", "other.py"], False),
        ([], False),
    ],
)
def test_read_only_commands(command, expected):
    """A short list may run; anything with a shell's syntax may not."""
    assert expected == is_read_only(command)


def test_only_own_processes_are_signalled(home):
    """A script may stop its workers, not the shell that started it."""
    with Scratch():
        for kill in (lambda: os.kill(os.getppid(), 15), lambda: os.killpg(0, 15), lambda: os.kill(-1, 15)):
            with pytest.raises(PermissionError):
                kill()
        os.kill(os.getppid(), 0)
        child = os.fork()
        if child == 0:
            threading.Event().wait(10)
            os._exit(0)
        os.kill(child, 9)

        assert os.waitpid(child, 0)[1] == 9


def test_a_thread_that_outlives_the_run_writes_nothing(home):
    """What the script leaves running is still under the net; other threads are not."""
    go, outcome = threading.Event(), []

    def write_later():
        go.wait(10)
        try:
            pathlib.Path("late.txt").touch()
        except OSError as error:
            outcome.append(type(error))

    with Scratch():
        thread = threading.Thread(target=write_later)
        thread.start()
    go.set()
    thread.join()

    assert [PermissionError] == outcome


def test_atexit_handlers_of_the_script_write_nothing(home, tmp_path):
    """They run at the end of the process as ever, in a scratch of their own; handlers from before are left alone."""
    program = """
import atexit, pathlib, sys
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text("by the host"))
from peaksight.virtual_gpu.script import Scratch
with Scratch():
    atexit.register(lambda: print(pathlib.Path("late.txt").write_text("by the script")))
"""
    result = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "host.txt"], capture_output=True, text=True, check=True
    )

    assert (result.stdout, result.stderr) == ("13\n", "")
    assert (tmp_path / "host.txt").read_text() == "by the host"
