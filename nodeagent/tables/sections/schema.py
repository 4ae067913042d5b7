"""The TOML forms of the tables: which keys there are, of what type, in what range.

What a form alone cannot check (levels of a kind, codes that exist) is checked elsewhere.
Ranges of frequency and duration rules are the vendor's.
"""

from typing import Annotated

from msgspec import Meta, Struct

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Affects, Kind, Level, Recovery
from nodeagent.tables.levels import KINDS_OF_CODES, LevelSource
from nodeagent.toml.values import parse_duration_ns

_READS_DURATION = {"reads": parse_duration_ns}
_DAY_NS = 86_400 * SECOND_NS
RELEASE_LIMIT_NS = 4_294_967_296 * SECOND_NS
"""The vendor's longest release window, which means never."""

Name = Annotated[str, Meta(min_length=1, max_length=200, description="a short text in quotes")]
Prose = Annotated[str, Meta(max_length=4000, description="a text in quotes, of at most 4000 characters")]
Identifier = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z",
        description="a name of at most 64 letters, digits, and _ . -",
    ),
]
Metric = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?:\.[A-Za-z0-9_.-]{1,63}|\.\*)?\Z",
        description='the name of a reading, such as link_up.3, or of a family of them, such as "link_up.*"',
    ),
]
CODE_PATTERN = r"\A(?:[!-)+-~]{1,64}|[!-)+-~]{0,63}\*)\Z"
Code = Annotated[
    str,
    Meta(
        pattern=CODE_PATTERN,
        description='a code in quotes, without blanks; "*" may only end it',
    ),
]
Codes = Annotated[
    tuple[Code, ...],
    Meta(min_length=1, max_length=4096, description="a list of one or more codes in quotes"),
]
KindOfCode = Annotated[Kind, Meta(description=f"one of {', '.join(KINDS_OF_CODES)}")]
Finite = Annotated[float, Meta(ge=-1e300, le=1e300, description="a number")]
TimeWindow = Annotated[
    int,
    Meta(
        ge=60 * SECOND_NS,
        le=10 * _DAY_NS,
        description='a duration from "60s" to "10d"',
        extra=_READS_DURATION,
    ),
]
UpToTenMinutes = Annotated[
    int,
    Meta(ge=0, le=600 * SECOND_NS, description='a duration from "0s" to "10m"', extra=_READS_DURATION),
]
UpToOneDay = Annotated[
    int, Meta(ge=0, le=_DAY_NS, description='a duration from "0s" to "24h"', extra=_READS_DURATION)
]
UpToOneHour = Annotated[
    int, Meta(ge=0, le=3600 * SECOND_NS, description='a duration from "0s" to "1h"', extra=_READS_DURATION)
]
ReleaseWindow = Annotated[
    int,
    Meta(
        ge=0,
        le=RELEASE_LIMIT_NS,
        description='a duration from "60s" to "49710d", or "0s" for never',
        extra=_READS_DURATION,
    ),
]


LevelsByDetail = Annotated[
    dict[str, Level],
    Meta(
        max_length=64,
        description='levels by the detail of a refined code, such as { Fatal = "PreSeparateFault" }',
    ),
]


class FileForm(Struct, frozen=True, kw_only=True):
    """The keys of a file besides its rows and rules: their values for rows and rules that do not set them."""

    kind: KindOfCode | None = None
    vendor: Annotated[str, Meta(max_length=64, description="a name in quotes")] = ""
    affects: Affects = Affects.SELF
    level_source: LevelSource | None = None
    recovery: Recovery = Recovery.LEVEL


class RowForm(Struct, frozen=True, kw_only=True):
    """``[codes.CODE]``; ``levels`` are those of the refined codes ``CODE.DETAIL``, "*" of each. ``level``
    None: see ``tables.levels.DEFAULT``.

    ``recovery``: "level"; "vendor", where the level is the recovery that the vendor asks for; or "none".
    """

    name: Name
    level: Level | None = None
    levels: LevelsByDetail = {}
    notice: bool = False
    kind: KindOfCode | None = None
    vendor: Annotated[str, Meta(max_length=64, description="a name in quotes")] | None = None
    user_induced: bool = False
    recovery: Recovery | None = None
    affects: Affects | None = None
    clear_on: Annotated[
        tuple[str, ...],
        Meta(max_length=8, description="a list of recover, reset, reboot, job_end, operator or a quiet time"),
    ] = ("recover", "reset", "reboot")
    description: Prose = ""
    action: Prose = ""
    level_source: LevelSource | None = None
    level_reason: Prose = ""
    enabled: bool = True


class RuleForm(Struct, frozen=True, kw_only=True):
    """What every rule and pattern has. Its other fields are named as those of the catalog's rule."""

    id: Identifier
    enabled: bool = True
