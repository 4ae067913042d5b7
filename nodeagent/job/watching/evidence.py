"""The evidence of a hang: samples, where the threads of each process wait, the Python stacks of the ranks.

A child process gathers it, so that the supervisor stays responsive: reading from a process that is stuck in
the kernel may block. The child ends in the time it is given, or is ended. It stops no process but ranks that
print their stacks at SIGABRT, and those only if the run is stopped afterwards anyway.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nodeagent.job.model import SECOND_NS
from nodeagent.job.session.values import Gather, Gathered, ProcessId, SessionInput
from nodeagent.job.shell import procfs, tree
from nodeagent.job.shell.descriptors import close_all_but
from nodeagent.job.shell.error_folder import STACKS_SIGNAL, stacks_file
from nodeagent.job.shell.files import make_folder, read
from nodeagent.job.shell.standard_error import WrittenErrors, print_message
from nodeagent.job.shell.state_folder import StateFolder
from nodeagent.job.shell.tree import Tree, send

NEWEST: Final = 20
MAX_BYTES: Final = 16 << 20
"""The size of all that is kept in one STATE."""

_MISSING: Final = "missing.txt"
"""Which parts there are not, and why."""

_MAX_SAMPLES_BYTES: Final = 6 << 20
_MAX_PART_BYTES: Final = 1 << 20
_MAX_RING_BYTES: Final = 256 << 20
"""An hour of samples of a thousand processes."""

_MAX_DIGEST_BYTES: Final = 200
_MAX_OF_ONE: Final = 8 << 20
_MAX_PROCESSES: Final = 64
_DIGEST_S: Final = 1.0
"""So much of the time is left for the end."""

_PY_SPY_S: Final = 3.0
_FAULTHANDLER_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRequest:
    """What to gather. ``ranks`` are the processes that compute, ``members`` all. ``aborts``: a rank with
    the error hook is asked for its stacks, and another one that catches SIGABRT gets it. ``samples`` are
    files, the oldest first. ``within_s``: longer it may not take. ``written``: the standard error of the run.
    """

    run: int
    members: Sequence[ProcessId]
    ranks: Sequence[ProcessId]
    aborts: bool
    samples: Sequence[Path]
    within_s: float
    written: WrittenErrors = field(default_factory=WrittenErrors)


@dataclass(frozen=True, slots=True)
class EvidenceProcess:
    """The child that gathers, and the folder it fills."""

    pid: int
    folder: Path

    def end(self) -> None:
        """With all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def digest(self) -> str:
        """SHA-256 of what lies there; "" where the child did not come to its end."""
        try:
            return read(self.folder / "digest", _MAX_DIGEST_BYTES).decode().strip()
        except OSError:
            return ""


def begin_gathering(state: StateFolder, wanted: EvidenceRequest) -> EvidenceProcess:
    """Raises ``OSError`` where there is no place for it."""
    make_room(state)
    folder = _next_folder(state.run(wanted.run) / "hang")
    pid = os.fork()
    if pid == 0:
        _gather_as_child(folder, wanted)
    with suppress(OSError):  # the child does it, too: either may be first
        os.setpgid(pid, pid)
    return EvidenceProcess(pid, folder)


