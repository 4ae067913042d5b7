"""However much comes, what is kept is bounded, and that it was is said once."""

from typing import Any

import pytest

from nodeagent.core.machines import reset_policy
from nodeagent.core.model import (
    Condition,
    EventKind,
    Input,
    Kind,
    Level,
    Noticed,
    Ordinal,
    Severity,
    Sighting,
    Started,
    Verdict,
    Window,
)
from nodeagent.core.state import limits
from nodeagent.core.state.state import EngineState
from tests.core.build import (
    back,
    begin,
    catalog,
    emitted,
    ns,
    of,
    open_codes,
    order,
    related,
    repeat,
    row,
    run,
    seen,
    signal,
    stands,
    wait,
    xid,
)

_review = reset_policy.review
TABLES = catalog(row("too_many_faults", Level.SUB_HEALTH))


def test_more_conditions_than_a_device_may_have_are_refused_with_one_event() -> None:
    engine = begin(TABLES)
    most = limits.MAX_CONDITIONS_ON_DEVICE
    events = run(engine, [(1, signal(f"E{number}", severity=0)) for number in range(most + 50)])
    assert len([event for event in events if event.device == "npu0"]) == most
    assert emitted(events)[most:] == [("raised", "node", "too_many_faults")]


def test_a_refused_signal_is_not_stored() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(f"E{number}")) for number in range(limits.MAX_CONDITIONS_ON_DEVICE)])
    assert engine.step(ns(2), signal("one-more")).records != ()
    assert engine.step(ns(2), signal("two-more")).records == ()


def test_a_refused_companion_far_from_its_root_changes_nothing_for_it_is_not_stored() -> None:
    rule = related("80C98009", "80E01801", within_s=5)
    engine = begin(catalog(row("too_many_faults", Level.SUB_HEALTH), relation=[rule]))
    run(engine, [(1, signal("80E01801")), (2, signal("80C98009"))])
    run(engine, [(3, signal(f"E{number}")) for number in range(limits.MAX_CONDITIONS_ON_DEVICE)])
    before = engine.carry()
    assert engine.step(ns(20), signal("80C98009")).records == ()
    assert engine.carry() == before


def test_what_is_open_already_is_still_renewed_and_closed() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(f"E{number}")) for number in range(limits.MAX_CONDITIONS_ON_DEVICE)])
    assert emitted(run(engine, [(2, signal("E7")), (3, signal("E7", "recover"))])) == [
        ("cleared", "npu0", "E7")
    ]


def test_more_devices_than_may_be_are_refused_however_they_come() -> None:
    engine = begin(TABLES)
    events = run(engine, [(1, seen(f"npu{number}", f"die{number}")) for number in range(limits.MAX_DEVICES)])
    events += run(engine, [(2, xid("XID_79", f"0000:{number:02x}:00.0")) for number in range(5)])
    assert len(engine.view().devices) == limits.MAX_DEVICES
    assert [event.code for event in of(events, EventKind.RAISED)] == ["too_many_faults"]


def test_the_fault_says_so_again_only_after_a_minute_and_its_count_grows() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(f"E{number}")) for number in range(limits.MAX_CONDITIONS_ON_DEVICE)])
    run(engine, [(2 + number, signal("one-more")) for number in range(121)])
    (fault,) = [one for one in engine.view().conditions if one.code == "too_many_faults"]
    assert fault.presence.count == 3


def test_a_storm_of_ever_new_codes_leaves_no_more_than_the_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_ORDINALS", 1024)
    for of_rules in (Window, Sighting):
        monkeypatch.setitem(limits._REMEMBERED, of_rules, 512)
    rule = repeat("*", 3, correlation_ns=ns(30))
    engine = begin(catalog(row("XID_*", Level.RESTART_NPU), frequency=[rule]), chips=4)
    for number in range(1_500):
        engine.step(ns(number), signal(f"XID_{number}", "once", f"npu{number % 4}"))
    cells = [carried.cell for carried in engine.carry()]
    kept = {of: sum(isinstance(cell, of) for cell in cells) for of in (Condition, Window, Sighting, Ordinal)}
    assert kept.pop(Condition) <= limits.MAX_CONDITIONS
    assert kept == {Window: 512, Sighting: 512, Ordinal: 1024}


def test_ids_are_not_repeated_even_where_their_numbers_were_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_ORDINALS", 512)
    engine = begin(catalog())
    for number in range(limits.MAX_ORDINALS + 100):
        code = f"E{number}"
        for assertion in ("occur", "recover"):
            engine.step(ns(number), signal(code, assertion, severity=0))
    (raised,) = run(engine, [(10**6, signal("E1", severity=0))])
    assert raised.condition_id == "die0/E1#2"


def test_parts_of_which_each_poll_reads_another_id_leave_no_more_than_the_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_ORDINALS", 64)
    engine = begin(catalog())
    ids = []
    for number in [*range(1, 200), 1]:
        replaced = seen("npu0", f"garbage{number}", "0000:00:00.0")
        events = run(engine, [(number, replaced), (number, signal("E1", severity=0))])
        ids += [event.condition_id for event in of(events, EventKind.RAISED)]
    assert len(ids) == len(set(ids)) == 200
    assert sum(isinstance(carried.cell, Ordinal) for carried in engine.carry()) == 64


def test_severities_of_ever_new_codes_are_forgotten_oldest_first() -> None:
    engine = begin(catalog())
    for number in range(5000):
        engine.step(ns(1), signal(f"E{number}", "recover", severity=1))
    learnt = [carried.cell.code for carried in engine.carry() if isinstance(carried.cell, Severity)]
    assert (len(learnt), learnt[0], learnt[-1]) == (4096, "E904", "E4999")


