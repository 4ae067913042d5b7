"""A device as the client library hands it out, for what decides by it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from nodeagent.client import Device, Handling, Kind, Reason, Verdict

AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

CHIP: Final = Device(
    id="",
    name="",
    kind=Kind.CHIP,
    vendor="ascend",
    level=None,
    verdict=Verdict.ALLOW,
    handling=Handling.NONE,
    subhealthy=False,
    network_unhealthy=False,
    observed=True,
    observed_at=AT,
    reasons=(),
    attributes={},
    holders=(),
    claims=(),
)
"""One that is well and free."""


def device(name: str, verdict: Verdict = Verdict.ALLOW, **fields: Any) -> Device:
    """``fields`` are those that are not as of ``CHIP``."""
    return replace(CHIP, id=f"{name}-id", name=name, verdict=verdict, **fields)


def reasons(*codes: str) -> tuple[Reason, ...]:
    """Open faults."""
    return tuple(Reason(kind="condition", id=code, code=code, level=None, text="") for code in codes)
