"""The attributes of a device by which the core decides, each under one name and with its type.

A driver gives attributes as texts, and most of them are only shown (docs/attributes.md). The core reads no
other attribute than these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PCI: Final = "pci"
EXCLUDED: Final = "excluded"
NO_RESET: Final = "no_reset"
PART_OF: Final = "part_of"
EVENTS: Final = "events"
NO_EVENTS: Final = "none"
RECOVERY_ACTION: Final = "recovery_action"
NAMED_BY_DRIVER: Final = "told"
MIG: Final = "mig"
MIG_DISABLED: Final = "disabled"
GROUP: Final = "group"
UPSTREAM: Final = "upstream"
CHIPS: Final = "chips"


@dataclass(frozen=True, slots=True)
class Traits:
    """The typed form of ``attributes``; one that was not given is "" or ()."""

    attributes: Mapping[str, str]

    @property
    def pci(self) -> str:
        """The PCI address, domain:bus:device.function."""
        return self.attributes.get(PCI, "")

    @property
    def excluded(self) -> str:
        """Why the configuration excludes the device: it is listed, and no report about it is taken."""
        return self.attributes.get(EXCLUDED, "")

    @property
    def no_reset(self) -> str:
        """Why nothing on this node can reset it."""
        return self.attributes.get(NO_RESET, "")

    @property
    def chip_id(self) -> str:
        """Of a part of a chip: the id of the chip."""
        return self.attributes.get(PART_OF, "")

    @property
    def reports_events(self) -> bool:
        """Whether its driver reports a fault as it happens. Where it does not, the kernel log decides."""
        return self.attributes.get(EVENTS) != NO_EVENTS

    @property
    def driver_names_recovery(self) -> bool:
        """Whether its driver reports which recovery the chip needs."""
        return self.attributes.get(RECOVERY_ACTION) == NAMED_BY_DRIVER

    @property
    def is_whole(self) -> bool:
        """Whether the chip is known not to be divided into parts."""
        return self.attributes.get(MIG) == MIG_DISABLED

    @property
    def group(self) -> str:
        """The name of the group of chips that are reset together."""
        return self.attributes.get(GROUP, "")

    @property
    def upstream(self) -> tuple[str, ...]:
        """The PCI addresses of the bridges above it, the nearest first."""
        return _listed(self.attributes.get(UPSTREAM, ""))

    @property
    def chips(self) -> tuple[str, ...]:
        """Of a network port: the names, ids or PCI addresses of the chips that use it."""
        return _listed(self.attributes.get(CHIPS, ""))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
