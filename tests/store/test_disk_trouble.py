"""A disk that fails or hangs under a running ledger: numbers go on in memory, and all is written later."""

import random
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.model import Signal
from nodeagent.store.disk.retention import RetentionPolicy
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoredEvent, StoreRecovery
from tests.store.conftest import Process, StartChild
from tests.store.preload import DiskFault
from tests.store.samples import MACHINE, PATIENT, condition

DEADLINE_S = 3.0
LIMITS = {"commit_deadline_s": DEADLINE_S, "retry_s": 0.05}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def fault(directory: Path, tmp_path: Path) -> DiskFault:
    return DiskFault(directory, tmp_path)


def epoch(store_id: str) -> int:
    return int(store_id.rpartition(":")[2])


async def find(directory: Path) -> tuple[StoreRecovery, list[StoredEvent]]:
    """What the next start finds."""
    ledger = Ledger(directory, MACHINE, limits=PATIENT, keep=RetentionPolicy(retention_ns=2**62))
    recovery = await ledger.open()
    events = await ledger.read_events(0)
    await ledger.close()
    return recovery, events


def numbers_of(recovery: StoreRecovery) -> list[int]:
    inputs = [one.input for one in recovery.inputs]
    return [int(one.evidence["number"]) for one in inputs if isinstance(one, Signal)]


async def end_and_recover(child: Process, fault: DiskFault) -> dict[str, Any]:
    fault.end()
    return await child.change()


@pytest.mark.parametrize(
    ("mode", "calls"),
    [
        ("hang", "s"),
        ("hang", "w"),
        ("eio", "s"),
        ("eio", "w"),
        ("erofs", "w"),
        ("enospc", "w"),
        ("eio", "orws"),
    ],
)
async def test_commits_go_on_in_a_new_epoch_and_are_written_when_the_disk_answers_again(
    directory: Path, fault: DiskFault, start_child: StartChild, mode: str, calls: str
) -> None:
    child = await start_child(directory, fault.env, **LIMITS)
    opened = (await child.hear())["opened"]
    before = await child.ask("commit", count=3)
    assert (before["store_id"], before["durable"]) == (opened, True)

    fault.begin(mode, calls)
    during = await child.ask("commit", count=4)
    assert (during["committed"], during["durable"]) == ([4, 5, 6, 7], False)
    assert epoch(during["store_id"]) > epoch(opened)
    change = await child.change()
    assert (change["changed"], change["durable"]) == (during["store_id"], False)
    assert change["degraded"] != ""

    recovered = await end_and_recover(child, fault)
    assert (recovered["changed"], recovered["durable"]) == (during["store_id"], True)
    after = await child.ask("commit", count=2)
    assert (after["committed"], after["durable"]) == ([8, 9], True)
    assert after["store_id"] == during["store_id"]
    assert (await child.ask("read", after=0))["events"] == [[number, number] for number in range(1, 10)]
    await child.kill()

    recovery, events = await find(directory)
    assert str(recovery.store_id) == during["store_id"]
    assert [(one.seq, one.event.at_ns) for one in events] == [(number, number) for number in range(1, 10)]
    assert numbers_of(recovery) == list(range(1, 10))


