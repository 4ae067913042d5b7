"""Values to store: numbered, so that a test can distinguish them after a round trip."""

import sqlite3
from contextlib import closing
from pathlib import Path

from nodeagent.core.model import (
    Assertion,
    Carried,
    Condition,
    Event,
    EventKind,
    Grade,
    Handling,
    Kind,
    Level,
    Presence,
    Reason,
    Signal,
    Verdict,
)
from nodeagent.store.disk.durability import Limits
from nodeagent.store.records import ClockAnchor, Cursor, Stamped, Transaction

MACHINE = "machine-a"
WALL_NS = 1_700_000_000_000_000_000
PATIENT = Limits(commit_deadline_s=60.0, open_deadline_s=60.0)
"""No slow disk is taken for one that hangs."""


def event(number: int) -> Event:
    return Event(
        kind=EventKind.RAISED,
        at_ns=number,
        device="npu0",
        device_id="die-7",
        device_kind=Kind.CHIP,
        level=Level.RESTART_NPU,
        verdict=Verdict.ISOLATE,
        handling=Handling.RESCHEDULE,
        code="80E18005",
        condition_id=f"die-7:80E18005:{number}",
        condition_level=Level.RESTART_NPU,
        reasons=(Reason(kind="condition", id=f"die-7:80E18005:{number}", level=Level.RESTART_NPU),),
        evidence={"number": str(number)},
    )


def signal(number: int) -> Signal:
    return Signal(
        source="ascend",
        device="npu0",
        code="80E18005",
        assertion=Assertion.OCCUR,
        severity=2,
        evidence={"number": str(number)},
    )


def condition(number: int) -> Carried:
    return Carried(
        cell=Condition(
            id=f"die-7:80E18005:{number}",
            device_id="die-7",
            code="80E18005",
            name="on-chip memory error",
            source="ascend",
            presence=Presence(opened_ns=number, last_ns=number),
            grade=Grade(base_level=Level.RESTART_NPU, level=Level.RESTART_NPU),
        )
    )


def anchor(number: int) -> ClockAnchor:
    return ClockAnchor(boot_id="boot-1", boottime_ns=number, rule_ns=number, wall_ns=number)


def transaction(number: int, *, inputs: int = 1, events: int = 1, wall_ns: int | None = None) -> Transaction:
    """``number`` names its first input and event, the following ones count on."""
    at_ns = WALL_NS + number if wall_ns is None else wall_ns
    return Transaction(
        inputs=tuple(
            Stamped(rule_ns=one, wall_ns=at_ns, input=signal(one)) for one in range(number, number + inputs)
        ),
        events=tuple((at_ns, event(one)) for one in range(number, number + events)),
        engine_now_ns=number,
        anchor=anchor(number),
        cursors={"kmsg": Cursor(boot_id="boot-1", seq=number)},
    )


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def set_aside_in(folder: Path) -> list[Path]:
    """The damaged files, oldest first."""
    return sorted(file for file in folder.glob("store.db.damaged-*") if not file.name.endswith("-wal"))


def make_the_catalogs_texts(folder: Path) -> None:
    """The same bytes, said to be a text: what one wrong bit in the header of a row makes of it."""
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        assert connection.execute("UPDATE catalog SET body = CAST(body AS TEXT)").rowcount
        connection.commit()
