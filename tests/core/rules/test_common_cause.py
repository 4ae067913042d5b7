"""A fault that several devices have at once is one fault of the node, which names them."""

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    CatalogChanged,
    Condition,
    CounterMark,
    DeviceGone,
    Input,
    Kind,
    Level,
    PublicFault,
    PublicFaults,
    Report,
    Started,
    Tick,
    Verdict,
)
from nodeagent.core.model.enums import Assertion
from nodeagent.core.rules.common_cause import CommonCause
from tests.core.build import (
    active,
    back,
    begin,
    catalog,
    common,
    condition,
    device_view,
    emitted,
    lasting,
    lost,
    mark,
    ns,
    open_codes,
    order,
    related,
    rising,
    row,
    run,
    seen,
    signal,
    wait,
    xid,
)

BRAKE, SUPPLY = "BRAKE", "SUPPLY"
ROWS = (
    row(BRAKE, Level.SUB_HEALTH),
    row(SUPPLY, Level.PRE_SEPARATE_FAULT, kind=Kind.HOST, clear_on=ClearOn(recover=True, reboot=True)),
)
ABSORBED = related(BRAKE, SUPPLY, within_s=86_400, same="node")


def tables(devices: int = 2, within_s: float = 0, **more: object) -> Catalog:
    rule = common(SUPPLY, BRAKE, devices=devices, within_s=within_s)
    return catalog(*ROWS, common_cause=[rule], **more)  # type: ignore[arg-type]


def brakes(chip: int, assertion: str = "occur") -> Input:
    return signal(BRAKE, assertion, f"npu{chip}")


def supply(engine: Engine) -> Condition:
    return condition(engine, SUPPLY)


# --------------------------------------------------------------------------- begin


def test_one_device_is_at_fault_by_itself() -> None:
    engine = begin(tables(), chips=4)
    assert emitted(run(engine, [(1, brakes(0)), (2, brakes(0)), (3, brakes(0))])) == [
        ("raised", "npu0", BRAKE)
    ]
    assert not any(isinstance(one.cell, CommonCause) for one in engine.carry())


def test_on_as_many_as_the_rule_asks_for_the_node_has_a_fault_that_names_them() -> None:
    engine = begin(tables(devices=3), chips=12)
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, [(1, brakes(10)), (2, brakes(2))]))
    (raised,) = [each for each in run(engine, [(3, brakes(1))]) if each.code == SUPPLY]
    assert (raised.kind.value, raised.device) == ("raised", "node")
    assert raised.evidence == {"rule": f"common-{SUPPLY}", "codes": BRAKE, "devices": "npu1, npu2, npu10"}
    assert device_view(engine, "node").verdict is Verdict.NO_NEW_JOBS
    assert device_view(engine, "npu1").verdict is Verdict.ALLOW


def test_one_that_joins_is_named_and_counted() -> None:
    engine = begin(tables(), chips=4)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    assert emitted(run(engine, [(90_000, brakes(3))])) == [("raised", "npu3", BRAKE)]
    assert (supply(engine).backing.evidence["devices"], supply(engine).presence.count) == (
        "npu0, npu1, npu3",
        2,
    )


def test_without_a_time_between_them_it_is_enough_that_they_are_there_together() -> None:
    engine = begin(tables(), chips=2)
    assert ("raised", "node", SUPPLY) in emitted(run(engine, [(1, brakes(0)), (500_000, brakes(1))]))


def test_with_a_time_between_them_their_newest_occurrences_lie_that_near() -> None:
    engine = begin(tables(within_s=60), chips=2)
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, [(1, brakes(0)), (61.000000001, brakes(1))]))
    assert ("raised", "node", SUPPLY) in emitted(run(engine, [(121, brakes(0))]))
    engine = begin(tables(within_s=60), chips=2)
    assert ("raised", "node", SUPPLY) in emitted(run(engine, [(1, brakes(0)), (61, brakes(1))]))


def test_of_many_those_that_lie_near_count_together() -> None:
    engine = begin(tables(devices=3, within_s=60), chips=4)
    steps = [(1, brakes(0)), (100, brakes(1)), (150, brakes(2)), (161, brakes(3))]
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, steps[:3]))
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, [(161, brakes(3))]))
    assert ("raised", "node", SUPPLY) in emitted(run(engine, [(162, brakes(1))]))


