"""A supervisor that does nothing but talk: a process of its own, so that the kernel says who it is.

The process hands lines on, from its standard input to the socket and back; what they say is the test's.
"""

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from nodeagent.core.model import Holder, Operator
from nodeagent.job import lines, model
from nodeagent.job.model import RunReport, RunRequest
from nodeagent.system.processes import START, stat_of
from tests.waiting import WAIT_LIMIT_S, wait_until

CHANNEL = """
import socket, sys, threading
AGAIN = b"\\0again\\n"
def back(own):
    while data := own.recv(65536):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    if own is used[-1]:
        sys.stdout.buffer.write(b"\\0ended\\n")
        sys.stdout.buffer.flush()
def connect():
    used.append(socket.socket(socket.AF_UNIX))
    used[-1].connect(sys.argv[1])
    threading.Thread(target=back, args=(used[-1],), daemon=True).start()
used = []
connect()
while data := sys.stdin.buffer.raw.read(65536):
    *before, data = data.split(AGAIN)
    for each in before:
        if each:
            used[-1].sendall(each)
        connect()
    if data:
        used[-1].sendall(data)
"""
"""Ends with its standard input, and with it the connection."""

JOB: Final = os.getpid()
"""The number of a job of Slurm that no other test on this machine has."""

ENDED: Final = b"\0ended\n"

L = TypeVar("L")


class Supervisor:
    """``said`` counts what was said, as a real one does over all its connections."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = 0
        self._wants = deque[RunRequest]()

    @property
    def pid(self) -> int:
        return self.process.pid

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def send(self, line: lines.Line) -> None:
        self.write(lines.encode(line))

    async def next(self) -> lines.Line | None:
        """None at the end of the connection."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WAIT_LIMIT_S):
            data = await self.process.stdout.readline()
        return lines.decode(data) if data and data != ENDED else None

    async def hear(self, of: type[L]) -> L:
        """The next line, which has to be of this sort."""
        line = await self.next()
        assert isinstance(line, of), f"{line} is no {of.__name__}"
        return line

    async def wanted(self, wish: str) -> RunRequest:
        """The next that wants this; others before it are passed over."""
        while self._wants:
            if (want := self._wants.popleft()).wish.value == wish:
                return want
        while (line := await self.next()) is not None:
            if isinstance(line, RunRequest) and line.wish.value == wish:
                return line
        raise AssertionError(f"it ended, and never wanted {wish}")

    async def connect_again(self) -> None:
        """Beside the connection that it has."""
        assert self.process.stdin is not None
        await self.process.stdin.drain()
        self.write(b"\0again\n")

    async def greet_again(self) -> None:
        """On a new connection; what came by the old one is not heard any more."""
        await self.connect_again()
        self._wants.clear()
        self.send(lines.SupervisorHello(pid=1, version="test"))
        while not isinstance(await self.next(), lines.Welcome):
            pass

    async def greet(self) -> lines.Welcome:
        self.send(lines.SupervisorHello(pid=1, version="test"))
        return await self.hear(lines.Welcome)

    async def begin(self, **how: Any) -> RunRequest:
        """Greets, and begins a job that may be stopped and run again unless told otherwise."""
        await self.greet()
        return await self.begin_again(**how)

    async def begin_again(self, **how: Any) -> RunRequest:
        self.begin_again_soon(**how)
        return await self.hear(RunRequest)

    def begin_again_soon(self, **how: Any) -> None:
        """What is wanted is heard later."""
        usual = {"kind": "training", "run": 1, "is_running": False, "in_place": True, "yields": False}
        self.send(lines.JobBegin(**{**usual, "reschedules": True, **how}))

    async def say(self, what: model.RunEvent, run: int = 1, **words: Any) -> None:
        """And wait until it is taken."""
        self.said += 1
        self.send(RunReport(number=self.said, run=run, what=what, **words))
        while (line := await self.next()) is not None:
            if isinstance(line, lines.ReportTaken):
                assert line.number == self.said
                return
            if isinstance(line, RunRequest):
                self._wants.append(line)
        raise AssertionError("it ended before that was taken")

    async def ask(self) -> lines.ChipReadings:
        self.send(lines.AskChips(number=7))
        return await self.hear(lines.ChipReadings)

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


