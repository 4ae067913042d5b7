"""From the signal that ends a supervisor until nothing of its job is left: of such as obey, and not."""

import signal
import sys
import time
from collections.abc import Iterator

from tests.bench.job_run import PROCESSES, supervised
from tests.bench.shared import processes
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure, median, spread

TITLE = "stop of a job"
ROUNDS = 5
GRACE_S = 2.0
BUDGET_S = 0.5
START_LIMIT_S = 60.0

_TREE = """
import os, signal, sys, time
for _ in range({more}):
    if os.fork() == 0:
        break
if {ignores}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if {escapes} and os.getpid() % 8 == 0 and os.getpid() != os.getsid(0):
    os.setsid()
time.sleep(1000)
"""
"""Of so many processes; one in eight of those that escape has a session of its own."""


def run() -> Iterator[Figure]:
    for what, ignores, escapes, budget_s in (
        ("that obey", False, False, BUDGET_S),
        ("that obey, some in sessions of their own", False, True, GRACE_S + BUDGET_S),
        ("that ignore the signal", True, True, GRACE_S + BUDGET_S),
    ):
        times = [_stop(ignores=ignores, escapes=escapes) for _ in range(ROUNDS)]
        yield Figure(
            name=f"{PROCESSES} processes {what}",
            value=median(times),
            unit="s",
            budget=budget_s,
            note=spread(times),
        )


def _stop(*, ignores: bool, escapes: bool) -> float:
    program = _TREE.format(more=PROCESSES - 1, ignores=ignores, escapes=escapes)
    policy = ("--grace", f"{GRACE_S:g}s", "--in-place-retries", "1")
    with (
        scratch() as folder,
        supervised(folder, sys.executable, "-c", program, policy=policy) as supervisor,
    ):
        end_s = time.monotonic() + START_LIMIT_S
        while len(pids := processes.tree(supervisor.pid)) <= PROCESSES:
            if time.monotonic() > end_s:
                raise TimeoutError(f"{len(pids) - 1} of {PROCESSES} processes have started")
            time.sleep(0.1)
        time.sleep(0.5)
        begun_s = time.monotonic()
        supervisor.send_signal(signal.SIGTERM)
        supervisor.wait(START_LIMIT_S)
        return time.monotonic() - begun_s