def make_room(state: StateFolder) -> None:
    """Keeps the newest, and as much of them as leaves room for one more."""
    from shutil import rmtree

    kept = sorted(state.folder.glob("run-*/hang/*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    room = MAX_BYTES - _MAX_OF_ONE
    for place, folder in enumerate(kept):
        room -= sum(file.stat().st_size for file in folder.iterdir())
        if place >= NEWEST - 1 or room < 0:
            rmtree(folder)


def _next_folder(home: Path) -> Path:
    make_folder(home)
    number = 1 + max((int(each.name) for each in home.iterdir() if each.name.isdigit()), default=0)
    folder = home / str(number)
    folder.mkdir(mode=0o700)
    return folder


# ---------------------------------------------------------------------- in the child


def _gather_as_child(folder: Path, wanted: EvidenceRequest) -> None:
    """Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        tree.die_with_parent()
        close_all_but({0, 1, 2})
        _gather(folder, wanted)
    except BaseException:
        with (folder / _MISSING).open("a") as opened:
            import traceback

            traceback.print_exc(file=opened)
        raise
    finally:
        os._exit(0)


def _gather(folder: Path, wanted: EvidenceRequest) -> None:
    end_s = time.monotonic() + max(wanted.within_s - _DIGEST_S, _DIGEST_S)
    parts: tuple[tuple[str, Callable[[], Iterator[bytes]], int], ...] = (
        ("samples.jsonl", lambda: _samples(wanted.samples), _MAX_SAMPLES_BYTES),
        ("processes.txt", lambda: _processes(wanted.members, end_s), _MAX_PART_BYTES),
        ("py-spy.txt", lambda: _py_spy(wanted.ranks, end_s), _MAX_PART_BYTES),
        ("python.txt", lambda: _python_stacks(wanted, end_s), _MAX_PART_BYTES),
        ("faulthandler.txt", lambda: _aborted(wanted, end_s), _MAX_PART_BYTES),
    )
    for name, part, limit in parts:
        try:
            _write(folder / name, part(), limit)
        except OSError as error:
            with (folder / _MISSING).open("a") as opened:
                opened.write(f"{name}: {error}\n")
    (folder / "digest").write_text(_digest(folder) + "\n")


def _write(path: Path, pieces: Iterator[bytes], limit: int) -> None:
    """No file where there is nothing."""
    first = next(pieces, None)
    if first is None:
        return
    with path.open("wb") as opened:
        left = limit
        for piece in (first, *pieces):
            opened.write(piece[:left])
            left -= len(piece)
            if left <= 0:
                return


def _samples(files: Sequence[Path]) -> Iterator[bytes]:
    """The header, which each file has, and the newest rows."""
    header = b""
    rows: list[bytes] = []
    for file in files:
        with suppress(FileNotFoundError):
            text = read(file, _MAX_RING_BYTES)
            header, *more = text.splitlines(keepends=True) or [header]
            rows += more
    if not rows:
        return
    left = _MAX_SAMPLES_BYTES - len(header)
    first = len(rows)
    while first > 0 and len(rows[first - 1]) <= left:
        first -= 1
        left -= len(rows[first])
    yield header
    yield from rows[first:]


def _processes(members: Sequence[ProcessId], end_s: float) -> Iterator[bytes]:
    """For each process its command, its status, and of each thread the state, where in the kernel it waits,
    its stack there as far as that may be read.
    """
    for process in members[:_MAX_PROCESSES]:
        if time.monotonic() > end_s:
            return
        arguments = (procfs.read(process.pid, "cmdline") or b"").replace(b"\0", b" ")
        yield b"== %d %s\n" % (process.pid, arguments[:400])
        yield procfs.read(process.pid, "status") or b"ended\n"
        try:
            threads = procfs.threads(process.pid)
        except FileNotFoundError:
            continue
        for thread in threads:
            place = f"task/{thread}"
            name = (procfs.read(process.pid, f"{place}/comm") or b"").strip()
            wchan = (procfs.read(process.pid, f"{place}/wchan") or b"?").strip()
            letter = (procfs.read(process.pid, f"{place}/stat") or b")  ?").rpartition(b")")[2][1:2]
            yield b"thread %d %s %s waits in %s\n" % (thread, name, letter, wchan)
            yield procfs.read(process.pid, f"{place}/stack") or b""
        yield b"\n"


def _py_spy(ranks: Sequence[ProcessId], end_s: float) -> Iterator[bytes]:
    """https://github.com/benfred/py-spy: ``--nonblocking`` does not stop the process that it reads."""
    from shutil import which

    if which("py-spy") is None:
        return
    for process in ranks[:_MAX_PROCESSES]:
        limit_s = min(_PY_SPY_S, end_s - time.monotonic())
        if limit_s <= 0:
            return
        try:
            done = subprocess.run(
                ["py-spy", "dump", "--nonblocking", "--pid", str(process.pid)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            yield b"== %d: no answer in %.0f s\n" % (process.pid, limit_s)
            continue
        yield b"== %d\n%s%s\n" % (process.pid, done.stdout, done.stderr)


def _python_stacks(wanted: EvidenceRequest, end_s: float) -> Iterator[bytes]:
    """Each rank with the hook writes its stacks into a file of its own, and lives on. One that ends meanwhile
    takes its file with it.
    """
    if not wanted.aborts:
        return
    files = {each: file for each in wanted.ranks if (file := stacks_file(each)) is not None}
    for process in files:
        send(process, STACKS_SIGNAL)
    end_s = min(end_s, time.monotonic() + _FAULTHANDLER_S)
    while time.monotonic() < end_s and any(_is_empty(file) for file in files.values()):
        time.sleep(0.05)
    for process, file in files.items():
        rank = procfs.environment(process.pid).get("RANK", "?")
        try:
            stacks = read(file, _MAX_PART_BYTES, is_own=False)
        except OSError as error:
            stacks = f"no stacks: {error.strerror}\n".encode()
        yield f"== rank {rank}, pid {process.pid}\n".encode() + stacks + b"\n"


def _is_empty(file: Path) -> bool:
    """Not of one that is not there any more: nothing is going to be written to it."""
    try:
        return file.stat().st_size == 0
    except OSError:
        return False


def _aborted(wanted: EvidenceRequest, end_s: float) -> Iterator[bytes]:
    """Ranks without the hook print to their standard error: where that goes to a file, what is new in it is
    copied.
    """
    ranks = [
        each
        for each in wanted.ranks
        if wanted.aborts and procfs.catches(each.pid, signal.SIGABRT) and stacks_file(each) is None
    ]
    before = wanted.written.size()
    for process in ranks:
        send(process, signal.SIGABRT)
    if not ranks or before is None:
        return
    end_s = min(end_s, time.monotonic() + _FAULTHANDLER_S)
    while time.monotonic() < end_s and any(_lives(each) for each in ranks):
        time.sleep(0.05)
    yield wanted.written.appended(before, _MAX_PART_BYTES)


def _lives(process: ProcessId) -> bool:
    found = procfs.stat(process.pid)
    return found is not None and found.process == process and not found.is_dead


def _digest(folder: Path) -> str:
    import hashlib

    whole = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        whole.update(file.name.encode() + b"\0")
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


class Gathering:
    """One at a time. ``samples``: the files of what was measured, the oldest first."""

    def __init__(
        self,
        state: StateFolder | None,
        tree: Tree,
        samples: Iterable[Path],
    ) -> None:
        self._state = state
        self._tree = tree
        self._samples = tuple(samples)
        self._run = 0
        self._process: EvidenceProcess | None = None
        self._due_ns: int | None = None
        self._found: list[SessionInput] = []

    def begin(
        self, effect: Gather, ranks: tuple[ProcessId, ...], written: WrittenErrors, now_ns: int
    ) -> None:
        """``written``: the standard error of the run."""
        self._cut_off()
        self._run = effect.run
        if self._state is None:
            self._found.append(Gathered(run=effect.run, path=""))
            return
        wanted = EvidenceRequest(
            run=effect.run,
            members=[each.process for each in self._tree.members()],
            ranks=ranks,
            aborts=effect.run_ends,
            samples=self._samples,
            within_s=effect.within_s,
            written=written,
        )
        try:
            self._process = begin_gathering(self._state, wanted)
        except OSError as error:
            print_message(f"no evidence of the hang is kept: {error}")
            self._found.append(Gathered(run=effect.run, path=""))
            return
        self._tree.exclude(self._process.pid)
        self._due_ns = now_ns + round(effect.within_s * SECOND_NS)

    def next_deadline_ns(self) -> int | None:
        return self._due_ns

    def tick(self, now_ns: int) -> None:
        if self._process is not None and self._due_ns is not None and now_ns >= self._due_ns:
            self._finished(self._process)
            self._cut_off()

    def ended(self, pid: int) -> None:
        """A child that was not the command has ended."""
        if self._process is not None and pid == self._process.pid:
            self._finished(self._process)
            self._cut_off()

    def take(self) -> list[SessionInput]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def _finished(self, process: EvidenceProcess) -> None:
        self._found.append(Gathered(run=self._run, path=str(process.folder), digest=process.digest()))

    def _cut_off(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process = None
        self._due_ns = None
