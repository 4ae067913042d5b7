"""The folder in which the Python programs of a run note their errors and stacks, by ``error_hook``.

It is on this node and of this supervisor alone, and is emptied before each run. It judges no error.
"""

import pkgutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodeagent.job.error_hook import FOLDER, STACKS_SIGNAL_BELOW_MAX
from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import files, procfs

STACKS_SIGNAL: Final = signal.SIGRTMAX - STACKS_SIGNAL_BELOW_MAX

_MAX_BYTES: Final = 1 << 18
_MAX_ERRORS: Final = 64
"""The last errors decide."""


class ErrorFolder:
    """Raises ``OSError`` where it cannot be made."""

    def __init__(self, home: Path) -> None:
        self._hook = home / "hook"
        self._errors = home / "errors"
        for each in (home, self._hook, self._errors):
            files.make_folder(each)
        source = pkgutil.get_data("nodeagent.job", "error_hook.py") or b""
        files.write(self._hook / "sitecustomize.py", source.decode(), is_lasting=False)

    def begin(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """A run begins: what its environment gets. ``given`` is the one of the supervisor."""
        for each in self._errors.iterdir():
            with suppress(OSError):
                each.unlink()
        path = given.get("PYTHONPATH")
        return {
            FOLDER: str(self._errors),
            "PYTHONPATH": f"{self._hook}:{path}" if path else str(self._hook),
        }

    def errors(self, command: int) -> str:
        """The errors that ended programs of the run, the oldest first, as if each was written to the standard
        error: those of ranks, and of the command itself, as torch marks one that was not caught.
        """
        found: list[tuple[int, str]] = []
        for file in self._errors.glob("*.error"):
            with suppress(OSError):
                rank, _, text = files.read(file, _MAX_BYTES).decode("utf-8", "replace").partition("\n")
                is_own = rank.isdigit() or file.stem == str(command)
                mark = f"[rank{rank if rank.isdigit() else 0}]: " if is_own else ""
                lines = "\n".join(f"{mark}{line}" for line in text.splitlines())
                found.append((file.stat().st_mtime_ns, lines))
        return "\n".join(text for _, text in sorted(found)[-_MAX_ERRORS:])

    def stacks_file(self, process: ProcessId) -> Path | None:
        """Where this process writes its stacks when it gets ``STACKS_SIGNAL``; None where it does not."""
        file = self._errors / f"{process.pid}.stacks"
        opened = Path(f"/proc/{process.pid}/fd")
        with suppress(OSError):
            if any(str(each.readlink()) == str(file) for each in opened.iterdir()):
                return file if procfs.catches(process.pid, STACKS_SIGNAL) else None
        return None

    def close(self) -> None:
        from shutil import rmtree

        rmtree(self._hook.parent, ignore_errors=True)
