"""Not observed, not judged: sources lost, back, awaited after a start; restarts and reboots."""

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    CatalogChanged,
    DeviceGone,
    EventKind,
    ExpectedSource,
    Handling,
    Input,
    Level,
    Loss,
    SourceAbsent,
    Started,
    Tick,
    Verdict,
)
from tests.core.build import (
    HBM,
    LINK_DOWN,
    active,
    back,
    begin,
    catalog,
    condition,
    device_view,
    emitted,
    lasting,
    lost,
    ns,
    of,
    open_codes,
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
    row(LINK_DOWN),
    row("XID_79", Level.RESTART_NPU, clear_on=ClearOn(reboot=True)),
    row("driver_unresponsive", clear_on=ClearOn(recover=True, reboot=True)),
    row(HBM),
    duration=[lasting(LINK_DOWN, 20, 60)],
    frequency=[repeat(HBM, 2, correlation_ns=ns(30))],
)
GONE = DeviceGone(source="ascend", device="npu0", reason="not listed")
FREE = (Level.NOT_HANDLE, Verdict.ALLOW, Handling.NONE)


def restart(boot: str = "boot-1") -> Started:
    return Started(boot_id=boot, version="1")


# --------------------------------------------------------------------------- listed, and not yet read


def test_a_device_that_was_listed_and_never_read_is_unknown_though_its_source_was_never_heard() -> None:
    engine = begin(TABLES)
    run(engine, [(1, seen("gpu0", "GPU-1", source="nvidia"))])
    view = device_view(engine, "gpu0")
    assert (view.verdict, view.observed, view.observed_ns) == (Verdict.UNKNOWN, False, 0)
    assert [reason.text for reason in view.reasons] == ["nvidia: not read yet"]


def test_a_device_that_is_plugged_in_later_is_unknown_until_it_is_read_itself() -> None:
    engine = begin(TABLES)
    run(engine, [(1, seen("npu1", "die1", "0000:01:00.0"))])
    assert (stands(engine, "npu0")[1], stands(engine, "npu1")[1]) == (Verdict.ALLOW, Verdict.UNKNOWN)
    events = run(engine, [(2, back(device="npu1"))])
    assert emitted(events) == [("verdict_changed", "npu1", "")]
    assert stands(engine, "npu1") == FREE


def test_a_device_that_could_not_be_read_when_it_went_is_judged_by_what_is_read_once_it_returns() -> None:
    engine = begin(TABLES)
    run(engine, [(1, lost(device="npu0")), (2, GONE), (3, seen("npu0", "die0", "0000:00:00.0"))])
    assert stands(engine)[1] is Verdict.UNKNOWN
    run(engine, [(4, active(begun_s=4))])
    assert stands(engine) == FREE


def test_what_another_source_reads_of_a_device_is_no_read_by_its_own() -> None:
    engine = begin(TABLES)
    run(engine, [(1, seen("gpu0", "GPU-1", source="nvidia")), (2, back("ascend"))])
    run(engine, [(3, active(device="gpu0", source="kmsg", begun_s=2.5))])
    assert stands(engine, "gpu0")[1] is Verdict.UNKNOWN


# --------------------------------------------------------------------------- lost and back


def test_a_lost_source_makes_its_devices_unknown_and_no_others() -> None:
    engine = begin(TABLES)
    run(engine, [(1, seen("gpu0", "GPU-1", source="nvidia")), (1, back("nvidia"))])
    events = run(engine, [(2, lost("nvidia"))])
    assert emitted(events) == [("source_lost", "node", ""), ("verdict_changed", "gpu0", "")]
    assert (stands(engine, "gpu0")[1], stands(engine, "npu0")[1]) == (Verdict.UNKNOWN, Verdict.ALLOW)
    assert device_view(engine, "gpu0").observed is False


def test_unknown_replaces_only_allow() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("PreSeparateNPU")), (2, lost())])
    assert stands(engine)[1] is Verdict.NO_NEW_JOBS


@pytest.mark.parametrize(("required", "verdict"), [(True, Verdict.UNKNOWN), (False, Verdict.ALLOW)])
def test_only_a_lost_required_source_makes_the_node_unknown(required: bool, verdict: Verdict) -> None:
    engine = begin(TABLES)
    run(engine, [(1, lost("kmsg", required=required))])
    assert stands(engine, "node")[1] is verdict


def test_a_source_lost_for_one_device_makes_that_one_unknown() -> None:
    engine = begin(TABLES, chips=2)
    assert emitted(run(engine, [(1, lost(device="npu1"))])) == [("source_lost", "npu1", "")]
    assert (stands(engine, "npu0")[1], stands(engine, "npu1")[1]) == (Verdict.ALLOW, Verdict.UNKNOWN)


