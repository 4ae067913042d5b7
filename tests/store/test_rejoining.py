"""Between memory and disk: what is numbered while the backlog is being written, and a crash amid that."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeagent.store.change import Change
from nodeagent.store.disk import durability
from nodeagent.store.disk.writer import Writer
from nodeagent.store.records import Committed
from tests.store.opened import opened
from tests.store.samples import condition, transaction
from tests.waiting import until


def numbers(committed: Committed) -> dict[tuple[str, int], int]:
    """By store id and sequence number, the event that has them."""
    return {(str(committed.store_id), one.seq): one.event.at_ns for one in committed.events}


def watched(during: Callable[[], object], after: Callable[[], object]) -> type[Writer]:
    """A writer that says when the first write of a backlog is under way, and when it is on the disk."""

    class Watched(Writer):
        seen = False

        def write(self, change: Change) -> "asyncio.Future[None]":
            written = super().write(change)
            if change.base is not None and not Watched.seen:
                Watched.seen = True
                written.add_done_callback(lambda _: after())
                during()
            return written

    return Watched


async def test_a_crash_before_all_of_the_backlog_is_written_gives_no_number_of_a_store_id_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, crashed = tmp_path / "state", tmp_path / "crashed"
    published: dict[tuple[str, int], int] = {}
    late: list[asyncio.Task[Committed]] = []

    async with opened(directory, carry=lambda: [condition(1)]) as one:
        ledger = one.ledger
        for number in (1, 2):
            published |= numbers(await ledger.commit(transaction(number)))
        monkeypatch.setattr(
            durability,
            "Writer",
            watched(
                during=lambda: late.append(asyncio.create_task(ledger.commit(transaction(4)))),
                after=lambda: shutil.copytree(directory, crashed),
            ),
        )
        for each in directory.glob("store.db*"):
            each.unlink()
        published |= numbers(await ledger.commit(transaction(3)))
        await until(crashed.exists)
        published |= numbers(await late[0])
        await one.durable()

    async with opened(crashed) as again:
        for number in (101, 102, 103, 104):
            for key, event in numbers(await again.ledger.commit(transaction(number))).items():
                assert published.setdefault(key, event) == event
