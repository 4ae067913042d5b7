"""The folder in which the Python programs of a run note their errors, by ``error_hook``; and their stacks.

It is on this node and of this supervisor alone, and is emptied before each run. It judges no error.
"""

import pkgutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from nodeagent.job.error_hook import FOLDER, STACKS_FILE, STACKS_SIGNAL_BELOW_MAX
from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import files, procfs

STACKS_SIGNAL: Final = signal.SIGRTMAX - STACKS_SIGNAL_BELOW_MAX

_STACKS_LINK: Final = f"/memfd:{STACKS_FILE} "
"""The text of the link in /proc/PID/fd; " (deleted)" follows: memfd_create(2)."""

_HOOK: Final = {"sitecustomize": "site_hook.py", "nodeagent_error_hook": "error_hook.py"}
"""By the name of the module in the folder of the hook, the file of this package."""

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
        for module, source in _HOOK.items():
            text = (pkgutil.get_data("nodeagent.job", source) or b"").decode()
            files.write(self._hook / f"{module}.py", text, is_lasting=False)

    def begin(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """A run begins: what its environment gets. ``given`` is the one of the supervisor."""
        with suppress(OSError):  # it is its programs' to write to, and they may have removed it
            files.make_folder(self._errors)
            for each in self._errors.iterdir():
                each.unlink(missing_ok=True)
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

    def close(self) -> None:
        from shutil import rmtree

        rmtree(self._hook.parent, ignore_errors=True)


def stacks_file(process: ProcessId) -> Path | None:
    """Where this process writes its stacks when it gets ``STACKS_SIGNAL``; None where it does not."""
    opened = Path(f"/proc/{process.pid}/fd")
    with suppress(OSError):
        for each in opened.iterdir():
            if str(each.readlink()).startswith(_STACKS_LINK):
                return each if procfs.catches(process.pid, STACKS_SIGNAL) else None
    return None
