"""Resets while the world around them changes: starts of the daemon, other tables, groups and parts."""

from dataclasses import replace

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.model import (
    ActionState,
    CatalogChanged,
    DeviceGone,
    Level,
    ResetMode,
    ResetStage,
)
from tests.core.build import held, lost, order, row, seen, signal
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

XID = "XID_79"


def _with(digest: str, mode: ResetMode = ResetMode.ON, **rows: Level) -> Catalog:
    base = ring_catalog(mode)
    xid_row = row(XID, Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True))
    own = {XID: xid_row, **{code: row(code, level) for code, level in rows.items()}}
    return replace(base, digest=digest, rows={**base.rows, **own})


def _under(*catalogs: Catalog) -> Ring:
    """A ring under the first, which may turn to the others."""
    ring = Ring(catalogs[0])
    ring.engine._state.catalogs = {one.digest: one for one in catalogs}
    return ring


def test_who_held_a_chip_before_a_start_says_nothing_of_who_does_now() -> None:
    ring = Ring()
    ring.fault()
    ring.wait(20)
    ring.start()
    ring.poll_all(BROKEN)
    ring.wait(10.001)
    assert (
        ring.emitted()[-1][1] == "it waits: the users of npu0 are not known; the users of npu1 are not known"
    )
    ring.do(held("npu1", "slurm:7"))
    ring.do(held("npu0", None))
    assert ring.actions == []
    ring.do(held("npu1", None))
    assert len(ring.actions) == 1


def test_a_chip_that_is_not_observed_may_have_a_user() -> None:
    ring = Ring()
    ring.fault()
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.do(lost(device="npu1"))
    ring.wait(10.001)
    assert ring.emitted()[-1][1] == "it waits: npu1 is not observed: ascend: no answer"


def test_a_fault_that_came_but_once_before_a_start_is_not_acted_on() -> None:
    ring = Ring(_with("xid"))
    ring.do(signal(XID, "once"))
    ring.wait(20)
    ring.start()
    ring.nobody_holds()
    ring.poll_all()
    ring.wait(10.001)
    assert ring.emitted()[-1][1] == "it waits: no fault that asked for it is seen now"
    ring.do(signal(XID, "once"))
    assert len(ring.actions) == 1


def test_a_result_that_came_while_the_daemon_was_away_is_taken() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.pass_unheard(3600)
    ring.restart()
    ring.result()
    assert ring.stages() == [ResetStage.VERIFYING]
    ring.wait(1)
    ring.poll_all()
    assert ring.emitted()[-1] == ("action_finished", "done: verified by a poll of every member")


def test_a_start_gives_the_polls_of_a_reset_their_time_again() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.result()
    ring.pass_unheard(3600)
    ring.restart()
    ring.wait(1)
    ring.poll_all()
    assert ring.emitted()[-1] == ("action_finished", "done: verified by a poll of every member")


def test_a_result_lost_by_a_crash_costs_one_attempt_and_isolates_nobody() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.restart()
    ring.result(ActionState.INTERRUPTED, "no result")
    assert ring.emitted()[-1] == (
        "action_finished",
        "interrupted: no result; once more after the cool-down",
    )
    assert ring.open_on("npu0") == [BROKEN]


def test_another_mode_withdraws_what_was_proposed_under_the_last() -> None:
    on, dry, ask = _with("on"), _with("dry", ResetMode.DRY_RUN), _with("ask", ResetMode.ASK)
    for other in (dry, ask):
        ring = _under(on, other)
        ring.fault()
        ring.wait(1)
        ring.do(CatalogChanged(digest=other.digest))
        mode = other.settings.reset.mode
        assert ring.emitted()[-1] == ("action_finished", f"refused: the mode of resets is {mode} now")
        ring.wait(1)
        ring.fault()
        assert ring.emitted()[-1] == ("action_proposed", "reset of npu0, npu1 for RestartNPU")


def test_what_was_done_on_paper_may_be_asked_for_once_resets_are_done() -> None:
    ring = _under(_with("dry", ResetMode.DRY_RUN), _with("on"))
    ring.propose_and_start()
    ring.do(CatalogChanged(digest="on"))
    ring.wait(1)
    ring.fault()
    assert ring.emitted()[-1] == ("action_proposed", "reset of npu0, npu1 for RestartNPU")