def test_a_complete_poll_brings_the_device_back_with_one_event() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, lost(device="npu1"))])
    assert emitted(
        run(engine, [(3, active(device="npu1", begun_s=2)), (4, active(device="npu1", begun_s=3))])
    ) == [("source_back", "npu1", "")]
    assert stands(engine, "npu1")[1] is Verdict.ALLOW


def test_a_read_of_everything_brings_back_devices_that_were_lost_alone() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, lost(device="npu1"))])
    assert emitted(run(engine, [(2, back())])) == [("source_back", "npu1", "")]
    assert stands(engine, "npu1")[1] is Verdict.ALLOW


def test_losing_a_source_twice_for_the_same_reason_is_one_event() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(1, lost("kmsg")), (2, lost("kmsg"))])) == [("source_lost", "node", "")]


def test_timers_of_a_lost_source_are_held_and_judged_from_the_original_start() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN)), (10, lost())])
    assert wait(engine, 500) == []
    events = run(engine, [(501, active(LINK_DOWN, begun_s=500.5))])
    (changed,) = of(events, EventKind.LEVEL_CHANGED)
    assert changed.at_ns == ns(21) + 1


def test_what_has_gone_meanwhile_clears_without_ever_having_been_raised_in_level() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN)), (10, lost())])
    events = run(engine, [(501, active(begun_s=500.5))])
    assert of(events, EventKind.LEVEL_CHANGED) == []
    assert ("cleared", "npu0", LINK_DOWN) in emitted(events)


def test_a_promotion_waits_for_its_source_too() -> None:
    engine = begin(TABLES, chips=2)
    run(engine, [(1, signal(HBM)), (2, signal(HBM)), (10, lost())])
    assert wait(engine, 500) == []
    assert len(of(run(engine, [(501, back())]), EventKind.PROMOTED)) == 1


def test_the_end_of_an_injected_fault_waits_for_nobody() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM, injected=True)), (2, lost())])
    assert emitted(wait(engine, 700)) == [("cleared", "npu0", HBM)]


# --------------------------------------------------------------------------- a restart in the same boot


def test_after_a_restart_the_last_verdict_stands_for_a_while_unobserved() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(100, restart())])) == [("started", "node", "")]
    assert (stands(engine), device_view(engine).observed) == (FREE, False)
    assert wait(engine, 130) == []
    assert emitted(wait(engine, 130, extra_ns=1)) == [("verdict_changed", "npu0", "")]
    assert stands(engine)[1] is Verdict.UNKNOWN


def test_a_read_in_time_changes_no_verdict_and_emits_nothing() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(100, restart()), (105, back())])) == [("started", "node", "")]
    assert device_view(engine).observed is True
    assert wait(engine, 1000) == []


def test_held_timers_run_on_after_the_start_deadline_though_nothing_was_read() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN)), (10, restart())])
    assert wait(engine, 40) == []
    assert ("level_changed", "npu0", LINK_DOWN) in emitted(wait(engine, 40, extra_ns=1))


@pytest.mark.parametrize("source", ["agent", "public"])
def test_sources_that_nobody_polls_are_not_awaited(source: str) -> None:
    engine = begin(catalog(row("SLOW", clear_on=ClearOn(quiet_ns=ns(20)))))
    run(engine, [(1, signal("SLOW", "once", "node", source=source)), (10, restart())])
    assert ("cleared", "node", "SLOW") in emitted(wait(engine, 21, extra_ns=1))


def test_the_two_deadlines_of_a_start_are_each_their_own() -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting()], stale_after_ns=ns(90)))
    run(engine, [(1, signal(LINK_DOWN)), (10, restart())])
    assert emitted(wait(engine, 50)) == [("level_changed", "npu0", LINK_DOWN)]
    assert device_view(engine).observed is False
    run(engine, [(60, signal(LINK_DOWN, "recover"))])
    (cleared,) = wait(engine, 125)
    assert (cleared.kind, cleared.verdict) == (EventKind.CLEARED, Verdict.UNKNOWN)


def test_a_source_that_was_lost_stays_lost_over_a_restart_and_holds_its_timers_only_so_long() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN)), (2, lost()), (100, restart())])
    assert "no answer" in device_view(engine).reasons[-1].text
    assert emitted(wait(engine, 200)) == [("level_changed", "npu0", LINK_DOWN)]


def test_what_fell_due_while_nobody_watched_waits_for_the_first_read() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(LINK_DOWN))])
    events = run(engine, [(100, restart()), (101, active(LINK_DOWN, begun_s=100.5))])
    assert [(event.kind, event.at_ns) for event in events] == [
        (EventKind.STARTED, ns(100)),
        (EventKind.LEVEL_CHANGED, ns(21) + 1),
    ]


