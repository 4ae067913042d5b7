"""A step on three nodes is run again in place, because one node asks for it.

Slurm is real, with three slurmd on this machine, and so are the supervisors and the loop. The daemon of one
node is a double that asks its job to stop: what is measured is what lies between the end of the last process
of a run and the begin of the next on all nodes.
"""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from nodeagent.job.model import Wish
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure, median, percentile, spread
from tests.bench.shared.kernel_log import NeedsRoot
from tests.job.shell.daemon_double import DaemonDouble, opened
from tests.slurm.stepping import NODES, Job, step, stepping
from tests.waiting import wait_until

TITLE = "a step on three nodes runs again"
ROUNDS = 12
BUDGET_S = 2.0
REQUEUE_S = 121.0
"""Of Slurm 22.05 until the job's new begin time, as shipped (``cred_expire`` of slurm.conf(5) is 120 s)."""

_COMMAND = """
import os, signal, sys, time
def say(word):
    with open(sys.argv[1], "a") as opened:
        opened.write(f"{word} {os.environ['NODEAGENT_RUN']} {time.time_ns()}\\n")
def end(*_):
    say("ended")
    os._exit(143)
signal.signal(signal.SIGTERM, end)
say("started")
while True:
    signal.pause()
"""


def run() -> Iterator[Figure]:
    if os.geteuid() != 0:
        raise NeedsRoot("it starts a Slurm of its own")
    with scratch() as folder, stepping(folder / "slurm") as made, opened(folder / "slurm/n2.sock") as daemon:
        command = folder / "command.py"
        command.write_text(_COMMAND)
        stamps = folder / "stamps"
        words = (sys.executable, command, stamps)
        job = step(made, folder / "job", "--in-place", command=words)
        rounds = [_round(job, daemon, stamps, number) for number in range(1, ROUNDS + 1)]
    stopped, again = zip(*rounds, strict=True)
    yield Figure(
        name="last process ended, until all nodes run, p95",
        value=percentile(again, 95),
        unit="s",
        budget=BUDGET_S,
        peer=REQUEUE_S,
        peer_name="a requeue of Slurm",
        note=f"median {median(again):.3f} {spread(again)}",
    )
    yield Figure(
        name="asked on one node, until the last process of all ended, p95",
        value=percentile(stopped, 95),
        unit="s",
        note=f"median {median(stopped):.3f} {spread(stopped)}",
    )


def _round(job: Job, daemon: DaemonDouble, stamps: Path, number: int) -> tuple[float, float]:
    """(from the word to stop to the end of all, from there to the begin of all) in seconds."""
    wait_until(lambda: len(_of(stamps, "started", number)) == len(NODES), f"run {number}\n{job.said}")
    asked_s = time.time()
    daemon.want(Wish.STOP, number)
    wait_until(lambda: len(_of(stamps, "started", number + 1)) == len(NODES), f"run {number + 1}")
    ended_s = max(_of(stamps, "ended", number))
    return ended_s - asked_s, max(_of(stamps, "started", number + 1)) - ended_s


def _of(stamps: Path, word: str, number: int) -> list[float]:
    text = stamps.read_text() if stamps.exists() else ""
    return [int(each) / 1e9 for each in re.findall(rf"^{word} {number} (\d+)$", text, re.MULTILINE)]
