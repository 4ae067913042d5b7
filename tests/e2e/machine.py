"""A machine of one's own for a test: a small Debian tree, booted by its own systemd under systemd-nspawn.

It has this machine's kernel, and with it this machine's kernel log, under another name (``KMSG``): at its
usual place the machine's journal would read the whole log, and write to it. Device rules of units are
enforced in it, limits on memory and tasks only where this machine's cgroups are all of version 2.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from nodeagent.client import Client

KMSG = Path("/dev/kmsg-host")
CGROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
# What a unit's DeviceAllow, OOMScoreAdjust and CAP_SYSLOG need from the machine around it.
CAPABILITIES = "CAP_BPF,CAP_NET_ADMIN,CAP_SYSLOG,CAP_SYS_RESOURCE"

T = TypeVar("T")


class Machine:
    """A booted machine. Commands run in it as root."""

    def __init__(self, root: Path, leader: int) -> None:
        self.root = root
        self._leader = leader

    def run(
        self, *command: str, check: bool = True, timeout_s: float = 300
    ) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end, which must be 0 unless ``check`` is false."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ("nsenter", "--target", str(self._leader), "--all", "--", "env", "--ignore-environment", path)
        done = subprocess.run(
            [*enter, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done

    def read(self, *command: str) -> str:
        """What the command prints, without the spaces around it."""
        return self.run(*command).stdout.strip()

    def state(self) -> str:
        """``running`` or ``degraded`` once all is up; something else, or nothing, before that."""
        return self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()

    def property_of(self, unit: str, name: str) -> str:
        return self.read("systemctl", "show", "--property", name, "--value", unit)

    def client(self) -> Client:
        """Of the daemon in it: to ask again and again without a process each time."""
        return Client(f"/proc/{self._leader}/root/run/nodeagent/nodeagent.sock")

    def below(self, *places: str) -> list[str]:
        """All that is there at these places and below them, sorted; a place may be a pattern of the shell."""
        found = self.run(
            "sh", "-c", f"find {' '.join(places)} 2>/dev/null", check=False
        )  # 1: one is not there
        return sorted(found.stdout.splitlines())

    def is_up(self) -> bool:
        """Not so once it has shut down."""
        return Path(f"/proc/{self._leader}/exe").exists()

    def write(self, path: str, content: str | bytes) -> None:
        write(self.root, path, content)


def write(root: Path, path: str, content: str | bytes) -> None:
    """Puts a file into the machine, or into its tree before it is booted, with the folders above it."""
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


def until(read: Callable[[], T], right: Callable[[T], bool], timeout_s: float = 300) -> T:
    """Reads again and again until what was read is right: for what is in a machine and cannot be awaited.

    Raises AssertionError with the last reading.
    """
    deadline_s = time.monotonic() + timeout_s
    while not right(found := read()):
        assert time.monotonic() < deadline_s, (
            f"still not so after {timeout_s} s; the last reading was {found!r}"
        )
        time.sleep(0.1)
    return found


@contextlib.contextmanager
def booted(root: Path) -> Iterator[Machine]:
    """Boots the tree and waits until its services are up; in the end the machine is gone, with all in it."""
    name = f"nodeagent-test-{os.getpid()}"
    cgroup = next(path for path in CGROUPS if (path / "cgroup.procs").exists()) / name
    cgroup.mkdir()
    command = [
        "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit", "--console=pipe",
        f"--machine={name}", f"--directory={root}", "--private-network", "--system-call-filter=bpf",
        f"--capability={CAPABILITIES}", f"--bind=/dev/kmsg:{KMSG}",
    ]  # fmt: skip
    with (root.parent / "console").open("w+") as console:
        nspawn = subprocess.Popen(
            # The shell enters the cgroup before it becomes systemd-nspawn: all of the machine is below it.
            ["sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', str(cgroup), *command],
            env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            machine = Machine(root, _leader_of(nspawn, Path(console.name)))
            until(machine.state, lambda state: state in {"running", "degraded"})
            assert machine.state() == "running", machine.read("systemctl", "--failed", "--plain")
            yield machine
        finally:
            _end(nspawn)
            _remove_cgroups(name)


def _leader_of(nspawn: "subprocess.Popen[bytes]", console: Path) -> int:
    """The process that is number 1 in the machine. systemd-nspawn has another child before it, which ends."""
    children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children")

    def read() -> list[int]:
        assert nspawn.poll() is None, console.read_text()
        return [int(pid) for pid in children.read_text().split() if _is_first(pid)]

    return until(read, bool)[0]


def _is_first(pid: str) -> bool:
    """In a PID namespace of its own (proc(5), ``NSpid``)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    (numbers,) = [line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")]
    return len(numbers) > 1 and numbers[-1] == "1"


def _end(nspawn: "subprocess.Popen[bytes]") -> None:
    for _ in range(2):  # the first asks the machine to halt, the second ends it
        nspawn.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            nspawn.wait(timeout=20)
            return
    nspawn.kill()
    nspawn.wait()


def _remove_cgroups(name: str) -> None:
    """systemd-nspawn makes the same folders in each hierarchy there is, and leaves them."""
    for hierarchy in (*CGROUPS, Path("/sys/fs/cgroup/systemd")):
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            Path(folder).rmdir()
