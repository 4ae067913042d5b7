"""Story 5: what a program does to the GPUs of its job is not held against them; alone on a free GPU it is."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.client import AsyncClient, EventKind, Handling, Verdict
from nodeagent.emulator.gpus import xid_line
from nodeagent.messages.pb import fault_service_pb2 as pb
from tests.harness.procfs import process
from tests.harness.subscriber import without_gap
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon
from tests.waiting import WAIT_LIMIT_S

GPUS = [f"gpu{number}" for number in range(8)]
ROUNDS = 10
FIRST_PID = 7000

FAILURES = {
    "index assert": (43,),
    "access out of range": (13, 43),
    "killed job": (45,),
    "damaged video": (68, 82),
}
"""What programs do, and the Xids that the driver reports of it."""

SOON = """
kind = "chip"
vendor = "nvidia"

[codes.XID_31]
name = "GPU memory page fault"
level = "RestartBusiness"
user_induced = true
clear_on = ["job_end", "10m"]

[[frequency]]
id = "page-faults"
codes = ["XID_31"]
times = 2
time_window = "24h"
level = "PreSeparateNPU"
release_time_window = "24h"
burst = "0s"
correlation = "2s"
"""
"""A rule of the site's own, and a row: by the shipped row it counts for no rule here."""


async def held(daemon: GpuDaemon, *, by_somebody: bool, gpus: Sequence[str] = GPUS) -> None:
    """Wait until the daemon knows of each of these GPUs that it is held, or that it is free."""
    async with asyncio.timeout(WAIT_LIMIT_S), AsyncClient(daemon.socket) as client:
        while True:
            response = await client.call(pb.ListDevicesRequest(devices=gpus))
            known = [len(each.holders.holders) for each in response.devices if each.HasField("holders")]
            if known == [int(by_somebody)] * len(gpus):
                return
            await asyncio.sleep(0.05)


async def test_story_05_what_one_job_does_on_all_its_gpus_isolates_none_and_counts_for_none(
    launch_gpus: LaunchGpus, follow: Follow, tmp_path: Path
) -> None:
    procfs = tmp_path / "proc"
    daemon = launch_gpus("8xH100", procfs=procfs)
    daemon.configure()
    (daemon.tables / "soon.toml").write_text(SOON)
    subscriber = await follow(daemon)
    for _ in range(ROUNDS):
        heard = len(subscriber.received)
        for number, gpu in enumerate(GPUS):
            process(procfs, FIRST_PID + number)
            daemon.node.hold(gpu, FIRST_PID + number)
        await held(daemon, by_somebody=True)
        for gpu in GPUS:
            daemon.gpus.raise_xid(gpu, 31)
        for gpu in GPUS:
            await subscriber.event(EventKind.RAISED, "XID_31", gpu, after=heard)
            daemon.node.let_go(gpu)
        for gpu in GPUS:
            await subscriber.event(EventKind.CLEARED, "XID_31", gpu, after=heard)
        await held(daemon, by_somebody=False)

    raised = subscriber.of(EventKind.RAISED)
    assert len(raised) == ROUNDS * len(GPUS)
    assert all(event.user_induced for event in raised)
    assert {event.verdict for event in subscriber.events} == {Verdict.ALLOW}
    assert {event.kind for event in subscriber.events} == {EventKind.RAISED, EventKind.CLEARED}
    # Ten within three minutes are one burst: the job need not move yet.
    assert {event.handling for event in raised} == {Handling.RESTART_JOB}
    assert without_gap(subscriber.events)


@pytest.mark.parametrize("xids", FAILURES.values(), ids=FAILURES)
async def test_story_05_five_jobs_whose_failures_both_sources_tell_leave_the_gpu_in_service(
    launch_gpus: LaunchGpus, follow: Follow, tmp_path: Path, xids: tuple[int, ...]
) -> None:
    procfs = tmp_path / "proc"
    daemon = launch_gpus("8xH100", procfs=procfs)
    subscriber = await follow(daemon)
    for pid in range(FIRST_PID, FIRST_PID + 5):
        heard = len(subscriber.received)
        process(procfs, pid)
        daemon.node.hold("gpu0", pid)
        await held(daemon, by_somebody=True, gpus=["gpu0"])
        for xid in xids:
            daemon.say(xid_line(daemon.gpus.pci("gpu0"), xid, process_id=pid, process_name="python"))
            daemon.gpus.raise_xid("gpu0", xid)
        await reported_by_both(daemon, [f"XID_{xid}" for xid in xids])
        daemon.node.let_go("gpu0")
        for xid in xids:
            await subscriber.event(EventKind.CLEARED, f"XID_{xid}", "gpu0", after=heard)
        await held(daemon, by_somebody=False, gpus=["gpu0"])

    raised = subscriber.of(EventKind.RAISED)
    assert len(raised) == 5 * len(xids)
    assert all(event.user_induced for event in raised)
    assert {event.verdict for event in subscriber.events} == {Verdict.ALLOW}
    assert {event.kind for event in subscriber.events} == {EventKind.RAISED, EventKind.CLEARED}


async def reported_by_both(daemon: GpuDaemon, codes: list[str]) -> None:
    """Wait until the kernel log and NVML have reported each of them."""
    async with asyncio.timeout(WAIT_LIMIT_S):
        while True:
            open_now = (await daemon.status())["conditions"]
            if {each["code"]: each["count"] for each in open_now} == dict.fromkeys(codes, 2):
                return
            await asyncio.sleep(0.05)


async def test_story_05_the_same_alone_on_a_gpu_that_nobody_holds_is_counted(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    daemon.configure()
    (daemon.tables / "soon.toml").write_text(SOON)
    subscriber = await follow(daemon)
    await held(daemon, by_somebody=False)
    for _ in range(2):
        daemon.gpus.raise_xid("gpu0", 31)
    promoted = await subscriber.event(EventKind.PROMOTED, "XID_31", "gpu0")

    assert (promoted.rule, promoted.verdict) == ("page-faults", Verdict.NO_NEW_JOBS)
    assert {event.device for event in subscriber.events} == {"gpu0"}
