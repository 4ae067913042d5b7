"""Names of devices and of jobs: which device a name or an address means, their order, and what proves a job.

Of two devices with one name or address it is the later one. Of jobs, ``slurm:7.0``, ``pod:UID`` and
``container:ID`` are proven by a cgroup; ``NAME/PID`` is a further supervisor of that job, and ``pid:PID`` one
whose cgroup proves nothing.
"""

from typing import Final

from nodeagent.core.model import Device

_DIGITS = "0123456789"


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """The key by which people count: npu2 before npu10, ub0/9 before ub0/10.

    Digits count as a number only at the end of a part: those within an address are hexadecimal.
    """
    return tuple(_counted(part) for part in name.split("/"))


def _counted(part: str) -> tuple[str, int, str]:
    """Digits are compared by how many there are, then as text: a number may be of any length."""
    stem = part.rstrip(_DIGITS)
    number = part[len(stem) :].lstrip("0")
    return stem, len(number), number


PART = "gi"
"""What the name of a part begins with; a number follows: gpu3/gi5."""


def part_of(name: str) -> tuple[str, str]:
    """The chip that a name or id means, and the part of it if it means one: gpu3 and gi5 of gpu3/gi5."""
    chip, separator, part = name.rpartition("/")
    if not separator:
        return name, ""
    number = part.removeprefix(PART)
    is_part = bool(chip) and part != number and number.isascii() and number.isdecimal()
    return (chip, part) if is_part else (name, "")


class Names(dict[str, str]):
    """The id of each device by its name, in ``by_pci`` by its PCI address."""

    def __init__(self) -> None:
        super().__init__()
        self.by_pci: dict[str, str] = {}

    def add(self, device: Device) -> None:
        if device.name:
            self[device.name] = device.id
        if pci := device.traits.pci:
            self.by_pci[pci] = device.id

    def remove(self, device: Device) -> None:
        if self.get(device.name) == device.id:
            del self[device.name]
        pci = device.traits.pci
        if self.by_pci.get(pci) == device.id:
            del self.by_pci[pci]


NO_CGROUP: Final = "pid:"
"""Begins the name of a job whose processes no cgroup distinguishes from others."""

_OF_CONTAINERS: Final = ("pod:", "container:")


def cgroup_of(name: str) -> str:
    """The job's name without the pid of a second supervisor."""
    return name.partition("/")[0]


def is_first_of_cgroup(name: str) -> bool:
    """Whether it is that of the first supervisor of a job which a cgroup proves: there is one of each."""
    return bool(name) and not name.startswith(NO_CGROUP) and "/" not in name


def answers_for(name: str, uid: int) -> str:
    """Against whose limit the job counts: its user's; for a pod or a container its own, because the users in
    it are not those of the node, and root of every container is the same uid.
    """
    return cgroup_of(name) if name.startswith(_OF_CONTAINERS) else f"uid:{uid}"
