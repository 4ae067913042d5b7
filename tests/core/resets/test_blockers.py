"""What stands in the way of a reset, is named, and lets it begin when it has gone."""

from dataclasses import replace
from typing import Any

import pytest

from nodeagent.core.model import Claims, DeviceGone, EventKind, Holder, Level, Operator, ProcessesListed
from tests.core.build import back, held, lost, ns, order, seen, signal
from tests.core.resets.ring import BROKEN, Ring, ring_catalog


def test_nothing_is_reset_that_no_poll_has_shown_since_it_was_proposed() -> None:
    ring = Ring()
    ring.fault()
    ring.wait(60)
    assert ring.emitted()[-1] == (
        "action_proposed",
        "it waits: no poll has shown the fault since it was proposed",
    )
    ring.poll(BROKEN)
    assert [stage.value for stage in ring.stages()] == ["running"]


def test_a_holder_is_named_and_when_it_leaves_the_reset_is_done() -> None:
    ring = Ring()
    ring.do(held("npu1", "slurm:7"))
    ring.propose_and_start()
    assert ring.emitted()[-1] == ("action_proposed", "it waits: npu1 is used by python (pid 7, job slurm:7)")
    assert ring.actions == []
    ring.do(held("npu1", None))
    assert len(ring.actions) == 1


def test_of_many_processes_some_are_named() -> None:
    ring = Ring()
    crowd = tuple(Holder(pid=pid, start_time=1, command="python", job="") for pid in range(1, 40))
    ring.do(ProcessesListed(device="npu1", holders=crowd))
    ring.propose_and_start()
    words = ring.emitted()[-1][1].split("; ")
    assert words[0] == "it waits: npu1 is used by python (pid 1)"
    assert words[15:] == ["npu1 is used by python (pid 16)", "23 more"]
    assert ring.actions == []


def test_a_process_whose_name_nobody_can_read_holds_a_chip_too() -> None:
    ring = Ring()
    ring.do(ProcessesListed(device="npu1", holders=(Holder(pid=7, start_time=0, command="", job=""),)))
    ring.propose_and_start()
    assert ring.emitted()[-1] == ("action_proposed", "it waits: npu1 is used by a process (pid 7)")
    assert ring.actions == []


def test_a_claim_is_named_and_when_it_leaves_the_reset_is_done() -> None:
    ring = Ring()
    ring.do(Claims(device="npu1", job="7.0", kind="training", claimed=True))
    ring.propose_and_start()
    assert ring.emitted()[-1] == ("action_proposed", "it waits: npu1 is claimed by the training 7.0")
    ring.do(Claims(device="npu1", job="7.0", kind="training", claimed=False))
    assert len(ring.actions) == 1


def test_where_nobody_knows_who_holds_a_chip_it_counts_as_held() -> None:
    ring = Ring(free=False)
    ring.propose_and_start()
    assert ring.emitted()[-1][1] == (
        "it waits: the users of npu0 are not known; the users of npu1 are not known"
    )


def test_where_no_hook_reports_an_empty_process_list_is_not_trusted() -> None:
    ring = Ring(free=False)
    ring.nobody_holds()
    ring.propose_and_start()
    assert ring.emitted()[-1][1] == (
        'it waits: no job hook has called "nodeagent claim" on this node, no supervised job was the last to '
        "use npu0, npu1, and an empty process list alone is not trusted (reset.trust_process_list = false); "
        "if no job runs there: nodeagent claim npu0 --job none --left"
    )


def test_a_process_list_may_be_trusted_where_no_hook_speaks() -> None:
    ring = Ring(ring_catalog(trust_process_list=True), free=False)
    for name in ring.names:
        ring.do(held(name, None))
    ring.propose_and_start()
    assert len(ring.actions) == 1


def test_what_could_not_be_done_in_time_is_refused() -> None:
    ring = Ring()
    ring.do(held("npu1", "slurm:7"))
    ring.propose_and_start()
    ring.wait(3600)
    assert ring.emitted()[-1][1] == (
        "refused: it could not be done in time; npu1 is used by python (pid 7, job slurm:7)"
    )
    assert ring.verdicts() == ["ISOLATE", "ALLOW"]
    ring.wait(3600)
    assert len(ring.emitted()) == 3


def test_a_group_with_an_isolated_member_is_not_touched() -> None:
    ring = Ring()
    ring.do(order("isolate", "npu1"))
    ring.propose_and_start()
    assert ring.emitted() == []
    ring.do(order("release", "npu1"))
    assert ring.emitted()[0][0] == "action_proposed"


def test_a_member_that_is_separated_meanwhile_ends_it() -> None:
    ring = Ring()
    ring.fault()
    ring.fault(Level.SEPARATE_NPU.value, "npu1")
    assert ring.emitted()[-1] == ("action_finished", "refused: npu1 is at SeparateNPU by SeparateNPU")


