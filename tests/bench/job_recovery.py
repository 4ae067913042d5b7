"""From a fault of an emulated chip to the next run of the job on it, step by step.

The supervisor, the daemon and the reset unit are real. Of the whole, the time that the emulated chip takes
for a reset is left out, and the job's command does nothing: what is measured is what nodeagent adds.
"""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from nodeagent.client import Event
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure, median, percentile, spread
from tests.bench.shared.kernel_log import NeedsRoot
from tests.reset_unit.acting import BROKEN, acting
from tests.stories.jobs import CHIPS, Job, claim, slurm_step

TITLE = "a job recovers in place"
NODES = 3
"""One after another, each with a recovery for each of its chips: repetition on one chip would isolate it."""

CHIP_RESET_S = 0.5
BUDGET_SIGNALLED_S = 0.05
BUDGET_STARTED_S = 0.1
BUDGET_TOTAL_S = 3.0
REQUEUE_S = 121.0
"""Of Slurm 22.05 until the job's new begin time, as shipped (``cred_expire`` of slurm.conf(5) is 120 s)."""

_COMMAND = """
import os, signal, sys, time
def end(*_):
    print("ended", time.time_ns(), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print(f"rank 0, pid {os.getpid()}, run {os.environ['NODEAGENT_RUN']}: from step 0", flush=True)
print("ready", flush=True)
while True:
    signal.pause()
"""
_SHELL = 'echo "started $(date +%s%N)"; exec "$@"'


def run() -> Iterator[Figure]:
    if os.geteuid() != 0:
        raise NeedsRoot("it makes a cgroup")
    rounds: list[tuple[float, float, float]] = []
    for _ in range(NODES):
        with scratch() as folder:
            rounds += asyncio.run(_rounds(folder))
    signalled, started, total = zip(*rounds, strict=True)
    for name, times, at, budget_s, peer_s in (
        ("asked, until the command has the signal", signalled, 99, BUDGET_SIGNALLED_S, None),
        ("verified, until the command runs", started, 99, BUDGET_STARTED_S, None),
        ("fault, until the command runs, without the chip's reset", total, 95, BUDGET_TOTAL_S, REQUEUE_S),
    ):
        yield Figure(
            name=f"{name}, p{at}",
            value=percentile(times, at),
            unit="s",
            budget=budget_s,
            peer=peer_s,
            peer_name="a requeue of Slurm" if peer_s else "",
            note=f"median {median(times):.3f} {spread(times)}",
        )


async def _rounds(folder: Path) -> list[tuple[float, float, float]]:
    async with acting(folder, "8x910B") as node:
        node.reset = ("limit = 100", "node_limit = 100")
        await node.start()
        await node.read_again()
        with slurm_step() as step:
            (folder / "job").mkdir()
            job = Job(node=node, step=step, folder=folder / "job")
            job.policy = ("--in-place",)
            job.trained = ("sh", "-c", _SHELL, "sh", sys.executable, "-c", _COMMAND)
            await claim(job, *CHIPS)
            await job.start()
            found = [await _recover(job, run) for run in range(1, len(CHIPS) + 1)]
            assert job.holding is not None
            job.holding.cancel()
            return found


async def _recover(job: Job, run: int) -> tuple[float, float, float]:
    """(signalled, started, total) in seconds; this run is stopped for a fault, and the next one started."""
    await job.comes(lambda: job.out.count("ready") == run, f"run {run}")
    await job.node.read_again()
    heard = len(job.node.subscriber.events)
    begun = datetime.now().astimezone()
    job.node.node.raise_code(CHIPS[run % len(CHIPS)], BROKEN)
    await job.comes(partial(_has_run, job, run + 1), f"run {run + 1}")
    events = job.node.subscriber.events[heard:]
    ended, started = _stamps(job, "ended")[-1], _stamps(job, "started")[-1]
    return (
        ended - _at(events, "job_asked"),
        started - _at(events, "action_finished"),
        started - begun.timestamp() - CHIP_RESET_S,
    )


def _has_run(job: Job, run: int) -> bool:
    kinds = {each.kind.value for each in job.events() if each.job and each.job.run == run}
    return len(_stamps(job, "started")) == run and "job_rerun" in kinds


def _stamps(job: Job, word: str) -> list[float]:
    return [int(each) / 1e9 for each in re.findall(rf"^{word} (\d+)$", job.out, re.MULTILINE)]


def _at(events: list[Event], kind: str) -> float:
    return next(each.at.timestamp() for each in events if each.kind.value == kind)
