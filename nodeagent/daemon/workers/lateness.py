"""Which devices owe an answer, since when, and which of them are late. Pure: the time is an argument.

A device is asked again only after it answered, so a call that hangs is one call. Where a driver may hold
all devices up for one of them, a device is late by itself only once another has long answered what was asked
later; while none has, all are given longer. Time in which the daemon itself did not listen is excused: its
own slowness is not the driver's.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.wire import SOURCE


@dataclass(slots=True)
class _Asked:
    poll_id: int
    at_s: float
    late: bool = False
    overtaken_s: float = math.inf
    """Since when another device has answered what was asked later: it is not held up by the same call."""


class Lateness:
    """``call_deadline_s`` is how long one call may take; ``stall_deadline_s``, where it is longer, how long
    while no device answers. Times are seconds of a monotonic clock.
    """

    def __init__(self, call_deadline_s: float, stall_deadline_s: float = 0.0) -> None:
        self._call_deadline_s = call_deadline_s
        self._stall_deadline_s = max(call_deadline_s, stall_deadline_s)
        self._expected: dict[str, None] = {}
        self._asked: dict[str, _Asked] = {}
        self._alone: frozenset[str] = frozenset()

    @property
    def expected(self) -> tuple[str, ...]:
        return tuple(self._expected)

    def expects(self, device: str) -> bool:
        """Whether what it answers is of interest: false of one that has gone since it was asked."""
        return device in self._expected

    def expect(self, devices: Iterable[str]) -> None:
        """From now on these are polled, and the source itself.

        A device that has just gone is not late, but may still answer, and is not asked again before it has.
        """
        before, self._expected = self._expected, dict.fromkeys((SOURCE, *devices))
        known = before.keys() | self._expected.keys()
        self._asked = {device: asked for device, asked in self._asked.items() if device in known}
        for device in self._asked.keys() - before.keys():
            self._asked[device].late = False

    def free(self) -> tuple[str, ...]:
        """The devices that owe no answer, but for those that are let alone."""
        owing = self._asked.keys() | self._alone
        return tuple(device for device in self._expected if device not in owing)

    def let_alone(self, devices: Iterable[str], now_s: float) -> None:
        """These are not asked and never late, until this is called without them."""
        alone = frozenset(devices)
        for device in self._alone - alone:
            if (asked := self._asked.get(device)) is not None:
                asked.at_s, asked.overtaken_s, asked.late = now_s, math.inf, False
        self._alone = alone

    def ask(self, poll_id: int, devices: Iterable[str], now_s: float) -> None:
        for device in devices:
            self._asked[device] = _Asked(poll_id, now_s)

    def answer(self, poll_id: int, device: str, now_s: float) -> bool:
        """False: that was not asked."""
        asked = self._asked.get(device)
        if asked is None or asked.poll_id != poll_id:
            return False
        del self._asked[device]
        for other in self._asked.values() if device != SOURCE else ():
            if other.poll_id < poll_id:
                other.overtaken_s = min(other.overtaken_s, now_s)
        return True

    def newly_late(self, now_s: float) -> tuple[str, ...]:
        """The devices that have become late since the last call, the longest waiting first."""
        late = [
            (asked.at_s, device)
            for device, asked in self._owing()
            if not asked.late and self._late_s(asked) <= now_s
        ]
        for _, device in late:
            self._asked[device].late = True
        return tuple(device for _, device in sorted(late, key=lambda pair: pair[0]))

    @property
    def late(self) -> tuple[str, ...]:
        """All late ones, the longest waiting first: a hung driver hangs first where it was first asked.

        From any thread.
        """
        late = sorted(
            (asked.at_s, n, device) for n, (device, asked) in enumerate(self._owing()) if asked.late
        )
        return tuple(device for _, _, device in late)

    @property
    def all_late(self) -> bool:
        """No device answers any more; where there are none, the source does not."""
        devices = [each for each in self._expected if each != SOURCE and each not in self._alone] or [SOURCE]
        late = set(self.late)
        return bool(self._expected) and all(device in late for device in devices)

    def due_s(self) -> float | None:
        """When the next one becomes late."""
        return min(
            (self._late_s(asked) for _, asked in self._owing() if not asked.late),
            default=None,
        )

    def excuse(self, time_s: float) -> None:
        """The daemon did not listen for this long."""
        for asked in self._asked.values():
            asked.at_s += time_s
            asked.overtaken_s += time_s

    def _late_s(self, asked: _Asked) -> float:
        """When it becomes late: by itself once it was overtaken, with all others when they stall."""
        return min(asked.overtaken_s + self._call_deadline_s, asked.at_s + self._stall_deadline_s)

    def _owing(self) -> list[tuple[str, _Asked]]:
        """The devices that may be or become late, in the order in which they were asked."""
        asked = tuple(self._asked.items())
        return [each for each in asked if each[0] in self._expected and each[0] not in self._alone]
