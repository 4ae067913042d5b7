"""An hour of one node as it is shipped: tables and configuration are the package's, but for paths.

Programs fail five times each, however it is reported and whatever part of a GPU they are on, and nothing
leaves service. Hardware fails once, and its GPU takes no new jobs at once, and still an hour later.
"""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pynvml
import pytest

from nodeagent.client import Event, EventKind, Handling, Verdict
from nodeagent.emulator.gpus import Instance, recovery_line, xid_line
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.clocks import SteppedClock
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon, last_of, raised_on

FAILURES = {
    "index assert": (43,),
    "access out of range": (13, 43),
    "page fault": (31, 43),
    "killed job": (45,),
    "damaged video": (68, 82),
    "contained memory error": (94,),
}
"""What programs do or meet, and the Xids that the driver reports of it."""

TURNS = 5
STEP = timedelta(seconds=121)
"""Five times each of six in an hour."""

BY_NVML, BY_KERNEL, BY_BOTH = (True, False), (False, True), (True, True)
PLACES = {
    ("gpu0", None): BY_NVML,
    ("gpu1", None): BY_KERNEL,
    ("gpu2", None): BY_BOTH,
    ("gpu3", Instance(gpu=1, compute=0)): BY_NVML,
    ("gpu4", Instance(gpu=1, compute=0)): BY_KERNEL,
    ("gpu5", Instance(gpu=1, compute=0)): BY_BOTH,
}
"""Where programs fail, and who reports it: NVML, the kernel log."""

MARKED = "gpu6"
"""Xids that no table has a row for say there that all before was read."""
BESIDE = "gpu7"
"""It has no part in anything."""

NO_RESET, RESET = "RST: No, D-RST: No", "RST: Yes, D-RST: No"
GSP_TIME_OUT_MS = 300
POLLED = "nvmlDeviceGetFieldValues"


drivers = pytest.mark.parametrize("branch", ["", "520"], ids=["reports its action", "reports none"])
"""One that reports which recovery a GPU needs, and one from before there was that."""


@pytest.fixture
def clock(tmp_path: Path) -> SteppedClock:
    return SteppedClock(tmp_path, "BOOT")


@pytest.fixture
def daemon(launch_gpus: LaunchGpus, clock: SteppedClock, branch: str) -> GpuDaemon:
    daemon = launch_gpus("8xH100", as_shipped=True, env=clock.env)
    if branch:
        daemon.gpus.driver.make_older(branch)
    return daemon


def fail(daemon: GpuDaemon, xids: Sequence[int], process: int) -> None:
    """One program fails so in each place; it is over before anybody has listed it."""
    details = {
        13: f"Graphics SM Warp Exception on (GPC {process % 7}, TPC 3, SM 1): Out Of Range Address",
        94: f"Contained: SM (0x1). {NO_RESET}",
    }
    for (gpu, instance), (by_nvml, by_kernel) in PLACES.items():
        for xid in xids:
            line = xid_line(
                daemon.gpus.pci(gpu),
                xid,
                details.get(xid, ""),
                process_id=process,
                process_name="python3",
                instance=instance,
            )
            if by_kernel:
                daemon.say(line)
            if by_nvml:
                daemon.gpus.raise_xid(gpu, xid, instance=instance)


async def all_read(daemon: GpuDaemon, subscriber: Subscriber, number: int) -> None:
    """Wait until both sources have reported what they were to report before this."""
    by_kernel, by_nvml = 1000 + 2 * number, 1001 + 2 * number
    daemon.xid(MARKED, by_kernel)
    daemon.gpus.raise_xid(MARKED, by_nvml)
    await subscriber.raised(f"XID_{by_kernel}", MARKED)
    await subscriber.raised(f"XID_{by_nvml}", MARKED)


def out_of_service(subscriber: Subscriber) -> list[tuple[str, str, Verdict]]:
    """Each event after which a device takes no new jobs."""
    in_service = (Verdict.ALLOW, Verdict.UNKNOWN)
    return [
        (event.device, event.code, event.verdict)
        for event in subscriber.events
        if event.verdict not in in_service
    ]


