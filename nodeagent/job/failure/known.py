"""What can be known of why a command failed. ``exits`` finds it; it is loaded only when a command fails."""

from dataclasses import dataclass
from enum import Enum


class FailureKind(str, Enum):
    """What kind of failure it is. ``transient``: it may well pass by itself."""

    USER = "user"
    HARDWARE = "hardware"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """``signature`` is "" where there is nothing by which two failures could be told apart; ``line`` is what
    people are shown.
    """

    kind: FailureKind = FailureKind.UNKNOWN
    signature: str = ""
    line: str = ""
