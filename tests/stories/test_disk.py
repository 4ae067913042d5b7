"""The state directory is full, read-only or hangs: the stream goes on, says so, and recovers by itself."""

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from nodeagent.client import EventKind
from tests.harness.daemon import Daemon, free_port
from tests.harness.kernel_log import FakeKernelLog, RealKernelLog
from tests.harness.subscriber import Subscriber, as_stored, meanings, stored_events, without_gap
from tests.store.preload import DiskFault
from tests.stories.conftest import Follow, Launch

DISK_MIB = 24
MANY = 400


class SmallDisk:
    """A filesystem of its own in memory, at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", path], check=True)

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def fill(self) -> None:
        """Until not one more byte goes in."""
        with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
            while filler.write(bytes(4096)) == 4096:
                pass

    def make_room(self) -> None:
        self._filler.unlink()

    def remount(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.path], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "state")
    yield disk
    disk.close()


def degraded_events(subscriber: Subscriber) -> list[EventKind]:
    return [event.kind for event in subscriber.events if event.code == "store_degraded"]


async def check_numbers(daemon: Daemon, subscriber: Subscriber) -> None:
    """No number stands for two events, and what the stream sent from memory is what the disk holds now."""
    assert max(map(len, meanings(subscriber.events).values())) == 1
    assert without_gap(subscriber.events)
    assert as_stored(subscriber.events) == (await stored_events(daemon))[-len(subscriber.events) :]


@pytest.mark.root
async def test_story_15_a_full_disk_costs_no_event_and_recovers_without_a_restart(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, disk: SmallDisk
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    fake_log.say("a", "LASTING_FIRST")
    await subscriber.raised("LASTING_FIRST")

    for number in range(MANY):
        # The reserve is given up first, and must be used up too.
        disk.fill()
        fake_log.say(f"d{number % 8}", f"LASTING_{number}")
        await subscriber.raised(f"LASTING_{number}")
        if len(subscriber.snapshots) > 1:
            break
    in_memory = subscriber.snapshots[-1]
    degraded = await subscriber.raised("store_degraded")
    fake_log.say("a", "LASTING_DURING")
    during = await subscriber.raised("LASTING_DURING")
    status = await daemon.status()
    written = 2 + number + 1

    disk.make_room()
    await subscriber.cleared("store_degraded")
    fake_log.say("a", "LASTING_LATER")
    later = await subscriber.raised("LASTING_LATER")

    assert not in_memory.durable
    assert in_memory.position.epoch > subscriber.snapshots[0].position.epoch
    assert "full" in degraded.evidence["reason"]
    assert during.position.epoch == in_memory.position.epoch == later.position.epoch
    assert status["durable"] is False
    assert {condition.code for condition in in_memory.conditions} >= {"LASTING_FIRST", "LASTING_0"}
    assert degraded_events(subscriber) == [EventKind.RAISED, EventKind.CLEARED]
    assert (await daemon.status())["durable"] is True
    await check_numbers(daemon, subscriber)

    await daemon.restart()
    codes = {each["code"] for each in (await daemon.status())["conditions"]}
    assert codes >= {"LASTING_FIRST", "LASTING_DURING", "LASTING_LATER", "LASTING_0"}
    assert len(codes) == written + 1
    print(f"full after {number + 1} lines with the reserve; {len(subscriber.events)} events, none lost")


@pytest.mark.root
async def test_a_store_that_a_reboot_forgets_is_told_in_the_log_and_by_a_metric(
    launch: Launch, fake_log: FakeKernelLog, disk: SmallDisk
) -> None:
    address = f"127.0.0.1:{free_port()}"
    daemon = launch(fake_log, metrics=address)
    await daemon.start()

    metrics = await asyncio.to_thread(urlopen, f"http://{address}/metrics")
    with metrics:
        assert "\nnodeagent_store_volatile 1.0\n" in metrics.read().decode()
    line = (
        f"agent.state_dir {disk.path} lies on tmpfs: isolations, counts and history are lost at each reboot"
    )
    assert line in daemon.log


@pytest.mark.root
async def test_story_15_a_read_only_disk_at_the_start_is_read_and_written_once_it_can_be(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, disk: SmallDisk
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    fake_log.say("a", "LASTING_1")
    await subscriber.raised("LASTING_1")
    assert await daemon.stop() == 0
    disk.remount("ro")

    await daemon.start()
    await subscriber.follow()
    fake_log.say("a", "LASTING_2")
    during = await subscriber.raised("LASTING_2")
    snapshot = subscriber.snapshots[-1]
    disk.remount("rw")
    await subscriber.cleared("store_degraded")
    fake_log.say("a", "LASTING_3")
    await subscriber.raised("LASTING_3")
    before = await daemon.status()
    conditions = [(each["id"], each["count"]) for each in before["conditions"]]

    await daemon.restart()
    after = await daemon.status()
    assert not snapshot.durable
    assert {condition.code for condition in snapshot.conditions} >= {"LASTING_1", "store_degraded"}
    assert during.position.epoch > subscriber.snapshots[0].position.epoch
    assert [each["code"] for each in before["conditions"]] == ["LASTING_1", "LASTING_2", "LASTING_3"]
    assert [(each["id"], each["count"]) for each in after["conditions"]] == conditions
    assert after["store_id"] == before["store_id"]
    stored = await stored_events(daemon)
    assert [seq for seq, *_ in stored] == list(range(1, len(stored) + 1))
    assert [kind for _, kind, _, code, _ in stored if code == "store_degraded"] == ["raised", "cleared"]


@pytest.mark.parametrize(("mode", "calls"), [("erofs", "w"), ("hang", "s"), ("hang", "orws")])
async def test_story_15_a_disk_that_fails_under_way_recovers_without_a_restart(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, tmp_path: Path, mode: str, calls: str
) -> None:
    daemon = launch(fake_log)
    fault = DiskFault(daemon.state, tmp_path)
    daemon.env = fault.env
    subscriber = await follow(daemon)
    fake_log.say("a", "LASTING_1")
    await subscriber.raised("LASTING_1")
    fault.begin(mode, calls)
    fake_log.say("a", "LASTING_2")
    snapshot = await subscriber.in_memory()
    await subscriber.raised("store_degraded")
    fake_log.say("a", "LASTING_3")
    await subscriber.raised("LASTING_3")
    fault.end()
    await subscriber.cleared("store_degraded")
    fake_log.say("a", "LASTING_4")
    await subscriber.raised("LASTING_4")

    assert not snapshot.durable
    assert degraded_events(subscriber) == [EventKind.RAISED, EventKind.CLEARED]
    await check_numbers(daemon, subscriber)
    await daemon.restart()
    conditions = (await daemon.status())["conditions"]
    assert [each["code"] for each in conditions] == [f"LASTING_{number}" for number in (1, 2, 3, 4)]


@pytest.mark.root
async def test_story_15_killed_while_in_memory_no_number_comes_to_stand_for_two_events(
    launch: Launch, follow: Follow, real_log: RealKernelLog, tmp_path: Path
) -> None:
    """What only memory held is emitted again from the kernel log, under numbers of another store id."""
    daemon = launch(real_log)
    fault = DiskFault(daemon.state, tmp_path)
    daemon.env = fault.env
    subscriber = await follow(daemon)
    for life in range(2):
        real_log.say("a", f"LASTING_{life}")
        await subscriber.raised(f"LASTING_{life}")
        fault.begin("hang", "ws")
        heard = len(subscriber.received)
        real_log.say("b", f"LASTING_{life}")
        await subscriber.in_memory(heard)
        real_log.say("c", f"LASTING_{life}")
        await subscriber.raised(f"LASTING_{life}", "c")
        await daemon.kill()
        fault.end()
        await subscriber.leave()
        await daemon.start()
        await subscriber.follow()
        if life == 0:
            fault.begin("erofs", "w")
            heard = len(subscriber.received)
            real_log.say("d", f"LASTING_{life}")
            await subscriber.in_memory(heard)
            fault.end()
            await subscriber.event(EventKind.CLEARED, "store_degraded", after=heard)
    real_log.say("a", "LASTING_END")
    await subscriber.raised("LASTING_END")

    assert max(map(len, meanings(subscriber.events).values())) == 1
    conditions = {(each["device"], each["code"]) for each in (await daemon.status())["conditions"]}
    assert conditions == {
        *((device, "LASTING_0") for device in "abcd"),
        *((device, "LASTING_1") for device in "abc"),
        ("a", "LASTING_END"),
    }
    stored = await stored_events(daemon)
    assert [seq for seq, *_ in stored] == list(range(1, len(stored) + 1))
    raised = [(device, code) for _, kind, device, code, _ in stored if kind is EventKind.RAISED]
    assert sorted(each for each in raised if each[1] != "store_degraded") == sorted(conditions)


@pytest.mark.slow
async def test_a_disk_that_hangs_at_the_start_holds_up_neither_the_start_nor_the_stop(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, tmp_path: Path
) -> None:
    daemon = launch(fake_log)
    fault = DiskFault(daemon.state, tmp_path)
    daemon.env = fault.env
    fault.begin("hang")
    subscriber = await follow(daemon)
    fake_log.say("a", "LASTING_1")
    raised = await subscriber.raised("LASTING_1")

    assert [snapshot.durable for snapshot in subscriber.snapshots] == [False]
    assert raised.position.epoch > 0
    async with asyncio.timeout(60):
        assert await daemon.stop() == 0
