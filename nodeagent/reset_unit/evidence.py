"""What is kept about devices before a reset destroys it, and the vendor's bug report after a reset that
failed.

**Evidence** is a folder for each attempt, with bounded files: the daemon's last readings and events, the
devices as listed, the last kernel lines, and the report of the vendor's tool. A part that cannot be collected
is left out and named as a step; no reset fails because of it.

**The bug report.** NVIDIA's nvidia-bug-report.sh runs nvidia-smi and nvidia-debugdump. They may hang with a
GPU open, and may let the driver restart, which overwrites the logs of its firmware (liblogdecode.c of
NVIDIA's open modules). With --safe-mode it runs neither, and collects logs and the kernel's state (the
script's usage, and NVIDIA's guide "Xid Errors"). It writes as it goes, so a killed one leaves a readable
part. --extra-system-data makes the kernel trace all processors and disturbs jobs, so it is not used.

**Commands**, also hooks, have a time limit, and their children end with them.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final

import msgspec

from nodeagent.core.catalog.codes import root
from nodeagent.drivers.shared.resetting import in_root
from nodeagent.reset_unit.exchange import files
from nodeagent.reset_unit.exchange.requests import ResetRequest
from nodeagent.vendors import RESETS
from nodeagent.wire import Device

MAX_SHOWN: Final = 300
KILL_WAIT_S: Final = 5.0
"""What is killed is gone at once, with what it had open, unless it hangs in the kernel."""


class CommandFailed(Exception):
    """It could not be run, ended with another status than 0, or did not end; str() is the reason."""


def run_command(
    command: Sequence[str],
    limit_s: float,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run it to its end, or to its time's: then it and its children are killed. Raises ``CommandFailed``.

    What it prints goes to ``output``; else the end of it is shown where it fails.
    """
    try:
        with contextlib.ExitStack() as stack:
            _run(command, limit_s, env, output or stack.enter_context(tempfile.TemporaryFile()), cwd)
    except OSError as error:
        raise CommandFailed(f"{command[0]}: {error.strerror or error}") from error


def _run(
    command: Sequence[str],
    limit_s: float,
    env: Mapping[str, str] | None,
    printed: IO[bytes],
    cwd: Path | None,
) -> None:
    """Raises ``OSError`` as well."""
    process = subprocess.Popen(
        list(command),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_WAIT_S)
        raise CommandFailed(f"{command[0]}: killed after {limit_s:g} s") from error
    if status != 0:
        raise CommandFailed(f"{command[0]}: exit status {status}{_end_of(printed)}")


def _end_of(printed: IO[bytes]) -> str:
    if not printed.readable():
        return ""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - MAX_SHOWN))
    shown = " ".join(printed.read().decode(errors="replace").split())
    return f": {shown}" if shown else ""


MAX_FOLDERS: Final = 20
MAX_FILE_BYTES: Final = 1 << 20
KERNEL_LINES: Final = 1000
MAX_RECORD_BYTES: Final = 8192
REPORT_LIMIT_S: Final = 20.0


def collect_evidence(
    folder: Path, request: ResetRequest, devices: Iterable[Device], kernel_log: Path, driver_root: str = ""
) -> list[str]:
    """Fill the folder; returns what could not be collected. ``driver_root`` is as in the configuration."""
    try:
        _make_folder(folder)
        (folder / "request.json").write_bytes(msgspec.json.encode(request))
        (folder / "devices.json").write_bytes(msgspec.json.encode(tuple(devices)))
        (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in request.events))
    except OSError as error:
        return [f"no evidence: {error}"]
    missing: list[str] = []
    for what, take in (
        ("kernel lines", partial(_kernel_lines, kernel_log)),
        ("report", partial(_vendor_report, request, driver_root)),
    ):
        try:
            take(folder)
        except (OSError, CommandFailed) as error:
            missing.append(f"no {what}: {error}")
    return missing


