"""The way out of a worker: whole lines from many threads, callbacks that never wait, what is lost counted."""

import json
import math
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from nodeagent.drivers.api import Reading
from nodeagent.wire import SOURCE, Batch, Signal
from nodeagent.worker.reports import MAX_ENQUEUED, Outlet

THREADS = 4
REPORTS_EACH = 2000


class Daemon:
    """The other end of the pipe. It reads nothing until it is asked to."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "rb")
        self.lines: list[dict[str, Any]] = []

    def read(self) -> dict[str, Any]:
        self.lines.append(json.loads(self._pipe.readline()))
        return self.lines[-1]

    def read_until(self, wanted: str) -> dict[str, Any]:
        """The first message of this type."""
        while self.read()["type"] != wanted:
            pass
        return self.lines[-1]

    def close(self) -> None:
        self._pipe.close()


@pytest.fixture
def ends() -> Iterator[tuple[Outlet, Daemon]]:
    reading, writing = os.pipe()
    daemon = Daemon(reading)
    yield Outlet(writing), daemon
    daemon.close()


def occurred(thread: int, number: int) -> Batch:
    return Batch(signals=(Signal(device=f"npu{thread}", code=f"C{number}"),))


def call_back_from_threads(outlet: Outlet, reports_each: int) -> None:
    """As a vendor's library does it: from threads of its own, all at once."""
    together = threading.Barrier(THREADS)

    def call_back(thread: int) -> None:
        together.wait()
        for number in range(reports_each):
            outlet.enqueue(occurred(thread, number))

    threads = [threading.Thread(target=call_back, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_device(lines: list[dict[str, Any]]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for line in lines:
        for signal in line.get("signals", ()):
            codes.setdefault(signal["device"], []).append(signal["code"])
    return codes


def reported(daemon: Daemon) -> int:
    return sum(len(codes) for codes in by_device(daemon.lines).values())


def test_callbacks_never_wait_for_a_daemon_that_reads_nothing_and_every_one_dropped_is_counted(
    ends: tuple[Outlet, Daemon],
) -> None:
    outlet, daemon = ends
    call_back_from_threads(outlet, REPORTS_EACH)  # returns, though nobody has read a byte

    replying = threading.Thread(target=outlet.reply, args=(1, SOURCE, 0, Reading()))
    replying.start()
    reply = daemon.read_until("reply")
    replying.join()
    dropped = int(reply["readings"]["dropped_callbacks_total"])
    assert dropped > 0
    while reported(daemon) < THREADS * REPORTS_EACH - dropped:
        daemon.read()
    assert reported(daemon) + dropped == THREADS * REPORTS_EACH


def test_reports_of_one_thread_keep_their_order(ends: tuple[Outlet, Daemon]) -> None:
    outlet, daemon = ends
    each = MAX_ENQUEUED // THREADS
    call_back_from_threads(outlet, each)
    while reported(daemon) < THREADS * each:
        daemon.read()
    wanted = [f"C{number}" for number in range(each)]
    assert by_device(daemon.lines) == {f"npu{thread}": wanted for thread in range(THREADS)}


def test_a_source_without_callbacks_counts_none_dropped(ends: tuple[Outlet, Daemon]) -> None:
    outlet, daemon = ends
    outlet.reply(1, SOURCE, 0, Reading(readings={"records_total": 3.0}))
    assert daemon.read_until("reply")["readings"] == {"records_total": 3.0}


def test_what_is_no_number_is_left_out(ends: tuple[Outlet, Daemon]) -> None:
    outlet, daemon = ends
    outlet.reply(1, "npu0", 5, Reading(readings={"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5}))
    assert daemon.read_until("reply")["readings"] == {"d": 1.5}


def test_replies_are_held_while_another_is_sure_to_follow() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    more_to_come = True
    outlet = Outlet(writing, may_hold=lambda: more_to_come)

    outlet.reply(1, "npu0", 0, Reading())
    outlet.reply(1, "npu1", 0, Reading())
    with pytest.raises(BlockingIOError):
        os.read(reading, 1)
    more_to_come = False
    outlet.reply(1, "npu2", 0, Reading())
    assert devices(os.read(reading, 65536)) == ["npu0", "npu1", "npu2"]

    more_to_come = True
    outlet.reply(2, "npu0", 0, Reading())
    outlet.flush()
    assert devices(os.read(reading, 65536)) == ["npu0"]
    os.close(reading)
    os.close(writing)


def test_what_is_held_comes_before_what_is_told_later() -> None:
    reading, writing = os.pipe()
    outlet = Outlet(writing, may_hold=lambda: True)
    outlet.reply(1, "npu0", 0, Reading())
    outlet.send(occurred(0, 1))
    types = [json.loads(line)["type"] for line in os.read(reading, 65536).splitlines()]
    assert types == ["reply", "batch"]
    os.close(reading)
    os.close(writing)


def devices(lines: bytes) -> list[str]:
    return [json.loads(line)["device"] for line in lines.splitlines()]
