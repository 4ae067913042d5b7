"""Stories 9 and 12: GPUs that go without a word, that were never there, or that are other parts now."""

import ctypes

import pytest

from nodeagent.client import EventKind, Verdict
from tests.harness.subscriber import Subscriber
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import last_of, raised_on


def about(subscriber: Subscriber, device: str) -> list[tuple[EventKind, str]]:
    return [(event.kind, event.code) for event in subscriber.events if event.device == device]


async def test_story_12_a_gpu_lost_without_an_xid_is_isolated_with_one_event(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.gpus.lose("gpu5")
    lost = await subscriber.raised("NV_GPU_LOST", "gpu5")
    # Polls go on meanwhile: another GPU is lost after it.
    daemon.gpus.lose("gpu6")
    await subscriber.raised("NV_GPU_LOST", "gpu6")
    daemon.node.return_("gpu6")
    await subscriber.cleared("NV_GPU_LOST", "gpu6")

    assert lost.verdict is Verdict.ISOLATE
    assert about(subscriber, "gpu5") == [(EventKind.RAISED, "NV_GPU_LOST")]
    assert last_of(subscriber, "gpu6").verdict is Verdict.ALLOW
    assert {event.device for event in subscriber.events} == {"gpu5", "gpu6"}


async def test_a_gpu_lost_with_its_xid_is_one_fault(launch_gpus: LaunchGpus, follow: Follow) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.gpus.raise_xid("gpu2", 79)
    daemon.xid("gpu2", 79)
    await subscriber.raised("XID_79", "gpu2")
    daemon.gpus.lose("gpu2")
    daemon.say(f"NVRM: GPU {daemon.gpus.pci('gpu2')}.0: GPU has fallen off the bus.")
    daemon.gpus.lose("gpu3")
    await subscriber.raised("NV_GPU_LOST", "gpu3")
    daemon.xid("gpu4", 43)
    await subscriber.raised("XID_43", "gpu4")
    assert raised_on(subscriber, "gpu2") == ["XID_79"]
    assert last_of(subscriber, "gpu2").verdict is Verdict.ISOLATE


async def test_a_gpu_that_the_driver_finds_lost_is_isolated_alone(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    """The kernel gives the three lines of this record as one, with its line ends escaped."""
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.say(
        f"NVRM: The NVIDIA GPU {daemon.gpus.pci('gpu2')}.0\\x0a"
        "NVRM: (PCI ID: 10de:2330) installed in this system has\\x0a"
        "NVRM: fallen off the bus and is not responding to commands."
    )
    lost = await subscriber.raised("NV_FALLEN_OFF", "gpu2")
    daemon.xid("gpu4", 43)
    await subscriber.raised("XID_43", "gpu4")
    assert lost.verdict is Verdict.ISOLATE
    assert {event.device for event in subscriber.events} == {"gpu2", "gpu4"}


def lost_slots(subscriber: Subscriber) -> list[str]:
    """Where a device is lost, by the first snapshot and the events since."""
    standing = [each.device for each in subscriber.snapshots[0].conditions if each.code == "device_lost"]
    raised = [event.device for event in subscriber.of(EventKind.RAISED) if event.code == "device_lost"]
    return sorted(standing + raised)


@pytest.mark.parametrize("missing", [1, 8])
async def test_story_12_gpus_that_pci_lists_and_the_library_does_not_are_lost_by_slot(
    launch_gpus: LaunchGpus, follow: Follow, missing: int
) -> None:
    daemon = launch_gpus("8xH100")
    gone = [f"gpu{number}" for number in range(8 - missing, 8)]
    slots = sorted(f"{daemon.gpus.pci(name)}.0" for name in gone)
    for name in reversed(gone):
        daemon.node.take_out(name)
    subscriber = await follow(daemon)
    await subscriber.until(lambda _: lost_slots(subscriber) == slots)
    for name in [f"gpu{number}" for number in range(8 - missing)]:
        daemon.gpus.raise_xid(name, 14)
        await subscriber.raised("XID_14", name)

    assert lost_slots(subscriber) == slots
    devices = (await daemon.status())["devices"]
    verdicts = {each["name"]: each["verdict"] for each in devices if each["kind"] == "chip"}
    assert verdicts == {
        **{f"gpu{number}": "ALLOW" for number in range(8 - missing)},
        **dict.fromkeys(slots, "NO_NEW_JOBS"),
    }


async def test_story_12_a_gpu_that_vanishes_is_never_well_again_until_it_is_back(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    """Also not for a daemon that starts anew and finds one less listed."""
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    daemon.node.take_out("gpu7")
    await subscriber.raised("NV_GPU_LOST", "gpu7")
    await daemon.restart()
    await subscriber.follow()
    await subscriber.raised("device_lost", "gpu7")
    # The others are seen again, and allowed.
    await subscriber.until(lambda _: last_of(subscriber, "gpu0").verdict is Verdict.ALLOW)

    mine = [event for event in subscriber.events if event.device == "gpu7"]
    assert [(event.kind, event.code) for event in mine] == [
        (EventKind.RAISED, "NV_GPU_LOST"),
        (EventKind.DEVICE_GONE, ""),
        (EventKind.RAISED, "device_lost"),
    ]
    assert {event.verdict for event in mine} == {Verdict.ISOLATE}


async def test_story_09_another_gpu_in_the_slot_starts_clean(launch_gpus: LaunchGpus, follow: Follow) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    before = daemon.gpus.uuid("gpu4")
    daemon.gpus.raise_xid("gpu4", 64)
    await subscriber.raised("XID_64", "gpu4")
    daemon.gpus.replace("gpu4", seed=4242)
    replaced = await subscriber.event(EventKind.DEVICE_REPLACED, "")
    after = daemon.gpus.uuid("gpu4")
    await subscriber.event(EventKind.VERDICT_CHANGED, "")
    daemon.gpus.raise_xid("gpu4", 14)
    await subscriber.raised("XID_14", "gpu4")

    assert (replaced.device, replaced.verdict) == ("gpu4", Verdict.UNKNOWN)
    assert [(event.kind, event.device_id, event.code, event.why) for event in subscriber.events[:2]] == [
        (EventKind.RAISED, before, "XID_64", "once from nvidia"),
        (EventKind.CLEARED, before, "XID_64", "device_replaced"),
    ]
    assert [(event.kind, event.device_id, event.code) for event in subscriber.events[2:]] == [
        (EventKind.DEVICE_REPLACED, after, ""),
        (EventKind.VERDICT_CHANGED, after, ""),
        (EventKind.RAISED, after, "XID_14"),
    ]
    assert subscriber.events[3].verdict is Verdict.ALLOW


async def test_story_09_gpus_that_are_listed_in_another_order_keep_their_faults(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    subscriber = await follow(daemon)
    faulty = daemon.gpus.uuid("gpu0")
    daemon.gpus.raise_xid("gpu0", 64)
    await subscriber.raised("XID_64", "gpu0")
    assert await daemon.stop() == 0
    swap(daemon.node.chip("gpu0"), daemon.node.chip("gpu7"))
    assert daemon.gpus.uuid("gpu7") == faulty
    await daemon.start()
    await subscriber.follow()
    daemon.gpus.raise_xid("gpu7", 14)
    await subscriber.raised("XID_14", "gpu7")

    assert subscriber.of(EventKind.DEVICE_REPLACED) == subscriber.of(EventKind.CLEARED) == []
    devices = {each["name"]: each for each in (await daemon.status())["devices"]}
    assert (devices["gpu7"]["id"], devices["gpu7"]["verdict"]) == (faulty, "ISOLATE")
    assert devices["gpu0"]["verdict"] == "ALLOW"


def swap(one: ctypes.Structure, other: ctypes.Structure) -> None:
    """Two places of the emulated node change their GPUs, with all that these are and where they sit."""
    kept = bytes(one)
    ctypes.memmove(ctypes.addressof(one), ctypes.addressof(other), len(kept))
    ctypes.memmove(ctypes.addressof(other), kept, len(kept))
