"""The tables of a node that resets chips: one catalog for each mode, and two that judge otherwise."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from nodeagent.core.catalog.catalog import Catalog, ClearOn, Row
from nodeagent.core.catalog.settings import Mode, ResetSettings
from nodeagent.core.model import Kind, Level, ResetMode
from tests.core.build import catalog, ns, repeat, row

XID = "XID_79"
USER = "80C98002"
TURNS = "80C98000"
"""Wants a reset by most tables; by others it is the application's, or wants none."""
REPEATS = "80E18005"
STAYS = "80E01801"
"""Its driver may say that it has gone; it is over only by a reset."""
NODE_LIMIT = 5
"""Low enough to be met."""
HOUR_S = 3600

ASKING_CODES = (
    "RestartNPU",
    "RestartNPU",
    "RestartNPU",
    "FreeRestartNPU",
    "RestartRequest",
    "RestartBusiness",
    TURNS,
    TURNS,
    REPEATS,
    XID,
)

_OF_A_PERSON = ClearOn(operator=True)


def _rows(turns: Row) -> tuple[Row, ...]:
    return (
        *(
            row(code, Level.SEPARATE_NPU, vendor="nodeagent", clear_on=_OF_A_PERSON)
            for code in ("reset_failed", "reset_limit_reached")
        ),
        row("store_degraded", vendor="nodeagent", kind=Kind.HOST),
        row(XID, Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True)),
        row(USER, Level.RESTART_NPU, user_induced=True),
        row(REPEATS, Level.FREE_RESTART_NPU),
        row(STAYS, Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True)),
        turns,
    )


def _tables(digest: str, how_far: ResetMode, turns: Row | None = None, **words: Any) -> Catalog:
    separated = repeat(REPEATS, 3, 2 * HOUR_S, release_ns=ns(2 * HOUR_S))
    return catalog(
        *_rows(turns or row(TURNS, Level.RESTART_NPU)),
        frequency=(separated,),
        digest=digest,
        reset=replace(ResetSettings(), mode=how_far, node_limit=NODE_LIMIT),
        **words,
    )


@cache
def acting_catalogs() -> Mapping[str, Catalog]:
    """By digest."""
    every = (
        _tables("on", ResetMode.ON),
        _tables("ask", ResetMode.ASK),
        _tables("dry-run", ResetMode.DRY_RUN),
        _tables("off", ResetMode.OFF),
        _tables("graceful", ResetMode.ON, mode=Mode.GRACEFUL),
        _tables("blaming", ResetMode.ON, row(TURNS, Level.RESTART_NPU, user_induced=True)),
        _tables("mild", ResetMode.ON, row(TURNS, Level.SUB_HEALTH)),
    )
    return {one.digest: one for one in every}


_CALM = ("on", "on", "ask", "on", "on", "dry-run", "graceful", "ask", "on")


def digests_of(seed: int) -> tuple[str, ...]:
    """All of them, first the one that this node mostly lives under."""
    calm = _CALM[seed % len(_CALM)]
    return (calm, *(digest for digest in acting_catalogs() if digest != calm))