def test_forged_lines_of_ever_new_codes_fill_no_memory() -> None:
    engine = begin(catalog(row("XID_*")))
    for number in range(limits.MAX_NOTICED + 100):
        engine.step(ns(1), xid(f"XID_{number}", trusted=False))
    engine.step(ns(62), xid("XID_9999", trusted=False))
    noticed = [carried.cell.code for carried in engine.carry() if isinstance(carried.cell, Noticed)]
    assert (len(noticed), noticed[-1]) == (limits.MAX_NOTICED, "XID_9999")


def test_a_storm_of_one_line_is_one_event_and_a_count() -> None:
    engine = begin(catalog(row("XID_79", Level.RESTART_NPU)))
    events = [event for at_ms in range(10_000) for event in engine.step(at_ms * 10**6, xid("XID_79")).events]
    assert [(event.kind, event.verdict) for event in events] == [(EventKind.RAISED, Verdict.ISOLATE)]
    assert engine.view().conditions[0].presence.count == 10_000
    assert wait(engine, 20) == []


def test_a_storm_of_one_fault_is_weighed_for_a_reset_once_and_again_after_a_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Weighing looks at every fault of every chip that is reset with it."""
    weighed: list[int] = []

    def review(state: EngineState) -> bool:
        weighed.append(state.now_ns)
        return _review(state)

    monkeypatch.setattr(reset_policy, "review", review)
    engine = begin(catalog(row("XID_79", Level.RESTART_NPU)), chips=2)
    weighed.clear()
    run(engine, [(at_s, signal("XID_79", "once", source="kmsg")) for at_s in range(1, 100)])
    assert weighed == [ns(1)]
    run(engine, [(100, Started(boot_id="boot-1", version="1"))])
    weighed.clear()
    run(engine, [(at_s, signal("XID_79", "once", source="kmsg")) for at_s in range(101, 130)])
    assert weighed == [ns(101)]


# --------------------------------------------------------------------------- who makes way


BREAKS = "80E18005"
ROOM = catalog(
    row("too_many_faults", Level.SUB_HEALTH, kind=Kind.HOST), row(BREAKS, Level.SEPARATE_NPU), row("80E18006")
)


def many(number: int, device: str = "npu0", **words: Any) -> list[tuple[float, Input]]:
    """So many notes that nobody need act upon."""
    return [(1, signal(f"N{each}", "once", device, source="link", **words)) for each in range(number)]


def test_a_fault_that_breaks_a_chip_has_room_beside_any_number_of_notes() -> None:
    engine = begin(ROOM)
    run(engine, many(300))
    events = run(engine, [(2, signal(BREAKS))])
    assert emitted(events) == [
        ("cleared", "npu0", "N0"),
        ("raised", "npu0", BREAKS),
    ]
    assert events[0].why == "it made way for a worse fault: there are too many"
    assert stands(engine)[1] is Verdict.ISOLATE


def test_it_stays_though_notes_go_on_coming() -> None:
    engine = begin(ROOM)
    run(engine, [(0.5, signal(BREAKS)), *many(2000)])
    assert stands(engine)[1] is Verdict.ISOLATE


def test_what_is_injected_makes_way_for_the_mildest_that_is_real() -> None:
    engine = begin(ROOM)
    drill = [
        (1.0, signal(BREAKS + str(each), injected=True)) for each in range(limits.MAX_CONDITIONS_ON_DEVICE)
    ]
    run(engine, drill)
    events = run(engine, [(2, signal("80E18006"))])
    assert ("raised", "npu0", "80E18006") in emitted(events)
    assert len(open_codes(engine)) == limits.MAX_CONDITIONS_ON_DEVICE + 1


def test_no_more_is_injected_on_all_devices_than_may_be() -> None:
    engine = begin(ROOM, chips=4)
    for index in range(4):
        run(engine, many(100, f"npu{index}", injected=True))
    assert sum(one.origin.injected for one in engine.view().conditions) == limits.MAX_INJECTED


def test_a_chip_that_a_driver_lists_has_room_beside_any_number_of_those_that_lines_name() -> None:
    engine = begin(
        catalog(row("XID_79", Level.SEPARATE_NPU), row(BREAKS, Level.SEPARATE_NPU), *ROOM.rows.values())
    )
    lines = (
        (1, xid(f"XID_79.{code}", f"0000:{bus:02x}:{slot:02x}.0"))
        for bus in range(64)
        for slot in range(32)
        for code in range(5)
    )
    run(engine, lines)
    assert len(engine.view().devices) == limits.MAX_DEVICES
    run(
        engine,
        [
            (2, seen("npu1", "die1", "0000:fe:00.0")),
            (2, back(device="npu1")),
            (3, signal(BREAKS, device="npu1")),
        ],
    )
    assert stands(engine, "npu1")[1] is Verdict.ISOLATE
    assert len(engine.view().devices) == limits.MAX_DEVICES


def test_one_that_a_person_holds_makes_no_way() -> None:
    engine = begin(ROOM, chips=0)
    run(
        engine,
        [(1, xid("XID_79", f"0000:{bus:02x}:{slot:02x}.0")) for bus in range(32) for slot in range(32)],
    )
    held = [view.name for view in engine.view().devices if view.name != "node"]
    run(engine, [(2, order("isolate", name)) for name in held])
    run(engine, [(3, seen("npu1", "die1", "0000:fe:00.0"))])
    assert "npu1" not in {view.name for view in engine.view().devices}
