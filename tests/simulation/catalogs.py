"""The tables a simulated node lives under: three small ones where much happens soon, and the shipped ones.

Which code has which rule is chosen so that each rule meets the others in some code and stands alone in
another: a twin that recomputes one rule judges only codes that no relation rule names.
"""

from collections.abc import Mapping
from functools import cache

from nodeagent.core.catalog.catalog import Catalog, ClearOn, Row
from nodeagent.core.catalog.settings import Mode
from nodeagent.core.model import Affects, Kind, Level
from tests.core.build import HBM, LINK_DOWN, catalog, hot, lasting, ns, related, repeat, rising, row
from tests.shipped import shipped_catalog
from tests.simulation.twins.rows import is_related

HARD = "80C98000"
USER = "80C98002"
UNKNOWN = "8BADF00D"
COMPANION, ROOT = "80C98009", "80E01801"
CHIP_CODES = (
    LINK_DOWN,
    HBM,
    HARD,
    USER,
    "RestartRequest",
    "RestartBusiness",
    "FreeRestartNPU",
    "RestartNPU",
    "PreSeparateNPU",
    "SubHealthFault",
    "SeparateNPU",
    "NotHandleFault",
)
RELATED_CODES = (COMPANION, ROOT, "XID_45", "XID_79", "XID_154", "XID_48", UNKNOWN)
KERNEL_CODES = ("XID_13", "XID_31", "XID_62", "XID_94")
HOT, STORM = "HOT", "STORM"
NODE_CODE, PORT_CODE, BRIDGE_CODE = "HUNG", "PORT", "AER"
PROGRAMS_ON_NODE = "OOM"

HOUR_S = 3600


def _rows(hard: Level, hbm: Level) -> tuple[Row, ...]:
    ends_by_reset = ClearOn(reset=True, reboot=True)
    return (
        row(LINK_DOWN),
        row(HBM, hbm),
        row(HARD, hard),
        row(USER, Level.RESTART_BUSINESS, user_induced=True),
        row(COMPANION, Level.RESTART_BUSINESS),
        row(ROOT, Level.RESTART_NPU),
        row(
            "XID_13",
            Level.RESTART_BUSINESS,
            user_induced=True,
            clear_on=ClearOn(job_end=True, quiet_ns=ns(600)),
        ),
        row("XID_31", Level.SUB_HEALTH, clear_on=ClearOn(quiet_ns=ns(600))),
        row("XID_62", Level.RESTART_NPU, clear_on=ends_by_reset),
        row("XID_94", Level.RESTART_REQUEST, clear_on=ClearOn(operator=True, reboot=True)),
        row("XID_45", Level.RESTART_BUSINESS, clear_on=ClearOn(quiet_ns=ns(300))),
        row("XID_48", Level.RESTART_NPU, clear_on=ends_by_reset),
        row("XID_79", Level.RESTART_NPU, clear_on=ends_by_reset),
        row("XID_154", Level.SUB_HEALTH, clear_on=ClearOn(quiet_ns=ns(300))),
        row(
            NODE_CODE,
            Level.PRE_SEPARATE_FAULT,
            kind=Kind.HOST,
            clear_on=ClearOn(quiet_ns=ns(900), operator=True),
        ),
        row(PROGRAMS_ON_NODE, kind=Kind.HOST, user_induced=True, clear_on=ClearOn(quiet_ns=ns(600))),
        row(PORT_CODE, Level.SEPARATE_FAULT, kind=Kind.UNIFIEDBUS, affects=Affects.NODE),
        row(
            BRIDGE_CODE,
            Level.PRE_SEPARATE_FAULT,
            kind=Kind.LINK,
            affects=Affects.CHIPS_BEHIND,
            clear_on=ClearOn(quiet_ns=ns(600)),
        ),
        row(HOT, Level.SUB_HEALTH),
        row(STORM, Level.PRE_SEPARATE_NPU),
    )


CALM = catalog(
    *_rows(Level.RESTART_NPU, Level.FREE_RESTART_NPU),
    frequency=(
        repeat(HARD, 2, 2 * HOUR_S, correlation_ns=ns(30)),
        repeat(
            HBM, 3, 2 * HOUR_S, correlation_ns=ns(30), release_ns=ns(3 * HOUR_S), level=Level.SEPARATE_NPU
        ),
        repeat(LINK_DOWN, 3, 2 * HOUR_S, release_ns=ns(4 * HOUR_S)),
        repeat("XID_62", 3, 2 * HOUR_S, release_ns=ns(2 * HOUR_S), level=Level.SEPARATE_NPU),
        repeat("*", 3, 24 * HOUR_S, at_least=Level.RESTART_REQUEST, correlation_ns=ns(30)),
        repeat(
            BRIDGE_CODE, 2, 6 * HOUR_S, release_ns=ns(HOUR_S), level=Level.PRE_SEPARATE_FAULT, kind=Kind.LINK
        ),
    ),
    duration=(lasting(LINK_DOWN, 20, 60),),
    relation=(
        related(COMPANION, ROOT, within_s=10),
        related("XID_45", "XID_79", "XID_48", within_s=180),
        related("XID_154", "XID_79", within_s=60, then="level", level=Level.SEPARATE_NPU, same="node"),
        related("XID_48", "XID_79", within_s=60, then="cancel", same="job"),
    ),
    threshold=(hot(HOT, 60),),
    counter=(rising(STORM, 100, HOUR_S),),
    digest="calm",
)
STRICT = catalog(
    *_rows(Level.SEPARATE_NPU, Level.PRE_SEPARATE_NPU),
    frequency=(
        repeat(HARD, 1, HOUR_S, correlation_ns=ns(30), level=Level.SEPARATE_NPU),
        repeat(LINK_DOWN, 2, HOUR_S, release_ns=ns(2 * HOUR_S)),
        repeat("XID_62", 2, HOUR_S, release_ns=ns(HOUR_S)),
    ),
    duration=(lasting(LINK_DOWN, 10, 30, level=Level.SEPARATE_NPU),),
    relation=(related("XID_45", "XID_79", within_s=60),),
    threshold=(hot(HOT, 30),),
    digest="strict",
    request_tolerance_ns=0,
)
GRACEFUL = catalog(
    *_rows(Level.RESTART_BUSINESS, Level.RESTART_NPU),
    frequency=(repeat("*", 2, 12 * HOUR_S, at_least=Level.RESTART_REQUEST, correlation_ns=ns(30)),),
    duration=(lasting(LINK_DOWN, 20, 60, level=Level.RESTART_REQUEST),),
    counter=(rising(STORM, 100, HOUR_S),),
    digest="graceful",
    mode=Mode.GRACEFUL,
)


@cache
def catalogs() -> Mapping[str, Catalog]:
    """By digest, all that a simulated node may ever reload."""
    return {one.digest: one for one in (CALM, STRICT, GRACEFUL, shipped_catalog())}


@cache
def is_tangled(digest: str, code: str) -> bool:
    """Whether these tables, or any small ones, relate the code to another: twins of other rules leave it."""
    return any(is_related(one, code) for one in (catalogs()[digest], CALM, STRICT, GRACEFUL))
