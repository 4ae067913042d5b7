"""The codes, rows and rules that the tests of relation rules share."""

from typing import Any

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import Input, Level
from tests.core.build import catalog, emitted, lasting, related, row, run, xid

UCE, AI_CORE = "80E01801", "80C98009"
RETRY, LINK_DOWN = "8C1F860B", "81078603"
FOR_EVER = ClearOn(operator=True)

ROWS = (
    row("XID_79", Level.SEPARATE_NPU, clear_on=FOR_EVER),
    row("XID_48", Level.RESTART_NPU, clear_on=FOR_EVER),
    row("XID_64", Level.SEPARATE_NPU, clear_on=FOR_EVER),
    row("XID_92", Level.SUB_HEALTH, clear_on=FOR_EVER),
    row("XID_45", Level.RESTART_BUSINESS, clear_on=FOR_EVER),
    row("XID_154", Level.SUB_HEALTH, clear_on=FOR_EVER),
    row("XID_163", Level.SUB_HEALTH, clear_on=FOR_EVER),
    row("XID_162", notice=True),
    row(UCE, Level.RESTART_BUSINESS),
    row(AI_CORE, Level.RESTART_REQUEST),
    row(RETRY),
    row(LINK_DOWN),
)
COMPANIONS = (related("XID_45", "XID_*"), related("XID_154", "XID_*"), related(AI_CORE, UCE, within_s=5))
TABLES = catalog(*ROWS, relation=COMPANIONS)
PAIR = related(RETRY, LINK_DOWN, within_s=300, then="level", level=Level.SEPARATE_NPU)
LEVELS = catalog(*ROWS, relation=[PAIR], duration=[lasting(LINK_DOWN, 20, 60)])
CANCEL = catalog(*ROWS, relation=[related("XID_162", "XID_163", within_s=3600, then="cancel")])
GPU = "npu0"


def seen(engine: Engine, *steps: tuple[float, Input]) -> list[tuple[str, str, str]]:
    return emitted(run(engine, steps))


def gpu(code: str, device: str = GPU, **words: Any) -> Input:
    return xid(code, device, **words)