def test_what_had_fired_before_a_restart_has_fired_when_both_are_replayed() -> None:
    tables = {TABLES.digest: TABLES}
    first = begin(TABLES)
    log: list[tuple[int, Input]] = [(ns(1), signal(LINK_DOWN)), (ns(30), Tick()), (ns(100), restart())]
    stored = [(at_ns, record) for at_ns, one in log for record in first.step(at_ns, one).records]
    again = type(first)(tables)
    for carried in begin(TABLES).carry():
        again.replay(0, carried)
    for at_ns, record in stored:
        again.replay(at_ns, record)
    again.resume(first.now_ns)
    assert again.view() == first.view()
    assert condition(again, LINK_DOWN).level is Level.PRE_SEPARATE_NPU


# --------------------------------------------------------------------------- a reboot


def test_after_a_reboot_what_was_not_read_is_unknown_at_once() -> None:
    engine = begin(TABLES)
    assert emitted(run(engine, [(100, restart("boot-2"))])) == [
        ("started", "node", ""),
        ("verdict_changed", "npu0", ""),
    ]
    assert stands(engine)[1] is Verdict.UNKNOWN


def test_a_start_names_what_is_doubtful_about_the_time_before_it() -> None:
    engine = begin(TABLES)
    doubtful = Started(boot_id="boot-2", version="1", doubt="the wall clock was set back")
    (started, *_) = run(engine, [(100, doubtful)])
    assert started.why == "nodeagent 1 after a reboot; the wall clock was set back"


def test_a_reboot_closes_at_the_first_complete_read_what_that_does_not_show() -> None:
    engine = begin(TABLES)
    run(engine, [(1, xid("XID_79")), (100, restart("boot-2"))])
    assert [code for _, code in open_codes(engine)] == ["XID_79"]
    events = run(engine, [(101, active(source="kmsg", device="*", begun_s=100.5)), (101, back("kmsg"))])
    assert emitted(events)[0] == ("cleared", "0000:3b:00.0", "XID_79")


def test_a_fault_that_came_again_since_the_reboot_stays() -> None:
    engine = begin(TABLES)
    run(
        engine,
        [(1, xid("XID_79")), (100, restart("boot-2")), (101, xid("XID_79", backdated=True, last_ns=1))],
    )
    run(engine, [(102, active(source="kmsg", device="*", begun_s=101.5))])
    assert [code for _, code in open_codes(engine)] == ["XID_79"]


def test_a_fault_that_the_first_read_shows_stays_and_belongs_to_this_boot() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal(HBM)), (100, restart("boot-2")), (102, active(HBM, begun_s=101))])
    assert condition(engine, HBM).presence.boot_id == "boot-2"
    run(engine, [(103, restart("boot-2")), (105, active(HBM, begun_s=104))])
    assert open_codes(engine) == [("die0", HBM)]


def test_a_restart_without_a_reboot_closes_nothing() -> None:
    engine = begin(TABLES)
    run(engine, [(1, xid("XID_79")), (100, restart()), (102, active(source="kmsg", device="*", begun_s=101))])
    assert [code for _, code in open_codes(engine)] == ["XID_79"]


def test_the_agents_own_faults_that_a_reboot_clears_end_with_it() -> None:
    engine = begin(TABLES)
    run(engine, [(1, signal("driver_unresponsive", source="agent"))])
    events = run(engine, [(100, restart("boot-2"))])
    assert ("cleared", "npu0", "driver_unresponsive") in emitted(events)


# --------------------------------------------------------------------------- what the node is observed by

READS = (
    ExpectedSource(name="ascend", needed=True, lists=True),
    ExpectedSource(name="kmsg", needed=True, lists=False),
    ExpectedSource(name="bmc", needed=False, lists=False),
)


def first_start(boot: str = "boot-1", sources: tuple[ExpectedSource, ...] = READS) -> Started:
    return Started(boot_id=boot, version="1", sources=sources)


def absent(source: str = "ascend") -> SourceAbsent:
    return SourceAbsent(source=source, reason="no library")


def why_unknown(engine: Engine) -> list[str]:
    """Of the node; nothing where it takes work."""
    view = device_view(engine, "node")
    return [reason.text for reason in view.reasons] if view.verdict is Verdict.UNKNOWN else []


def new_node(*steps: tuple[float, Input]) -> Engine:
    """A first start, on an empty store."""
    engine = Engine({TABLES.digest: TABLES})
    run(engine, [(0, CatalogChanged(digest=TABLES.digest)), (0, first_start()), *steps])
    return engine


