"""A person's order to forget a part: only one that is taken out, and nothing of it stays."""

import pytest

from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Answer,
    Claims,
    DeviceGone,
    EventKind,
    Input,
    Operator,
    Refused,
    Started,
    Verdict,
)
from tests.core.build import (
    active,
    back,
    begin,
    catalog,
    device_view,
    emitted,
    ns,
    order,
    row,
    run,
    seen,
    signal,
)

HOLD = "UUID-1/hold:alice#1"
NO_HOLD = "uid:0 has no hold there: use --owner or --id to name one, or --force"
OUT = DeviceGone(source="ascend", device="npu1", reason="the driver no longer lists it")


def with_two(*steps: Input) -> Engine:
    engine = begin(catalog(row("F1"), row("device_lost")))
    run(engine, [(1, seen("npu1", "UUID-1", "0000:4b:00.0")), *((2, step) for step in steps)])
    return engine


def answer_to(engine: Engine, given: Operator) -> Answer:
    answer = engine.step(ns(3), given).answer
    assert answer is not None
    return answer


def names(engine: Engine) -> list[str]:
    return [device.name for device in engine.view().devices]


def forget(device: str = "npu1", **words: object) -> Operator:
    return order("forget", device, who="uid:0", reason="sent back", **words)


def test_a_part_that_was_taken_out_is_forgotten_with_all_that_is_open_on_it() -> None:
    engine = with_two(signal("F1", device="npu1"), order("isolate", "npu1", who="uid:0"), OUT)

    events = run(engine, [(3, forget())])

    assert emitted(events) == [("cleared", "npu1", "F1"), ("released", "npu1", ""), ("notice", "node", "")]
    assert events[-1].why == "npu1 is forgotten by uid:0: sent back"
    assert events[-1].evidence == {"was": "UUID-1"}
    assert names(engine) == ["node", "npu0"]
    assert (engine.view().conditions, engine.view().holds) == ((), ())


def test_a_part_that_only_a_line_of_the_kernel_has_named_is_forgotten() -> None:
    engine = with_two(signal("F1", device="npu7"))

    run(engine, [(3, forget("npu7"))])

    assert names(engine) == ["node", "npu0", "npu1"]


def test_a_part_that_comes_back_is_new() -> None:
    engine = with_two(OUT, forget())

    (came,) = run(engine, [(4, seen("npu1", "UUID-1", "0000:4b:00.0"))])

    assert (came.kind, came.device_id) == (EventKind.DEVICE_SEEN, "UUID-1")


def test_no_reboot_forgets_a_part() -> None:
    engine = with_two(OUT)

    run(engine, [(3, Started(boot_id="boot-2", version="test")), (4, active("npu0", begun_s=4)), (4, back())])

    assert device_view(engine, "npu1").verdict is Verdict.UNKNOWN
    assert device_view(engine, "npu1").reasons[0].text == "the driver no longer lists it"


@pytest.mark.parametrize(
    ("before", "device", "why"),
    [
        ((), "npu1", "the driver ascend lists npu1; take the device out first"),
        ((), "node", "the node itself cannot be forgotten"),
        (
            (OUT, signal("device_lost", device="npu1", source="agent")),
            "npu1",
            "npu1 is still in its slot, as the fault device_lost shows; take the device out first",
        ),
        (
            (Claims(device="npu1", job="slurm:7", kind="training", claimed=True), OUT),
            "npu1",
            "npu1 is claimed by slurm:7; release the claim, or use --force",
        ),
        (
            (order("isolate", "npu1", who="uid:0", owner="alice", reason="fan"), OUT),
            "npu1",
            f"npu1 is isolated by alice (fan), id {HOLD}; {NO_HOLD}",
        ),
    ],
    ids=["listed", "node", "in its slot", "claimed", "held by another"],
)
def test_why_one_is_not_forgotten(before: tuple[Input, ...], device: str, why: str) -> None:
    engine = with_two(*before)

    answer = answer_to(engine, forget(device))

    assert (answer.refused, answer.reason) == (Refused.NOT_POSSIBLE, why)
    assert names(engine) == ["node", "npu0", "npu1"]


def test_force_ends_what_others_hold_and_claim_but_forgets_nothing_that_is_there() -> None:
    held = order("isolate", "npu1", who="uid:0", owner="alice")
    claimed = Claims(device="npu1", job="slurm:7", kind="training", claimed=True)
    engine = with_two(held, claimed)

    there = answer_to(engine, forget(force=True))
    run(engine, [(3, OUT), (4, forget(force=True))])

    assert there.refused is Refused.NOT_POSSIBLE
    assert names(engine) == ["node", "npu0"]


def test_a_device_that_nobody_knows_is_not_found() -> None:
    assert answer_to(with_two(), forget("npu9")).refused is Refused.UNKNOWN
