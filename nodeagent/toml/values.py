"""Values of a configuration: durations and sizes such as ``"20s"`` and ``"1GiB"``, paths, names, commands.

A duration or size is one whole number with one unit. A bare number is refused, because its unit is unknown.
"""

import re
from typing import Annotated

from msgspec import Meta

SECOND_NS = 1_000_000_000

_DURATION = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")
_DURATION_UNITS_NS = {
    "ms": 1_000_000,
    "s": SECOND_NS,
    "m": 60 * SECOND_NS,
    "h": 3_600 * SECOND_NS,
    "d": 86_400 * SECOND_NS,
}
_SIZE = re.compile(r"([0-9]{1,15})(B|KiB|MiB|GiB|TiB)")
_SIZE_UNITS_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def parse_duration_ns(text: object) -> int:
    """Nanoseconds of ``"500ms"``, ``"20s"``, ``"3m"``, ``"10d"``; ValueError has the right form."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError('a duration is a whole number and one of ms, s, m, h, d, in quotes, such as "20s"')
    return int(match[1]) * _DURATION_UNITS_NS[match[2]]


def parse_size_bytes(text: object) -> int:
    """Bytes of ``"64MiB"`` or ``"1GiB"``; ValueError has the right form."""
    match = _SIZE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(
            'a size is a whole number and one of B, KiB, MiB, GiB, TiB, in quotes, such as "1GiB"'
        )
    return int(match[1]) * _SIZE_UNITS_BYTES[match[2]]


def duration(least_ns: int, most_ns: int, bounds: str) -> Meta:
    """The form of a duration within these limits, of which ``bounds`` is the text: ``'"1s" to "30s"'``."""
    return Meta(
        ge=least_ns,
        le=most_ns,
        description=f"a duration from {bounds}",
        extra={"reads": parse_duration_ns},
    )


_NO_CONTROL = r"\A[^\x00-\x1f\x7f-\x9f]*\Z"

FilePath = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        pattern=_NO_CONTROL,
        description="a path in quotes, without control characters",
    ),
]
OptionalPath = Annotated[
    str,
    Meta(
        max_length=4096,
        pattern=_NO_CONTROL,
        description='a path in quotes, without control characters, or ""',
    ),
]
ServiceUnit = Annotated[
    str,
    Meta(
        max_length=255,
        pattern=r"\A[A-Za-z0-9:_.\\@-]+\.service\Z",
        description='a list of systemd services, such as ["slurmd.service"]',
    ),
]
NodeName = Annotated[
    str,
    Meta(
        max_length=253,
        pattern=_NO_CONTROL,
        description="the node's name in quotes, without control characters",
    ),
]
Word = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"\A[^\x00]*\Z")]
"""An argument of a command: any text that ``execve`` takes."""
