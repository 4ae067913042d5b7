"""What a person sees of a reset before it is ordered, and why one that is ordered begins nothing."""

import pytest

from nodeagent.core.machines.reset_refusal import DryRun, Used
from nodeagent.core.model import Claims, Level, ResetMode, ResetStage
from tests.core.build import held, order
from tests.core.resets.ring import BROKEN, Ring, ring_catalog

OFF = (
    'resets of ascend chips are switched off: reset.mode is "off"; to have this one done: '
    'nodeagent reset npu1 --once --reason "..."; '
    'to have each of them done: reset.mode = "ask" or "on", and a reload'
)


def dry_run(ring: Ring, device: str = "npu1", once: bool = False) -> DryRun:
    found = ring.engine.dry_run_reset(device, once)
    assert found is not None
    return found


def test_it_names_the_group_who_is_in_the_way_and_the_limits() -> None:
    ring = Ring()
    ring.do(held("npu0", "slurm:7.0"))
    ring.do(Claims(device="npu1", job="slurm:7", kind="training", claimed=True))
    found = dry_run(ring)
    assert (found.devices, found.mode, found.refused) == (("npu1", "npu0"), ResetMode.ON, "")
    assert found.blocked_by == (
        "npu1 is claimed by the training slurm:7",
        "npu0 is used by python (pid 7, job slurm:7.0)",
    )
    assert found.used == (
        Used(device="npu1", resets=0, limit=3),
        Used(device="npu0", resets=0, limit=3),
        Used(device="node", resets=0, limit=12),
    )


def test_it_says_step_by_step_what_would_happen_and_changes_nothing() -> None:
    ring = Ring()
    before = ring.engine.view()
    found = dry_run(ring)
    assert [(step.after_ns, step.what) for step in found.steps] == [
        (0, "it is proposed; every device above takes no new work"),
        (30_000_000_000, "once nothing blocks it, it starts, and counts towards the limits"),
        (30_000_000_000, "the driver resets all 2 together"),
        (None, "polls must show every device healthy within 150 s"),
        (None, "the devices take work again"),
    ]
    assert ring.engine.view() == before


@pytest.mark.parametrize("mode", [ResetMode.OFF, ResetMode.DRY_RUN])
def test_of_one_that_is_done_by_order_alone_it_says_all_that_it_says_of_others(mode: ResetMode) -> None:
    ring = Ring(ring_catalog(mode))
    found = dry_run(ring, once=True)
    assert (found.mode, found.once, found.refused) == (ResetMode.ON, True, "")
    assert found.steps == dry_run(Ring()).steps
    refused = dry_run(ring)
    assert (refused.once, refused.setting, refused.steps) == (False, "reset.mode", ())


def test_what_a_reset_used_up_is_counted_and_its_cool_down_named() -> None:
    ring = Ring()
    ring.propose_and_start()
    ring.help()
    found = dry_run(ring)
    assert [each.resets for each in found.used] == [1, 1, 1]
    assert found.blocked_by == ("the last reset ended less than 30 s ago",)


def test_no_such_device_has_no_dry_run() -> None:
    assert Ring().engine.dry_run_reset("npu9") is None


def _isolated() -> Ring:
    ring = Ring()
    ring.do(order("isolate", "npu0"))
    return ring


def _broken() -> Ring:
    ring = Ring()
    ring.fault(Level.SEPARATE_NPU.value)
    return ring


def _proposed() -> Ring:
    ring = Ring()
    ring.fault()
    return ring


def _spent() -> Ring:
    ring = Ring(ring_catalog(limit=1))
    ring.propose_and_start()
    ring.help()
    return ring


@pytest.mark.parametrize(
    ("ring", "device", "why"),
    [
        (Ring(), "node", "node is not a chip: only NPUs and GPUs are reset"),
        (
            Ring(ring_catalog(ResetMode.OFF)),
            "npu1",
            OFF,
        ),
        (_isolated(), "npu1", "npu0 is isolated by uid:1000: bench; clear that and release it first"),
        (_broken(), "npu1", "npu0 is at SeparateNPU by SeparateNPU; clear that and release it first"),
        (_proposed(), "npu1", "die0/reset#1 of npu0, npu1 is in progress already (announced)"),
        (_spent(), "npu1", "npu1 had 1 resets within 6 h"),
    ],
    ids=["no chip", "off", "isolated", "separated", "another", "limit"],
)
def test_an_order_that_would_begin_nothing_says_why_and_begins_nothing(
    ring: Ring, device: str, why: str
) -> None:
    found = dry_run(ring, device)
    assert (found.refused, found.steps) == (why, ())
    assert ring.do(order("reset", device)) == []


def test_who_orders_a_reset_has_approved_it() -> None:
    ring = Ring(ring_catalog(ResetMode.ASK))
    ring.do(order("reset", "npu1"))
    ring.wait(20)
    ring.poll_all()
    ring.wait(11)
    assert ring.stages() == [ResetStage.RUNNING]


def test_how_a_reset_ended_is_kept_with_it() -> None:
    ring = Ring()
    ring.fault()
    ring.do(order("refuse", "die0/reset#1"))
    (reset,) = ring.engine.view().resets
    assert (reset.stage, reset.result) == (ResetStage.ENDED, "refused: refused by uid:1000: bench")
    assert ring.open_on("npu0") == [BROKEN]


def test_what_a_job_claimed_before_a_reboot_is_in_nobodys_way_and_hooks_are_still_known() -> None:
    ring = Ring()
    ring.do(Claims(device="npu1", job="slurm:7", kind="", claimed=True))
    ring.start("boot-2")
    for name in ring.names:
        ring.do(held(name, None))
    assert dry_run(ring).blocked_by == ()
