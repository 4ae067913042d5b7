"""The processes on a chip: which they are, whether they seem to hang, and which ones a reset kills.

**Which they are.** As the library lists them.

**Whether they seem to hang.** A sample is taken each minute; several alike in a row are a suspicion, as in
MindCluster. A value that cannot be read is unknown: it is never taken for idle, and it ends no suspicion. A
counter that went back has wrapped or was cleared, so its growth is unknown too. A chip whose processes hang
is not known to be faulty.

**Which ones a reset kills.** ``dcmi_clear_running_proc`` of the vendor's dcmi_hot_reset_intf.c reads a list
that root has written. Before it resets a 910B or an A3, it sends SIGKILL to each process on that list that
uses any NPU of the machine, also one that is not reset. The list is read here so that it can be reported
before.

This module ends no process.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.dcmi_calls import DcmiChip, ImpossibleValue
from nodeagent.drivers.ascend.slow_calls import Refusals
from nodeagent.drivers.shared.users import user_of
from nodeagent.wire import DeviceUser


class ChipUsers:
    """The processes on one chip. ``refused`` counts values that cannot be."""

    def __init__(self, chip: DcmiChip, procfs: Path, refusals: Refusals) -> None:
        self.refused = 0
        self._chip = chip
        self._procfs = procfs
        self._refusals = refusals
        self._users: dict[int, DeviceUser] = {}

    def users(self, *, slow_round: bool, again: bool) -> tuple[DeviceUser, ...] | None:
        """The processes on the chip, by pid; None if they cannot be read. ``again``: known ones are looked up
        again too.
        """
        if not self._refusals.asks("processes", slow_round=slow_round):
            return None
        try:
            pids = self._chip.processes()
        except ImpossibleValue:
            self.refused += 1
            return None
        except CallFailed:
            self._refusals.note("processes", refused=True)
            return None
        self._refusals.note("processes", refused=False)
        if any(pid <= 0 for pid in pids):
            self.refused += 1
            return None
        known = {} if again else self._users
        self._users = {pid: known.get(pid) or self._user(pid) for pid in pids}
        return tuple(self._users[pid] for pid in sorted(self._users))

    def _user(self, pid: int) -> DeviceUser:
        """A process that cannot be read is on the chip all the same."""
        return user_of(self._procfs, pid) or DeviceUser(pid=pid, start_time=0, command="")


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
class HangSample:
    """What one chip shows at one moment. ``processes`` by id and start; ``cpu_s`` is theirs in all, as
    ``packets`` is the chip's; both only grow. None is unknown.
    """

    processes: frozenset[tuple[int, int]] | None
    aicore_ratio: float | None
    memory_ratio: float | None
    packets: float | None
    cpu_s: float | None


def sample_of(
    readings: Mapping[str, float], users: Sequence[DeviceUser] | None, cpu_s: float | None
) -> HangSample:
    """From what a poll has read."""
    packets = [readings[metric] for metric in _PACKETS if metric in readings]
    return HangSample(
        processes=None if users is None else frozenset((each.pid, each.start_time) for each in users),
        aicore_ratio=readings.get("utilization_ratio.aicore"),
        memory_ratio=readings.get("utilization_ratio.memory"),
        packets=sum(packets) if len(packets) == len(_PACKETS) else None,
        cpu_s=cpu_s,
    )


class ChipHangWatch:
    """Watches one chip for a hang. ``see`` a sample whenever one is ``due``."""

    def __init__(self, rule: HangRule) -> None:
        self._rule = rule
        self._last: HangSample | None = None
        self._due_ns = 0
        self._in_a_row = 0

    @property
    def suspected(self) -> bool:
        return self._in_a_row >= self._rule.samples

    def due(self, now_ns: int) -> bool:
        return now_ns >= self._due_ns

    def see(self, sample: HangSample, now_ns: int) -> None:
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

    def _judge(self, last: HangSample, now: HangSample) -> bool | None:
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


MAX_LINES: Final = 10
"""The library reads no more of them."""

_KEY: Final = "AllowKilledWhenResetNPU"


def killed_at_reset(procfs: Path, kill_list: Path) -> dict[int, str]:
    """Pid -> name, of those that run under that name. A line: ``AllowKilledWhenResetNPU:NAME:PID``.

    Empty where there is no list. Raises ``OSError`` where it cannot be read.
    """
    try:
        lines = kill_list.read_text(errors="replace").splitlines()[:MAX_LINES]
    except FileNotFoundError:
        return {}
    return {pid: name for pid, name in _named(lines) if _runs(procfs, pid, name)}


def _named(lines: list[str]) -> Iterator[tuple[int, str]]:
    for line in lines:
        words = [word for word in line.replace(" ", "").split(":") if word]
        if len(words) == 3 and words[0] == _KEY and words[2].isascii() and words[2].isdigit():
            yield int(words[2]), words[1]


def _runs(procfs: Path, pid: int, name: str) -> bool:
    try:
        status = (procfs / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return False
    return status.splitlines()[0].removeprefix("Name:").split()[:1] == [name]
