"""Where the driver says which recovery a GPU needs, that decides: what asks for none blames no GPU."""

from collections.abc import Sequence

import pytest

from nodeagent.core.model import Handling, Verdict
from nodeagent.emulator.gpus import recovery_line, xid_line
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

RESTARTED = (39, 60, 65, 68, 70, 82, 92, 94, 96, 126, 139, 170)
"""Xids below a reset that no program need be at fault for, some of each kind."""

HOUR_S = 3600
DAMAGES = "Contained: LTC TAG (0x2, 0x1)."


def rst(reset: bool, drain: bool) -> str:
    """How lines of Xid 94 and 95 end: _gpuGenerateErrorLog in kern_gpu_error_cont_ga100.c."""
    words = {True: "Yes", False: "No"}
    return f"RST: {words[reset]}, D-RST: {words[drain]}"


def leaves_service(judge: Judge) -> bool:
    """Whether any device ever took no new jobs."""
    return not {event.verdict for event in judge.events} <= {Verdict.ALLOW, Verdict.UNKNOWN}


async def five_in_an_hour(bench: GpuNode, judge: Judge, xids: Sequence[int], device: str = "gpu0") -> None:
    """By NVML and by the kernel's line, each of a process that is gone when it is looked for."""
    async with judged(bench.spec(), judge) as stage:
        await stage.back()
        for turn in range(5):
            for xid in xids:
                stage.inputs.clear()
                bench.gpus.raise_xid(device, xid)
                await stage.signal(f"XID_{xid}", device, "once")
                line = xid_line(bench.gpus.pci(device), xid, process_id=4000 + turn, process_name="python3")
                judge.kernel_line(line)
            await stage.polled(device, times=2)
            judge.skip(HOUR_S / 5)


async def test_xids_that_ask_for_no_recovery_never_take_a_gpu_out_of_service(
    h100: GpuNode, judge: Judge
) -> None:
    await five_in_an_hour(h100, judge, RESTARTED)
    assert not leaves_service(judge)
    assert judge.emitted("promoted") == []


async def test_the_job_is_told_to_restart_and_nobody_is_blamed(h100: GpuNode, judge: Judge) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 159)
        await stage.signal("XID_159", "gpu1", "once")
        view = judge.view("gpu1")
        assert (view.verdict, view.handling) == (Verdict.ALLOW, Handling.RESTART_JOB)
        assert "needs no recovery" in view.reasons[0].text
        (condition,) = judge.engine.view().conditions
        assert not condition.grade.user_induced


async def test_the_same_xid_with_an_action_that_asks_for_a_reset_isolates_at_once(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 39, recovery_action=1)
        await stage.signal("XID_39", "gpu1", "once")
        await stage.polled("gpu1", times=3)
        assert judge.open("gpu1") == {"XID_39": "RestartBusiness", "XID_154.1": "RestartNPU"}
        assert judge.view("gpu1").verdict is Verdict.ISOLATE


async def test_where_the_driver_tells_no_action_the_level_decides(h100: GpuNode, judge: Judge) -> None:
    h100.gpus.driver.make_older("520")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu1", 159)
        await stage.signal("XID_159", "gpu1", "once")
        assert judge.view("gpu1").verdict is Verdict.ISOLATE


@pytest.mark.parametrize("xid", [94, 95])
@pytest.mark.parametrize("line_first", [True, False], ids=["line first", "event first"])
@pytest.mark.parametrize(
    ("reset", "drain", "code", "verdict", "handling"),
    [
        (True, False, "reset", Verdict.ISOLATE, Handling.RESCHEDULE),
        (False, True, "drain", Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE),
        (False, False, "restart", Verdict.ALLOW, Handling.RESTART_JOB),
    ],
)
@pytest.mark.parametrize("branch", ["", "520"], ids=["tells its action", "tells none"])
async def test_a_contained_or_uncontained_error_is_as_grave_as_its_line_says(
    h100: GpuNode,
    judge: Judge,
    xid: int,
    line_first: bool,
    reset: bool,
    drain: bool,
    code: str,
    verdict: Verdict,
    handling: Handling,
    branch: str,
) -> None:
    if branch:
        h100.gpus.driver.make_older(branch)
    line = xid_line(h100.gpus.pci("gpu0"), xid, f"{DAMAGES} {rst(reset, drain)}", process_id=7062)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        if line_first:
            judge.kernel_line(line)
        h100.gpus.raise_xid("gpu0", xid)
        await stage.signal(f"XID_{xid}", "gpu0", "once")
        if not line_first:
            judge.kernel_line(line)
        await stage.polled("gpu0", times=2)
        view = judge.view("gpu0")
        assert (view.verdict, view.handling) == (verdict, handling)
        assert f"XID_{xid}.{code}" in judge.open("gpu0")


async def test_a_drain_of_peer_traffic_is_told_and_takes_nothing_out_of_service(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        for _ in range(5):
            h100.gpus.set_recovery_action("gpu0", 3)
            judge.kernel_line(recovery_line(h100.gpus.pci("gpu0"), 0, 3))
            await stage.polled("gpu0", times=2)
            assert judge.open("gpu0") == {"XID_154.3": "SubHealthFault"}
            h100.gpus.set_recovery_action("gpu0", 0)
            await stage.polled("gpu0", times=3)
            assert judge.open("gpu0") == {}
            judge.skip(600)
        assert judge.emitted("promoted") == []
        assert not leaves_service(judge)


async def test_rows_that_wait_for_a_reset_let_work_go_on_and_take_no_new_jobs(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.raise_xid("gpu0", 63)
        h100.gpus.remap("gpu0", uncorrected=1, pending=True)
        h100.gpus.set_recovery_action("gpu1", 4)
        await stage.signal("XID_63", "gpu0", "once")
        await stage.polled("gpu1", times=3)
        for device in ("gpu0", "gpu1"):
            view = judge.view(device)
            assert (view.verdict, view.handling) == (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE)


async def test_a_row_that_could_not_be_replaced_asks_for_a_reset_and_bars_none(
    h100: GpuNode, judge: Judge
) -> None:
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        h100.gpus.fail_remap("gpu0")
        h100.gpus.raise_xid("gpu0", 64)
        await stage.signal("XID_64", "gpu0", "once")
        await stage.polled("gpu0", times=6)
        assert judge.open("gpu0") == {"XID_64": "RestartNPU"}
        assert judge.view("gpu0").verdict is Verdict.ISOLATE