async def test_a_commit_given_up_on_that_lands_later_is_not_written_twice(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    child = await start_child(directory, fault.env, **LIMITS)
    await child.hear()
    fault.begin("hang", "s")
    together = await child.ask("commit_together", count=5)
    assert (together["committed"], together["durable"]) == ([1, 2, 3, 4, 5], False)
    assert not (await child.change())["durable"]
    # Only now does the hanging sync end, and well: part of the five is on the disk already.
    assert (await end_and_recover(child, fault))["durable"]
    await child.kill()
    recovery, events = await find(directory)
    assert [one.seq for one in events] == [1, 2, 3, 4, 5]
    assert numbers_of(recovery) == [1, 2, 3, 4, 5]


async def test_a_crash_in_memory_puts_the_epoch_of_the_disk_in_force_again(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    child = await start_child(directory, fault.env, **LIMITS)
    opened = (await child.hear())["opened"]
    await child.ask("commit", count=2)
    fault.begin("eio")
    lost = await child.ask("commit", count=3)
    assert (lost["committed"], lost["durable"]) == ([3, 4, 5], False)
    await child.kill()
    fault.end()

    child = await start_child(directory, fault.env, **LIMITS)
    assert (await child.hear())["opened"] == opened
    reused = await child.ask("commit", count=3)
    assert (reused["committed"], reused["store_id"]) == ([3, 4, 5], opened)
    fault.begin("eio")
    again = await child.ask("commit", count=1)
    assert again["store_id"] not in (opened, lost["store_id"])
    assert epoch(again["store_id"]) > epoch(lost["store_id"])


async def test_what_memory_could_not_keep_is_older_than_retention_and_replay_begins_at_fresh_cells(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    child = await start_child(directory, fault.env, **LIMITS, backlog_events=10, backlog_inputs=10)
    await child.hear()
    await child.ask("commit", count=5)
    fault.begin("eio")
    await child.ask("commit", count=30)
    assert not (await child.change())["durable"]
    held = await child.ask("read", after=0)
    assert held["oldest"] == 26
    assert [seq for seq, _ in held["events"]] == list(range(26, 36))
    assert (await end_and_recover(child, fault))["durable"]
    await child.ask("commit", count=1)
    kept = await child.ask("read", after=0)
    assert kept["oldest"] == 26
    assert [seq for seq, _ in kept["events"]] == list(range(26, 37))
    await child.kill()

    recovery, events = await find(directory)
    assert [one.seq for one in events] == list(range(26, 37))
    assert recovery.carried == (condition(35),)
    assert recovery.carried_at_seq == 35
    assert numbers_of(recovery) == [36]


async def test_a_second_trouble_does_not_take_a_cursor_back_to_where_it_was_in_the_first(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    child = await start_child(directory, fault.env, **LIMITS)
    await child.hear()
    fault.begin("eio")
    await child.ask("commit", count=4)
    assert not (await child.change())["durable"]
    assert (await end_and_recover(child, fault))["durable"]
    assert (await child.ask("commit", count=5))["numbers"][-1] == 9
    # The source is quiet when the disk fails again: nothing new is to be written but that it is alive.
    fault.begin("eio")
    assert not (await child.ask("heartbeat"))["durable"]
    assert not (await child.change())["durable"]
    assert (await end_and_recover(child, fault))["durable"]
    await child.kill()

    recovery, _ = await find(directory)
    assert recovery.cursors["kmsg"].seq == 9


async def test_an_unread_empty_directory_is_taken_into_use_once_it_answers(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    fault.begin("hang")
    child = await start_child(directory, fault.env, **LIMITS, open_deadline_s=0.2)
    opened = await child.hear()
    opened = await child.hear() if "changed" in opened else opened
    assert (opened["durable"], opened["last_seq"]) == (False, 0)
    during = await child.ask("commit", count=2)
    assert (during["committed"], during["durable"]) == ([1, 2], False)
    fault.end()
    while not (await child.change())["durable"]:
        pass
    assert (await child.ask("commit", count=1))["store_id"] == during["store_id"]
    await child.kill()
    recovery, events = await find(directory)
    assert (str(recovery.store_id), [one.seq for one in events]) == (during["store_id"], [1, 2, 3])


async def test_a_state_that_the_start_could_not_read_is_left_alone_and_asks_for_a_restart(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    child = await start_child(directory, fault.env, **LIMITS)
    opened = (await child.hear())["opened"]
    await child.ask("commit", count=5)
    await child.kill()

    fault.begin("hang", "or")
    child = await start_child(directory, fault.env, **LIMITS, open_deadline_s=0.2)
    assert not (await child.hear())["durable"]
    assert (await child.ask("commit", count=1))["committed"] == [1]
    fault.end()
    while "restart" not in (change := await child.change())["degraded"]:
        pass
    assert not change["durable"]
    await child.kill()
    recovery, events = await find(directory)
    assert (str(recovery.store_id), [one.seq for one in events]) == (opened, [1, 2, 3, 4, 5])


async def test_a_process_whose_disk_hangs_can_still_end(
    directory: Path, fault: DiskFault, start_child: StartChild
) -> None:
    child = await start_child(directory, fault.env, **LIMITS)
    await child.hear()
    fault.begin("hang")
    assert not (await child.ask("commit", count=1))["durable"]
    assert (await child.ask("close"))["closed"]
    assert await child.ended() == 0


@pytest.mark.parametrize("seed", range(3))
async def test_over_random_faults_and_crashes_a_number_of_a_store_id_never_means_two_events(
    directory: Path, fault: DiskFault, start_child: StartChild, seed: int
) -> None:
    seeded = random.Random(seed)
    numbered: dict[tuple[str, int], int] = {}
    durable: dict[int, int] = {}
    for life in range(4):
        child = await start_child(directory, fault.env, commit_deadline_s=0.1, retry_s=0.01)
        await child.hear()
        child.order("number", next=1_000 * life + 1)
        for _ in range(seeded.randint(2, 6)):
            if seeded.random() < 0.5:
                fault.begin(seeded.choice(["hang", "eio", "enospc"]), seeded.choice(["s", "w", "ws", "rws"]))
            else:
                fault.end()
            said = await child.ask(seeded.choice(["commit", "commit_together"]), count=seeded.randint(1, 5))
            for seq, number in zip(said["committed"], said["numbers"], strict=True):
                assert numbered.setdefault((said["store_id"], seq), number) == number
                if said["durable"]:
                    durable[seq] = number
        await child.kill()
        fault.end()
        _, events = await find(directory)
        assert [one.seq for one in events] == list(range(1, len(events) + 1))
        kept = {one.seq: one.event.at_ns for one in events}
        assert {seq: kept.get(seq) for seq in durable} == durable