def test_once_it_stands_the_time_between_them_no_longer_matters() -> None:
    engine = begin(tables(within_s=60), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    assert run(engine, [(5000, brakes(0))]) == []
    assert open_codes(engine)[-1] == ("slot:node", SUPPLY)


def test_families_of_codes_and_several_codes_count_together() -> None:
    rows = (row("XID_79"), row("XID_62"), row("XID_13"), *ROWS)
    rule = common(SUPPLY, "XID_7*", "XID_62")
    engine = begin(catalog(*rows, common_cause=[rule]), chips=3)
    steps = [
        (1, signal("XID_79", device="npu0")),
        (2, signal("XID_62", device="npu0")),
        (3, signal("XID_13", device="npu1")),
    ]
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, steps))
    assert ("raised", "node", SUPPLY) in emitted(run(engine, [(4, signal("XID_62", device="npu2"))]))


def test_parts_of_a_chip_are_that_chip() -> None:
    rows = (row("XID_43"), *ROWS)
    engine = begin(catalog(*rows, common_cause=[common(SUPPLY, "XID_43")]), chips=2)
    steps = [(1, signal("XID_43", device="npu0/gi1")), (2, signal("XID_43", device="npu0/gi2"))]
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, steps))
    run(engine, [(3, signal("XID_43", device="npu1/gi1"))])
    assert supply(engine).backing.evidence["devices"] == "npu0, npu1"


def test_what_is_injected_counts_for_nothing() -> None:
    engine = begin(tables(), chips=2)
    injected = [signal(BRAKE, device=f"npu{chip}", injected=True) for chip in (0, 1)]
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, [(1, injected[0]), (2, injected[1])]))


def test_what_only_a_kernel_line_says_counts_for_nothing_until_the_driver_says_it_too() -> None:
    rows = (row("XID_79", Level.SEPARATE_NPU), *ROWS)
    engine = begin(catalog(*rows, common_cause=[common(SUPPLY, "XID_79")]), chips=2)
    lines = [(1.0, xid("XID_79", "0000:00:00.0")), (2.0, xid("XID_79", "0000:01:00.0"))]
    assert ("raised", "node", SUPPLY) not in emitted(run(engine, lines))
    steps = [(3, signal("XID_79", device="npu0")), (4, signal("XID_79", device="npu1"))]
    assert ("raised", "node", SUPPLY) in emitted(run(engine, steps))


def test_what_a_site_reports_of_several_devices_counts_and_stays_its_own() -> None:
    slow = row("SLOW", Level.SUB_HEALTH, kind=Kind.PUBLIC, clear_on=ClearOn(recover=True, operator=True))
    rules = [common(SUPPLY, "SLOW")]
    engine = begin(
        catalog(
            slow, *ROWS, common_cause=rules, relation=[related("SLOW", SUPPLY, within_s=60, same="node")]
        ),
        chips=2,
    )
    faults = tuple(
        PublicFault(
            report=Report(sender="nccl", fault_id=name, began_ms=1),
            code="SLOW",
            assertion=Assertion.OCCUR,
            devices=(name,),
        )
        for name in ("npu0", "npu1")
    )
    run(engine, [(1, PublicFaults(faults=faults))])
    assert {code for _, code in open_codes(engine)} == {"SLOW", SUPPLY}


# --------------------------------------------------------------------------- end


def test_it_ends_once_fewer_have_it_and_what_is_left_is_that_device_s_own() -> None:
    engine = begin(tables(), chips=4)
    run(engine, [(1, brakes(0)), (2, brakes(1)), (3, brakes(2))])
    assert emitted(run(engine, [(4, brakes(0, "recover"))])) == [("cleared", "npu0", BRAKE)]
    assert supply(engine).backing.evidence["devices"] == "npu1, npu2"
    ended = emitted(run(engine, [(5, brakes(1, "recover"))]))
    assert ended[:2] == [("cleared", "npu1", BRAKE), ("cleared", "node", SUPPLY)]
    assert open_codes(engine) == [("die2", BRAKE)]
    assert not any(isinstance(one.cell, CommonCause) for one in engine.carry())


