"""The table of levels, in both modes and over time; the strictest of everything open."""

from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.catalog.levels import PRECEDENCE, stance
from nodeagent.core.catalog.settings import SECOND_NS, Mode, Settings
from nodeagent.core.model import Affects, EventKind, Handling, Kind, Level, Verdict
from tests.core.build import (
    CHIP_LEVELS,
    GRACEFUL,
    back,
    begin,
    catalog,
    device_view,
    emitted,
    order,
    repeat,
    row,
    run,
    seen,
    signal,
    stands,
    wait,
)

Stance = tuple[Verdict, Handling]
FREE: Stance = (Verdict.ALLOW, Handling.NONE)
STRATEGY: Stance = (Verdict.ALLOW, Handling.JOB_STRATEGY)
DRAIN: Stance = (Verdict.NO_NEW_JOBS, Handling.NONE)
RESTART: Stance = (Verdict.NO_NEW_JOBS, Handling.RESTART_JOB)
RERUN: Stance = (Verdict.NO_NEW_JOBS, Handling.RERUN_REQUEST)
OUT: Stance = (Verdict.ISOLATE, Handling.RESCHEDULE)
RESET: Stance = (Verdict.ISOLATE, Handling.STOP_RESET_RESTART)

TABLE: dict[Level, tuple[Stance, Stance]] = {
    Level.NOT_HANDLE: (FREE, FREE),
    Level.SUB_HEALTH: (STRATEGY, STRATEGY),
    Level.RESTART_REQUEST: (RERUN, RERUN),
    Level.RESTART_BUSINESS: (OUT, RESTART),
    Level.FREE_RESTART_NPU: (OUT, (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE)),
    Level.RESTART_NPU: (OUT, RESET),
    Level.PRE_SEPARATE_NPU: (DRAIN, DRAIN),
    Level.PRE_SEPARATE_FAULT: (DRAIN, DRAIN),
    Level.SEPARATE_NPU: (OUT, OUT),
    Level.MANUALLY_SEPARATE_NPU: (OUT, OUT),
    Level.SEPARATE_FAULT: (OUT, OUT),
    Level.RESET_FAULT: (OUT, OUT),
    Level.RESTART_REQUEST_FAULT: (OUT, RERUN),
}


@pytest.mark.parametrize("level", Level)
def test_every_level_begins_as_the_table_says(level: Level) -> None:
    modes = (Mode.RESCHEDULING, Mode.GRACEFUL)
    assert tuple(stance(level, 0, Settings(mode=mode)) for mode in modes) == TABLE[level]


def test_the_precedence_of_chip_levels_is_the_vendors() -> None:
    chip = [level for level in sorted(Level, key=PRECEDENCE.__getitem__) if level.endswith("NPU")]
    assert chip == [
        Level.FREE_RESTART_NPU,
        Level.RESTART_NPU,
        Level.PRE_SEPARATE_NPU,
        Level.SEPARATE_NPU,
        Level.MANUALLY_SEPARATE_NPU,
    ]


@pytest.mark.parametrize("mode", Mode)
def test_of_two_faults_verdict_and_handling_are_each_the_strictest(mode: Mode) -> None:
    column = 0 if mode is Mode.RESCHEDULING else 1
    found, expected = {}, {}
    for one, other in combinations_with_replacement(CHIP_LEVELS, 2):
        engine = begin(catalog(mode=mode))
        run(engine, [(1, signal(one.value)), (1, signal(other.value))])
        found[one, other] = stands(engine)
        stances = TABLE[one][column], TABLE[other][column]
        verdict = max((stance[0] for stance in stances), key=list(Verdict).index)
        handling = max((stance[1] for stance in stances), key=list(Handling).index)
        expected[one, other] = max(one, other, key=PRECEDENCE.__getitem__), verdict, handling
    assert found == expected


