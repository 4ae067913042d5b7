"""What the history says is open, put back as it was."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from nodeagent.core.after_damage import History, fit
from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Assertion,
    Event,
    EventKind,
    Hold,
    HoldKind,
    Kind,
    Level,
    Ordinal,
    PublicFault,
    PublicFaults,
    Report,
)
from tests.core.build import HBM, begin, catalog, ns, order, repeat, row, run, signal, wait


@pytest.mark.parametrize("what", ["isolate", "quiesce"])
@pytest.mark.parametrize(
    "words",
    [
        {"who": "uid:0", "owner": "alice", "reason": "fan swap: at noon (today)"},
        {"who": "uid:0", "reason": "fan swap"},
        {"who": "cert:slurm (east)", "owner": "alice", "reason": "drained"},
    ],
)
def test_a_hold_is_its_owners_again(what: str, words: dict[str, Any]) -> None:
    engine = begin(catalog())
    history = History(())
    history.add(run(engine, [(1, order(what, device="node" if what == "quiesce" else "npu0", **words))]))
    (held,) = engine.view().holds
    (restored,) = history.missing(())
    assert restored == held


@pytest.mark.parametrize("what", ["isolate", "quiesce"])
def test_a_hold_ends_when_it_would_have(what: str) -> None:
    device = "node" if what == "quiesce" else "npu0"
    engine = begin(catalog())
    history = History(())
    history.add(run(engine, [(1, order(what, device=device, until_ns=ns(3601)))]))
    assert [cell.until_ns for cell in history.missing(()) if isinstance(cell, Hold)] == [ns(3601)]
    history.add(run(engine, [(2, order(what, device=device, until_ns=ns(7200.5)))]))
    assert [cell.until_ns for cell in history.missing(()) if isinstance(cell, Hold)] == [ns(7201)]


def test_of_a_hold_whose_event_does_not_say_its_end_an_isolation_stands_and_a_quiesce_does_not() -> None:
    """Events of versions before ends were published: a node is not left blind for ever."""
    both = [(1, order("isolate", until_ns=ns(60))), (1, order("quiesce", device="node", until_ns=ns(60)))]
    history = History(())
    history.add(replace(event, evidence={}) for event in run(begin(catalog()), both))
    (restored,) = history.missing(())
    assert isinstance(restored, Hold)
    assert (restored.kind, restored.until_ns) == (HoldKind.ISOLATION, None)


REPEATED = catalog(row(HBM, Level.RESTART_NPU), frequency=[repeat(HBM, 2)])


def restored_without_numbers(published: Sequence[Event]) -> Engine:
    """An engine that has what the history says is open, and no memory of the numbers that were given."""
    history = History(())
    history.add(published)
    engine = begin(REPEATED)
    left = [one for one in engine.carry() if not isinstance(one.cell, Ordinal)]
    after = Engine({REPEATED.digest: REPEATED})
    for carried in fit(left, history.missing(left)):
        after.replay(engine.now_ns, carried)
    after.resume(engine.now_ns)
    return after


def test_a_new_hold_never_takes_the_id_of_one_that_was_restored() -> None:
    alices = {"who": "uid:0", "owner": "alice"}
    published = run(begin(REPEATED), [(1, order("isolate", reason="RMA", **alices))])
    engine = restored_without_numbers(published)
    run(engine, [(2, order("isolate", reason="test", until_ns=ns(7), **alices))])
    assert [hold.id for hold in engine.view().holds] == ["die0/hold:alice#1", "die0/hold:alice#2"]
    wait(engine, 60)
    assert [hold.reason for hold in engine.view().holds] == ["RMA"]


def test_nor_does_a_new_fault_or_promotion_though_the_restored_one_has_ended() -> None:
    steps = [(at_s, signal(HBM, what)) for at_s, what in enumerate(("occur", "recover", "occur"), start=1)]
    engine = restored_without_numbers(run(begin(REPEATED), steps))
    events = run(engine, [(4, signal(HBM, "recover")), (5, order("release"))])
    assert {event.condition_id for event in events} == {f"die0/{HBM}#2", f"die0/repeat-{HBM}#1"}
    events = run(
        engine, [(at_s, signal(HBM, what)) for at_s, what in ((6, "occur"), (7, "recover"), (8, "occur"))]
    )
    began = {event.condition_id for event in events if event.kind in (EventKind.RAISED, EventKind.PROMOTED)}
    assert began == {f"die0/{HBM}#3", f"die0/{HBM}#4", f"die0/repeat-{HBM}#2"}


def test_a_fault_that_another_system_reported_is_its_senders_again() -> None:
    tables = catalog(row("020001001", Level.SEPARATE_NPU, kind=Kind.PUBLIC, clear_on=ClearOn(recover=True)))
    report = Report(sender="CCAE", fault_id="fault-01", began_ms=7)
    occurs = PublicFault(
        report=report,
        code="020001001",
        assertion=Assertion.OCCUR,
        devices=("npu0",),
        evidence={"sender": "CCAE", "fault_id": "fault-01"},
    )
    history = History(())
    history.add(run(begin(tables), [(1, PublicFaults(faults=(occurs,)))]))
    engine = begin(tables)
    for carried in fit(engine.carry(), history.missing(engine.carry())):
        engine.replay(engine.now_ns, carried)
    engine.resume(engine.now_ns)
    assert [condition.code for condition in engine.view().conditions] == ["020001001"]
    recovers = replace(occurs, assertion=Assertion.RECOVER)
    run(engine, [(2, PublicFaults(faults=(recovers,)))])
    assert engine.view().conditions == ()
