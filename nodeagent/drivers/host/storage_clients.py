"""The clients of shared storage, DPC and DTFS, from the files in which they keep their state on Ascend nodes.

The files are read as MindCluster's noded reads them (component/noded/pkg/monitoring/dpcmonitor/dpc_monitor.go
and .../dtfsmonitor/dtfs_monitor.go at 22bb3d98): three lines for each instance,

    [instidx=1]
    DPC_INTERNAL_ERROR: 0      -12: short of memory     DTFS_PROCESS_ERROR: 0      -1: its process failed
    DPC_PROCESS_ERROR: 0       -1: its process failed   DTFS_LINK_ERROR: 0         -1: its link failed

Shortage of memory counts once it has lasted for ten minutes on one instance, and ends once no instance has
had it for ten (dpccontrol/dpc_control.go). A file that users other than root may write is not trusted, and
the last trusted state is kept; the same holds for a file that is being written. Without the file, the node
has no such client. No mount is touched.
"""

import os
import re
import stat
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.core.model import NODE
from nodeagent.drivers.host.check import CheckResult, Evidence, Finding

LASTS_S: Final = 600.0
MAX_BYTES: Final = 64 * 1024

_INSTANCE: Final = re.compile(r"\[instidx=(\d{1,9})\]")
_VALUE: Final = re.compile(r"(\w{1,64}):\s*(-?\d{1,9})")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFault:
    """``key`` of the file has the value ``wrong`` where it is so, else 0."""

    key: str
    wrong: int
    code: str
    lasts_s: float = 0.0


CLIENTS: Final[Mapping[str, tuple[StorageFault, ...]]] = {
    "user/mind-cluster/dpcstatus/dpc_status_check": (
        StorageFault(key="DPC_INTERNAL_ERROR", wrong=-12, code="110001021", lasts_s=LASTS_S),
        StorageFault(key="DPC_PROCESS_ERROR", wrong=-1, code="110001020"),
    ),
    "user/mind-cluster/dtfsstatus/dtfs_status_check": (
        StorageFault(key="DTFS_PROCESS_ERROR", wrong=-1, code="110001022"),
        StorageFault(key="DTFS_LINK_ERROR", wrong=-1, code="110001023"),
    ),
}
"""The faults of a file in the order of its lines."""

Instances = Mapping[int, tuple[bool, ...]]
"""For each instance, by its number, whether it has each of the faults."""


class RefusedStorage(ValueError):
    """The file cannot be trusted; the text has the reason."""


class StorageClients:
    """``root`` is that of the node's file system, ``owner`` the user that must own the files."""

    def __init__(self, root: Path, now_s: Callable[[], float] = time.monotonic, owner: int = 0) -> None:
        self._clients = [_Client(root / path, faults, owner) for path, faults in CLIENTS.items()]
        self._now_s = now_s

    def is_here(self) -> bool:
        return any(client.file.exists() for client in self._clients)

    def look(self) -> CheckResult:
        active: dict[Finding, Evidence] = {}
        for client in self._clients:
            active |= client.look(self._now_s())
        return CheckResult(active=active)


class _Client:
    """One file. ``_since_s``: by instance and key, since when it is as it is, and whether that is wrong."""

    def __init__(self, file: Path, faults: tuple[StorageFault, ...], owner: int) -> None:
        self.file = file
        self._faults = faults
        self._owner = owner
        self._since_s: dict[tuple[int, str], tuple[float, bool]] = {}
        self._active: set[str] = set()
        self._said = ""

    def look(self, now_s: float) -> Mapping[Finding, Evidence]:
        try:
            self._take(parse(_text(self.file, self._owner), self._faults), now_s)
            self._say("")
        except FileNotFoundError:
            self._since_s, self._active = {}, set()
        except (OSError, ValueError) as error:
            self._say(f"{self.file} is not believed: {error}")
        found: dict[Finding, Evidence] = {}
        for fault in self._faults:
            if self._is_wrong(fault, now_s):
                instances = [str(number) for (number, key), (_, is_wrong) in self._since_s.items()
                             if key == fault.key and is_wrong]  # fmt: skip
                found[NODE, fault.code] = {"file": str(self.file), "instances": ", ".join(instances)}
        self._active = {code for _, code in found}
        return found

    def _take(self, instances: Instances, now_s: float) -> None:
        since_s: dict[tuple[int, str], tuple[float, bool]] = {}
        for number, states in instances.items():
            for fault, is_wrong in zip(self._faults, states, strict=True):
                before = self._since_s.get((number, fault.key))
                is_same = before is not None and before[1] is is_wrong
                since_s[number, fault.key] = before if before and is_same else (now_s, is_wrong)
        self._since_s = since_s

    def _is_wrong(self, fault: StorageFault, now_s: float) -> bool:
        states = [state for (_, key), state in self._since_s.items() if key == fault.key]
        if fault.code in self._active:
            return any(is_wrong or now_s - since_s < fault.lasts_s for since_s, is_wrong in states)
        return any(is_wrong and now_s - since_s >= fault.lasts_s for since_s, is_wrong in states)

    def _say(self, what: str) -> None:
        if what and what != self._said:
            print(what, file=sys.stderr, flush=True)
        self._said = what


def parse(text: str, faults: tuple[StorageFault, ...]) -> Instances:
    """Raises ``Refused``."""
    lines = text.splitlines()
    height = 1 + len(faults)
    if not lines or len(lines) % height:
        raise RefusedStorage(f"it has {len(lines)} lines where each instance has {height}")
    return dict(_instance(lines[first : first + height], faults) for first in range(0, len(lines), height))


def _instance(lines: list[str], faults: tuple[StorageFault, ...]) -> tuple[int, tuple[bool, ...]]:
    named = _INSTANCE.fullmatch(lines[0])
    if named is None:
        raise RefusedStorage(f"{lines[0][:80]!r} where [instidx=NUMBER] is needed")
    return int(named[1]), tuple(
        _value(line, fault) == fault.wrong for line, fault in zip(lines[1:], faults, strict=True)
    )


def _value(line: str, fault: StorageFault) -> int:
    found = _VALUE.fullmatch(line)
    if found is None or found[1] != fault.key or int(found[2]) not in (0, fault.wrong):
        raise RefusedStorage(f"{line[:80]!r} where {fault.key} with 0 or {fault.wrong} is needed")
    return int(found[2])


def _text(file: Path, owner: int) -> str:
    """Raises ``OSError`` and ``Refused``; nothing but a plain file is waited for."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedStorage("it is no plain file")
        if status.st_uid != owner or status.st_mode & 0o022:
            raise RefusedStorage(f"it has to belong to user {owner}, and be writable for no other")
        return opened.read(MAX_BYTES).decode("ascii")
