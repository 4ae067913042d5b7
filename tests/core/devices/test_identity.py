"""Which part a name stands for: replaced, renumbered, identified, unreadable, doubled, gone."""

from nodeagent.core.engine import Engine
from nodeagent.core.model import DeviceGone, EventKind, Kind, Level, Ordinal, Started, Verdict
from tests.core.build import (
    HBM,
    LINK_DOWN,
    active,
    back,
    begin,
    catalog,
    device_view,
    emitted,
    lasting,
    lost,
    ns,
    of,
    open_codes,
    order,
    repeat,
    row,
    run,
    seen,
    signal,
    stands,
    wait,
    xid,
)

TABLES = catalog(
    row(HBM, Level.SEPARATE_NPU), row("XID_79"), frequency=[repeat(HBM, 2), repeat("XID_79", 2, burst_ns=0)]
)
PCI0, PCI1 = "0000:00:00.0", "0000:01:00.0"


def gone(device: str) -> DeviceGone:
    return DeviceGone(source="ascend", device=device, reason="fell off the bus")


def names(engine: Engine) -> dict[str, str]:
    """Device ids by name."""
    return {view.name: view.id for view in engine.view().devices}


# --------------------------------------------------------------------------- replaced


def test_another_part_in_the_slot_closes_what_was_known_of_the_old_one() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (2, signal(HBM)), (3, order("isolate"))])
    events = run(engine, [(4, seen("npu0", "die9", PCI0))])
    assert emitted(events) == [
        ("cleared", "npu0", HBM),
        ("released", "npu0", HBM),
        ("released", "npu0", ""),
        ("device_replaced", "npu0", ""),
    ]
    assert {event.why for event in events[:3]} == {"device_replaced"}
    assert (events[3].device_id, events[3].evidence["was"]) == ("die9", "die0")


def test_the_new_part_starts_clean() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (2, signal(HBM, "recover")), (4, seen("npu0", "die9", PCI0))])
    assert of(run(engine, [(5, signal(HBM))]), EventKind.PROMOTED) == []
    assert open_codes(engine) == [("die9", HBM)]


def test_a_part_that_comes_back_never_repeats_an_id() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (2, seen("npu0", "die9", PCI0)), (3, seen("npu0", "die0", PCI0))])
    (raised,) = run(engine, [(4, signal(HBM))])
    assert raised.condition_id == f"die0/{HBM}#2"


def test_an_identity_that_cannot_be_read_is_the_same_part_unobserved() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("PreSeparateNPU")), (2, seen("npu0", "", PCI0))])
    assert names(engine)["npu0"] == "die0"
    assert (stands(engine)[1], device_view(engine).observed) == (Verdict.NO_NEW_JOBS, False)
    assert emitted(run(engine, [(3, seen("npu0", "die0", PCI0))])) == [("device_seen", "npu0", "")]


# --------------------------------------------------------------------------- renumbered


def test_a_part_without_an_id_of_its_own_is_known_by_its_place() -> None:
    engine = begin(TABLES)
    switch, chip, known = run(
        engine, [(1, seen("ub0")), (1, seen("npu5", pci=PCI1)), (1, seen("npu6", "die6", "0000:06:00.0"))]
    )
    assert [event.why for event in (switch, chip, known)] == [
        "identified by its place ub0",
        f"identified by its place {PCI1}",
        "die6",
    ]


def test_renumbering_changes_names_and_nothing_else() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, signal(HBM))])
    assert run(engine, [(2, seen("npu0", "die1", PCI1)), (2, seen("npu1", "die0", PCI0))]) == []
    assert (names(engine)["npu0"], names(engine)["npu1"]) == ("die1", "die0")
    assert open_codes(engine) == [("die0", HBM)]


def test_a_new_part_that_takes_the_name_of_another_slot_replaces_nobody() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM))])
    run(engine, [(2, seen("npu0", "die9", PCI1)), (2, seen("npu1", "die0", PCI0))])
    assert (names(engine)["npu0"], names(engine)["npu1"]) == ("die9", "die0")
    assert open_codes(engine) == [("die0", HBM)]


def test_parts_that_swapped_slots_while_the_machine_was_off_are_not_doubles() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, signal(HBM)), (9, Started(boot_id="boot-2", version="1"))])
    run(engine, [(10, seen("npu0", "die1", PCI0)), (10, seen("npu1", "die0", PCI1)), (10, back())])
    assert (names(engine)["npu0"], names(engine)["npu1"]) == ("die1", "die0")
    assert stands(engine, "npu1")[1] is Verdict.ISOLATE
    assert stands(engine, "npu0")[1] is Verdict.ALLOW


# --------------------------------------------------------------------------- identified at last


def test_what_the_kernel_reported_of_a_slot_moves_to_the_part_once_it_is_read() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, xid("XID_79", PCI0))])
    events = run(engine, [(2, seen("npu0", "die0", PCI0))])
    assert [(event.kind, event.device_id, event.evidence["was"]) for event in events] == [
        (EventKind.DEVICE_SEEN, "die0", f"slot:{PCI0}")
    ]
    assert open_codes(engine) == [("die0", "XID_79")]
    assert len(of(run(engine, [(3, signal("XID_79", "once"))]), EventKind.PROMOTED)) == 1


def test_a_slot_read_without_identity_first_is_emitted_when_the_identity_appears() -> None:
    engine = begin(TABLES, chips=0)
    events = run(engine, [(1, seen("npu0", "", PCI0)), (2, seen("npu0", "die0", PCI0))])
    assert [event.device_id for event in events] == [f"slot:{PCI0}", "die0"]


