"""Programs of another architecture in a tree of theirs, run by QEMU's user emulation.

The kernel hands them to QEMU by binfmt_misc, and has one for each user namespace (Linux 6.7,
Documentation/admin-guide/binfmt-misc.rst): the tree has a namespace of its own, and this machine stays as
it is.
"""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

QEMU = Path("/usr/bin/qemu-aarch64-static")
# By what QEMU's scripts/qemu-binfmt-conf.sh knows an object of AArch64. F: QEMU is opened now.
AARCH64 = (
    r":aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    f":{QEMU}:F"
)
BINFMT = "/proc/sys/fs/binfmt_misc"
PREPARE = f"""
mount --types binfmt_misc binfmt_misc {BINFMT}
printf %s "$2" >{BINFMT}/register
mkdir --parents "$1/proc" "$1/dev" "$1/run" "$1/tmp"
mount --types proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --types tmpfs tmpfs "$1/run"
echo ready
exec sleep infinity
"""


class OtherProcessor:
    """A tree whose programs run. Commands run in it as root of its namespace."""

    def __init__(self, root: Path, leader: int) -> None:
        self.root = root
        self._enter = ("nsenter", f"--target={leader}", "--user", "--mount", "--pid", "chroot", str(root))

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end, which must be 0 unless ``check`` is false."""
        done = subprocess.run(
            [*self._enter, *command], env=_environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done

    @contextlib.contextmanager
    def running(self, *command: str) -> Iterator[Path]:
        """What runs beside the test, and the file that takes what it says."""
        log = self.root.parent / f"{len(list(self.root.parent.iterdir()))}.log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                [*self._enter, *command], env=_environment(),
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
            )  # fmt: skip
        try:
            yield log
        finally:
            process.terminate()
            process.wait(timeout=60)


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


@contextlib.contextmanager
def emulated(root: Path) -> Iterator[OtherProcessor]:
    """The tree with a processor for it; in the end all that runs in it is gone."""
    command = [
        "unshare", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child",
        "sh", "-ec", PREPARE, "sh", str(root), AARCH64,
    ]  # fmt: skip
    first = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    try:
        assert first.stdout.readline() == "ready\n"
        yield OtherProcessor(root, _only_child(first.pid))
    finally:
        first.kill()
        first.wait()
        first.stdout.close()


def _only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
