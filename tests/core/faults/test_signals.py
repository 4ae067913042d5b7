"""What a single signal does: it opens, renews, recovers, or only informs."""

from dataclasses import replace

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import Assertion, EventKind, Handling, Level, Verdict
from tests.core.build import (
    HBM,
    begin,
    catalog,
    condition,
    emitted,
    ns,
    open_codes,
    row,
    run,
    signal,
    stands,
    wait,
    xid,
)

TABLES = catalog(
    row(HBM, Level.RESTART_NPU),
    row("020001002", Level.SEPARATE_NPU),
    row("XID_79", Level.RESTART_NPU, clear_on=ClearOn(reboot=True)),
    row("XID_*", Level.SUB_HEALTH, name="Xid", clear_on=ClearOn(quiet_ns=ns(60))),
)


def test_an_occur_opens_a_condition_and_emits_the_device_after_it() -> None:
    engine = begin(TABLES)
    (raised,) = run(engine, [(1, signal(HBM))])
    assert (raised.kind, raised.device, raised.code, raised.at_ns) == (EventKind.RAISED, "npu0", HBM, ns(1))
    assert raised.condition_id == f"die0/{HBM}#1"
    assert (raised.condition_level, raised.level) == (Level.RESTART_NPU, Level.RESTART_NPU)
    assert (raised.verdict, raised.handling) == (Verdict.ISOLATE, Handling.RESCHEDULE)
    assert [reason.id for reason in raised.reasons] == [raised.condition_id]


def test_a_repeated_occur_is_counted_and_emits_nothing() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(1, signal(HBM)), (2, signal(HBM)), (3, signal(HBM, count=3))])) == [
        ("raised", "npu0", HBM)
    ]
    assert condition(engine, HBM).presence.count == 5
    assert condition(engine, HBM).presence.present_ns == ns(1)


def test_a_recovery_closes_the_condition_and_a_new_occur_opens_the_next() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, signal(HBM)), (2, signal(HBM, "recover")), (3, signal(HBM))])
    assert [event.condition_id for event in events] == [f"die0/{HBM}#1", f"die0/{HBM}#1", f"die0/{HBM}#2"]
    assert (events[1].kind, events[1].verdict) == (EventKind.CLEARED, Verdict.ALLOW)


def test_a_recovery_before_any_occur_changes_nothing() -> None:
    engine = begin(TABLES)
    outcome = engine.step(ns(1), signal(HBM, "recover", "npu7"))
    assert (outcome.events, outcome.records) == ((), ())
    assert [view.name for view in engine.view().devices] == ["node", "npu0"]


def test_a_kernel_line_opens_a_condition_on_a_provisional_device() -> None:
    engine = begin(TABLES)
    raised, *rest = run(engine, [(1, xid("XID_79", "0000:3b:00.0", evidence={"pid": "1234"}))])
    assert (raised.device_id, raised.evidence) == ("slot:0000:3b:00.0", {"pid": "1234"})
    assert rest == []


@pytest.mark.parametrize("written", ["020001002", "20001002"])
def test_a_hexadecimal_code_is_one_code_however_it_is_written(written: str) -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("20001002")), (2, signal("020001002"))])
    assert open_codes(engine) == [("die0", "020001002")]
    run(engine, [(3, signal(written, "recover"))])
    assert open_codes(engine) == []


def test_a_hexadecimal_code_is_emitted_in_the_form_of_the_table() -> None:
    (raised,) = run(begin(TABLES), [(1, signal("20001002"))])
    assert raised.code == "020001002"


def test_a_line_that_user_space_wrote_is_a_notice_and_opens_nothing() -> None:
    engine = begin(TABLES)
    (notice,) = run(engine, [(1, xid("XID_79", trusted=False))])
    assert (notice.kind, notice.device, notice.userspace) == (EventKind.NOTICE, "node", True)
    assert notice.condition_level is Level.RESTART_NPU
    assert "0000:3b:00.0" in notice.why
    assert open_codes(engine) == []


def test_forged_lines_are_emitted_once_a_minute_with_their_number() -> None:
    engine = begin(TABLES)
    storm = [(1 + second, xid("XID_79", trusted=False)) for second in range(60)]
    assert [event.count for event in run(engine, storm)] == [1]
    assert [event.count for event in run(engine, [(61, xid("XID_79", trusted=False, count=2))])] == [61]


def test_a_backdated_line_counts_from_when_it_was_written_and_never_from_the_future() -> None:
    engine = begin(TABLES)
    run(engine, [(100, xid("XID_79", backdated=True, last_ns=ns(10)))])
    run(engine, [(100, xid("XID_31", backdated=True, last_ns=ns(999)))])
    assert condition(engine, "XID_79").presence.opened_ns == ns(10)
    assert condition(engine, "XID_31").presence.opened_ns == ns(100)


def test_a_signal_with_a_count_of_nothing_is_taken_as_one() -> None:
    engine = begin(catalog(row(HBM), frequency=()))
    assert emitted(run(engine, [(1, signal(HBM, count=0))])) == [("raised", "npu0", HBM)]


# --------------------------------------------------------------------------- injected


def test_an_injected_fault_shares_nothing_with_the_real_one() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (2, signal(HBM, injected=True)), (3, signal(HBM, "recover"))])
    assert [(one.code, one.origin.injected) for one in engine.view().conditions] == [(HBM, True)]


def test_an_injected_fault_changes_a_verdict_only_where_asked_to() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM, injected=True, affect_verdict=False))])
    assert stands(engine) == (Level.NOT_HANDLE, Verdict.ALLOW, Handling.NONE)


def test_an_injected_fault_ends_by_itself_after_ten_minutes() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM, injected=True))])
    assert wait(engine, 600) == []
    (cleared,) = wait(engine, 601)
    assert (cleared.kind, cleared.injected) == (EventKind.CLEARED, True)


def test_what_is_only_a_notice_makes_no_device() -> None:
    engine = begin(catalog(row("MENDED", notice=True)))
    mended = xid("MENDED", "0000:07:00.0")
    assert engine.step(ns(1), replace(mended, assertion=Assertion.RECOVER)).records == ()
    assert [view.name for view in engine.view().devices] == ["node", "npu0"]
    assert engine.step(ns(2), mended).records == (mended,)
    assert [view.name for view in engine.view().devices] == ["node", "npu0"]
