"""A network interface as the kernel last reported it. Values only: ``netlink`` takes long to import."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A network interface. ``is_enabled``: an administrator has set it up; ``has_carrier``: it works.

    ``losses`` and ``gains`` are how often it lost and got its carrier since it was made. ``kind`` is that of
    a virtual one ("bond", "veth"), "" of others. ``bond`` is the index of the bond that it is a part of, 0
    for none.
    """

    index: int
    name: str
    is_enabled: bool
    has_carrier: bool
    losses: int = 0
    gains: int = 0
    kind: str = ""
    bond: int = 0

    @property
    def is_up(self) -> bool:
        return self.is_enabled and self.has_carrier


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """The interface of this index is no longer here."""

    index: int
