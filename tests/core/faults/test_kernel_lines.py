"""What a kernel line does to a chip whose own driver reads it, and to one that no driver lists."""

from dataclasses import replace

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import EventKind, Handling, Input, Level, Signal, Started, Verdict
from tests.core.build import (
    HOUR_S,
    active,
    back,
    begin,
    catalog,
    device_view,
    emitted,
    lost,
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

PCI = "0000:3b:00.0"
LOST = "XID_79"
TABLES = catalog(
    row(LOST, Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True)),
    row("XID_63", Level.SUB_HEALTH, clear_on=ClearOn(reset=True, reboot=True)),
    row("XID_149.Fatal", Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True)),
    row("XID_149.unspecified", Level.SUB_HEALTH, notice=True),
    frequency=[repeat(LOST, 2)],
)
FREE = (Level.NOT_HANDLE, Verdict.ALLOW, Handling.NONE)
OUT = (Level.RESTART_NPU, Verdict.ISOLATE, Handling.RESCHEDULE)
DISREGARDED = (Level.SUB_HEALTH, Verdict.ALLOW, Handling.JOB_STRATEGY)


def gpu() -> Engine:
    """gpu0, listed and read by its driver."""
    engine = begin(TABLES, chips=0)
    run(engine, [(0, listed()), (0, back("nvidia"))])
    return engine


def listed(**attributes: str) -> Input:
    device = seen("gpu0", "GPU-1", PCI, source="nvidia", vendor="nvidia")
    return replace(device, attributes={**device.attributes, **attributes})


def polled(at_s: float, *codes: str, complete: bool = True) -> tuple[float, Input]:
    return at_s, active(*codes, device="gpu0", source="nvidia", begun_s=at_s - 0.5, complete=complete)


def by_driver(code: str = LOST) -> Signal:
    return signal(code, "once", "gpu0", source="nvidia")


# --------------------------------------------------------------------------- a line alone


def test_a_line_isolates_at_once_and_no_longer_than_its_hold_where_the_driver_calls_the_chip_well() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11)])
    assert stands(engine, "gpu0") == OUT
    assert wait(engine, 40) == []
    (event,) = wait(engine, 40, 1)
    assert (event.kind, event.code, event.condition_level) == (
        EventKind.LEVEL_CHANGED,
        LOST,
        Level.SUB_HEALTH,
    )
    assert event.why == ("its driver reads the chip and does not confirm it: RestartNPU -> SubHealthFault")
    assert stands(engine, "gpu0") == DISREGARDED


def test_it_stands_for_as_long_as_the_driver_has_not_read_the_chip_since() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(10.2), polled(11, complete=False)])
    wait(engine, HOUR_S)
    assert stands(engine, "gpu0") == OUT
    run(engine, [polled(HOUR_S + 1)])
    assert stands(engine, "gpu0") == DISREGARDED


def test_it_stands_while_the_driver_does_not_answer() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11), (12, lost("nvidia", "gpu0"))])
    wait(engine, 100)
    assert stands(engine, "gpu0") == OUT
    run(engine, [(200, back("nvidia", "gpu0")), polled(201)])
    assert stands(engine, "gpu0") == DISREGARDED


def test_once_disregarded_it_isolates_no_more_however_often_it_comes() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11)])
    wait(engine, 60)
    assert emitted(run(engine, [(at_s, xid(LOST, PCI)) for at_s in range(61, 4000, 7)])) == []
    assert stands(engine, "gpu0") == DISREGARDED


def test_repeated_it_isolates_no_longer_than_a_single_one() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11), (30, xid(LOST, PCI)), polled(31)])
    assert stands(engine, "gpu0") == OUT
    (event,) = wait(engine, 40, 1)
    assert (event.kind, event.condition_level) == (EventKind.LEVEL_CHANGED, Level.SUB_HEALTH)
    steps: list[tuple[float, Input]] = []
    for at_s in range(50, 4000, 20):
        steps += [(at_s, xid(LOST, PCI)), polled(at_s + 1)]
    assert emitted(run(engine, steps)) == []