def _make_folder(folder: Path) -> None:
    """The oldest go, so that there are never more than so many."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = sorted(
        (path for path in folder.parent.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime_ns
    )
    for old in kept[: max(0, len(kept) - MAX_FOLDERS + 1)]:
        shutil.rmtree(old)
    folder.mkdir(exist_ok=True)


def _kernel_lines(kernel_log: Path, folder: Path) -> None:
    """As /dev/kmsg has them, one record at each read; another process may read it as well."""
    lines: deque[bytes] = deque(maxlen=KERNEL_LINES)
    descriptor = os.open(kernel_log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        while record := _record(descriptor):
            lines.append(record)
    finally:
        os.close(descriptor)
    (folder / "kernel.log").write_bytes(b"".join(lines)[-MAX_FILE_BYTES:])


def _record(descriptor: int) -> bytes:
    """b"" at the end of what there is now."""
    while True:
        try:
            return os.read(descriptor, MAX_RECORD_BYTES)
        except BlockingIOError:
            return b""
        except BrokenPipeError:
            # Overwritten before it was read; the next one is there.
            continue


def _vendor_report(request: ResetRequest, driver_root: str, folder: Path) -> None:
    traits = RESETS.get(request.vendor)
    if traits is None:
        return
    command = in_root(driver_root, traits.report)
    if shutil.which(command[0]) is None:
        return
    if unfit := traits.no_report_for & set(map(root, request.reasons)):
        raise CommandFailed(f"{' '.join(command)} may hang with {', '.join(sorted(unfit))}")
    report = folder / "report.txt"
    try:
        with report.open("w+b") as output:
            run_command(command, REPORT_LIMIT_S, output=output)
    finally:
        os.truncate(report, min(report.stat().st_size, MAX_FILE_BYTES))


FOLDER: Final = "bug-report"
LOG: Final = "report.log"
OUTCOME: Final = "outcome.txt"
LOCK: Final = "bug-report.lock"

NICENESS: Final = 10
MAX_REPORTS: Final = 5
MAX_REPORT_FILE_BYTES: Final = 32 << 20
"""No file of it may become larger."""


@dataclass(frozen=True, slots=True)
class BugReport:
    """``evidence`` is the folder of one attempt; ``driver_root`` and ``limit_s`` are as configured."""

    vendor: str
    evidence: Path
    limit_s: float
    driver_root: str = ""

    @property
    def _command(self) -> tuple[str, ...]:
        return RESETS[self.vendor].bug_report if self.vendor in RESETS else ()

    @property
    def is_known(self) -> bool:
        """Whether the vendor has a tool for it."""
        return bool(self._command)

    @property
    def folder(self) -> Path:
        return self.evidence / FOLDER

    def why_not(self) -> str:
        """Why none is made, "" where one is."""
        if not self.limit_s:
            return "reset.bug_report_timeout is 0s"
        if not self._tool():
            return f"{self._command[0]} is not installed"
        return ""

    def make(self, log_line: Callable[[str], None]) -> None:
        """One at a time. ``log_line`` gets how it went, which ``OUTCOME`` keeps.

        It bounds this process and what it starts for good, in its files and in favour of the jobs' processes:
        there is nothing to be done after it.
        """
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_REPORT_FILE_BYTES, MAX_REPORT_FILE_BYTES))
            os.nice(NICENESS)
            with files.locked(self.evidence.parent.parent, LOCK):
                outcome = self._made()
                (self.folder / OUTCOME).write_text(f"{outcome}\n")
        except files.Locked:
            outcome = "none: one of another reset is being made"
        except (OSError, ValueError) as error:
            outcome = f"none: {error}"
        log_line(f"bug report: {outcome}")

    def _made(self) -> str:
        for old in _newest_first(self.evidence.parent)[MAX_REPORTS - 1 :]:
            shutil.rmtree(old)
        self.folder.mkdir(mode=0o700, parents=True)
        command = (self._tool(), *self._command[1:], str(self.folder / LOG))
        begun_s = time.monotonic()
        try:
            run_command(command, self.limit_s, cwd=self.folder)
            outcome = "complete"
        except CommandFailed as error:
            outcome = f"incomplete: {error}"
        for left in self.folder.iterdir():
            if not left.name.startswith(LOG):
                left.unlink()
        return f"{outcome}, after {time.monotonic() - begun_s:.0f} s"

    def _tool(self) -> str:
        """That of a driver in a root of its own is run outside of it, where the logs are. "": none."""
        name = self._command[0]
        inside = Path(self.driver_root or "/", "usr/bin", name)
        return str(inside) if self.driver_root and inside.exists() else shutil.which(name) or ""


def _newest_first(evidence: Path) -> list[Path]:
    """The folders of reports."""
    found = evidence.glob(f"*/{FOLDER}")
    return sorted(found, key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
