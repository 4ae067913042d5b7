"""``job run`` as a real process over a real command, with a folder of its own and no daemon."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import WAIT_LIMIT_S, wait_until

ROOT = Path(__file__).parent.parent.parent.parent


@dataclass(frozen=True)
class Place:
    """Where a test's supervisors have their files. ``environment`` is all that they are given."""

    folder: Path

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def socket(self) -> Path:
        return self.folder / "jobs.sock"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder),
            "PYTHONPATH": str(ROOT),
            "NODEAGENT_JOBS_SOCKET": str(self.socket),
        }

    def words(self, command: Sequence[str], options: Sequence[str] = ()) -> list[str]:
        return [sys.executable, "-m", "nodeagent.job", "run", *options, "--", *command]

    def run(
        self, *command: str, options: Sequence[str] = (), env: Mapping[str, str] | None = None, **more: Any
    ) -> "subprocess.CompletedProcess[bytes]":
        """To its end."""
        return subprocess.run(
            self.words(command, options),
            env={**self.environment, **(env or {})},
            capture_output=True,
            timeout=WAIT_LIMIT_S,
            check=False,
            **more,
        )

    @contextmanager
    def started(
        self, *command: str, options: Sequence[str] = (), env: Mapping[str, str] | None = None, **more: Any
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """Ended at the end of the block, with everything below it."""
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        supervisor = subprocess.Popen(
            self.words(command, options), env={**self.environment, **(env or {})}, **more
        )
        try:
            yield supervisor
        finally:
            left = [supervisor.pid, *below(supervisor.pid)]
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            supervisor.wait(WAIT_LIMIT_S)
            for stream in (supervisor.stdout, supervisor.stderr):
                if stream is not None:  # not read to its end: one that outlives the supervisor may hold it
                    stream.close()


def build(target: Path) -> Path:
    """``nodeagent-job.pyz``."""
    subprocess.run(
        [sys.executable, ROOT / "packaging/build_job_pyz.py", target], check=True, timeout=WAIT_LIMIT_S
    )
    return target


def below(pid: int) -> list[int]:
    """All descendants of that process that have not ended."""
    parents = {each: parent for each in all_pids() if (parent := parent_of(each)) is not None}
    found: list[int] = []
    for place in range(len(parents) + 1):
        above = pid if place == 0 else found[place - 1] if place <= len(found) else None
        if above is None:
            break
        found += [each for each, parent in parents.items() if parent == above]
    return found


def all_pids() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def parent_of(pid: int) -> int | None:
    """None of one that has ended."""
    fields = stat_of(pid)
    return None if fields is None or fields[0] == "Z" else int(fields[1])


def stat_of(pid: int) -> list[str] | None:
    """What stands behind the command in ``/proc/PID/stat``."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def lives(pid: int) -> bool:
    return parent_of(pid) is not None


def pids_in(file: Path, count: int) -> list[int]:
    """The pids that processes of a job have written, a line each; waits for them."""

    def written() -> list[int]:
        lines = file.read_text().splitlines() if file.exists() else []
        return [int(each) for each in lines] if len(lines) >= count else []

    return wait_until(written, f"{count} lines in {file}")


def interpreter(version: str) -> str | None:
    """On the path, or one that pyenv keeps beside the one it has chosen."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    of_pyenv = sorted(str(each) for each in root.glob(f"versions/{version}.*/bin/python"))
    for python in (shutil.which(f"python{version}"), *of_pyenv):
        if python and not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
            return python
    return None
