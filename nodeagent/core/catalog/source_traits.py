"""How a source reports faults, as the tables say it: what a signal by itself does not show."""

from dataclasses import dataclass
from enum import StrEnum

from nodeagent.core.catalog.codes import part_of


class OnceHold(StrEnum):
    """Where a ``once`` that nothing else shows is taken as recovered after the setting ``once_hold``.

    Always; where its row has no quiet time of its own; or only where no row names it, because the silence of
    the source says nothing of a recovery.
    """

    ALWAYS = "always"
    NO_QUIET_TIME = "no_quiet_time"
    NO_ROW = "no_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTraits:
    """``burst_ns``: signals of a fault this close are one occurrence, unless its rule says otherwise.

    ``graded``: the source says how severe its codes are. One that no row names is handled by that, and is
    called what its digits say (``Decoding``). Those of a chip's network ports, by code or by the part of the
    chip that the code names, are faults of the port however severe.
    """

    burst_ns: int = 0
    once_hold: OnceHold = OnceHold.NO_QUIET_TIME
    graded: bool = False
    network_codes: tuple[str, ...] = ()
    network_parts: tuple[str, ...] = ()

    def is_of_network(self, key: str) -> bool:
        """Whether a code, as it is compared, is a fault of a chip's network port and so not of the chip."""
        return key in self.network_codes or part_of(key) in self.network_parts
