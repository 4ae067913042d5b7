"""The ledger on a sound disk: what goes in comes back, in order, under the same numbers."""

import asyncio
from pathlib import Path

import pytest

from nodeagent.core.model import CatalogChanged
from nodeagent.store.errors import StoreInUseError
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Cursor, Stamped, Transaction
from tests.store.samples import MACHINE, PATIENT, WALL_NS, anchor, condition, event, signal, transaction


def ledger_in(directory: Path, machine_id: str = MACHINE) -> Ledger:
    return Ledger(directory, machine_id, limits=PATIENT, wall_ns=lambda: WALL_NS)


def under_catalogs(*digests: str) -> Transaction:
    """Inputs that name catalogs, so that no upkeep takes them for unused."""
    return Transaction(
        inputs=tuple(
            Stamped(rule_ns=1, wall_ns=WALL_NS, input=CatalogChanged(digest=digest)) for digest in digests
        )
    )


async def test_a_first_start_finds_an_empty_durable_store(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path / "state")
    recovery = await ledger.open()
    assert (recovery.last_seq, recovery.inputs, recovery.carried, recovery.durable) == (0, (), (), True)
    assert (ledger.oldest_seq, ledger.last_seq, ledger.degraded) == (1, 0, "")
    await ledger.close()


async def test_a_commit_numbers_its_events_and_is_found_at_the_next_start(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    first = await ledger.commit(transaction(1, events=2))
    second = await ledger.commit(transaction(10, inputs=3, events=1))
    assert [one.seq for one in (*first.events, *second.events)] == [1, 2, 3]
    assert (second.last_seq, second.durable) == (3, True)
    await ledger.close()

    again = ledger_in(tmp_path)
    recovery = await again.open()
    assert recovery.store_id == first.store_id
    assert [one.input for one in recovery.inputs] == [signal(1), signal(10), signal(11), signal(12)]
    assert [one.rule_ns for one in recovery.inputs] == [1, 10, 11, 12]
    assert (recovery.last_seq, recovery.engine_now_ns, recovery.anchor) == (3, 10, anchor(10))
    assert recovery.cursors == {"kmsg": Cursor(boot_id="boot-1", seq=10)}
    assert [one.event for one in await again.read_events(0)] == [event(1), event(2), event(10)]
    assert (await again.commit(transaction(20))).last_seq == 4
    await again.close()


async def test_commits_under_way_together_keep_the_order_of_calls(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    committed = await asyncio.gather(*(ledger.commit(transaction(number)) for number in range(1, 301)))
    assert [one.events[0].seq for one in committed] == list(range(1, 301))
    assert [one.event.at_ns for one in await ledger.read_events(0)] == list(range(1, 301))
    await ledger.close()


async def test_events_are_read_in_pages_beyond_a_number(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    await ledger.commit(transaction(1, events=10))
    assert [one.seq for one in await ledger.read_events(3, limit=4)] == [4, 5, 6, 7]
    assert await ledger.read_events(10) == []
    await ledger.close()


async def test_a_replay_begins_at_the_last_compaction(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    await ledger.commit(transaction(1, inputs=5, events=2))
    assert ledger.inputs_since_base == 5
    assert await ledger.compact([condition(1), condition(2)], engine_now_ns=7, anchor=anchor(7))
    assert ledger.inputs_since_base == 0
    await ledger.commit(transaction(8))
    await ledger.close()

    again = ledger_in(tmp_path)
    recovery = await again.open()
    assert recovery.carried == (condition(1), condition(2))
    assert (recovery.carried_at_seq, recovery.carried_at_ns) == (2, 7)
    assert [one.input for one in recovery.inputs] == [signal(8)]
    assert recovery.last_seq == 3
    await again.close()


async def test_another_machine_gets_another_store_id_and_keeps_the_history(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    committed = await ledger.commit(transaction(1))
    await ledger.close()

    copied = ledger_in(tmp_path, "machine-b")
    recovery = await copied.open()
    assert recovery.store_id.uuid != committed.store_id.uuid
    assert recovery.last_seq == 1
    assert [one.event for one in await copied.read_events(0)] == [event(1)]
    await copied.close()


async def test_a_directory_in_use_is_refused_to_a_second_ledger(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    with pytest.raises(StoreInUseError, match="in use by another nodeagent"):
        await ledger_in(tmp_path).open()
    assert (await ledger.commit(transaction(1))).durable
    await ledger.close()


async def test_catalogs_are_kept_by_digest_and_the_last_one_put_is_the_last_good(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    assert await ledger.last_good_catalog() is None
    await ledger.commit(under_catalogs("aa", "bb"))
    await ledger.put_catalog("aa", b"first", "start")
    await ledger.put_catalog("bb", b"second", "reload")
    await ledger.put_catalog("aa", b"first", "reload")
    await ledger.close()

    again = ledger_in(tmp_path)
    await again.open()
    assert await again.last_good_catalog() == ("aa", b"first")
    assert await again.get_catalog("bb") == b"second"
    assert await again.get_catalog("cc") is None
    await again.close()


async def test_what_was_asked_of_the_daemon_can_be_read_back(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await ledger.open()
    await ledger.audit(WALL_NS, "uid 1000", "IsolateDevice", "npu0", "PERMISSION_DENIED")
    await ledger.audit(WALL_NS + 1, "uid 0", "IsolateDevice", "npu0", "OK")
    assert await ledger.read_audit() == [
        (1, WALL_NS, "uid 1000", "IsolateDevice", "npu0", "PERMISSION_DENIED"),
        (2, WALL_NS + 1, "uid 0", "IsolateDevice", "npu0", "OK"),
    ]
    await ledger.close()