def test_quiesced_nothing_begins_until_it_is_resumed() -> None:
    ring = Ring()
    ring.do(order("quiesce", "node"))
    ring.propose_and_start()
    assert ring.emitted()[-1][1] == "it waits: quiesced by uid:1000: bench"
    ring.do(Operator(who="uid:1000", what="resume", device="node", reason="done"))
    assert len(ring.actions) == 1
    assert [kind for kind, _ in ring.emitted(EventKind.QUIESCED, EventKind.RESUMED)] == [
        "quiesced",
        "resumed",
    ]


def test_no_action_while_nothing_can_be_stored() -> None:
    ring = Ring()
    ring.do(signal("store_degraded", "occur", "node", source="agent"))
    ring.propose_and_start()
    assert ring.emitted()[-1][1] == "it waits: the store is not durable"
    ring.do(signal("store_degraded", "recover", "node", source="agent"))
    assert len(ring.actions) == 1


def test_a_chip_that_cannot_be_seen_is_not_reset() -> None:
    ring = Ring()
    ring.fault()
    ring.poll_all(BROKEN)
    ring.do(lost(device="npu0"))
    ring.wait(31)
    assert ring.emitted()[-1][1] == "it waits: npu0 is not observed: ascend: no answer"


REGISTERED: dict[str, Any] = {"terminate_registered": True}


def test_a_registered_job_on_the_faulty_chip_is_ended_where_that_is_allowed() -> None:
    ring = Ring(ring_catalog(**REGISTERED))
    for name in ring.names:
        ring.do(Claims(device=name, job="slurm:7", kind="training", claimed=True))
        ring.do(held(name, "slurm:7.0"))
    ring.propose_and_start()
    (action,) = ring.actions
    assert [(holder.pid, holder.job) for holder in action.holders] == [(7, "slurm:7.0")]


@pytest.mark.parametrize(
    ("claimed", "job", "code", "settings"),
    [
        ("npu0", "slurm:7.0", BROKEN, {}),
        ("npu0", "slurm:70.0", BROKEN, REGISTERED),
        ("npu0", "", BROKEN, REGISTERED),
        ("npu1", "slurm:7.0", BROKEN, REGISTERED),
        ("npu0", "slurm:7.0", Level.FREE_RESTART_NPU.value, REGISTERED),
    ],
    ids=["never", "another's", "nobody's", "not on the faulty chip", "the fault waits for a free chip"],
)
def test_no_other_process_is_ended(claimed: str, job: str, code: str, settings: dict[str, Any]) -> None:
    ring = Ring(ring_catalog(**settings))
    ring.do(Claims(device=claimed, job="slurm:7", kind="training", claimed=True))
    ring.do(held("npu1", job))
    ring.propose_and_start(code)
    assert ring.actions == []
    assert "npu1 is used by python (pid 7" in ring.emitted()[-1][1]


def test_a_chip_whose_processes_cannot_be_read_any_more_is_not_free() -> None:
    ring = Ring()
    ring.do(ProcessesListed(device="npu1", holders=(), known=False))
    ring.propose_and_start()
    assert ring.emitted()[-1] == ("action_proposed", "it waits: the users of npu1 are not known")
    ring.do(held("npu1", None))
    assert len(ring.actions) == 1


UNLISTED = (
    "it waits: npu1 is reset together with the others, and its driver no longer lists it: "
    "who uses it is unknown; power-cycle the node"
)


def test_one_that_sits_in_its_slot_and_is_not_listed_is_reset_with_the_others_and_keeps_them_from_it() -> (
    None
):
    ring = Ring()
    ring.do(DeviceGone(source="ascend", device="npu1", reason="PCI lists it, the library does not"))
    ring.do(signal("device_lost", "occur", "npu1", source="agent"))
    ring.propose_and_start()
    assert ring.emitted() == [
        ("action_proposed", f"reset of npu0, npu1 for {BROKEN}"),
        ("action_proposed", UNLISTED),
    ]
    assert ring.verdicts() == ["ISOLATE", "ISOLATE"]
    ring.list_all()
    ring.do(signal("device_lost", "recover", "npu1", source="agent"))
    ring.do(back(device="npu1"))
    ring.nobody_holds()
    ring.poll_all(BROKEN)
    assert [action.devices for action in ring.actions] == [("die0", "die1")]


def test_one_that_sits_there_no_more_is_reset_with_nobody() -> None:
    ring = Ring()
    ring.do(DeviceGone(source="ascend", device="npu1", reason="taken out"))
    ring.propose_and_start()
    assert [action.devices for action in ring.actions] == [("die0",)]


def test_a_chip_that_can_never_be_reset_is_never_proposed_and_a_person_sees_why() -> None:
    why = "it is a virtual GPU of this guest (vGPU), and only its host can reset it"
    ring = Ring()
    chip = seen("npu1", "die1", "0000:01:00.0")
    ring.do(replace(chip, attributes={**chip.attributes, "group": "ring0", "no_reset": why}))
    ring.propose_and_start()
    ring.wait(3600)
    assert (ring.emitted(), ring.actions) == ([], [])
    assert ring.verdicts() == ["ISOLATE", "ALLOW"]
    found = ring.engine.dry_run_reset("npu0")
    assert found is not None
    assert found.refused == f"npu1 cannot be reset: {why}"
    assert ring.engine.step(ns(ring.at_s), order("reset", "npu0")).records == ()