def test_sub_health_is_a_flag_that_changes_no_other_handling() -> None:
    engine = begin(catalog())
    run(engine, [(1, signal("SubHealthFault")), (1, signal("PreSeparateNPU"))])
    view = device_view(engine)
    assert (view.subhealthy, view.verdict, view.handling) == (
        True,
        Verdict.NO_NEW_JOBS,
        Handling.JOB_STRATEGY,
    )


# --------------------------------------------------------------------------- with time


def stances_over_time(code: str, *at_s: float, **settings: Any) -> list[Stance]:
    """An occur at 0 s, then the stance just past each of these seconds."""
    engine = begin(catalog(**settings))
    run(engine, [(0, signal(code))])
    stances = []
    for second in at_s:
        wait(engine, second, extra_ns=1)
        stances.append(stands(engine)[1:])
    return stances


def test_restart_request_is_rerun_for_its_tolerance_and_then_moved() -> None:
    assert stances_over_time("RestartRequest", 1, 59.9, 60) == [RERUN, RERUN, OUT]


def test_exactly_the_tolerance_is_still_tolerated() -> None:
    engine = begin(catalog())
    run(engine, [(0, signal("RestartRequest"))])
    assert wait(engine, 60) == []
    assert emitted(wait(engine, 60, extra_ns=1)) == [("verdict_changed", "npu0", "")]


def test_restart_request_in_graceful_mode_ends_as_restart_npu() -> None:
    assert stances_over_time("RestartRequest", 1, 60, **GRACEFUL) == [RERUN, RESET]


@pytest.mark.parametrize(("mode", "after"), [(Mode.RESCHEDULING, OUT), (Mode.GRACEFUL, RESET)])
def test_without_tolerance_restart_request_is_acted_on_at_once(mode: Mode, after: Stance) -> None:
    assert stances_over_time("RestartRequest", 0, mode=mode, request_tolerance_ns=0) == [after]


def test_restart_business_in_graceful_mode_restarts_at_once_then_resets() -> None:
    assert stances_over_time("RestartBusiness", 0, 59.9, 60, **GRACEFUL) == [RESTART, RESTART, RESET]


def test_it_heals_itself_first_where_the_configuration_gives_it_the_time() -> None:
    patient = {**GRACEFUL, "self_healing_ns": 15 * SECOND_NS}
    assert stances_over_time("RestartBusiness", 14.9, 15, 59.9, 60, **patient) == [
        DRAIN,
        RESTART,
        RESTART,
        RESET,
    ]


def test_a_recovery_within_the_tolerance_ends_it_all() -> None:
    engine = begin(catalog())
    run(engine, [(0, signal("RestartRequest")), (59, signal("RestartRequest", "recover"))])
    assert wait(engine, 1000) == []
    assert stands(engine)[1:] == FREE


def test_a_once_at_restart_request_closes_before_it_could_escalate() -> None:
    engine = begin(catalog())
    run(engine, [(at_s, signal("RestartRequest", "once")) for at_s in (0, 50, 100, 150)])
    assert emitted(wait(engine, 1000)) == [("cleared", "npu0", "RestartRequest")]


def test_a_once_that_nothing_closes_escalates_a_tolerance_after_the_last() -> None:
    latched = row("LATCHED", Level.RESTART_REQUEST, clear_on=ClearOn(reboot=True))
    engine = begin(catalog(latched))
    run(engine, [(0, signal("LATCHED", "once")), (50, signal("LATCHED", "once"))])
    assert wait(engine, 110) == []
    assert emitted(wait(engine, 110, extra_ns=1)) == [("verdict_changed", "npu0", "")]


# --------------------------------------------------------------------------- holds, and what reaches others


def test_a_hold_isolates_beside_any_fault_and_is_named() -> None:
    engine = begin(catalog())
    run(engine, [(1, signal("SubHealthFault")), (2, order("isolate"))])
    view = device_view(engine)
    assert (view.level, view.verdict, view.handling) == (Level.SUB_HEALTH, *OUT)
    assert [reason.kind for reason in view.reasons] == ["condition", "hold"]


