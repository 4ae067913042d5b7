"""Orders of a person where resets are switched off: each names the way out, and no dry run is in the way."""

from dataclasses import replace

import pytest

from nodeagent.core.model import (
    ActionState,
    Answer,
    CatalogChanged,
    Claims,
    EventKind,
    Operator,
    Refused,
    ResetMode,
    ResetStage,
)
from tests.core.build import device_view, held, order, seen
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

OFF_MODES = (ResetMode.OFF, ResetMode.DRY_RUN)
ONCE = order("reset", "npu1", once=True)


def off(mode: ResetMode = ResetMode.DRY_RUN, device: str = "npu1", key: str = "reset.mode") -> str:
    means = ", so that they are only reported" if mode is ResetMode.DRY_RUN else ""
    this = f'to have this one done: nodeagent reset {device} --once --reason "..."'
    each = f'to have each of them done: {key} = "ask" or "on", and a reload'
    return f'resets of ascend chips are switched off: {key} is "{mode}"{means}; {this}; {each}'


def node(mode: ResetMode = ResetMode.DRY_RUN, **words: object) -> Ring:
    return Ring(ring_catalog(mode, **words))


def ask(ring: Ring, given: Operator) -> Answer:
    ring.do(given)
    assert ring.answer is not None
    return ring.answer


def waiting_dry_run() -> Ring:
    """A fault has proposed one on paper, which waits for a job to leave."""
    ring = node()
    ring.do(Claims(device="npu0", job="slurm:7", kind="", claimed=True))
    ring.propose_and_start()
    assert ring.stages() == [ResetStage.WAITING]
    return ring


def reset_here(ring: Ring) -> None:
    """The job leaves, polls confirm the fault, and it is done."""
    ring.do(Claims(device="npu0", job="slurm:7", kind="", claimed=False))
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.wait(10.001)


# ---------------------------------------------------------------------- what each order says


@pytest.mark.parametrize("mode", OFF_MODES)
@pytest.mark.parametrize("key", ["reset.mode", "reset.modes.ascend"])
def test_an_order_to_reset_says_which_key_switches_resets_off(mode: ResetMode, key: str) -> None:
    ring = node(mode) if key == "reset.mode" else node(ResetMode.ON, modes={"ascend": mode})
    said = Answer(refused=Refused.NOT_POSSIBLE, reason=off(mode, key=key), setting=key)
    assert ask(ring, order("reset", "npu1")) == said
    assert ring.stages() == []


def test_a_dry_run_that_waits_is_no_reset_in_progress() -> None:
    ring = waiting_dry_run()
    assert ask(ring, order("reset", "npu1")).reason == off()


def test_to_approve_a_dry_run_is_answered_with_the_way_out() -> None:
    ring = waiting_dry_run()
    why = "needs no approval: its mode is dry-run, and only mode ask waits for one"
    assert (
        ask(ring, order("approve", "npu1")).reason == f"action_id: die0/reset#1 {why}; {off(device='npu0')}"
    )


@pytest.mark.parametrize("mode", OFF_MODES)
def test_to_approve_what_is_not_there_is_answered_with_the_way_out(mode: ResetMode) -> None:
    answer = ask(node(mode), order("approve", "npu1"))
    said = f"action_id: no reset is pending on 'npu1'; pending: none; {off(mode)}"
    assert (answer.refused, answer.reason, answer.setting) == (Refused.UNKNOWN, said, "reset.mode")


@pytest.mark.parametrize("mode", OFF_MODES)
def test_to_release_what_only_a_reset_ends_is_answered_with_the_way_out(mode: ResetMode) -> None:
    ring = node(mode)
    ring.fault()
    faulty = "npu0 is still faulty: RestartNPU at RestartNPU; clear it first, or use --force"
    by_reset = f"; a reset ends RestartNPU, but {off(mode, 'npu0')}"
    assert ask(ring, order("release", only_if_well=True)).reason == faulty + by_reset
    assert ask(ring, order("release")).reason == f"there is nothing to release on npu0{by_reset}"


