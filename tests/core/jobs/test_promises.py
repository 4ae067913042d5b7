"""A job stops only for a reset that will begin, and waits for it only while that is so."""

from dataclasses import replace

import pytest

from nodeagent.core.model import (
    CatalogChanged,
    Holder,
    JobPolicy,
    JobStage,
    ProcessesListed,
    ResetMode,
    Wanted,
)
from tests.core.build import held, order
from tests.core.jobs.place import BOTH, IN_PLACE, JOB, OTHER, YIELDS, Place, job_catalog
from tests.core.resets.ring import BROKEN

BARE = "pid:70"
"""A job of which no cgroup distinguishes the processes."""

FOREIGN = Holder(pid=99, start_time=1, command="tool")


def alone(policy: JobPolicy = IN_PLACE, chips: int = 2, used: int = 2) -> Place:
    """A job on the first chips of its group, which the daemon knows by its supervisor; no hook claims."""
    place = Place(chips=chips, hook=False)
    place.run(policy, BARE, *place.names[:used])
    for name in place.names[:used]:
        place.do(held(name, ""))
    place.own(BARE)
    return place


def on(chip: str, *holders: Holder) -> ProcessesListed:
    return ProcessesListed(device=chip, holders=holders)


# ---------------------------------------------------------------------- what proves that a chip is free


def test_where_supervised_jobs_use_all_of_the_group_no_hook_is_needed() -> None:
    place = alone()
    place.fault()
    assert place.stage(BARE) is JobStage.ASKED
    place.stop(BARE, *place.names)
    assert [action.devices for action in place.actions] == [("die0", "die1")]
    place.help()
    assert place.stage(BARE) is JobStage.RUNNING


def test_a_chip_that_no_process_has_used_is_free_where_the_lists_of_its_group_have_shown_jobs() -> None:
    place = alone(chips=4, used=2)
    place.fault()
    place.stop(BARE, *place.names[:2])
    assert len(place.actions) == 1


def test_a_chip_that_others_were_the_last_to_use_is_not_known_to_be_free() -> None:
    place = alone(chips=3, used=2)
    place.do(on("npu2", FOREIGN))
    place.do(on("npu2"))
    place.fault()
    assert place.stage(BARE) is JobStage.RUNNING
    place.claim("npu2", "none", claimed=False)
    assert place.stage(BARE) is JobStage.ASKED


def test_lists_that_have_shown_no_job_prove_nothing() -> None:
    place = Place(hook=False)
    place.begin(IN_PLACE, BARE, "npu0")
    place.fault()
    assert place.stage(BARE) is JobStage.RUNNING


def test_that_its_supervisor_has_left_is_as_good_as_a_release() -> None:
    place = alone()
    place.fault()
    place.leave(BARE)
    for name in place.names:
        place.do(held(name, None))
    place.wait(30.001)
    assert len(place.actions) == 1


def test_what_was_known_of_processes_outlives_a_restart() -> None:
    place = alone()
    place.restart()
    for name in place.names:
        place.do(held(name, ""))
    place.fault()
    assert place.stage(BARE) is JobStage.ASKED


# ---------------------------------------------------------------------- what keeps it from being asked


@pytest.mark.parametrize("chip", ["npu0", "npu1", "npu2"])
def test_beside_a_process_that_is_no_jobs_it_is_not_asked_until_that_has_gone(chip: str) -> None:
    place = alone(chips=3, used=2)
    before = () if chip == "npu2" else (Holder(pid=7, start_time=1, command="python"),)
    place.do(on(chip, *before, FOREIGN))
    place.fault()
    place.wait(31)
    assert place.stage(BARE) is JobStage.RUNNING
    assert place.hindered()[0] == f"{chip} is used by tool (pid 99)"
    place.claim("npu2", "none", claimed=False)
    place.do(on(chip, *before))
    assert place.stage(BARE) is JobStage.ASKED


def test_while_the_node_is_quiesced_it_is_not_asked() -> None:
    place = alone()
    place.do(order("quiesce", "node"))
    place.fault()
    assert place.stage(BARE) is JobStage.RUNNING
    place.do(order("resume", "node"))
    assert place.stage(BARE) is JobStage.ASKED


