"""Whether the processes on a chip look as if they hang: now and then a sample, and several alike in a row.

As MindCluster has it, but that what cannot be read is unknown: it never looks idle, and ends no suspicion.
A counter that went back has wrapped or was set to zero, so that how far it got is unknown too. Pure: the
time is an argument. It only suspects; a chip whose processes hang is not known to be faulty.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.wire import Holder

SUSPECTED_HANG: Final = "200001002"
"""MindCluster's code for it."""

_SECOND_NS: Final = 1_000_000_000
_PACKETS: Final = ("link_received_packets_total.roce", "link_sent_packets_total.roce")


@dataclass(frozen=True, slots=True, kw_only=True)
class HangRule:
    """MindCluster's defaults: ``samples`` in a row, one each ``period_ns``, with all that is below these."""

    period_ns: int = 60 * _SECOND_NS
    samples: int = 5
    aicore_ratio: float = 0.05
    packets: float = 100
    cpu_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one chip shows at one moment. ``processes`` by id and start; ``cpu_s`` is theirs in all, as
    ``packets`` is the chip's; both only grow. None is unknown.
    """

    processes: frozenset[tuple[int, int]] | None
    aicore_ratio: float | None
    memory_ratio: float | None
    packets: float | None
    cpu_s: float | None


def sample_of(readings: Mapping[str, float], holders: Sequence[Holder] | None, cpu_s: float | None) -> Sample:
    """From what a poll has read."""
    packets = [readings[metric] for metric in _PACKETS if metric in readings]
    return Sample(
        processes=None if holders is None else frozenset((each.pid, each.start_time) for each in holders),
        aicore_ratio=readings.get("utilization_ratio.aicore"),
        memory_ratio=readings.get("utilization_ratio.memory"),
        packets=sum(packets) if len(packets) == len(_PACKETS) else None,
        cpu_s=cpu_s,
    )


class HangWatch:
    """Watches one chip for a hang. ``see`` a sample whenever one is ``due``."""

    def __init__(self, rule: HangRule) -> None:
        self._rule = rule
        self._last: Sample | None = None
        self._due_ns = 0
        self._in_a_row = 0

    @property
    def suspected(self) -> bool:
        return self._in_a_row >= self._rule.samples

    def due(self, now_ns: int) -> bool:
        return now_ns >= self._due_ns

    def see(self, sample: Sample, now_ns: int) -> None:
        """The first one is only what the next is compared with."""
        last, self._last = self._last, sample
        self._due_ns = now_ns + self._rule.period_ns
        looks_hung = None if last is None else self._judge(last, sample)
        if looks_hung:
            self._in_a_row += 1
        elif looks_hung is False or not self.suspected:
            self._in_a_row = 0

    def forget(self) -> None:
        """The chip was away, or another one is there."""
        self._last = None
        self._due_ns = 0
        self._in_a_row = 0

    def _judge(self, last: Sample, now: Sample) -> bool | None:
        """False if anything shows that it does not hang, None if nothing does but not all is known."""
        if now.processes is None or last.processes is None:
            return None
        rule = self._rule
        grown_ratio = _difference(last.memory_ratio, now.memory_ratio)
        signs = (
            bool(now.processes) and now.processes == last.processes,
            _below(now.aicore_ratio, rule.aicore_ratio),
            None if grown_ratio is None else grown_ratio <= 0,
            _below(_growth(last.packets, now.packets), rule.packets),
            _below(_growth(last.cpu_s, now.cpu_s), rule.cpu_s),
        )
        if False in signs:
            return False
        return None if None in signs else True


def _below(value: float | None, limit: float) -> bool | None:
    return None if value is None else value < limit


def _difference(last: float | None, now: float | None) -> float | None:
    return None if last is None or now is None else now - last


def _growth(last: float | None, now: float | None) -> float | None:
    """How much a counter has grown."""
    grown = _difference(last, now)
    return None if grown is None or grown < 0 else grown