def test_where_resets_are_done_nobody_is_told_a_way_out() -> None:
    ring = Ring()
    ring.fault()
    assert "--once" not in ask(ring, order("release", only_if_well=True)).reason
    assert "--once" not in ask(ring, order("approve", "npu1")).reason


def test_what_waits_for_an_approval_says_how_it_is_given() -> None:
    ring = node(ResetMode.ASK)
    ring.fault()
    there = "die0/reset#1 of npu0, npu1 is in progress already (announced)"
    assert ask(ring, order("reset", "npu1")).reason == f"{there}; to have it done: nodeagent approve npu1"
    ring.do(order("approve", "npu1"))
    assert ask(ring, order("reset", "npu1")).reason == there


@pytest.mark.parametrize("mode", OFF_MODES)
def test_the_way_out_is_one_that_is_open(mode: ResetMode) -> None:
    """What would refuse the order also with --once is said at once."""
    ring = node(mode)
    ring.do(order("isolate", "npu0"))
    first = "but not yet: npu0 is isolated by uid:1000: bench; clear that and release it first"
    assert ask(ring, order("reset", "npu1")).reason == f"{off(mode)}; {first}"


@pytest.mark.parametrize("mode", OFF_MODES)
def test_what_is_done_once_is_in_progress_for_every_order(mode: ResetMode) -> None:
    ring = node(mode)
    ring.do(ONCE)
    there = "die1/reset#1 of npu1, npu0 is in progress already (announced)"
    assert ask(ring, order("reset", "npu0")).reason == there
    approved = "action_id: die1/reset#1 needs no approval: its mode is on, and only mode ask waits for one"
    assert ask(ring, order("approve", "npu1")).reason == approved


@pytest.mark.parametrize("mode", ResetMode)
@pytest.mark.parametrize("once", [False, True])
def test_a_chip_that_no_driver_lists_is_reset_by_nobody(mode: ResetMode, once: bool) -> None:
    """The kernel log alone names it: no vendor's way to reset it is known."""
    ring = node(mode)
    ring.fault(device="0000:3b:00.0")
    why = "no driver lists 0000:3b:00.0, so nothing here can reset it"
    assert ask(ring, order("reset", "0000:3b:00.0", once=once)).reason == why
    faulty = "0000:3b:00.0 is still faulty: RestartNPU at RestartNPU, and is not observed"
    said = ask(ring, order("release", "0000:3b:00.0", only_if_well=True)).reason
    assert said == f"{faulty}; clear it first, or use --force"


@pytest.mark.parametrize("mode", OFF_MODES)
def test_no_way_out_is_named_of_a_chip_that_nothing_resets(mode: ResetMode) -> None:
    ring = node(mode)
    chip = seen("npu1", "die1", "0000:01:00.0")
    ring.do(
        replace(
            chip, attributes={**chip.attributes, "no_reset": "the driver of a virtual machine resets none"}
        )
    )
    why = "npu1 cannot be reset: the driver of a virtual machine resets none"
    assert ask(ring, order("reset", "npu1")).reason == why


# ---------------------------------------------------------------------- once


@pytest.mark.parametrize("mode", OFF_MODES)
def test_one_that_is_ordered_once_is_done_and_the_others_are_not(mode: ResetMode) -> None:
    ring = node(mode)
    ring.fault()
    ring.do(ONCE)
    reset_here(ring)
    (action,) = ring.actions
    assert action.devices == ("die1", "die0")
    ring.result(ActionState.DONE, "in-band")
    ring.poll_all()
    assert ring.emitted(EventKind.ACTION_FINISHED)[-1][1].startswith("done: verified")
    assert ring.open_on("npu0") == []
    ring.wait(600)
    ring.fault()
    ring.wait(600)
    assert len(ring.actions) == 1


def test_a_dry_run_makes_way_for_it_and_the_history_says_so() -> None:
    ring = waiting_dry_run()
    before = len(ring.emitted())
    assert ask(ring, ONCE).ids == ("die1/reset#1",)
    assert ring.stages() == [ResetStage.ANNOUNCED]
    assert ring.emitted()[before:] == [
        ("action_proposed", "reset of npu1, npu0 for uid:1000: bench"),
        ("action_finished", "refused: die1/reset#1 takes its place, ordered by uid:1000: bench"),
    ]


