"""Any user of this machine, who has the kernel write lines in which his own names stand.

Every way is the kernel's own: what comes of it is in the real log, of facility 0. Needs root, to give it up.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
"""A command, as a child that took another user between fork and exec would run gRPC's handlers of forks."""
LIMIT_S = 30
NAME_CHARS = 15
WAYS = ("segfault", "divide", "privileged", "vsyscall", "umip", "futex", "netlink")

RATE = Path("/proc/sys/kernel/printk_ratelimit")
"""At 0 the kernel leaves out none of many lines."""
FATAL_SIGNALS = Path("/proc/sys/kernel/print-fatal-signals")
"""At 1 it says more of a program that a signal ends, the name of its file first."""

_MEMORY = Path("/sys/fs/cgroup/memory")
_CPUSET = Path("/sys/fs/cgroup/cpuset")


class Forger:
    """``folder`` holds its programs; it may be one that nobody else can read, as root begins them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = folder / "forge"
        source = Path(__file__).with_name("forge.c")
        subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", self._program, source], check=True)

    def run(self, name: str, way: str, *, file: str = "forge", groups: Sequence[Path] = ()) -> None:
        """A program of that name, in a file of that name, which the kernel ends or names."""
        program = self._folder / file.replace("/", "_").encode()[:255].decode(errors="ignore")
        if not program.exists():
            os.link(self._program, program)

        joining = " ".join(f'echo $$ > "{group}/cgroup.procs";' for group in groups)
        done = subprocess.run(
            ["sh", "-c", f'{joining} exec "$0" "$@"', program, name, way],
            timeout=LIMIT_S,
            check=False,
            cwd="/",
        )
        assert done.returncode != 2, f"{name}: could not be named, or {way} is no way"

    def use_up_memory(self, name: str, group: str) -> None:
        """Within a control group of that name, whose kill quotes both."""
        memory, cpuset = _MEMORY / group, _CPUSET / group
        for made in (memory, cpuset):
            made.mkdir()
        try:
            (memory / "memory.limit_in_bytes").write_text("16M")
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (cpuset / setting).write_text((_CPUSET / setting).read_text())
            self.run(name, "memory", groups=(memory, cpuset))
        finally:
            for made in (memory, cpuset):
                made.rmdir()

    @staticmethod
    def can_use_up_memory() -> bool:
        return (_MEMORY / "memory.limit_in_bytes").exists() and (_CPUSET / "cpuset.cpus").exists()


def as_nobody(*commands: str, namespaces: str) -> str:
    """In namespaces of his own, where he may do all of that; what failed is said."""
    done = subprocess.run(
        [*AS_NOBODY, "unshare", namespaces, "sh", "-c", "; ".join(commands)],
        cwd="/",
        timeout=LIMIT_S,
        capture_output=True,
        check=False,
        text=True,
    )
    return done.stderr


@contextmanager
def kernel_setting(setting: Path, value: str) -> Iterator[None]:
    """So for the while, and then as it was."""
    before = setting.read_text()
    setting.write_text(value)
    try:
        yield
    finally:
        setting.write_text(before)