def test_a_fault_that_affects_the_node_changes_the_nodes_verdict_in_its_own_event() -> None:
    port = row("PORT", Level.SEPARATE_FAULT, kind=Kind.LINK, affects=Affects.NODE)
    engine = begin(catalog(port))
    events = run(engine, [(1, signal("PORT", device="ub0/1"))])
    assert [(event.kind, event.device, event.verdict) for event in events] == [
        (EventKind.RAISED, "ub0/1", Verdict.ISOLATE),
        (EventKind.VERDICT_CHANGED, "node", Verdict.ISOLATE),
    ]
    assert stands(engine, "npu0")[1:] == FREE
    assert stands(engine, "node") == (Level.SEPARATE_FAULT, *OUT)


def test_a_fault_of_a_port_reaches_the_chips_behind_it_and_no_others() -> None:
    port = row("AER", Level.PRE_SEPARATE_FAULT, kind=Kind.LINK, affects=Affects.CHIPS_BEHIND)
    engine = begin(catalog(port), chips=0)
    where = {"pci": "0000:03:00.0", "upstream": "0000:02:00.0,0000:01:00.0"}
    run(
        engine,
        [
            (1, seen("npu1", "die1", "0000:09:00.0")),
            (1, replace(seen("npu0", "die0"), attributes=where)),
            (1, back()),
            (2, signal("AER", device="0000:01:00.0")),
        ],
    )
    assert (stands(engine, "npu0")[1:], stands(engine, "npu1")[1:]) == (DRAIN, FREE)
    run(engine, [(3, signal("AER", "recover", "0000:01:00.0"))])
    assert stands(engine, "npu0")[1:] == FREE


def test_a_port_that_names_its_chips_reaches_them_and_its_events_name_them() -> None:
    """By name, id or PCI address; the port is no bridge above them."""
    port = row("PORT_DEAD", Level.PRE_SEPARATE_FAULT, kind=Kind.LINK, affects=Affects.CHIPS_BEHIND)
    engine = begin(catalog(port), chips=0)
    chips = {"pci": "0000:0a:00.0", "chips": "npu10,die2,0000:09:00.0"}
    run(
        engine,
        [
            (1, seen("npu1", "die1", "0000:09:00.0")),
            (1, seen("npu2", "die2", "0000:0c:00.0")),
            (1, seen("npu3", "die3", "0000:0d:00.0")),
            (1, seen("npu10", "die10", "0000:0e:00.0")),
            (1, back()),
            (2, replace(seen("eth0", "", kind=Kind.LINK, source="link"), attributes=chips)),
            (2, back("link")),
        ],
    )
    events = run(engine, [(3, signal("PORT_DEAD", device="eth0"))])
    raised = next(event for event in events if event.kind is EventKind.RAISED)
    assert raised.evidence["chips_behind"] == "npu1, npu2, npu10"
    names = ("npu1", "npu2", "npu3", "npu10")
    assert [stands(engine, name)[1:] for name in names] == [DRAIN, DRAIN, FREE, DRAIN]


def test_a_promotion_of_a_ports_fault_reaches_the_node_as_the_fault_does() -> None:
    port = row("PORT_DOWN", Level.SUB_HEALTH, kind=Kind.LINK, affects=Affects.NODE)
    often = repeat("PORT_DOWN", times=2, level=Level.PRE_SEPARATE_FAULT, kind=Kind.LINK, release_ns=None)
    engine = begin(catalog(port, frequency=(often,)), chips=0)
    down, up = (signal("PORT_DOWN", assertion, "eth0") for assertion in ("occur", "recover"))
    run(engine, [(1, down), (2, up), (3, down), (4, up)])
    assert stands(engine, "eth0")[1:] == DRAIN
    assert stands(engine, "node") == (Level.PRE_SEPARATE_FAULT, *DRAIN)
    run(engine, [(5, order("release", "eth0"))])
    assert stands(engine, "node")[1:] == FREE