CGROUPS: Final = Path("/sys/fs/cgroup")


def entering(folder: Path) -> tuple[str, ...]:
    """The command that runs another one in that cgroup."""
    return ("sh", "-c", f'echo $$ > "{folder}/cgroup.procs" && exec "$@"', "sh")


def as_user(uid: int, folder: Path) -> tuple[str, ...]:
    """The command that runs another one as that user, in a folder that is reached through root's alone: what
    is in it is named without its path.
    """
    folder.chmod(0o755)
    return (
        *("sh", "-c", f'cd "{folder}" && exec "$@"', "sh"),
        *("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"),
    )


@contextmanager
def slurm_step(job: int, step: int = 0, uid: int = 0) -> Iterator[tuple[str, ...]]:
    """A cgroup such as Slurm makes for a user, as the command that runs another one in it. Needs root."""
    controller = CGROUPS / "pids" if (CGROUPS / "pids").is_dir() else CGROUPS
    folder = controller / "slurm" / f"uid_{uid}" / f"job_{job}" / f"step_{step}"
    with cgroup(folder):
        os.chown(folder, uid, uid)
        yield entering(folder)


@contextmanager
def slurm_scope(job: int, step: int = 0) -> Iterator[tuple[str, ...]]:
    """As ``slurm_step``, in the second version of cgroups: it does not name the user."""
    folder = (
        unified() / "system.slice" / f"test{os.getpid()}_slurmstepd.scope" / f"job_{job}" / f"step_{step}"
    )
    with cgroup(folder):
        yield entering(folder)


@contextmanager
def delegated(uid: int) -> Iterator[Path]:
    """The cgroup that systemd gives the manager of a user: he makes his own below it. Needs root."""
    folder = unified() / "user.slice" / f"user-{uid}.slice" / f"user@{uid}.service"
    with cgroup(folder):
        for each in (folder, folder / "cgroup.procs", folder / "cgroup.subtree_control"):
            os.chown(each, uid, uid)
        yield folder


def unified() -> Path:
    """Where the second version of cgroups is mounted."""
    return CGROUPS / "unified" if (CGROUPS / "unified").is_dir() else CGROUPS


@contextmanager
def cgroup(folder: Path) -> Iterator[None]:
    """Nothing of it is left at the end but what other tests use too."""
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        for each in sorted(folder.rglob("*"), reverse=True):
            if each.is_dir():
                _remove(each)
        _remove(folder)
        for parent in folder.parents:
            if parent.parent in (CGROUPS, unified(), CGROUPS.parent):
                break
            with suppress(OSError):  # another test's is in it
                parent.rmdir()


def _remove(folder: Path) -> None:
    processes = folder / "cgroup.procs"
    wait_until(lambda: not processes.read_text(), f"the end of the processes in {folder}")
    folder.rmdir()


@asynccontextmanager
async def connected(socket: Path, *within: str) -> AsyncIterator[Supervisor]:
    """``within`` is a command that runs the process."""
    process = await asyncio.create_subprocess_exec(
        *(*within, sys.executable, "-c", CHANNEL, str(socket)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=4 * lines.MAX_LINE_BYTES,
    )
    supervisor = Supervisor(process)
    try:
        yield supervisor
    finally:
        await supervisor.kill()


def stop(job: str) -> Operator:
    return Operator(who="uid:0", what="stop_job", device="node", only=job, reason="maintenance")


def rerun(job: str) -> Operator:
    return Operator(who="uid:0", what="rerun_job", device="node", only=job, reason="maintenance is over")


def holder(pid: int, job: str = "") -> Holder:
    """The process as drivers report it."""
    start_time = int(stat_of(Path(f"/proc/{pid}"))[1][START])
    return Holder(pid=pid, start_time=start_time, command="python3", job=job)
