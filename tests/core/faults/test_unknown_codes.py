"""Codes that no table names: by severity, by class, by how many chips show them."""

import pytest

from nodeagent.core.engine import Engine
from nodeagent.core.model import ActiveCode, ActiveSet, CatalogChanged, EventKind, Level, Severity, Verdict
from nodeagent.tables.sections.sources import DEFAULT_TRAITS
from tests.core.build import (
    active,
    begin,
    catalog,
    condition,
    emitted,
    ns,
    of,
    repeat,
    row,
    run,
    signal,
    stands,
    xid,
)

CODE = "8BADF00D"
ASCEND = DEFAULT_TRAITS["ascend"]
BARE = catalog(row("XID_*", Level.SUB_HEALTH, name="Xid"))


def shown(severity: int | None, device: str = "npu0", begun_s: float = 1, code: str = CODE) -> ActiveSet:
    return ActiveSet(
        source="ascend",
        device=device,
        codes=(ActiveCode(code=code, severity=severity),),
        begun_ns=ns(begun_s),
        complete=True,
    )


def levels(engine: Engine) -> list[Level]:
    return [one.level for one in engine.view().conditions]


def learnt(engine: Engine) -> list[tuple[str, int]]:
    cells = [carried.cell for carried in engine.carry()]
    return [(cell.code, cell.severity) for cell in cells if isinstance(cell, Severity)]


@pytest.mark.parametrize(
    ("source", "severity", "level"),
    [
        ("ascend", 0, Level.NOT_HANDLE),
        ("ascend", 1, Level.NOT_HANDLE),
        ("ascend", 2, Level.SEPARATE_NPU),
        ("ascend", 3, Level.SEPARATE_NPU),
        ("ascend", None, Level.SEPARATE_NPU),
        ("link", None, Level.NOT_HANDLE),
    ],
)
def test_an_unknown_code_is_marked_unknown(source: str, severity: int | None, level: Level) -> None:
    (raised,) = run(begin(BARE), [(1, signal(CODE, source=source, severity=severity))])
    assert (raised.unknown, raised.condition_level, raised.name) == (True, level, CODE)


def test_a_code_of_a_family_takes_the_family_row_and_is_unknown() -> None:
    raised = run(begin(BARE), [(1, xid("XID_31"))])[0]
    assert (raised.unknown, raised.condition_level, raised.name) == (True, Level.SUB_HEALTH, "Xid")


def test_the_configured_level_of_unknown_codes_goes_before_all_others() -> None:
    engine = begin(catalog(row("XID_*", Level.SUB_HEALTH), unknown_level=Level.RESTART_NPU))
    codes = [signal(CODE, severity=0), xid("XID_31"), signal("81078603")]
    events = run(engine, [(1, one) for one in codes])
    assert [event.condition_level for event in of(events, EventKind.RAISED)] == [Level.RESTART_NPU] * 3


def test_another_configured_level_reaches_unknown_codes_that_are_open() -> None:
    engine = begin(BARE, catalog(digest="second", unknown_level=Level.SUB_HEALTH))
    run(engine, [(1, signal(CODE, severity=3))])
    assert emitted(run(engine, [(2, CatalogChanged(digest="second"))]))[1:] == [
        ("level_changed", "npu0", CODE)
    ]
    run(engine, [(3, CatalogChanged(digest="first"))])
    assert levels(engine) == [Level.SEPARATE_NPU]


# --------------------------------------------------------------------------- of a network port


@pytest.mark.parametrize("code", ["81078603", "81078607", "110000002", "0110000002", "110001024", "8107FE00"])
def test_codes_of_a_network_port_are_known_by_the_vendors_list_and_by_their_part(code: str) -> None:
    assert ASCEND.is_of_network(code) is (code != "0110000002")


@pytest.mark.parametrize("code", ["80E18005", "41078603", "XID_79", ""])
def test_other_parts_and_the_hosts_side_are_none(code: str) -> None:
    assert ASCEND.is_of_network(code) is False


@pytest.mark.parametrize("severity", [None, 0, 3])
def test_an_unknown_code_of_a_network_port_drains_the_chip_however_severe(severity: int | None) -> None:
    engine = begin(BARE, chips=2)
    for chip in (0, 1):
        (raised,) = run(engine, [(1, signal("81078603", device=f"npu{chip}", severity=severity))])
        assert (raised.condition_level, raised.verdict) == (Level.PRE_SEPARATE_NPU, Verdict.NO_NEW_JOBS)


# --------------------------------------------------------------------------- severities that are learnt


def test_a_severity_once_learnt_serves_signals_that_come_without() -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(1, signal(CODE, severity=1)), (2, signal(CODE, device="npu1"))])
    assert levels(engine) == [Level.NOT_HANDLE, Level.NOT_HANDLE]


def test_a_severity_that_comes_late_settles_an_unknown_code() -> None:
    engine = begin(BARE)
    events = run(engine, [(1, signal(CODE)), (2, signal(CODE, severity=1))])
    assert [(event.kind, event.condition_level) for event in events] == [
        (EventKind.RAISED, Level.SEPARATE_NPU),
        (EventKind.LEVEL_CHANGED, Level.NOT_HANDLE),
    ]
    assert stands(engine)[1] is Verdict.ALLOW


def test_it_settles_the_code_on_every_chip() -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(1, signal(CODE)), (100, signal(CODE, device="npu1"))])
    run(engine, [(200, signal(CODE, device="npu1", severity=0))])
    assert levels(engine) == [Level.NOT_HANDLE, Level.NOT_HANDLE]