def test_one_that_may_be_run_elsewhere_leaves_if_its_reset_cannot_begin_for_a_minute() -> None:
    place = alone(BOTH, chips=3)
    place.do(on("npu2", FOREIGN))
    place.fault()
    place.wait(59)
    assert place.job(BARE).wanted is Wanted.RUN
    place.wait(1.001)
    assert (place.job(BARE).wanted, place.job(BARE).isolated) == (Wanted.LEAVE, True)
    assert place.job(BARE).why == (
        "npu0: RestartNPU at RestartNPU; its reset does not begin: npu2 is used by tool (pid 99)"
    )


# ---------------------------------------------------------------------- what was promised does not come


def test_if_others_take_a_chip_meanwhile_it_leaves_with_the_reason() -> None:
    place = alone(chips=3, used=2)
    place.fault()
    place.do(on("npu2", FOREIGN))
    place.stop(BARE, "npu0", "npu1")
    assert place.stage(BARE) is JobStage.HOLDING
    place.wait(5)
    assert (place.job(BARE).wanted, place.job(BARE).isolated) == (Wanted.LEAVE, True)
    assert place.job_events()[-1] == (
        "job_asked",
        "npu0: RestartNPU at RestartNPU; its reset does not begin: npu2 is used by tool (pid 99)",
    )


def test_a_process_that_is_just_ending_does_not_send_it_away() -> None:
    place = Place(chips=3)
    place.run(IN_PLACE, JOB, "npu0")
    place.fault()
    place.do(on("npu2", FOREIGN))
    place.stop()
    place.wait(4)
    place.do(on("npu2"))
    assert len(place.actions) == 1
    place.help()
    assert place.stage() is JobStage.RUNNING


def test_a_neighbour_that_has_made_way_in_vain_runs_again() -> None:
    place = Place(chips=3)
    place.run(IN_PLACE, JOB, "npu0")
    place.run(YIELDS, OTHER, "npu1")
    place.fault()
    place.stop(JOB, "npu0")
    assert place.stage(OTHER) is JobStage.ASKED
    place.do(on("npu2", FOREIGN))
    place.stop(OTHER, "npu1")
    place.wait(5)
    assert [place.job(name).wanted for name in (JOB, OTHER)] == [Wanted.LEAVE, Wanted.RUN]
    assert place.job(OTHER).why == "its reset does not begin: npu2 is used by tool (pid 99)"


def test_a_neighbour_that_was_released_makes_way_once_that_has_gone() -> None:
    place = Place(chips=3)
    place.run(IN_PLACE, JOB, "npu0")
    place.run(YIELDS, OTHER, "npu1")
    place.fault()
    place.stop(JOB, "npu0")
    place.do(on("npu2", FOREIGN))
    place.stop(OTHER, "npu1")
    place.wait(5)
    place.leave(JOB, 86)
    place.do(on("npu2"))
    assert place.stage(OTHER) is JobStage.ASKED


def test_one_that_has_not_begun_waits_on_beside_a_reset_that_is_blocked() -> None:
    place = Place(chips=3)
    place.do(on("npu2", FOREIGN))
    place.fault()
    place.begin(IN_PLACE, JOB, "npu1")
    place.wait(60)
    assert place.stage() is JobStage.HOLDING


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (ResetMode.OFF, 'reset.mode is "off"'),
        (ResetMode.DRY_RUN, 'reset.mode is "dry-run", so that they are only reported'),
    ],
)
@pytest.mark.parametrize("stopped", [False, True])
def test_if_resets_are_switched_off_meanwhile_it_leaves_at_once(
    mode: ResetMode, reason: str, stopped: bool
) -> None:
    later = replace(job_catalog(mode), digest="later")
    place = Place(chips=3, later=later)
    place.run(IN_PLACE, JOB, "npu0")
    place.fault()
    place.do(on("npu2", FOREIGN))
    if stopped:
        place.stop()
    place.do(CatalogChanged(digest="later"))
    assert (place.job().wanted, place.job().isolated) == (Wanted.LEAVE, True)
    why = f"npu0: {BROKEN} at RestartNPU; resets of ascend chips are switched off: {reason}"
    assert place.job().why == why