@drivers
async def test_an_hour_of_programs_that_fail_takes_no_device_out_of_service(
    daemon: GpuDaemon, follow: Follow, clock: SteppedClock
) -> None:
    for gpu, instance in PLACES:
        if instance is not None:
            daemon.gpus.partition(gpu, [3, 2, 1])
    subscriber = await follow(daemon)
    number = 0
    for _ in range(TURNS):
        for xids in FAILURES.values():
            fail(daemon, xids, 7000 + number)
            await all_read(daemon, subscriber, number)
            clock.pass_on(STEP)
            number += 1

    expected = {xid for xids in FAILURES.values() for xid in xids}
    for gpu, instance in PLACES:
        device = gpu if instance is None else f"{gpu}/gi1"
        codes = {int(code.removeprefix("XID_").partition(".")[0]) for code in raised_on(subscriber, device)}
        assert expected - codes <= {45}, f"{device}: 45 goes with what was there before it, and nothing else"
    assert out_of_service(subscriber) == []
    silent = (EventKind.PROMOTED, EventKind.ACTION_PROPOSED, EventKind.SUPPRESSED)
    assert [event.kind for event in subscriber.events if event.kind in silent] == []
    assert [event for event in subscriber.events if event.device == BESIDE] == []
    assert without_gap(subscriber.events)


HARDWARE = {
    "gpu0": "XID_79",
    "gpu1": "XID_63",
    "gpu2": "XID_64",
    "gpu3": "XID_95.reset",
    "gpu4": "XID_119",
}


def break_down(daemon: GpuDaemon, reports_action: bool) -> None:
    """What the driver says of broken hardware: five GPUs, one each."""

    def report(gpu: str, xid: int, detail: str = "", action: int | None = None) -> None:
        daemon.say(xid_line(daemon.gpus.pci(gpu), xid, detail, process_id=7062, process_name="python3"))
        daemon.gpus.raise_xid(gpu, xid, recovery_action=action if reports_action else None)
        if action is not None and reports_action:
            daemon.say(recovery_line(daemon.gpus.pci(gpu), 0, action))

    report("gpu0", 79)
    daemon.gpus.lose("gpu0")
    report("gpu1", 48)
    daemon.gpus.remap("gpu1", uncorrected=1, pending=True)
    report("gpu1", 63, action=4)
    daemon.gpus.fail_remap("gpu2")
    report("gpu2", 64, action=1)
    report("gpu3", 95, f"Uncontained: FBHUB. {RESET}", action=1)
    report("gpu4", 119)
    daemon.node.time_out("gpu4", POLLED, delay_ms=GSP_TIME_OUT_MS, answer=pynvml.NVML_ERROR_TIMEOUT)


@drivers
async def test_broken_hardware_takes_its_gpu_out_of_service_at_once_and_for_as_long_as_it_lasts(
    daemon: GpuDaemon, follow: Follow, clock: SteppedClock, branch: str
) -> None:
    subscriber = await follow(daemon)
    break_down(daemon, reports_action=not branch)
    for gpu, code in HARDWARE.items():
        first = await first_word(subscriber, gpu)
        assert first.verdict in (Verdict.ISOLATE, Verdict.NO_NEW_JOBS), f"{gpu}: {first}"
        await subscriber.raised(code, gpu)

    clock.pass_on(timedelta(hours=1))
    polls = daemon.node.calls(POLLED, BESIDE)
    await daemon.comes(lambda: daemon.node.calls(POLLED, BESIDE) > polls + 1, f"polls of {BESIDE}")
    await all_read(daemon, subscriber, 0)
    out = (Verdict.ISOLATE, Handling.RESCHEDULE)
    idle = (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE)
    assert {gpu: stance(subscriber, gpu) for gpu in HARDWARE} == {
        "gpu0": out,
        "gpu1": idle,
        "gpu2": out,
        "gpu3": out,
        "gpu4": out,
    }
    assert {device for device, _, _ in out_of_service(subscriber)} == set(HARDWARE)
    assert without_gap(subscriber.events)


async def first_word(subscriber: Subscriber, gpu: str) -> Event:
    """Of its trouble."""
    update = await subscriber.until(lambda update: isinstance(update, Event) and update.device == gpu)
    assert isinstance(update, Event)
    return update


def stance(subscriber: Subscriber, gpu: str) -> tuple[Verdict, Handling]:
    event = last_of(subscriber, gpu)
    return event.verdict, event.handling