def test_a_poll_that_does_not_show_the_node_s_fault_leaves_it() -> None:
    engine = begin(tables(), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    polls = [(at_s, active(BRAKE, device=f"npu{chip}", begun_s=at_s)) for at_s in (3, 4) for chip in (0, 1)]
    assert run(engine, polls) == []
    ended = run(engine, [(5, active(device="npu1", begun_s=5))])
    assert ("cleared", "node", SUPPLY) in emitted(ended)


def test_a_duration_rule_keeps_it_while_its_devices_come_and_go() -> None:
    rule = lasting(SUPPLY, fault_s=0, recover_s=30, level=Level.PRE_SEPARATE_FAULT)
    engine = begin(tables(duration=[rule]), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1)), (3, Tick()), (100, brakes(1, "recover"))])
    assert supply(engine).presence.recovered_ns == ns(100)
    run(engine, [(120, brakes(1))])
    assert wait(engine, 1000) == []
    run(engine, [(1000, brakes(0, "recover"))])
    assert emitted(wait(engine, 1030, extra_ns=1))[0] == ("cleared", "node", SUPPLY)


def test_what_a_person_ends_while_it_goes_on_comes_back() -> None:
    by_hand = row(SUPPLY, Level.PRE_SEPARATE_FAULT, kind=Kind.HOST, clear_on=ClearOn(operator=True))
    engine = begin(catalog(ROWS[0], by_hand, common_cause=[common(SUPPLY, BRAKE)]), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    ended = emitted(run(engine, [(3, order("release", "node"))]))
    assert ended[:2] == [("cleared", "node", SUPPLY), ("raised", "node", SUPPLY)]


def test_what_only_a_person_ends_stays_when_the_devices_are_well_and_is_renewed_when_they_are_not() -> None:
    by_hand = row(SUPPLY, Level.PRE_SEPARATE_FAULT, kind=Kind.HOST, clear_on=ClearOn(operator=True))
    engine = begin(catalog(ROWS[0], by_hand, common_cause=[common(SUPPLY, BRAKE)]), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1)), (3, brakes(0, "recover")), (3, brakes(1, "recover"))])
    assert (supply(engine).presence.present_ns, supply(engine).presence.count) == (None, 1)
    run(engine, [(4, brakes(0)), (5, brakes(1))])
    assert (supply(engine).presence.present_ns, supply(engine).presence.count) == (ns(5), 2)


def test_while_their_source_is_lost_nothing_ends() -> None:
    engine = begin(tables(), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1)), (3, lost())])
    assert wait(engine, 90_000) == []
    run(engine, [(90_001, active(device="npu0", begun_s=90_001)), (90_001, back())])
    assert open_codes(engine) == [("die1", BRAKE)]


def test_a_device_that_falls_off_its_bus_keeps_its_fault_and_one_that_is_another_part_has_none() -> None:
    engine = begin(tables(), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1)), (3, DeviceGone(source="ascend", device="npu1", reason="x"))])
    assert supply(engine).backing.evidence["devices"] == "npu0, npu1"
    replaced = run(engine, [(4, seen("npu1", "die9", "0000:01:00.0"))])
    assert ("cleared", "node", SUPPLY) in emitted(replaced)


# --------------------------------------------------------------------------- one fault in place of many


def test_with_a_relation_that_absorbs_there_is_one_fault_of_the_node_and_none_of_its_devices() -> None:
    engine = begin(tables(relation=[ABSORBED]), chips=8)
    run(engine, [(1 + chip, brakes(chip)) for chip in range(8)])
    assert open_codes(engine) == [("slot:node", SUPPLY)]
    assert supply(engine).backing.evidence["devices"] == ", ".join(f"npu{chip}" for chip in range(8))


def test_absorbed_faults_still_count_and_what_is_left_of_them_is_a_fault_again() -> None:
    engine = begin(tables(relation=[ABSORBED]), chips=3)
    run(engine, [(1, brakes(0)), (2, brakes(1)), (3, brakes(2)), (4, brakes(0, "recover"))])
    assert open_codes(engine) == [("slot:node", SUPPLY)]
    assert supply(engine).backing.evidence["devices"] == "npu1, npu2"
    ended = emitted(run(engine, [(5, brakes(2, "recover"))]))
    assert ended[:2] == [("raised", "npu1", BRAKE), ("cleared", "node", SUPPLY)]
    assert open_codes(engine) == [("die1", BRAKE)]


