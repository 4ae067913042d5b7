"""A PCI tree such as sysfs shows it."""

from pathlib import Path


def plug(
    sysfs: Path, place: str, vendor: int, device: int, class_code: int, *, virtual: bool = False
) -> Path:
    """A function at ``place`` below ``devices``, linked to as the bus lists it."""
    folder = sysfs / "devices" / place
    folder.mkdir(parents=True)
    for name, text in (
        ("vendor", f"0x{vendor:04x}"),
        ("device", f"0x{device:04x}"),
        ("class", f"0x{class_code:06x}"),
    ):
        (folder / name).write_text(text + "\n")
    if virtual:
        (folder / "physfn").symlink_to("../0000:01:00.0")
    bus = sysfs / "bus/pci/devices"
    bus.mkdir(parents=True, exist_ok=True)
    (bus / folder.name).symlink_to(Path("../../../devices") / place)
    return folder
