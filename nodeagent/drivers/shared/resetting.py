"""What it is to reset devices: the contract of each vendor's ``reset`` module. No driver, no device.

Such a module offers three functions:

    groups(devices: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]

is pure: from the attributes of all devices of the vendor, by name, to the group that each is reset with, ""
where nothing says it.

    unlisted(devices: Mapping[str, Mapping[str, str]]) -> str

is pure too: the group of a device that the vendor's library does not list, "" where such a one cannot be
reset.

    reset(order: Order) -> None

runs in a process of its own and returns once every member has come back. It resets each member once and no
other device, repeats nothing, and reports what it does by ``order.step``. It may raise these and nothing
else; a call that never returns is its caller's to outwait.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


class ResetRefused(Exception):
    """Nothing was done; str() says what stands in the way."""


class ResetFailed(Exception):
    """It was begun, and the vendor says that it did not work."""


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