def test_a_known_part_takes_over_what_was_reported_of_its_new_slot() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (2, gone("npu0")), (3, xid("XID_79", PCI1)), (3, xid(HBM, PCI1))])
    run(engine, [(4, seen("npu1", "die0", PCI1))])
    assert sorted(open_codes(engine)) == [("die0", HBM), ("die0", "XID_79")]
    assert sorted(names(engine)) == ["node", "npu1"]


def test_what_stood_still_of_a_known_part_goes_on_where_its_new_slot_is_observed() -> None:
    """Else its time-outs would wait for some other source to come or go."""
    tables = catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 20, 60)])
    engine = begin(tables, chips=2)
    run(engine, [(1, signal(LINK_DOWN)), (2, gone("npu0")), (3, lost())])
    run(engine, [(50, seen("npu7", "", "0000:07:00.0")), (51, back(device="npu7"))])
    events = run(engine, [(52, seen("npu7", "die0", "0000:07:00.0"))])
    assert ("level_changed", "npu7", LINK_DOWN) in emitted(events)


def test_ids_given_in_a_slot_are_not_given_again_after_the_part_was_identified() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, xid("XID_79", "npu0")), (2, seen("npu0", "die0")), (3, seen("npu5", "die0"))])
    (raised,) = of(run(engine, [(4, xid("XID_79", "npu0"))]), EventKind.RAISED)
    assert raised.condition_id == "slot:npu0/XID_79#2"
    ordinals = [carried.cell for carried in engine.carry() if isinstance(carried.cell, Ordinal)]
    assert {(cell.device_id, cell.last) for cell in ordinals} == {("die0", 1), ("slot:npu0", 2)}


def test_the_machine_id_of_the_node_takes_the_place_of_its_provisional_id() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("HUNG", "once", "node"))])
    run(engine, [(2, seen("node", "machine-id", kind=Kind.NODE))])
    assert names(engine)["node"] == "machine-id"
    assert [device_id for device_id, _ in open_codes(engine)] == ["machine-id"]


# --------------------------------------------------------------------------- doubled, gone


def test_a_second_device_with_the_same_identity_is_refused_with_a_notice() -> None:
    engine = begin(TABLES)
    (refused,) = run(engine, [(1, seen("npu1", "die0", PCI1))])
    assert (refused.kind, refused.device) == (EventKind.NOTICE, "npu0")
    assert "refused" in refused.why
    assert names(engine) == {"node": "slot:node", "npu0": "die0"}


def test_a_device_that_is_gone_is_unknown_and_keeps_its_faults() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, signal(HBM, device="npu1"))])
    assert emitted(run(engine, [(2, gone("npu0")), (2, gone("npu1")), (3, gone("npu1"))])) == [
        ("device_gone", "npu0", ""),
        ("device_gone", "npu1", ""),
    ]
    assert (stands(engine, "npu0")[1], stands(engine, "npu1")[1]) == (Verdict.UNKNOWN, Verdict.ISOLATE)


def test_a_part_of_the_host_that_is_gone_is_forgotten_unless_something_is_open_on_it() -> None:
    """Nobody schedules onto a memory module: one that has another name now must not stay unknown for ever."""
    engine = begin(TABLES)
    modules = {"source": "host", "kind": Kind.HOST, "vendor": "linux"}
    run(engine, [(1, seen("dimm:A1", **modules)), (1, seen("dimm:A2", **modules))])
    run(engine, [(2, signal(HBM, device="dimm:A2", source="host"))])

    events = run(engine, [(3, gone("dimm:A1")), (3, gone("dimm:A2"))])

    assert [(event.kind, event.device, event.why) for event in events] == [
        (EventKind.NOTICE, "node", "dimm:A1 is forgotten: fell off the bus"),
        (EventKind.DEVICE_GONE, "dimm:A2", "fell off the bus"),
    ]
    assert events[0].evidence["was"] == "slot:dimm:A1"
    assert {"dimm:A1", "dimm:A2"} & names(engine).keys() == {"dimm:A2"}


def test_a_device_that_returns_is_reported_and_allowed_again_once_it_is_read() -> None:
    engine = begin(TABLES)
    events = run(
        engine, [(1, gone("npu0")), (2, seen("npu0", "die0", PCI0)), (3, active(begun_s=2.5, device="npu0"))]
    )
    assert [(event.kind, event.verdict) for event in events] == [
        (EventKind.DEVICE_GONE, Verdict.UNKNOWN),
        (EventKind.DEVICE_SEEN, Verdict.UNKNOWN),
        (EventKind.VERDICT_CHANGED, Verdict.ALLOW),
    ]


def test_a_device_that_was_never_read_is_unknown() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, xid("XID_79", PCI0))])
    view = device_view(engine, PCI0)
    assert (view.verdict, view.observed, view.observed_ns) == (Verdict.UNKNOWN, False, 0)


def test_when_a_device_was_last_observed_is_shown() -> None:
    engine = begin(TABLES)
    run(engine, [(5, lost())])
    wait(engine, 100)
    assert device_view(engine).observed_ns == ns(5)


def test_the_numbers_of_a_part_go_on_where_it_is_known_again_in_another_slot() -> None:
    engine = begin(catalog(row(HBM)))
    for at_s in (1, 3):
        run(engine, [(at_s, signal(HBM)), (at_s + 1, signal(HBM, "recover"))])
    run(engine, [(5, signal(HBM, device="0000:09:00.0")), (6, signal(HBM, "recover", "0000:09:00.0"))])
    run(engine, [(7, gone("npu0"))])
    run(engine, [(8, seen("npu0", "die0", "0000:09:00.0"))])
    (raised,) = run(engine, [(9, signal(HBM))])
    assert raised.condition_id == f"die0/{HBM}#3"
