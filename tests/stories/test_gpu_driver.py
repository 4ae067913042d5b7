"""The NVIDIA driver is unloaded, loaded anew, upgraded under the running daemon; NVML crashes and hangs."""

import asyncio
import os

from nodeagent.client import Event, EventKind, Verdict
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import events_of, last_of
from tests.waiting import WAIT_LIMIT_S

GPUS = [f"gpu{number}" for number in range(8)]
NO_DRIVER = "NV_DRIVER_NOT_LOADED"
MISMATCH = "NV_VERSION_MISMATCH"
CODE_ONCE = [EventKind.RAISED, EventKind.CLEARED]


async def all_at(subscriber: Subscriber, verdict: Verdict) -> None:
    """Wait until each GPU's last event says so."""
    await subscriber.until(lambda _: {last_verdict(subscriber, gpu) for gpu in GPUS} == {verdict})


def last_verdict(subscriber: Subscriber, device: str) -> Verdict | None:
    emitted = [event for event in subscriber.events if event.device == device]
    return emitted[-1].verdict if emitted else None


def verdicts(subscriber: Subscriber, device: str) -> list[Verdict]:
    return [event.verdict for event in subscriber.events if event.device == device]


def last_of_source(subscriber: Subscriber) -> Event:
    """Why the source as a whole was lost."""
    return [event for event in subscriber.of(EventKind.SOURCE_LOST) if event.device == "node"][-1]


async def test_a_driver_unloaded_and_loaded_again_is_told_unknown_and_well_without_a_restart(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    pid = daemon.running.pid
    daemon.gpus.driver.unload()
    gone = await subscriber.raised(NO_DRIVER, "node")
    await all_at(subscriber, Verdict.UNKNOWN)
    daemon.gpus.driver.load()
    await subscriber.cleared(NO_DRIVER, "node")
    await all_at(subscriber, Verdict.ALLOW)
    daemon.gpus.raise_xid("gpu6", 79)
    await subscriber.raised("XID_79", "gpu6")

    assert daemon.running.pid == pid
    assert daemon.running.returncode is None
    assert gone.verdict is Verdict.NO_NEW_JOBS
    assert events_of(subscriber, "node", NO_DRIVER) == CODE_ONCE
    assert verdicts(subscriber, "gpu3") == [Verdict.UNKNOWN, Verdict.ALLOW]
    assert "kernel driver is not loaded; PCI lists 8 GPUs" in last_of_source(subscriber).why
    assert without_gap(subscriber.events)


async def test_an_upgraded_library_is_told_where_it_does_not_fit_and_used_once_the_driver_fits(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    pid = daemon.running.pid
    daemon.gpus.driver.upgrade_library("580.95.05")
    daemon.gpus.driver.unload()
    await subscriber.raised(NO_DRIVER, "node")
    daemon.gpus.driver.load("570.124.06")
    await subscriber.raised(MISMATCH, "node")
    await all_at(subscriber, Verdict.UNKNOWN)
    daemon.gpus.driver.load("580.95.05")
    await subscriber.cleared(MISMATCH, "node")
    await all_at(subscriber, Verdict.ALLOW)

    assert daemon.running.pid == pid
    devices = (await daemon.status())["devices"]
    assert {each["attributes"]["library"] for each in devices if each["kind"] == "chip"} == {"13.580.95.05"}
    emitted = [(event.kind, event.code) for event in subscriber.events if event.code in (NO_DRIVER, MISMATCH)]
    assert emitted == [
        (EventKind.RAISED, NO_DRIVER),
        (EventKind.RAISED, MISMATCH),
        (EventKind.CLEARED, NO_DRIVER),
        (EventKind.CLEARED, MISMATCH),
    ]


async def test_story_13_nvml_that_crashes_cannot_observe_and_never_isolates(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.node.crash("gpu1")
    crashed = await subscriber.raised("worker_crashed.nvidia")
    await subscriber.cleared("worker_crashed.nvidia")
    await all_at(subscriber, Verdict.ALLOW)

    assert crashed.condition_level == "NotHandleFault"
    assert {event.verdict for event in subscriber.events} == {Verdict.UNKNOWN, Verdict.ALLOW}


async def test_story_01_one_gpu_that_hangs_is_unknown_alone_and_back_again(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.node.hang("gpu2")
    hung = await subscriber.raised("driver_unresponsive", "gpu2")
    daemon.gpus.raise_xid("gpu3", 43)
    await subscriber.raised("XID_43", "gpu3")
    daemon.node.release()
    await subscriber.cleared("driver_unresponsive", "gpu2")
    await subscriber.until(lambda _: last_of(subscriber, "gpu2").verdict is Verdict.ALLOW)

    assert hung.condition_level == "NotHandleFault"
    assert set(verdicts(subscriber, "gpu2")) == {Verdict.UNKNOWN, Verdict.ALLOW}
    assert {event.device for event in subscriber.events} == {"gpu2", "gpu3"}


async def test_once_quiesced_no_handle_is_held_and_an_upgrade_raises_nothing(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    (client,) = daemon.gpus.driver.clients()
    orders = daemon.folder / "c.sock"
    assert (await daemon.command("quiesce", "--reason", "upgrade", "--socket", orders))[0] == 0
    await all_at(subscriber, Verdict.UNKNOWN)
    await ended(client.process_id)
    assert daemon.gpus.driver.clients() == []
    daemon.gpus.driver.unload()
    daemon.gpus.driver.upgrade_library("580.95.05")
    daemon.gpus.driver.load("580.95.05")
    assert (await daemon.command("resume", "--socket", orders))[0] == 0
    await all_at(subscriber, Verdict.ALLOW)

    assert [(each.device, each.code, each.evidence) for each in subscriber.of(EventKind.RAISED)] == []
    assert set(verdicts(subscriber, "gpu0")) == {Verdict.UNKNOWN, Verdict.ALLOW}
    devices = (await daemon.status())["devices"]
    assert {each["attributes"]["library"] for each in devices if each["kind"] == "chip"} == {"13.580.95.05"}


async def ended(process_id: int) -> None:
    """Wait for the end of a process that is nobody's child here."""
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(descriptor, over.set)
    try:
        async with asyncio.timeout(WAIT_LIMIT_S):
            await over.wait()
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