def test_lines_that_come_faster_than_the_driver_reads_are_contradicted_as_well() -> None:
    engine = gpu()
    steps: list[tuple[float, Input]] = []
    for at_s in range(10, 45):
        steps += [(at_s + tenth / 10, xid(LOST, PCI)) for tenth in range(0, 10, 2)] + [polled(at_s + 0.9)]
    run(engine, steps)
    assert stands(engine, "gpu0") == DISREGARDED


def test_what_the_driver_did_not_contradict_yet_takes_nothing_from_the_hold_of_what_it_does() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), (100, xid(LOST, PCI)), polled(101)])
    wait(engine, 130)
    assert stands(engine, "gpu0") == OUT
    wait(engine, 130, 1)
    assert stands(engine, "gpu0") == DISREGARDED


def test_after_a_long_silence_it_isolates_once_more_and_no_longer_than_its_hold() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11)])
    wait(engine, 60)
    assert emitted(run(engine, [(310, xid(LOST, PCI)), polled(311)])) == []
    (event,) = run(engine, [(611, xid(LOST, PCI)), polled(612)])
    assert event.why == "it comes again after a long silence: SubHealthFault -> RestartNPU"
    wait(engine, 641)
    assert stands(engine, "gpu0") == OUT
    wait(engine, 641, 1)
    assert stands(engine, "gpu0") == DISREGARDED


def test_it_counts_nothing_towards_repetition() -> None:
    engine = gpu()
    steps: list[tuple[float, Input]] = []
    for hour in range(1, 6):
        steps += [(hour * HOUR_S, xid(LOST, PCI)), polled(hour * HOUR_S + 1)]
    assert of(run(engine, steps), EventKind.PROMOTED) == []


def test_a_milder_line_stays_as_mild_as_it_is() -> None:
    engine = gpu()
    run(engine, [(10, xid("XID_63", PCI)), polled(11)])
    assert wait(engine, 100) == []


def test_of_a_chip_whose_driver_reports_no_events_the_line_decides() -> None:
    engine = gpu()
    run(engine, [(1, listed(events="none")), (10, xid(LOST, PCI)), polled(11)])
    assert wait(engine, HOUR_S) == []
    assert stands(engine, "gpu0") == OUT


# --------------------------------------------------------------------------- the driver's word


@pytest.mark.parametrize(
    "confirmed", [by_driver(), active(LOST, device="gpu0", source="nvidia", begun_s=10.5)]
)
def test_what_the_driver_reports_too_stands_and_counts(confirmed: Input) -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), (11, confirmed)])
    run(engine, [(HOUR_S, xid(LOST, PCI)), (HOUR_S, by_driver())])
    assert [promotion.rule for promotion in engine.view().promotions] == [f"repeat-{LOST}"]


def test_a_disregarded_line_that_the_driver_confirms_isolates_again() -> None:
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11)])
    wait(engine, 60)
    (event,) = run(engine, [(61, by_driver())])
    assert (event.kind, event.why) == (
        EventKind.LEVEL_CHANGED,
        "nvidia confirms it: SubHealthFault -> RestartNPU",
    )
    assert stands(engine, "gpu0") == OUT


def test_a_line_that_another_source_than_the_chips_driver_confirms_stands() -> None:
    """Such as a PCI Express error, which the kernel's counters show and no vendor's library."""
    engine = gpu()
    run(engine, [(10, xid(LOST, PCI)), polled(11), (12, signal(LOST, "once", PCI, source="host"))])
    wait(engine, 100)
    assert stands(engine, "gpu0") == OUT


def test_a_line_of_what_the_driver_reported_first_changes_nothing() -> None:
    engine = gpu()
    run(engine, [(10, by_driver()), (10, xid(LOST, PCI)), polled(11)])
    wait(engine, HOUR_S)
    assert stands(engine, "gpu0") == OUT


FATAL = "XID_149.Fatal"
BY_NUMBER = "XID_149.unspecified"


