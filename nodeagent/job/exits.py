"""What is known of why a command failed: the sort of failure, and a signature that is stable over runs."""

from dataclasses import dataclass
from enum import Enum

from nodeagent.job.model import Failure


class Sort(str, Enum):
    """Whose a failure is. ``transient``: it may well pass by itself."""

    USER = "user"
    HARDWARE = "hardware"
    TRANSIENT = "transient"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """``signature`` is "" where there is nothing by which two failures could be told apart; ``line`` is what
    people are shown."""

    sort: Sort = Sort.UNKNOWN
    signature: str = ""
    line: str = ""


def known(failure: Failure | None) -> Known:
    if failure is None or not failure.error_type:
        return Known()
    line = f"{failure.error_type}: {failure.message}".strip()
    return Known(signature=line, line=line)
