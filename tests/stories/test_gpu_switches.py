"""NVSwitches: each SXid of the kernel log as the tables have it, and the service that manages them."""

from pathlib import Path

import pytest

from nodeagent.client import EventKind, Verdict
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import load_catalog
from tests.harness.configuration import ROOT
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.conftest import Follow, LaunchGpus, Subscribe
from tests.stories.gpus import MANAGER_DOWN, GpuDaemon, events_of, name_process

AT_ONE_SWITCH = 200


def numbers() -> list[int]:
    """Every SXid that has a row."""
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows.values()
    codes = (row.code.removeprefix("SXID_") for row in rows if row.code.startswith("SXID_"))
    return sorted(int(code) for code in codes if code.isdigit())


def switch_of(place: int) -> str:
    return f"0000:{0xC0 + place // AT_ONE_SWITCH:02x}:00.0"


def lines_of(place: int, sxid: int, word: str) -> tuple[str, ...]:
    """The line itself, and two that the driver writes of the same error."""
    begin = f"nvidia-nvswitch{place // AT_ONE_SWITCH}: SXid (PCI:{switch_of(place)}): {sxid:05d}, "
    return (
        f"{begin}{word}Link 32 something failed (First)",
        f"{begin}Severity 1 Engine instance 32 Sub-engine instance 00",
        f"{begin}Data {{0x0000c000, 0x00000000, 0x80000000}}",
    )


@pytest.mark.parametrize("word", ["Fatal", "Non-fatal", ""])
async def test_all_398_sxids_are_told_once_each_as_explain_says_and_their_companions_not(
    launch_gpus: LaunchGpus, follow: Follow, word: str
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    sxids = numbers()
    assert len(sxids) == 398
    for place, sxid in enumerate(sxids):
        daemon.say(*lines_of(place, sxid, f"{word}, " if word else ""))
    daemon.say("nvidia-peermem nv_get_p2p_free_callback:139 ERROR detected invalid context")
    await subscriber.raised("NV_PEERMEM")

    detail = f".{word}" if word else ""
    explained = await daemon.explained([f"SXID_{sxid}{detail}" for sxid in sxids])
    switches = {switch_of(place) for place in range(len(sxids))}
    emitted = [event for event in subscriber.events if event.device in switches and event.code]
    assert [(event.kind, event.device, event.code, event.condition_level) for event in emitted] == [
        (EventKind.RAISED, switch_of(place), row["code"], row["level"]) for place, row in enumerate(explained)
    ]
    assert {row["affects"] for row in explained} == {"node"}
    assert without_gap(subscriber.events)


MANAGER_PID = 4711


def plug_switch(daemon: GpuDaemon) -> None:
    """PCI lists an NVSwitch."""
    folder = daemon.node.sysfs / "bus/pci/devices/0000:e4:00.0"
    folder.mkdir()
    for name, text in (("vendor", "0x10de"), ("device", "0x22a3"), ("class", "0x068000")):
        (folder / name).write_text(f"{text}\n")


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    """What a whole node shows of its processes."""
    name_process(tmp_path / "proc", 2, "kthreadd")
    return tmp_path / "proc"


async def test_story_13_a_fabric_manager_that_ends_is_told_though_all_gpus_look_well(
    launch_gpus: LaunchGpus, follow: Follow, procfs: Path
) -> None:
    daemon = launch_gpus("8xH100", procfs=procfs)
    plug_switch(daemon)
    name_process(procfs, MANAGER_PID, "nv-fabricmanage")
    subscriber = await follow(daemon)
    name_process(procfs, MANAGER_PID, "sleep")
    down = await subscriber.raised(MANAGER_DOWN, "node")
    name_process(procfs, MANAGER_PID, "nv-fabricmanage")
    await subscriber.cleared(MANAGER_DOWN, "node")

    assert (down.verdict, down.subhealthy) == (Verdict.ALLOW, True)
    assert events_of(subscriber, "node", MANAGER_DOWN) == [EventKind.RAISED, EventKind.CLEARED]
    assert {event.device for event in subscriber.events} == {"node"}


async def test_story_13_a_fabric_manager_that_never_ran_is_told_at_the_start_and_keeps_new_jobs_away(
    launch_gpus: LaunchGpus, subscribe: Subscribe, procfs: Path
) -> None:
    daemon = launch_gpus("8xH100", procfs=procfs)
    plug_switch(daemon)
    daemon.configure()
    (daemon.tables / "soon.toml").write_text(SOON)
    for number in range(8):
        daemon.gpus.set_fabric(f"gpu{number}", 2)
    await daemon.spawn()
    subscriber = subscribe(daemon)
    await subscriber.follow()
    await subscriber.until(lambda _: node_verdict(subscriber) is Verdict.NO_NEW_JOBS)
    expected = {("node", MANAGER_DOWN), *((f"gpu{n}", "NV_FABRIC_NOT_READY") for n in range(8))}

    async def found() -> bool:
        return {(each["device"], each["code"]) for each in (await daemon.status())["conditions"]} == expected

    await daemon.comes(found, str(expected))


def node_verdict(subscriber: Subscriber) -> Verdict:
    """By the last event about the node, or the snapshot before any."""
    verdicts = [device.verdict for device in subscriber.snapshots[0].devices if device.name == "node"]
    return [*verdicts, *(event.verdict for event in subscriber.events if event.device == "node")][-1]


async def test_story_13_without_a_switch_nobody_asks_for_a_fabric_manager(
    launch_gpus: LaunchGpus, follow: Follow, procfs: Path
) -> None:
    daemon = launch_gpus("8xH100", procfs=procfs)
    subscriber = await follow(daemon)
    # Polls continue: what a GPU shows is reported.
    daemon.gpus.require_reset("gpu0")
    await subscriber.raised("NV_GPU_RESET_REQUIRED", "gpu0")
    daemon.node.set("gpu0", "gpu_answer", 0)
    await subscriber.cleared("NV_GPU_RESET_REQUIRED", "gpu0")
    assert {event.device for event in subscriber.events} == {"gpu0"}


SOON = """
kind = "host"
vendor = "nvidia"

[[duration]]
id = "nv-fabric-manager-down"
codes = ["NV_FABRIC_MANAGER_DOWN"]
fault_timeout = "1s"
recover_timeout = "0s"
level = "PreSeparateFault"
"""
"""The shipped rule, but sooner."""