@pytest.mark.parametrize("line_first", [True, False])
def test_a_line_that_says_more_than_the_driver_is_confirmed_by_the_number_alone(line_first: bool) -> None:
    """NVML reports the number of an NVLink Xid; whether it was fatal only the line says."""
    both = [xid(FATAL, PCI), by_driver(BY_NUMBER)]
    engine = gpu()
    run(engine, [(10, each) for each in (both if line_first else reversed(both))])
    run(engine, [polled(11)])
    wait(engine, HOUR_S)
    assert stands(engine, "gpu0") == OUT


def test_another_number_confirms_nothing_nor_the_same_one_long_ago() -> None:
    engine = gpu()
    run(engine, [(10, by_driver(BY_NUMBER)), (10, by_driver("XID_63")), (200, xid(FATAL, PCI)), polled(201)])
    wait(engine, 300)
    assert stands(engine, "gpu0") == DISREGARDED


# --------------------------------------------------------------------------- chips that nobody knows


def test_a_line_of_a_chip_that_its_driver_does_not_list_is_a_notice_of_the_node() -> None:
    engine = gpu()
    (notice,) = run(engine, [(10, xid(LOST, "0000:63:00.0"))])
    assert (notice.kind, notice.device, notice.code) == (EventKind.NOTICE, "node", LOST)
    assert notice.why == "its vendor's driver lists no such chip; it names 0000:63:00.0"
    assert [view.name for view in engine.view().devices] == ["node", "gpu0"]


def test_one_that_a_line_named_before_the_driver_listed_any_is_forgotten_then() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, xid(LOST, "0000:63:00.0"))])
    assert stands(engine, "0000:63:00.0")[1] is Verdict.ISOLATE
    events = run(engine, [(2, listed()), (3, back("nvidia"))])
    assert ("cleared", "0000:63:00.0", LOST) in emitted(events)
    (notice,) = of(events, EventKind.NOTICE)
    assert notice.why == "0000:63:00.0 was known only by its faults: nvidia lists no such chip"
    assert (notice.device, notice.evidence) == ("node", {"was": "slot:0000:63:00.0"})
    assert [view.name for view in engine.view().devices] == ["node", "gpu0"]
    assert open_codes(engine) == []


def test_what_a_line_reported_before_the_driver_listed_the_chip_is_a_line_alone() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, xid(LOST, PCI)), (2, listed()), (3, back("nvidia")), polled(4)])
    assert stands(engine, "gpu0") == OUT
    wait(engine, 100)
    assert stands(engine, "gpu0") == DISREGARDED


def test_one_that_a_person_isolated_or_the_agent_misses_is_kept() -> None:
    engine = begin(TABLES, chips=0)
    run(
        engine,
        [
            *((1, xid(LOST, each)) for each in ("0000:63:00.0", "0000:64:00.0")),
            (2, order("isolate", "0000:63:00.0")),
            (2, signal("PreSeparateNPU", "occur", "0000:64:00.0", source="agent")),
            (3, listed()),
            (3, back("nvidia")),
        ],
    )
    assert names(engine) == ["node", "0000:63:00.0", "0000:64:00.0", "gpu0"]


def test_without_the_vendors_driver_a_line_makes_a_chip_of_its_own() -> None:
    engine = begin(TABLES)
    run(engine, [(1, xid(LOST, PCI)), (2, lost("nvidia")), (3, xid(LOST, "0000:63:00.0"))])
    assert [device_view(engine, each).verdict for each in (PCI, "0000:63:00.0")] == [Verdict.ISOLATE] * 2


def test_after_a_start_the_driver_must_read_first() -> None:
    engine = gpu()
    run(engine, [(10, Started(boot_id="boot-1", version="1")), (11, xid(LOST, "0000:63:00.0"))])
    assert stands(engine, "0000:63:00.0")[1] is Verdict.ISOLATE
    run(engine, [(12, back("nvidia"))])
    assert names(engine) == ["node", "gpu0"]


def names(engine: Engine) -> list[str]:
    return [view.name for view in engine.view().devices]
