"""Whose a program's fault is, and what becomes of it in the engine."""

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import (
    Claims,
    CountedBy,
    EventKind,
    Handling,
    Holder,
    Input,
    Level,
    ProcessesListed,
    Window,
)
from tests.core.build import begin, catalog, device_view, held, ns, of, repeat, row, run, seen, wait, xid

CODE = "XID_13"
ROW = row(CODE, Level.RESTART_BUSINESS, user_induced=True, clear_on=ClearOn(quiet_ns=ns(600)))
BY_JOB = catalog(ROW, frequency=[repeat(CODE, 3, at_least=Level.SEPARATE_NPU, counted_by=CountedBy.JOB)])
BY_PLACE = catalog(
    ROW,
    frequency=[
        repeat(
            CODE,
            3,
            level=Level.SUB_HEALTH,
            release_ns=ns(86_400),
            correlation_ns=ns(30),
            counted_by=CountedBy.PLACE,
        )
    ],
)
TURN_S = 1000.0


def fault(pid: int | None = None, place: str = "", device: str = "npu0") -> Input:
    evidence = {"place": place} if place else {}
    return xid(
        CODE, device, source="ascend", evidence=evidence if pid is None else {"pid": str(pid)} | evidence
    )


def two_jobs(device: str = "npu0") -> ProcessesListed:
    holders = tuple(Holder(pid=pid, start_time=1, command="python", job=f"job-{pid}") for pid in (7, 8))
    return ProcessesListed(device=device, holders=holders)


@pytest.mark.parametrize(
    ("before", "pids", "handling"),
    [
        (held("npu0", "job-a"), (None, None, None), Handling.RESCHEDULE),
        (held("npu0", None), (7, 7, 7), Handling.RESCHEDULE),
        (held("npu0", None), (7, 8, 9), Handling.RESTART_JOB),
        (held("npu0", None), (None, None, None), Handling.RESTART_JOB),
        (two_jobs(), (7, 7, 7), Handling.RESCHEDULE),
        (two_jobs(), (7, 8, 7), Handling.RESTART_JOB),
        (two_jobs(), (None, None, None), Handling.RESTART_JOB),
        (Claims(device="npu0", job="slurm:9", kind="", claimed=True), (7, 8, 9), Handling.RESCHEDULE),
    ],
    ids=[
        "the only job",
        "one process",
        "other processes",
        "nobody known",
        "one of two jobs",
        "each of two jobs",
        "one of two, nobody knows which",
        "the job that claims it",
    ],
)
def test_a_job_moves_from_its_own_third_failure_on(
    before: Input, pids: tuple[int | None, ...], handling: Handling
) -> None:
    engine = begin(BY_JOB)
    run(engine, [(1, before), *((TURN_S * n, fault(pid)) for n, pid in enumerate(pids, start=1))])
    assert device_view(engine).handling is handling


def test_the_next_job_on_the_device_is_not_moved_for_what_the_last_one_did() -> None:
    engine = begin(BY_JOB)
    run(engine, [(TURN_S * n, fault(7)) for n in (1, 2, 3)])
    assert device_view(engine).handling is Handling.RESCHEDULE
    run(engine, [(3 * TURN_S + 200, fault(8))])
    assert device_view(engine).handling is Handling.RESTART_JOB


def test_what_is_carried_over_a_restart_holds_the_jobs() -> None:
    engine = begin(BY_PLACE)
    run(engine, [(TURN_S * n, fault(n, "P")) for n in (1, 2)])
    windows = [each.cell for each in engine.carry() if isinstance(each.cell, Window)]
    assert {one.job for window in windows for one in window.attributed} == {"pid 1", "pid 2"}


def test_what_comes_on_another_chip_of_the_job_at_once_accuses_neither() -> None:
    engine = begin(BY_PLACE, chips=2)
    run(engine, [(TURN_S * n, fault(n, "P")) for n in (1, 2)])
    run(engine, [(3 * TURN_S, fault(3, "P")), (3 * TURN_S + 1, fault(3, "P", "npu1"))])
    assert of(wait(engine, 4 * TURN_S), EventKind.PROMOTED) == []
    run(engine, [(5 * TURN_S, fault(4, "P"))])
    assert of(wait(engine, 6 * TURN_S), EventKind.PROMOTED) != []


def test_a_chip_that_is_read_at_last_keeps_what_was_counted_in_its_slot() -> None:
    engine = begin(BY_PLACE, chips=0)
    run(engine, [(1, seen("npu0", pci="0000:3b:00.0"))])
    run(engine, [(TURN_S * n, fault(n, "P")) for n in (1, 2)])
    run(engine, [(3 * TURN_S - 1, seen("npu0", "die0", pci="0000:3b:00.0"))])
    run(engine, [(3 * TURN_S, fault(3, "P"))])
    assert [promotion.rule for promotion in engine.view().promotions] == [f"repeat-{CODE}"]
