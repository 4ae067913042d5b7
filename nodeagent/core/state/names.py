"""Names of devices: which one stands behind a name or an address, and their order.

Of two that were given the same name or address it is the later one.
"""

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
        if pci := device.attributes.get("pci"):
            self.by_pci[pci] = device.id

    def remove(self, device: Device) -> None:
        if self.get(device.name) == device.id:
            del self[device.name]
        pci = device.attributes.get("pci", "")
        if self.by_pci.get(pci) == device.id:
            del self.by_pci[pci]
