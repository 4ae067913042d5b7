"""Rates between two samples, and the usual value of a rate.

A counter that is not read, or steps back, gives None. A process that was not in the sample before has done
everything since then. Across a gap nothing is known. What is usual is the median while the run was healthy,
over the newest two hours; a value counts only after a delay, so that the beginning of a hang is not learned
before the hang is found.
"""

from array import array
from bisect import bisect_left, insort
from collections import deque
from typing import Final, NamedTuple

from nodeagent.job.sample import ChipSample, ProcessSample, RunSample


class ProcessKey(NamedTuple):
    """One process. Its start time distinguishes it from another one that had its pid."""

    pid: int
    start_time: int


class ProcessRate(NamedTuple):
    """What one process did between two samples. ``bytes`` and ``calls`` per second, ``cpu`` per minute."""

    seconds: float
    bytes: float | None
    calls: float | None
    cpu: float | None
    is_new: bool


def key_of(process: ProcessSample) -> ProcessKey:
    return ProcessKey(process.pid, process.start_time)


class Rates:
    def __init__(self) -> None:
        self._processes: dict[ProcessKey, ProcessSample] = {}
        self._chips: dict[str, ChipSample] = {}

    def measured(
        self, sample: RunSample, seconds: float | None
    ) -> tuple[dict[ProcessKey, ProcessRate], dict[str, float]]:
        """The known rates of processes, and bytes per second of chips.

        ``seconds`` since the sample before; None where there was none, or where it is too long ago.
        """
        processes = {key_of(each): each for each in sample.processes}
        chips = {each.name: each for each in sample.chips}
        rates: dict[ProcessKey, ProcessRate] = {}
        traffic: dict[str, float] = {}
        if seconds is not None:
            for key, process in processes.items():
                rates[key] = _rate(self._processes.get(key), process, seconds)
            for name, chip in chips.items():
                if name in self._chips and (moved := _moved(self._chips[name], chip)) is not None:
                    traffic[name] = moved / seconds
        self._processes, self._chips = processes, chips
        return rates, traffic


_NOTHING_YET = ProcessSample(
    pid=0, ppid=0, cpu_s=0.0, read_bytes=0, write_bytes=0, rchar=0, wchar=0, syscr=0, syscw=0
)


def _rate(before: ProcessSample | None, now: ProcessSample, seconds: float) -> ProcessRate:
    was = before or _NOTHING_YET
    read = _greater(_grown(was.rchar, now.rchar), _grown(was.read_bytes, now.read_bytes))
    written = _greater(_grown(was.wchar, now.wchar), _grown(was.write_bytes, now.write_bytes))
    reads, writes = _grown(was.syscr, now.syscr), _grown(was.syscw, now.syscw)
    cpu_s = _grown(was.cpu_s, now.cpu_s)
    return ProcessRate(
        seconds,
        None if read is None or written is None else (read + written) / seconds,
        None if reads is None or writes is None else (reads + writes) / seconds,
        None if cpu_s is None else 60 * cpu_s / seconds,
        before is None,
    )


def _grown(was: float | None, now: float | None) -> float | None:
    return None if was is None or now is None or now < was else now - was


def _greater(by_call: float | None, by_device: float | None) -> float | None:
    """What is written through a mapping of memory shows only in what reached the device."""
    if by_call is None or by_device is None:
        return by_device if by_call is None else by_call
    return max(by_call, by_device)


def _moved(was: ChipSample, now: ChipSample) -> float | None:
    """What went over the links. A driver that reports only one direction reports enough."""
    grown = [
        _grown(before, after)
        for before, after in ((was.rx_bytes, now.rx_bytes), (was.tx_bytes, now.tx_bytes))
        if after is not None
    ]
    known = [each for each in grown if each is not None]
    return sum(known) if known and len(known) == len(grown) else None


LONGEST: Final = 720
"""Two hours of samples, one each ten seconds."""

LEAST: Final = 6
"""Fewer values have no median."""


class UsualValue:
    __slots__ = ("_delay", "_next", "_pending", "_ring", "_sorted")

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._pending = deque[float]()
        self._ring = array("d")
        self._next = 0
        self._sorted = array("d")

    def learn(self, value: float) -> None:
        self._pending.append(value)
        if len(self._pending) > self._delay:
            self._take(self._pending.popleft())

    def doubt(self) -> None:
        """What was not counted yet may be of a hang: it never will be."""
        self._pending.clear()

    def median(self) -> float | None:
        count = len(self._sorted)
        if count < LEAST:
            return None
        middle = count // 2
        return self._sorted[middle] if count % 2 else (self._sorted[middle - 1] + self._sorted[middle]) / 2

    def _take(self, value: float) -> None:
        if len(self._ring) < LONGEST:
            self._ring.append(value)
        else:
            self._sorted.pop(bisect_left(self._sorted, self._ring[self._next]))
            self._ring[self._next] = value
            self._next = (self._next + 1) % LONGEST
        insort(self._sorted, value)
