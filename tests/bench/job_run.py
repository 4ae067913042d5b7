"""What the supervisor of a job costs: the time that it adds to a command, and what it uses while it watches.

It is measured without a daemon: what the supervisor asks of one is in the figures of the daemon.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.bench.shared import processes
from tests.bench.shared.daemon import ROOT, scratch
from tests.bench.shared.figures import Figure, median, spread

TITLE = "the supervisor of a job"
ROUNDS = 21
BUDGET_ADDED_S = 0.15
PROCESSES = 64
SETTLE_S = 15.0
WATCHED_S = 60.0
BUDGET_PERCENT = 0.1
BUDGET_MIB = 25.0
MIB = 1024 * 1024
SLEEPERS = f"for i in $(seq {PROCESSES - 1}); do sleep 1000 & done; wait"


def run() -> Iterator[Figure]:
    with scratch() as folder:
        yield _added(folder)
    with scratch() as folder, supervised(folder, "sh", "-c", SLEEPERS) as supervisor:
        yield from _watching(supervisor.pid)


def job_run(folder: Path, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "nodeagent.job", "run", "--state", str(folder / "state"), *words)


def environment(folder: Path) -> dict[str, str]:
    """Without a daemon, and compiled as a package has it."""
    fresh = {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **fresh, "NODEAGENT_JOBS_SOCKET": str(folder / "none.sock")}


@contextmanager
def supervised(
    folder: Path, *command: str, policy: Sequence[str] = ()
) -> Iterator["subprocess.Popen[bytes]"]:
    """What is left of it is killed with it."""
    with subprocess.Popen(
        [*job_run(folder), *policy, "--", *command], env=environment(folder), stdin=subprocess.DEVNULL
    ) as supervisor:
        try:
            yield supervisor
        finally:
            left = processes.tree(supervisor.pid) if supervisor.poll() is None else []
            for pid in left:
                os.kill(pid, 9)


def _added(folder: Path) -> Figure:
    bare, python, run_by_us = [], [], []
    for _ in range(ROUNDS + 1):
        bare.append(_took_s(folder, "true"))
        python.append(_took_s(folder, sys.executable, "-c", "pass"))
        run_by_us.append(_took_s(folder, *job_run(folder), "--", "true"))
    added = [ours - alone for ours, alone in zip(run_by_us[1:], bare[1:], strict=True)]
    return Figure(
        name="added to `true`",
        value=median(added),
        unit="s",
        budget=BUDGET_ADDED_S,
        peer=median(each - alone for each, alone in zip(python[1:], bare[1:], strict=True)),
        peer_name="python -c pass",
        note=spread(added),
    )


def _took_s(folder: Path, *command: str) -> float:
    begun_s = time.monotonic()
    subprocess.run(command, env=environment(folder), stdin=subprocess.DEVNULL, check=True)
    return time.monotonic() - begun_s


def _watching(pid: int) -> Iterator[Figure]:
    time.sleep(SETTLE_S)
    watched = len(processes.tree(pid)) - 1
    begun_s, before_ns = time.monotonic(), processes.cpu_ns([pid])
    time.sleep(WATCHED_S)
    used_ns, took_s = processes.cpu_ns([pid]) - before_ns, time.monotonic() - begun_s
    what = f"watching {watched} processes"
    yield Figure(
        name=f"{what}: processor, of one core",
        value=used_ns / 1e7 / took_s,
        unit="%",
        budget=BUDGET_PERCENT,
        note=f"(for {took_s:.0f} s)",
    )
    yield Figure(
        name=f"{what}: memory, as on a machine without other Pythons",
        value=processes.alone_bytes([pid]) / MIB,
        unit="MiB",
        budget=BUDGET_MIB,
    )
