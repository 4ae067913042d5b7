"""Groups of cgroups' first version, for what the second cannot do: processes that no signal ends, or that may
open no device. Where the system has only the second mounted, the first is mounted beside it for a test.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.waiting import wait_until


def make_folders(cgroupfs: Path, text: str, owners: Mapping[str, int] | None = None) -> None:
    """The folders that a file ``cgroup`` of a process names, below a root of a test's own. They are whose
    ``owners`` says by their name, else of who runs the test; only root's prove a job.
    """
    for line in filter(None, text.split("\n")):
        _, controllers, path = line.split(":", 2)
        folder = cgroupfs / controllers.removeprefix("name=")
        for name in path.strip("/").split("/"):
            folder /= name
            folder.mkdir(parents=True, exist_ok=True)
            if owners and name in owners:
                os.chown(folder, owners[name], -1)
            folder.chmod(0o755)


MOUNTED: Final = Path("/sys/fs/cgroup")


def needs(controller: str) -> pytest.MarkDecorator:
    """For a test that uses it."""
    known = Path("/proc/cgroups")
    is_there = known.exists() and controller in known.read_text().split()
    return pytest.mark.skipif(
        not is_there, reason=f"the kernel has no {controller} of cgroups' first version"
    )


@contextmanager
def hierarchy(controller: str) -> Iterator[Path]:
    """The folder in which its groups are made."""
    if (MOUNTED / controller).is_dir():
        yield MOUNTED / controller
        return
    with TemporaryDirectory(prefix="nodeagent-cgroup-") as folder:
        subprocess.run(["mount", "-t", "cgroup", "-o", controller, controller, folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@contextmanager
def freezer(name: str) -> Iterator[Path]:
    """A group of that name, whose processes are in state D once it is frozen: KILL does not end them. What it
    holds at the end is ended.
    """
    with hierarchy("freezer") as top:
        group = top / name
        group.mkdir()
        try:
            yield group
        finally:
            (group / "freezer.state").write_text("THAWED")
            for pid in (group / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            wait_until(lambda: not (group / "cgroup.procs").read_text(), "the frozen ones have ended")
            group.rmdir()


def freeze(group: Path, pid: int) -> None:
    (group / "cgroup.procs").write_text(str(pid))
    (group / "freezer.state").write_text("FROZEN")
    wait_until(lambda: (group / "freezer.state").read_text() == "FROZEN\n", "frozen")