def test_tables_by_which_a_fault_wants_no_reset_withdraw_it() -> None:
    ring = _under(_with("hard", CODE=Level.RESTART_NPU), _with("mild", CODE=Level.SUB_HEALTH))
    ring.fault("CODE")
    ring.do(CatalogChanged(digest="mild"))
    assert ring.emitted()[-1] == ("action_finished", "refused: the fault is gone")


def test_a_reload_in_the_very_moment_of_a_fault_proposes_nothing() -> None:
    ring = _under(_with("mild", CODE=Level.SUB_HEALTH), _with("hard", CODE=Level.RESTART_NPU))
    ring.wait(1)
    ring.fault("CODE")
    ring.do(CatalogChanged(digest="hard"))
    assert ring.emitted() == []


def test_a_chip_that_comes_back_to_its_group_is_held_and_asked_for_too() -> None:
    ring = Ring()
    ring.do(DeviceGone(source="ascend", device="npu1", reason="off the bus"))
    ring.fault()
    assert ring.emitted() == [("action_proposed", "reset of npu0 for RestartNPU")]
    ring.list_all()
    assert ring.emitted()[1:] == [
        ("action_finished", "refused: other devices are reset together with it now"),
        ("action_proposed", "reset of npu0, npu1 for RestartNPU"),
    ]
    assert ring.verdicts() == ["ISOLATE", "ISOLATE"]


def test_an_isolation_that_is_lifted_lets_the_fault_ask_again() -> None:
    ring = Ring()
    ring.fault()
    ring.do(order("isolate", "npu1"))
    assert ring.emitted()[-1] == ("action_finished", "refused: npu1 is isolated by uid:1000: bench")
    ring.do(order("release", "npu1"))
    assert ring.emitted()[-1] == ("action_proposed", "reset of npu0, npu1 for RestartNPU")


def test_a_part_that_says_which_it_is_leaves_no_hold_behind() -> None:
    ring = Ring(chips=1)
    ring.do(replace(seen("npu9", "", "0000:09:00.0"), attributes={"pci": "0000:09:00.0", "group": ""}))
    ring.fault(device="npu9")
    assert ring.verdicts(["npu9"]) == ["ISOLATE"]
    ring.do(seen("npu9", "die9", "0000:09:00.0"))
    in_progress = [reset.id for reset in ring.engine.view().resets if reset.stage is not ResetStage.ENDED]
    assert [hold.id.partition("!")[2] for hold in ring.engine.view().holds] == in_progress


def test_a_reset_counts_from_when_it_was_over() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.wait(500)
    ring.help()
    for _ in range(2):
        ring.propose_and_start()
        ring.help()
    ring.wait(6 * 3600 - 200)
    ring.fault()
    assert ring.open_on("npu0") == [BROKEN, "reset_limit_reached"]


def test_a_part_that_comes_back_still_had_its_resets() -> None:
    ring = Ring(chips=1)
    for _ in range(3):
        ring.propose_and_start()
        ring.help()
        ring.wait(300)
    for identity in ("die7", "die0"):
        ring.do(seen("npu0", identity, "0000:00:00.0"))
    ring.nobody_holds()
    ring.poll_all()
    ring.fault()
    assert ring.open_on("npu0") == [BROKEN, "reset_limit_reached"]


def test_a_fault_that_came_again_before_the_polls_may_ask_again() -> None:
    ring = Ring(_with("xid"))
    ring.do(signal(XID, "once"))
    ring.wait(20)
    ring.poll_all()
    ring.wait(10.001)
    ring.result()
    ring.wait(1)
    ring.do(signal(XID, "once"))
    ring.wait(1)
    ring.poll_all()
    assert ring.emitted()[-2:] == [
        ("action_finished", "done: verified by a poll of every member"),
        ("action_proposed", f"reset of npu0, npu1 for {XID}"),
    ]


def test_what_waits_for_a_holder_and_a_cool_down_is_refused_in_time_all_the_same() -> None:
    ring = Ring()
    ring.do(seen("npu9", "die9", "0000:09:00.0"))
    ring.do(held("npu9", "slurm:9"))
    ring.fault(device="npu9")
    ring.propose_and_start()
    ring.poll(BROKEN, device="npu9")
    ring.help()
    ring.poll(BROKEN, device="npu9")
    ring.wait(60)
    ring.wait(3600)
    assert ring.emitted()[-1] == (
        "action_finished",
        "refused: it could not be done in time; npu9 is used by python (pid 7, job slurm:9)",
    )
