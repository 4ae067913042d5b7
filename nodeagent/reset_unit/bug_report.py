"""The report for the vendor's support, made after a reset that failed. Nobody waits for it.

NVIDIA's nvidia-bug-report.sh runs nvidia-smi and nvidia-debugdump, which may hang with a GPU open, and let
the driver end and begin again, so that the logs of its firmware are overwritten (liblogdecode.c of NVIDIA's
open modules). With --safe-mode it runs neither, and collects logs and what the kernel says (the script's own
usage, and NVIDIA's guide "Xid Errors"). It writes as it goes: one that is killed leaves a part that can be
read. Its --extra-system-data has the kernel trace all processors, beside jobs, and is left out.
"""

import os
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.reset_unit.command import CommandFailed, run
from nodeagent.reset_unit.exchange import files
from nodeagent.vendors import RESETS

FOLDER: Final = "bug-report"
LOG: Final = "report.log"
OUTCOME: Final = "outcome.txt"
LOCK: Final = "bug-report.lock"

NICENESS: Final = 10
MAX_REPORTS: Final = 5
MAX_FILE_BYTES: Final = 32 << 20
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
            resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
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
            run(command, self.limit_s, cwd=self.folder)
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
