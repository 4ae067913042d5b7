"""Which device stands behind a name or an address: of two that were given the same, the later one."""

from nodeagent.core.model import Device


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
