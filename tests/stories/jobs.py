"""A supervised job in the cgroup of a Slurm step, over a daemon that may reset its eight emulated NPUs.

It starts the example of a training job below ``nodeagent.job`` and lets each of its ranks hold a chip for as
long as it lives. What becomes of it is the story's.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from nodeagent.client import Event
from tests.harness.configuration import ROOT
from tests.reset_unit.acting import Acting, acting
from tests.waiting import WAIT_LIMIT_S, until

TRAIN: Final = ROOT / "packaging" / "examples" / "jobs" / "train.py"
RANKS: Final = 8
CHIPS: Final = tuple(f"npu{rank}" for rank in range(RANKS))
PIDS: Final = 1 << 22
"""No process has a greater number: proc(5), /proc/sys/kernel/pid_max."""

JOB_KINDS: Final = ("begun", "asked", "stopped", "rerun", "suspected", "suspended", "ended")

_CGROUPS: Final = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
_RANK: Final = re.compile(r"^rank (\d+)(?: of \d+)?, pid (\d+), run (\d+): from step (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rank:
    rank: int
    pid: int
    run: int
    step: int


@dataclass(frozen=True, slots=True)
class Step:
    """A cgroup with the name that slurmd gives the first step of a job."""

    number: int
    cgroup: Path

    @property
    def job(self) -> str:
        """What a hook claims for."""
        return f"slurm:{self.number}"

    @property
    def name(self) -> str:
        """What the daemon calls the job that runs in it."""
        return f"slurm:{self.number}.0"

    def within(self, command: Sequence[str | Path]) -> list[str]:
        """The command that runs this one there."""
        enter = f'echo $$ > "{self.cgroup}/cgroup.procs" && exec "$@"'
        return ["sh", "-c", enter, "sh", *map(str, command)]

    def pids(self) -> list[int]:
        return [int(pid) for pid in (self.cgroup / "cgroup.procs").read_text().split()]


@contextmanager
def slurm_step(place: int = 0) -> Iterator[Step]:
    """Needs root. What is left in it at the end is killed. Its number is of this process alone; ``place``
    tells several of them apart.
    """
    top = next(each for each in _CGROUPS if (each / "cgroup.procs").exists()) / "slurm"
    number = os.getpid() + place * PIDS
    step = Step(number, top / "uid_0" / f"job_{number}" / "step_0")
    step.cgroup.mkdir(parents=True)
    try:
        yield step
    finally:
        _empty(step)
        for folder in (step.cgroup, *step.cgroup.parents[:2], top):
            with contextlib.suppress(OSError):  # another test's job is in it
                folder.rmdir()


def _empty(step: Step) -> None:
    end_s = time.monotonic() + WAIT_LIMIT_S
    while (left := step.pids()) and time.monotonic() < end_s:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


@dataclass(kw_only=True)
class Job:
    """``chips`` has one for each rank. ``policy`` are flags of ``job run``, ``words`` further arguments of
    ``trainer``, ``trained`` another command in its place, ``program`` the module of the supervisor with its
    first arguments. All before the start.
    """

    node: Acting
    step: Step
    folder: Path
    chips: Sequence[str] = CHIPS
    policy: Sequence[str] = ()
    trainer: Path = TRAIN
    words: Sequence[str] = ()
    trained: Sequence[str | Path] = ()
    program: Sequence[str] = ("nodeagent.job",)
    env: Mapping[str, str] = field(default_factory=dict)
    process: asyncio.subprocess.Process | None = None
    holding: asyncio.Task[None] | None = None
    read_bytes: int = 0
    found: Sequence[Rank] = ()

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()

    def command(self) -> list[str | Path]:
        state: tuple[str | Path, ...] = ("--state", self.folder / "state")
        pace = ("--ranks", str(len(self.chips)), "--step-time", "0.05", "--every", "2", "--steps", "100000")
        trains: list[str | Path] = [
            sys.executable,
            self.trainer,
            "--checkpoints",
            self.checkpoints,
            *pace,
            *self.words,
        ]
        command = self.trained or trains
        return [sys.executable, "-m", *self.program, "run", *state, *self.policy, "--", *command]

    async def start(self) -> None:
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        with (self.folder / "out").open("ab") as out, (self.folder / "err").open("ab") as err:
            self.process = await asyncio.create_subprocess_exec(
                *self.step.within(self.command()),
                cwd=self.folder,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "NODEAGENT_JOBS_SOCKET": str(self.node.daemon.folder / "jobs.sock"),
                    **self.env,
                },
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        if self.holding is None:
            self.holding = asyncio.create_task(self._hold())

    async def _hold(self) -> None:
        """Each rank is on its chip as soon as it says that it is there, and as long as it lives."""
        held = set[Rank]()
        while True:
            for rank in self.ranks():
                if rank not in held:
                    held.add(rank)
                    with contextlib.suppress(ValueError):  # it has ended already
                        self.node.node.hold(self.chips[rank.rank], rank.pid, is_real=True)
            await asyncio.sleep(0.02)

    def order(self, *lines: str) -> None:
        """What the ranks are to do from their next step on, such as "3 hang"; none: to train."""
        fresh = self.folder / "orders"
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.replace(self.checkpoints / "orders")

    def ranks(self, run: int = 0) -> list[Rank]:
        """Those that have said so, of one run or of all; those of a run by their numbers."""
        size = (self.folder / "out").stat().st_size
        if size != self.read_bytes:  # many waits ask for it again and again
            found = [Rank(*map(int, each)) for each in _RANK.findall(self.out)]
            self.found = sorted(found, key=lambda each: (each.run, each.rank))
            self.read_bytes = size
        return [each for each in self.found if run in (0, each.run)]

    def newest(self) -> int:
        """The number of the newest checkpoint; 0: there is none."""
        return max((int(each.stem[-6:]) for each in self.checkpoints.glob("checkpoint-*")), default=0)

    async def trains(self, run: int) -> list[Rank]:
        """Wait until all ranks of the run are there, and have got beyond where they began."""
        await self.comes(lambda: len(self.ranks(run)) == len(self.chips), f"run {run}")
        ranks = self.ranks(run)
        await self.comes(lambda: self.newest() > ranks[0].step, f"a checkpoint of run {run}")
        return ranks

    async def comes(self, found: Callable[[], object], what: str) -> None:
        """As ``until``, and the failure shows what the job has said."""
        try:
            await until(found, what)
        except AssertionError as error:
            log = self.node.daemon.log[-3000:]
            raise AssertionError(f"{error}\n{self.out[-1000:]}\n{self.err[-2000:]}\n{log}") from None

    async def status(self) -> int:
        """The exit status of the supervisor, once it has ended."""
        assert self.process is not None
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self.process.wait()

    def events(self) -> list[Event]:
        """Those of jobs, in their order."""
        return [
            each for each in self.node.subscriber.events if each.kind.value.removeprefix("job_") in JOB_KINDS
        ]

    def course(self) -> list[str]:
        """The kinds of events of this job, in their order; one that is told again at once counts once."""
        kinds = [each.kind.value for each in self.events() if each.job and each.job.name == self.step.name]
        return [kind for kind, _ in groupby(kinds)]

    async def leave(self) -> None:
        """Its ranks get no chips any more."""
        if self.holding is not None:
            self.holding.cancel()
            await asyncio.gather(self.holding, return_exceptions=True)


@asynccontextmanager
async def supervised(
    folder: Path,
    description: str = "8x910B",
    *,
    chips: Sequence[str] = CHIPS,
    mode: str = "on",
    agent: Sequence[str] = (),
) -> AsyncIterator[Job]:
    """The daemon runs and every chip was seen; the job is not started. ``mode`` is that of resets, ``agent``
    are further lines of that section. At the end nothing of both is left.
    """
    async with acting(folder, description) as node:
        node.mode = mode
        node.daemon.agent = agent
        await node.start()
        await node.read_again()
        async with beside(node, folder / "job", chips) as job:
            yield job


@asynccontextmanager
async def beside(node: Acting, folder: Path, chips: Sequence[str], place: int = 0) -> AsyncIterator[Job]:
    """A job on a daemon that runs; each has a ``place`` of its own. At the end nothing of it is left."""
    with slurm_step(place) as step:
        job = Job(node=node, step=step, folder=folder, chips=chips)
        job.folder.mkdir()
        try:
            yield job
        finally:
            await job.leave()


async def claim(job: Job, *chips: str) -> None:
    """As the job's hook does, before it starts."""
    control = job.node.daemon.folder / "c.sock"
    said = await job.node.daemon.command("claim", *chips, "--job", job.step.job, "--socket", control)
    assert said[0] == 0, said


def living(ranks: list[Rank]) -> list[int]:
    """Their pids; one that has ended and was not waited for does not live."""
    return [each.pid for each in ranks if state_of(each.pid) not in ("", "Z")]


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
