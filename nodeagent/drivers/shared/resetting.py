"""The contract of each vendor's ``reset`` module. It knows no driver and no device.

Such a module has three functions:

    groups(devices: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]

maps each device of the vendor to the group with which it is reset, "" if that is unknown. ``devices`` maps
the name of each device to its attributes. The function is pure.

    unlisted(devices: Mapping[str, Mapping[str, str]]) -> str

is the group of a device that the vendor's library does not list, "" if such a device cannot be reset. It is
pure.

    reset(order: ResetOrder) -> None

runs in a process of its own and returns once every member has come back. It resets each member once and no
other device, repeats nothing, and reports each step by ``order.step``. It raises only the exceptions below.
The caller must handle a call that never returns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


class ResetRefused(Exception):
    """Nothing was done; str() is the reason."""


class ResetFailed(Exception):
    """It was begun, and the vendor reports that it failed."""


class ResetTimedOut(Exception):
    """It was begun, and not every member came back in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetMember:
    """A device that is reset with the others: its name, its own id ("" : never read), its attributes as it
    lists them now (none of one that the library does not list), and ``pci``: the address that it gives, else
    the one that it had when it gave one.
    """

    name: str
    identity: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    pci: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOrder:
    """``members``: the device that asked comes first. They have ``start_limit_s`` to start again.

    ``library``, ``driver_root``, ``sysfs`` and ``procfs`` are as in the driver's configuration. ``step`` is
    called with what is done, as it is begun.
    """

    members: tuple[ResetMember, ...]
    start_limit_s: float
    step: Callable[[str], None]
    library: str = ""
    driver_root: str = ""
    sysfs: str = "/sys"
    procfs: str = "/proc"


def in_root(driver_root: str, command: Sequence[str]) -> Sequence[str]:
    """A vendor's tool with what it needs, where the driver lies in a root of its own ("": it does not)."""
    return command if driver_root in ("", "/") else ("chroot", driver_root, *command)
