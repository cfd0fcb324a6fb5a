"""Asks every peer about one workload: `python -m benchmarks.peers.worker WORKLOAD SECONDS` prints answers as JSON.

The script is run to its first step once; each peer goes on from there in a fork of this process, with a limit of the
seconds that a processor works for it: what else the machine does decides no answer.
"""

import json
import resource
import signal
import sys
import time
from dataclasses import asdict, replace
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection

from benchmarks.accuracy.workloads import Workload, workloads
from benchmarks.peers.answers import Answer, RefusedError
from benchmarks.peers.first_step import TrainingStep, first_step_of
from benchmarks.peers.tools import PEERS

# A peer that waits for something, instead of working, has this many seconds for each that it may work.
PATIENCE = 10


def main(name: str, cpu_seconds: float) -> None:
    """One object, with an answer for each peer's module, in the last line of the output."""
    workload = next(w for w in workloads() if w.name == name)
    step = first_step_of(workload)
    print(json.dumps({peer.module: asdict(_forked(peer.module, workload, step, cpu_seconds)) for peer in PEERS}))


def _forked(module: str, workload: Workload, step: TrainingStep, cpu_seconds: float) -> Answer:
    receiver, sender = get_context("fork").Pipe(duplex=False)
    child = get_context("fork").Process(target=_send_answer, args=(sender, module, workload, step, cpu_seconds))
    child.start()
    sender.close()
    try:
        if not receiver.poll(PATIENCE * cpu_seconds):
            return Answer(reason=f"no answer in {PATIENCE * cpu_seconds:.0f} s")
        answer: Answer = receiver.recv()
        return replace(answer, cpu_seconds=answer.cpu_seconds + time.process_time())
    except EOFError:
        child.join()
        if child.exitcode == -signal.SIGXCPU:
            return Answer(reason=f"no answer in {cpu_seconds:.0f} s of CPU")
        return Answer(reason=f"crashed, signal {-(child.exitcode or 0)}")
    finally:
        child.kill()
        child.join()


def _send_answer(sender: Connection, module: str, workload: Workload, step: TrainingStep, cpu_seconds: float) -> None:
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds), hard_limit))
    answer = _answer(module, workload, step)
    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() + waited_for.ru_utime + waited_for.ru_stime
    sender.send(replace(answer, cpu_seconds=seconds))


def _answer(module: str, workload: Workload, step: TrainingStep) -> Answer:
    """Whatever the peer raises is its reason for not answering."""
    try:
        return Answer(predicted_bytes=import_module(f"benchmarks.peers.{module}").predict(workload, step))
    except RefusedError as error:
        return Answer(reason=str(error), is_applicable=error.is_applicable)
    except Exception as error:
        return Answer(reason=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