def test_a_poll_with_the_severity_settles_it_and_is_stored() -> None:
    engine = begin(BARE)
    run(engine, [(1, signal(CODE))])
    given = shown(1, begun_s=2)
    outcome = engine.step(ns(3), given)
    assert (emitted(outcome.events), outcome.records) == ([("level_changed", "npu0", CODE)], (given,))
    assert engine.step(ns(4), shown(1, begun_s=3)).records == ()


def test_a_poll_opens_a_code_with_the_severity_that_it_reports() -> None:
    engine = begin(BARE)
    run(engine, [(2, shown(0))])
    assert (levels(engine), learnt(engine)) == ([Level.NOT_HANDLE], [(CODE, 0)])


def test_the_latest_severity_counts() -> None:
    engine = begin(BARE)
    run(engine, [(1, signal(CODE, severity=3)), (2, signal(CODE, severity=1))])
    assert levels(engine) == [Level.NOT_HANDLE]
    run(engine, [(3, signal(CODE, severity=2))])
    assert levels(engine) == [Level.SEPARATE_NPU]


def test_a_severity_learnt_with_a_recovery_of_nothing_is_stored() -> None:
    engine = begin(BARE)
    given = signal(CODE, "recover", severity=1)
    assert engine.step(ns(1), given).records == (given,)
    run(engine, [(2, signal(CODE))])
    assert levels(engine) == [Level.NOT_HANDLE]


def test_a_severity_counts_before_the_repetition_does() -> None:
    rule = repeat("*", 2, at_least=Level.RESTART_REQUEST)
    engine = begin(catalog(frequency=[rule]))
    run(engine, [(1, signal(CODE)), (2, signal(CODE, severity=0))])
    assert engine.view().promotions == ()


def test_a_forged_line_teaches_no_severity() -> None:
    engine = begin(BARE)
    run(engine, [(1, signal(CODE, severity=0, trusted=False)), (2, signal(CODE))])
    assert condition(engine, CODE).level is Level.SEPARATE_NPU


def test_an_injected_signal_teaches_no_severity() -> None:
    engine = begin(BARE)
    run(engine, [(1, signal(CODE, severity=0, injected=True)), (2, signal(CODE))])
    assert [one.level for one in engine.view().conditions if not one.origin.injected] == [Level.SEPARATE_NPU]


def test_a_severity_changes_nothing_of_a_code_that_the_tables_name() -> None:
    engine = begin(catalog(row(CODE, Level.RESTART_NPU)))
    assert emitted(run(engine, [(1, signal(CODE)), (2, signal(CODE, severity=0))])) == [
        ("raised", "npu0", CODE)
    ]


# --------------------------------------------------------------------------- on several chips


@pytest.mark.parametrize(("apart_s", "level"), [(30, Level.PRE_SEPARATE_NPU), (30.001, Level.SEPARATE_NPU)])
def test_an_undecided_code_on_two_chips_within_30_s_only_drains_them(apart_s: float, level: Level) -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(1, signal(CODE)), (1 + apart_s, signal(CODE, device="npu1"))])
    assert levels(engine) == [level, level]


def test_the_first_chip_is_lowered_in_an_event_of_its_own() -> None:
    engine = begin(BARE, chips=2)
    events = run(engine, [(1, signal(CODE)), (2, signal(CODE, device="npu1"))])
    assert [(event.kind, event.device, event.verdict) for event in events] == [
        (EventKind.RAISED, "npu0", Verdict.ISOLATE),
        (EventKind.LEVEL_CHANGED, "npu0", Verdict.NO_NEW_JOBS),
        (EventKind.RAISED, "npu1", Verdict.NO_NEW_JOBS),
    ]


def test_a_chip_that_showed_it_and_recovered_showed_it_all_the_same() -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(1, signal(CODE)), (2, signal(CODE, "recover")), (31, signal(CODE, device="npu1"))])
    assert levels(engine) == [Level.PRE_SEPARATE_NPU]


def test_chips_that_show_it_again_together_are_lowered_then() -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(1, signal(CODE)), (100, signal(CODE, device="npu1"))])
    events = run(engine, [(120, signal(CODE))])
    assert emitted(events) == [("level_changed", "npu1", CODE), ("level_changed", "npu0", CODE)]
    assert levels(engine) == [Level.PRE_SEPARATE_NPU, Level.PRE_SEPARATE_NPU]


def test_a_severity_settles_it_also_where_two_chips_show_it() -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(1, signal(CODE)), (2, signal(CODE, device="npu1")), (3, signal(CODE, severity=2))])
    assert levels(engine) == [Level.SEPARATE_NPU, Level.SEPARATE_NPU]


def test_an_injected_one_leaves_the_real_one_on_another_chip_alone() -> None:
    engine = begin(BARE, chips=2)
    events = run(engine, [(1, signal(CODE)), (2, signal(CODE, device="npu1", injected=True))])
    assert of(events, EventKind.LEVEL_CHANGED) == []


def test_what_a_poll_shows_on_two_chips_is_lowered_as_well() -> None:
    engine = begin(BARE, chips=2)
    run(engine, [(2, active(CODE, begun_s=1)), (3, active(CODE, device="npu1", begun_s=2))])
    assert levels(engine) == [Level.PRE_SEPARATE_NPU, Level.PRE_SEPARATE_NPU]
