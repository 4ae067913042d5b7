"""What hardware does to GPUs takes the right one out of service at once; what programs do takes out none.

NVML and the kernel's own log, /dev/kmsg, both report all of it.
"""

import itertools
import shutil
import time
from pathlib import Path

import pytest

from nodeagent.client import EventKind, Handling, Verdict
from nodeagent.emulator.descriptions import write_pci_tree
from nodeagent.emulator.gpus import Instance
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon, last_of

KMSG = Path("/dev/kmsg")
_NUMBERS = itertools.count(time.monotonic_ns())

PROGRAMS = (13, 31, 43, 45, 68, 82, 94)
"""An index assert, accesses out of range, jobs that were ended, media errors, a contained memory error."""

COUNT_EACH = """
kind = "chip"
vendor = "nvidia"

[[frequency]]
id = "xid-repeat"
codes = ["XID_39", "XID_68", "XID_82", "XID_94"]
times = 3
time_window = "24h"
level = "ManuallySeparateNPU"
burst = "0s"
correlation = "0s"

[[frequency]]
id = "repeat"
codes = ["*"]
times = 3
time_window = "24h"
level = "ManuallySeparateNPU"
at_least = "RestartRequest"
burst = "0s"
correlation = "0s"
"""
"""As the shipped rules, but each signal counts for itself: five at once are five in an hour."""


@pytest.fixture
def daemon(launch_gpus: LaunchGpus, kmsg_lock: None) -> GpuDaemon:
    """On the kernel's own log; its GPUs are in a PCI domain that no line of another test names."""
    daemon = launch_gpus("8xH100", kmsg=("trust_userspace = true",))
    daemon.kernel_log = KMSG
    domain = 0x1000 + next(_NUMBERS) % 0xE000
    for number in range(8):
        daemon.gpus.chip(f"gpu{number}").pci_domain = domain
    shutil.rmtree(daemon.node.sysfs)
    write_pci_tree(daemon.node.state, daemon.node.sysfs)
    daemon.configure()
    (daemon.tables / "each.toml").write_text(COUNT_EACH)
    return daemon


def hit(
    daemon: GpuDaemon,
    device: str,
    xid: int,
    *,
    detail: str = "",
    process: int = 0,
    instance: Instance | None = None,
    action: int | None = None,
) -> None:
    """By NVML and by the kernel's log."""
    daemon.gpus.raise_xid(
        device,
        xid,
        detail=detail,
        process_id=process,
        instance=instance,
        recovery_action=action,
        kernel_log=KMSG,
    )


def stance(subscriber: Subscriber, device: str) -> tuple[Verdict, Handling]:
    event = last_of(subscriber, device)
    return event.verdict, event.handling


@pytest.mark.root
async def test_hardware_takes_the_right_gpu_out_of_service_at_once(daemon: GpuDaemon, follow: Follow) -> None:
    subscriber = await follow(daemon)
    hit(daemon, "gpu0", 79)
    hit(daemon, "gpu1", 48)
    daemon.gpus.remap("gpu1", uncorrected=1, pending=True)
    hit(daemon, "gpu1", 63, action=4)
    daemon.gpus.fail_remap("gpu2")
    hit(daemon, "gpu2", 64, action=1)
    hit(daemon, "gpu3", 95, detail="Uncontained: FBHUB. RST: Yes, D-RST: No", process=7062, action=1)
    hit(daemon, "gpu4", 119)
    hit(
        daemon,
        "gpu5",
        94,
        detail="Contained: DED CBC (0x2, 0x1). RST: No, D-RST: Yes",
        process=7063,
        action=4,
    )
    await subscriber.raised("XID_79", "gpu0")
    await subscriber.raised("XID_63", "gpu1")
    await subscriber.raised("XID_64", "gpu2")
    await subscriber.raised("XID_95.reset", "gpu3")
    await subscriber.raised("XID_119", "gpu4")
    await subscriber.raised("XID_94.drain", "gpu5")

    out = (Verdict.ISOLATE, Handling.RESCHEDULE)
    idle = (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE)
    assert {device: stance(subscriber, device) for device in (f"gpu{number}" for number in range(6))} == {
        "gpu0": out,
        "gpu1": idle,
        "gpu2": out,
        "gpu3": out,
        "gpu4": out,
        "gpu5": idle,
    }
    assert {event.device for event in subscriber.of(EventKind.RAISED)} == {f"gpu{n}" for n in range(6)}
    assert without_gap(subscriber.events)


@pytest.mark.root
async def test_programs_take_neither_a_gpu_nor_an_instance_of_one_out_of_service(
    daemon: GpuDaemon, follow: Follow
) -> None:
    daemon.gpus.partition("gpu7", [3, 2, 1])
    subscriber = await follow(daemon)
    cut = Instance(gpu=1, compute=0)
    no_reset = "Contained: SM (0x1). RST: No, D-RST: No"
    for turn in range(5):
        for xid in PROGRAMS:
            detail = no_reset if xid == 94 else ""
            hit(daemon, "gpu6", xid, detail=detail, process=5000 + turn)
            hit(daemon, "gpu7", xid, detail=detail, process=6000 + turn, instance=cut)
    hit(daemon, "gpu0", 79)
    await subscriber.raised("XID_79", "gpu0")

    assert {event.device for event in subscriber.of(EventKind.RAISED)} == {"gpu0", "gpu6", "gpu7/gi1"}
    assert subscriber.of(EventKind.PROMOTED) == []
    assert {event.verdict for event in subscriber.events if event.device != "gpu0"} <= {
        Verdict.ALLOW,
        Verdict.UNKNOWN,
    }
    assert without_gap(subscriber.events)