NOT_READ = "ascend: not read since the start"


def test_a_node_whose_devices_were_never_looked_for_is_unknown_from_its_first_event_on() -> None:
    engine = Engine({TABLES.digest: TABLES})
    engine.step(0, CatalogChanged(digest=TABLES.digest))
    (started,) = engine.step(0, first_start()).events
    assert (started.kind, started.verdict) == (EventKind.STARTED, Verdict.UNKNOWN)
    assert why_unknown(engine) == [NOT_READ]


@pytest.mark.parametrize("given", [back(), absent()])
def test_it_takes_work_once_they_were_read_or_are_seen_not_to_be_there(given: Input) -> None:
    assert why_unknown(new_node((1, given))) == []


def test_a_needed_source_without_devices_may_take_its_time_and_not_for_ever() -> None:
    engine = new_node((1, back()))
    assert (why_unknown(engine), device_view(engine, "node").observed) == ([], True)
    wait(engine, 30, extra_ns=1)
    assert why_unknown(engine) == ["kmsg: not read since the start"]


def test_one_that_the_node_may_go_without_is_never_waited_for() -> None:
    engine = new_node((1, back()), (1, back("kmsg")))
    wait(engine, 1000)
    assert why_unknown(engine) == []


@pytest.mark.parametrize(
    ("source", "how", "is_unknown"),
    [
        ("ascend", Loss.NOT_RUNNING, True),
        ("ascend", Loss.NOT_READ, True),
        ("ascend", Loss.RELEASED, False),
        ("bmc", Loss.NOT_RUNNING, True),
        ("bmc", Loss.NOT_READ, False),
        ("previous_boot", Loss.NOT_RUNNING, False),
    ],
)
def test_how_a_source_is_lost_says_whether_the_node_is_known_without_it(
    source: str, how: Loss, is_unknown: bool
) -> None:
    engine = new_node((1, back()), (1, back("kmsg")), (2, lost(source, how=how)))
    assert why_unknown(engine) == ([f"{source}: no answer"] if is_unknown else [])


def test_each_source_that_is_missed_is_named() -> None:
    engine = new_node((1, lost(how=Loss.NOT_RUNNING)), (1, lost("bmc", how=Loss.NOT_RUNNING)))
    assert sorted(why_unknown(engine)) == ["ascend: no answer", "bmc: no answer"]


def test_what_was_lost_and_is_seen_not_to_be_there_is_missed_no_more_and_listed_no_more() -> None:
    engine = new_node((1, lost(how=Loss.NOT_RUNNING)))
    (event,) = run(engine, [(2, absent())])
    assert (event.kind, event.verdict) == (EventKind.SOURCE_BACK, Verdict.ALLOW)
    assert event.why == "it is not here: no library; was lost: no answer"
    assert [source.name for source in engine.view().sources] == ["bmc", "kmsg"]


def test_a_restart_in_the_same_boot_leaves_the_node_as_it_was() -> None:
    """What was read stands for a while, what was absent until it is looked at anew, what was lost is lost."""
    engine = new_node((1, absent()), (1, back("kmsg")))
    assert emitted(run(engine, [(2, first_start())])) == [("started", "node", "")]
    assert why_unknown(engine) == []
    run(engine, [(3, lost("bmc", how=Loss.NOT_RUNNING)), (4, first_start())])
    assert why_unknown(engine) == ["bmc: no answer"]


def test_a_restart_before_the_first_read_does_not_make_it_well() -> None:
    assert why_unknown(new_node((1, first_start()), (2, first_start()))) == [NOT_READ]


@pytest.mark.parametrize("given", [back(), absent()])
def test_after_a_reboot_its_devices_have_to_be_looked_for_again(given: Input) -> None:
    engine = new_node((1, given), (1, back("kmsg")), (2, first_start("boot-2")))
    assert why_unknown(engine) == [NOT_READ]
    run(engine, [(3, given)])
    assert why_unknown(engine) == []


def test_a_source_that_the_configuration_has_no_more_is_not_missed() -> None:
    engine = new_node((1, lost(how=Loss.NOT_RUNNING)), (2, first_start(sources=READS[1:])))
    assert why_unknown(engine) == []


def test_a_chip_whose_source_cannot_run_is_unknown_with_the_node() -> None:
    engine = new_node((1, seen("npu0", "die0", "0000:00:00.0")), (1, back()), (1, back("kmsg")))
    run(engine, [(2, lost(how=Loss.NOT_RUNNING))])
    assert (stands(engine)[1], stands(engine, "node")[1]) == (Verdict.UNKNOWN, Verdict.UNKNOWN)
