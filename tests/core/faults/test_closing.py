"""How conditions end: the row's ``clear_on``, and what a ``once`` needs."""

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.model import Holder, Kind, Level, ProcessesListed, Started
from tests.core.build import (
    DAY_S,
    HBM,
    begin,
    catalog,
    emitted,
    held,
    ns,
    open_codes,
    order,
    row,
    run,
    signal,
    wait,
    xid,
)


def test_an_ascend_once_closes_after_its_hold_begun_anew_by_each() -> None:
    engine = begin(catalog(row(HBM)))
    run(engine, [(1, signal(HBM, "once")), (50, signal(HBM, "once"))])
    assert wait(engine, 110) == []
    assert emitted(wait(engine, 110, extra_ns=1)) == [("cleared", "npu0", HBM)]


def test_an_occur_ends_the_hold() -> None:
    engine = begin(catalog(row(HBM)))
    run(engine, [(1, signal(HBM, "once")), (50, signal(HBM))])
    assert wait(engine, DAY_S) == []


def test_a_hold_of_another_length_can_be_configured() -> None:
    engine = begin(catalog(row(HBM), once_hold_ns=ns(5)))
    run(engine, [(1, signal(HBM, "once"))])
    assert emitted(wait(engine, 6, extra_ns=1)) == [("cleared", "npu0", HBM)]


def test_the_silence_of_the_kernel_log_is_no_recovery() -> None:
    engine = begin(catalog(row("XID_79", clear_on=ClearOn(recover=True, reboot=True))))
    run(engine, [(1, xid("XID_79"))])
    assert wait(engine, 30 * DAY_S) == []


def test_a_quiet_time_of_the_row_goes_before_the_hold() -> None:
    engine = begin(catalog(row("worker_crashed", clear_on=ClearOn(recover=True, quiet_ns=ns(600)))))
    run(engine, [(1, signal("worker_crashed", "once", "node", source="agent"))])
    assert wait(engine, 601) == []
    assert emitted(wait(engine, 601, extra_ns=1)) == [("cleared", "node", "worker_crashed")]


def test_a_quiet_time_is_begun_anew_by_each_signal() -> None:
    engine = begin(catalog(row("OOM", kind=Kind.HOST, clear_on=ClearOn(quiet_ns=ns(600)))))
    run(engine, [(1, xid("OOM", "node")), (500, xid("OOM", "node"))])
    assert wait(engine, 1100) == []
    assert emitted(wait(engine, 1100, extra_ns=1)) == [("cleared", "node", "OOM")]


def test_a_recovery_does_not_close_what_only_a_reset_or_reboot_clears() -> None:
    engine = begin(catalog(row(HBM, clear_on=ClearOn(reset=True, reboot=True))))
    assert emitted(run(engine, [(1, signal(HBM)), (2, signal(HBM, "recover"))])) == [("raised", "npu0", HBM)]


@pytest.mark.parametrize(("code", "left"), [("LATCHED", 0), (HBM, 1)])
def test_a_person_clears_only_what_a_person_may_clear(code: str, left: int) -> None:
    engine = begin(catalog(row("LATCHED", Level.SEPARATE_NPU, clear_on=ClearOn(operator=True)), row(HBM)))
    run(engine, [(1, signal(code)), (2, order("release"))])
    assert len(open_codes(engine)) == left


JOB_END = catalog(row("XID_31", clear_on=ClearOn(job_end=True)))


def test_the_end_of_the_job_that_held_the_device_closes() -> None:
    engine = begin(JOB_END)
    events = run(engine, [(1, held("npu0", "a")), (2, xid("XID_31", "npu0")), (3, held("npu0", None))])
    assert emitted(events)[-1] == ("cleared", "npu0", "XID_31")


def test_a_job_that_came_later_does_not_keep_it_open() -> None:
    engine = begin(JOB_END)
    run(engine, [(1, held("npu0", "a")), (2, xid("XID_31", "npu0"))])
    later = Holder(pid=7, start_time=2, command="python", job="b")
    events = run(engine, [(3, ProcessesListed(device="npu0", holders=(later,)))])
    assert emitted(events) == [("cleared", "npu0", "XID_31")]


def test_where_nobody_knew_the_holders_the_first_that_are_listed_stand_for_them() -> None:
    engine = begin(JOB_END)
    run(engine, [(2, xid("XID_31", "npu0")), (3, held("npu0", "b"))])
    assert open_codes(engine) == [("die0", "XID_31")]
    assert emitted(run(engine, [(4, held("npu0", None))])) == [("cleared", "npu0", "XID_31")]


def test_those_that_stand_for_them_are_not_those_that_came_later() -> None:
    engine = begin(JOB_END)
    run(engine, [(2, xid("XID_31", "npu0")), (3, held("npu0", "b"))])
    later = Holder(pid=7, start_time=2, command="python", job="c")
    events = run(engine, [(4, ProcessesListed(device="npu0", holders=(later,)))])
    assert emitted(events) == [("cleared", "npu0", "XID_31")]


def test_where_nobody_knew_the_holders_and_none_is_listed_the_job_has_ended() -> None:
    engine = begin(JOB_END)
    events = run(engine, [(2, xid("XID_31", "npu0")), (3, held("npu0", None))])
    assert emitted(events)[-1] == ("cleared", "npu0", "XID_31")


def test_on_a_device_that_is_known_to_be_free_it_waits_for_no_job() -> None:
    engine = begin(JOB_END)
    run(engine, [(1, held("npu0", None)), (2, xid("XID_31", "npu0"))])
    assert wait(engine, 62) == []
    assert emitted(wait(engine, 62, extra_ns=1)) == [("cleared", "npu0", "XID_31")]


def test_a_reboot_ends_every_job() -> None:
    engine = begin(JOB_END)
    run(engine, [(1, held("npu0", "a")), (2, xid("XID_31", "npu0"))])
    events = run(engine, [(3, Started(boot_id="boot-2", version="1"))])
    assert ("cleared", "npu0", "XID_31") in emitted(events)
