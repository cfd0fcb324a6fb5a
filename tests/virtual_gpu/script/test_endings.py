"""Whatever ends a process from the inside ends the script, and the run goes on to report."""

import os
import signal
import subprocess
import sys

import pytest

from peaksight.errors import StopSimulation
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import run_script


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a script of this text: its ending."""
    monkeypatch.chdir(tmp_path)

    def run(text):
        (tmp_path / "train.py").write_text(text)
        return run_script(ScriptCommand(target="train.py"))

    return run


@pytest.fixture
def heeds_interrupts():
    """As in a terminal: shells start background jobs, as CI may be one, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    "text",
    [
        "import os; os._exit(3)",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import signal; signal.raise_signal(signal.SIGUSR1)",
        "import signal, time; signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(60)",
        "import os, signal; signal.signal(signal.SIGTERM, lambda *args: os._exit(4)); signal.raise_signal(15)",
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.kill(os.getpid(), 15)",
        "import os, signal; os.kill(os.getpid(), signal.SIGWINCH); os.kill(os.getpid(), 0)",
    ],
)
def test_the_exit_code_is_that_of_a_shell(text, run):
    """128 and the number of the signal, or what the script says."""
    plain = subprocess.run([sys.executable, "-c", text], capture_output=True).returncode

    assert (128 - plain if plain < 0 else plain) == run(text).exit_code


def test_a_watchdog_does_not_end_the_run(run, tmp_path):
    """`faulthandler` writes where the script is; a simulation has another clock.

    The script sleeps meanwhile: a watchdog reads the frames of threads that run on, and at times that crashes.
    """
    text = """
import faulthandler, os, time
file = open("stacks.txt", "w")
faulthandler.dump_traceback_later(0.01, exit=True, file=file)
while not os.path.getsize("stacks.txt"):
    time.sleep(1)
raise SystemExit(9)
"""

    assert 9 == run(text).exit_code
    assert "train.py" in (tmp_path / "stacks.txt").read_text()


def test_nothing_is_left_behind(run):
    """Functions, handlers and timers are as before."""

    def state():
        handlers = [signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGPROF, signal.SIGINT)]
        return os._exit, os.abort, os.kill, signal.raise_signal, handlers, signal.getitimer(signal.ITIMER_REAL)

    before = state()
    run("import signal; signal.alarm(1); signal.signal(signal.SIGALRM, print)")

    assert before == state()


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(1)"])
def test_a_script_that_catches_ctrl_c(run, heeds_interrupts, end):
    """However it then ends, the run was interrupted."""
    interrupt = (
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    pass\n"
    )

    assert run(interrupt + end).was_interrupted
    assert not run("pass").was_interrupted


FORKS = """
import os, hook
for end in ("raise SystemExit(7)", "hook.stop()", "os.kill(os.getpid(), 9)"):
    if os.fork() == 0:
        exec(end)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
HOOK = f"""
from {StopSimulation.__module__} import StopSimulation
def stop():
    raise StopSimulation("steady")
"""
DRIVER = """
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import run_script
print("ended", run_script(ScriptCommand(target="train.py")).exit_code)
"""


def test_a_fork_ends_by_itself(tmp_path):
    """Whatever ends it, it is no second end of the run."""
    (tmp_path / "train.py").write_text(FORKS)
    (tmp_path / "hook.py").write_text(HOOK)
    done = subprocess.run([sys.executable, "-c", DRIVER], cwd=tmp_path, capture_output=True, text=True)

    assert "7\n1\n-9\nended 0\n" == done.stdout
    assert "" == done.stderr
