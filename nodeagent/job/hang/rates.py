"""Differences of counters between two samples. A counter that is not read, or stepped back, gives None.

A process that was not in the sample before has done everything since then. Across a gap nothing is known.
"""

from typing import NamedTuple

from nodeagent.job.sample import ChipSample, ProcessSample, Sample


class Key(NamedTuple):
    """One process. Its start time tells it apart from another one that had its pid."""

    pid: int
    start_time: int


class Rate(NamedTuple):
    """What one process did between two samples. ``bytes`` and ``calls`` per second, ``cpu`` per minute."""

    seconds: float
    bytes: float | None
    calls: float | None
    cpu: float | None
    is_new: bool


def key_of(process: ProcessSample) -> Key:
    return Key(process.pid, process.start_time)


class Rates:
    def __init__(self) -> None:
        self._processes: dict[Key, ProcessSample] = {}
        self._chips: dict[str, ChipSample] = {}

    def measured(self, sample: Sample, seconds: float | None) -> tuple[dict[Key, Rate], dict[str, float]]:
        """The known rates of processes, and bytes per second of chips.

        ``seconds`` since the sample before; None where there was none, or where it is too long ago.
        """
        processes = {key_of(each): each for each in sample.processes}
        chips = {each.name: each for each in sample.chips}
        rates: dict[Key, Rate] = {}
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


def _rate(before: ProcessSample | None, now: ProcessSample, seconds: float) -> Rate:
    was = before or _NOTHING_YET
    read = _greater(_grown(was.rchar, now.rchar), _grown(was.read_bytes, now.read_bytes))
    written = _greater(_grown(was.wchar, now.wchar), _grown(was.write_bytes, now.write_bytes))
    reads, writes = _grown(was.syscr, now.syscr), _grown(was.syscw, now.syscw)
    cpu_s = _grown(was.cpu_s, now.cpu_s)
    return Rate(
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
