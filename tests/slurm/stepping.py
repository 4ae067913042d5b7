"""A job of ``job step`` on the three nodes of a real Slurm: submitted, followed, and told what to do."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness.configuration import ROOT
from tests.slurm.cluster import Cluster, cluster

TRAINEE = ROOT / "tests" / "slurm" / "trainee.py"
NODES = ("n1", "n2", "n3")
KILL_WAIT_S = 4

SOCKET_OF_NODE = """#!/bin/sh
echo "export NODEAGENT_JOBS_SOCKET={folder}/$SLURMD_NODENAME.sock"
"""
"""TaskProlog of slurm.conf(5): what it prints is the environment of the task. All nodes are on one machine,
and each has a daemon of its own, or none."""


class Begun(NamedTuple):
    """One line of the trainee."""

    node: str
    run: int
    why: str
    execution: int
    placement: int
    pid: int


@dataclass(kw_only=True)
class Job:
    """``number`` is Slurm's."""

    cluster: Cluster
    folder: Path
    number: int

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def said(self) -> str:
        return self.cluster.output(self.number)

    def begun(self, run: int = 0) -> list[Begun]:
        """By run and node; of one run or of all."""
        file = self.folder / "runs"
        lines = map(str.split, file.read_text().splitlines() if file.exists() else [])
        found = sorted(Begun(words[0], int(words[1]), words[2], *map(int, words[3:])) for words in lines)
        return [each for each in sorted(found, key=lambda each: each.run) if run in (0, each.run)]

    def runs_on(self, run: int, *nodes: str) -> list[Begun]:
        """Wait until the run has begun on all of them."""
        self.comes(lambda: [each.node for each in self.begun(run)] == sorted(nodes), f"run {run} on {nodes}")
        return self.begun(run)

    def order(self, *lines: str) -> None:
        """What nodes do in their runs, such as "n2 1 exit 3"."""
        new = self.folder / "orders.new"
        new.write_text("".join(f"{line}\n" for line in lines))
        new.replace(self.folder / "orders")

    def finish(self, run: int) -> None:
        (self.folder / "done").write_text(f"{run}")

    def ends(self, *states: str) -> dict[str, str]:
        """Wait until Slurm says that the job has one of these states."""
        self.comes(lambda: self.cluster.job(self.number).get("JobState") in states, f"the end: {states}")
        return self.cluster.job(self.number)

    def comes(self, found: Callable[[], object], what: str) -> None:
        """The failure shows what the job has said, too."""
        try:
            self.cluster.comes(found, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.begun()}\n{self.said}") from None

    @property
    def living(self) -> list[int]:
        """What is left of the job, of its steps and of their supervisors; prolog and epilog are not its."""
        daemons = {each.pid for each in self.cluster.running.values()}
        mark = b"SLURM_JOB_ID=%d\0" % self.number
        found = []
        for pid in self.cluster.pids():
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if pid not in daemons and mark in environment + b"\0" and b"\0SLURM_TASK_PID=" in environment:
                found.append(pid)
        return found


@contextmanager
def stepping(folder: Path, settings: Mapping[str, str] | None = None, **fields: Any) -> Iterator[Cluster]:
    """A cluster whose nodes have a daemon each, or none: ``NODE.sock`` in its folder."""
    folder.mkdir(exist_ok=True)
    prolog = folder / "task-prolog"
    prolog.write_text(SOCKET_OF_NODE.format(folder=folder))
    prolog.chmod(0o755)
    ours = {
        "KillWait": str(KILL_WAIT_S),
        "RequeueExit": "75,86",
        "TaskProlog": str(prolog),
        # A job that is queued again is looked at each second, not each minute.
        "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1",
    }
    with cluster(folder, nodes=NODES, settings={**ours, **(settings or {})}, **fields) as made:
        yield made


def step(
    made: Cluster,
    folder: Path,
    *options: str,
    nodes: int = 3,
    allocation: Sequence[str] = ("--no-kill",),
    command: Sequence[str | Path] = (),
    program: Sequence[str | Path] = (sys.executable, "-m", "nodeagent.job"),
    path: str = "",
) -> Job:
    """Submitted; ``path`` goes before the PATH of the batch script."""
    folder.mkdir(exist_ok=True)
    runs = command or (sys.executable, TRAINEE, folder)
    words = [*program, "step", "--state", folder / "state", *options, "--", *runs]
    script = f'export PYTHONPATH={ROOT} PATH={path}"$PATH"\nexec {" ".join(map(str, words))}'
    number = made.submit(script, f"--nodes={nodes}", *allocation)
    return Job(cluster=made, folder=folder, number=number)
