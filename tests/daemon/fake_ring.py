"""A driver that follows a ring of numbered records, some of which no worker survives looking at.

``config``: ``control`` (the folder). In it ``ring`` holds a record a line, ``NUMBER TEXT``. A text is the
code of a signal, but for these:

    WEDGE    looking at it never ends
    CRASH    looking at it reads from address 0
    BUG      looking at it raises what nobody expects

``met`` in the folder lists what was looked at, by all workers, one after the other.
"""

import ctypes
import select
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from nodeagent.drivers.api import CallFailed, Driver, Emit, Link, Population, Reading
from nodeagent.wire import Batch, CaughtUp, Configure, LookingAt, Pattern, Signal, Skipped

LOOK_AGAIN_MS = 10


def create(configure: Configure, emit: Emit) -> Driver:
    return FakeRing(configure, emit)


class FakeRing:
    def __init__(self, configure: Configure, emit: Emit) -> None:
        self._control = Path(str(configure.config["control"]))
        self._position = -1 if configure.cursor is None else configure.cursor.seq
        self._careful = configure.careful
        self._skip = frozenset(configure.skip_records)
        self._emit = emit

    def open(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def devices(self) -> Population:
        return Population()

    def poll(self, device: str) -> Reading:
        raise CallFailed(f"no device {device!r}")

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """No patterns."""

    def follow(self, link: Link) -> None:
        begun_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._read()
        self._careful = False
        self._emit(CaughtUp(begun_ns=begun_ns, active=()))
        poller = select.poll()
        poller.register(link.fileno(), select.POLLIN)
        while not link.closed:
            for poll in link.asked():
                link.answer(poll, Reading(), begun_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME))
            self._read()
            poller.poll(LOOK_AGAIN_MS)

    def _read(self) -> None:
        """All that is new, reported at once; of a careful one each record by itself."""
        lines = (self._control / "ring").read_text().splitlines()
        records = [(int(number), text) for number, _, text in (line.partition(" ") for line in lines)]
        fresh = [record for record in records if record[0] > self._position]
        at_once = 1 if self._careful else max(1, len(fresh))
        for first in range(0, len(fresh), at_once):
            self._take(fresh[first : first + at_once])

    def _take(self, records: Sequence[tuple[int, str]]) -> None:
        signals, skipped = [], []
        for number, text in records:
            if number in self._skip:
                skipped.append(Skipped(seq=number, evidence={"line": text}))
                continue
            if self._careful:
                self._emit(LookingAt(seq=number))
            signals.append(self._look_at(number, text))
        self._position = records[-1][0]
        self._emit(Batch(signals=tuple(signals), skipped=tuple(skipped), cursor=self._position))

    def _look_at(self, number: int, text: str) -> Signal:
        with (self._control / "met").open("a") as met:
            print(number, text, file=met)
        if text == "WEDGE":
            threading.Event().wait()
        if text == "CRASH":
            ctypes.string_at(0)
        if text == "BUG":
            raise AssertionError(text)
        return Signal(device="node", code=text)
