"""What a person has to acknowledge: each time it is reported, and all of it stands until then."""

from nodeagent.core.after_damage import History
from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.faults import signals
from nodeagent.core.model import Condition, Event, EventKind, Kind, Level, Signal
from tests.core.build import begin, catalog, order, row, run, signal

DAMAGED = "store_damaged"
TABLES = catalog(
    row(DAMAGED, Level.PRE_SEPARATE_NPU, kind=Kind.HOST, clear_on=ClearOn(operator=True)),
    row("HOST_1", kind=Kind.HOST, clear_on=ClearOn(operator=True, reboot=True)),
)


def damage(**evidence: str) -> Signal:
    return signal(DAMAGED, "once", "node", source="agent", evidence=evidence)


FIRST = damage(reason="bad page", kept_as="store.1", lost="nothing")
SECOND = damage(reason="bad checksum", kept_as="store.2", doubtful="an isolation of GPU-1 by alice: RMA")
BOTH = {
    **FIRST.evidence,
    "reason.2": "bad checksum",
    "kept_as.2": "store.2",
    "doubtful.2": "an isolation of GPU-1 by alice: RMA",
}


def kinds(events: list[Event]) -> list[EventKind]:
    return [event.kind for event in events]


def stands(engine: Engine) -> dict[str, str]:
    (condition,) = engine.view().conditions
    return dict(condition.backing.evidence)


def test_a_second_damage_is_emitted_and_both_stand_until_somebody_has_seen_them() -> None:
    engine = begin(TABLES)
    raised, noticed = run(engine, [(1, FIRST), (2, SECOND)])
    assert (raised.kind, raised.evidence) == (EventKind.RAISED, FIRST.evidence)
    assert (noticed.kind, noticed.condition_id, noticed.evidence) == (
        EventKind.NOTICE,
        raised.condition_id,
        BOTH,
    )
    assert noticed.why == "once more, before it was acknowledged"
    assert stands(engine) == BOTH
    (cleared,) = run(engine, [(3, order("release", device="node"))])
    assert (cleared.kind, cleared.evidence) == (EventKind.CLEARED, BOTH)
    (anew,) = run(engine, [(4, SECOND)])
    assert (anew.kind, anew.evidence) == (EventKind.RAISED, SECOND.evidence)


def test_the_same_damage_reported_twice_is_one() -> None:
    engine = begin(TABLES)
    assert kinds(run(engine, [(1, FIRST), (2, SECOND), (3, SECOND), (4, FIRST)])) == ["raised", "notice"]
    assert stands(engine) == BOTH


def test_the_history_knows_all_of_it() -> None:
    history = History(())
    history.add(run(begin(TABLES), [(1, FIRST), (2, SECOND)]))
    (restored,) = history.missing(())
    assert isinstance(restored, Condition)
    assert restored.backing.evidence == BOTH


def test_of_more_than_are_kept_the_newest_takes_the_last_place() -> None:
    engine = begin(TABLES)
    many = 2 * signals.MAX_REASONS
    events = run(engine, [(number, damage(reason=f"page {number}")) for number in range(1, many + 1)])
    assert len(events) == many
    assert len(stands(engine)) == signals.MAX_REASONS
    assert stands(engine)[f"reason.{signals.MAX_REASONS}"] == f"page {many}"


def test_lines_of_a_fault_that_come_again_and_again_say_nothing_new() -> None:
    engine = begin(TABLES)
    lines = [signal("HOST_1", "once", "node", source="kmsg", evidence={"pid": pid}) for pid in "123"]
    assert kinds(run(engine, enumerate(lines, start=1))) == ["raised"]
    assert stands(engine) == {"pid": "1"}