def test_what_a_rule_shows_of_a_device_is_absorbed_as_long_as_that_rule_says_so() -> None:
    """No poll shows it: the polls of its source end nothing of it."""
    counter = [rising(BRAKE, 6, window_s=600, metric="minutes_total")]
    engine = begin(tables(relation=[ABSORBED], counter=counter), chips=2)

    def minutes(chip: int, value: int) -> CounterMark:
        return mark(value, f"npu{chip}", "minutes_total")

    steps = [(1, minutes(0, 0)), (1, minutes(1, 0)), (300, minutes(0, 6)), (301, minutes(1, 6))]
    run(engine, steps)
    assert open_codes(engine) == [("slot:node", SUPPLY)]
    run(engine, [(302, active(device="npu0", begun_s=302)), (302, active(device="npu1", begun_s=302))])
    assert open_codes(engine) == [("slot:node", SUPPLY)]
    run(engine, [(880, minutes(1, 7))])
    assert emitted(wait(engine, 900, extra_ns=1))[:2] == [
        ("raised", "npu1", BRAKE),
        ("cleared", "node", SUPPLY),
    ]
    run(engine, [(901, active(device="npu1", begun_s=901))])
    assert open_codes(engine) == [("die1", BRAKE)]
    assert emitted(wait(engine, 1480, extra_ns=1)) == [("cleared", "npu1", BRAKE)]


def test_a_fault_that_is_worse_than_the_node_s_is_not_hidden_by_it() -> None:
    rows = (row("DEAD", Level.SEPARATE_NPU), ROWS[1])
    rule = [related("DEAD", SUPPLY, within_s=60, same="node")]
    engine = begin(catalog(*rows, common_cause=[common(SUPPLY, "DEAD")], relation=rule), chips=2)
    run(engine, [(1, signal("DEAD", device="npu0")), (2, signal("DEAD", device="npu1"))])
    assert {code for _, code in open_codes(engine)} == {"DEAD", SUPPLY}


# --------------------------------------------------------------------------- new tables, restarts


def test_new_tables_raise_nothing_of_what_is_there() -> None:
    engine = begin(catalog(*ROWS), tables(digest="second"), chips=3)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    assert emitted(run(engine, [(3, CatalogChanged(digest="second"))])) == [("tables_reloaded", "node", "")]
    assert run(engine, [(4, active(BRAKE, device="npu0", begun_s=4))]) == []
    assert ("raised", "node", SUPPLY) in emitted(run(engine, [(5, brakes(1))]))


def test_a_rule_that_is_gone_takes_its_fault_with_it_and_a_rule_shows_its_devices_again() -> None:
    counter = [rising(BRAKE, 6, window_s=600, metric="minutes_total")]
    without = catalog(*ROWS, counter=counter, digest="second")
    engine = begin(tables(relation=[ABSORBED], counter=counter), without, chips=2)
    marks = [mark(value, f"npu{chip}", "minutes_total") for value in (0, 6) for chip in (0, 1)]
    run(engine, [(1, each) for each in marks])
    assert open_codes(engine) == [("slot:node", SUPPLY)]
    run(engine, [(2, CatalogChanged(digest="second"))])
    assert open_codes(engine) == []
    assert not any(isinstance(one.cell, CommonCause) for one in engine.carry())
    run(engine, [(60, mark(7, "npu0", "minutes_total"))])
    assert open_codes(engine) == [("die0", BRAKE)]


def test_it_stands_over_a_restart_and_a_compaction() -> None:
    catalogs = tables(relation=[ABSORBED])
    engine = begin(catalogs, chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    again = Engine({catalogs.digest: catalogs})
    for carried in engine.carry():
        again.replay(engine.now_ns, carried)
    again.resume(engine.now_ns)
    started = emitted(run(again, [(3, Started(boot_id="boot-1", version="1")), (4, back())]))
    assert started == [("started", "node", "")]
    assert open_codes(again) == [("slot:node", SUPPLY)]
    run(again, [(5, brakes(0, "recover"))])
    assert open_codes(again) == [("die1", BRAKE)]


def test_the_node_s_words_are_its_row_s() -> None:
    engine = begin(tables(), chips=2)
    run(engine, [(1, brakes(0)), (2, brakes(1))])
    assert (supply(engine).name, supply(engine).origin.rule) == (f"fault {SUPPLY}", f"common-{SUPPLY}")