def test_once_it_did_not_come_about_the_dry_run_is_reported_again() -> None:
    ring = waiting_dry_run()
    ring.do(ONCE)
    ring.do(order("refuse", "die1/reset#1"))
    ring.wait(1)
    ring.fault()
    assert ring.emitted()[-1] == ("action_proposed", "reset of npu0, npu1 for RestartNPU")
    assert ring.actions == []


def test_the_group_is_held_for_it_as_for_any_other() -> None:
    ring = node()
    ring.do(ONCE)
    assert {hold.reason for hold in ring.engine.view().holds} == {"reset pending: npu1, npu0"}
    assert device_view(ring.engine, "npu0").verdict == "ISOLATE"


@pytest.mark.parametrize("mode", OFF_MODES)
def test_whoever_is_on_the_group_keeps_it_waiting(mode: ResetMode) -> None:
    ring = node(mode)
    ring.do(Claims(device="npu0", job="slurm:7", kind="", claimed=True))
    ring.do(held("npu1", "slurm:8"))
    ring.do(ONCE)
    ring.wait(20)
    ring.poll_all(BROKEN)
    ring.wait(60)
    assert (ring.stages(), ring.actions) == ([ResetStage.WAITING], [])
    (reset,) = ring.engine.view().resets
    assert reset.hindered == (
        "npu1 is used by python (pid 7, job slurm:8)",
        "npu0 is claimed by the job slurm:7",
    )


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (order("isolate", "npu0"), "npu0 is isolated by uid:1000: bench; clear that and release it first"),
        (ONCE, "die1/reset#1 of npu1, npu0 is in progress already (announced)"),
    ],
)
def test_what_refuses_any_reset_refuses_this_one(before: Operator, why: str) -> None:
    ring = node()
    ring.do(before)
    assert ask(ring, ONCE) == Answer(refused=Refused.NOT_POSSIBLE, reason=why)


def test_the_limit_counts_for_it() -> None:
    ring = node(limit=1)
    ring.do(ONCE)
    reset_here(ring)
    ring.result(ActionState.DONE, "in-band")
    ring.poll_all()
    ring.wait(600)
    assert ask(ring, ONCE).reason == "npu1 had 1 resets within 6 h"


def test_what_forbids_resets_forbids_it() -> None:
    ring = node(ResetMode.OFF, forbidden="/etc/nodeagent/do-not-touch is there")
    forbidden = "resets are forbidden, also single ones by order: /etc/nodeagent/do-not-touch is there"
    said = f"{forbidden}; once that is over, reload the configuration"
    for given in (ONCE, order("reset", "npu1")):
        assert ask(ring, given) == Answer(refused=Refused.NOT_POSSIBLE, reason=said)


@pytest.mark.parametrize("mode", ResetMode)
def test_another_mode_leaves_it_alone(mode: ResetMode) -> None:
    ring = Ring(ring_catalog(ResetMode.DRY_RUN), later=replace(ring_catalog(mode), digest="later"))
    ring.do(ONCE)
    ring.do(CatalogChanged(digest="later"))
    ring.wait(1)
    assert ring.stages() == [ResetStage.ANNOUNCED]


def test_what_forbids_resets_calls_it_off() -> None:
    forbidden = ring_catalog(ResetMode.OFF, forbidden="a file is there")
    ring = Ring(ring_catalog(ResetMode.DRY_RUN), later=replace(forbidden, digest="later"))
    ring.do(ONCE)
    ring.do(CatalogChanged(digest="later"))
    assert ring.emitted()[-1] == ("action_finished", "refused: resets are forbidden: a file is there")


def test_where_resets_are_done_it_is_an_order_like_any_other() -> None:
    ring = node(ResetMode.ASK)
    ring.do(ONCE)
    (reset,) = ring.engine.view().resets
    assert (reset.mode, reset.once, reset.approved) == (ResetMode.ASK, False, True)


def test_a_part_may_be_forgotten_though_a_dry_run_waits_for_it() -> None:
    ring = waiting_dry_run()
    assert "reset" not in ask(ring, order("forget", "npu0")).reason
