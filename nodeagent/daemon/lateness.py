"""Which devices owe an answer, since when, and which of them are late. Pure: the time is an argument.

A device is asked again only after it answered, so a call that hangs is one call. Time in which the
daemon itself did not listen is excused: its own slowness is not the driver's.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.worker.protocol import SOURCE


@dataclass(slots=True)
class _Asked:
    poll_id: int
    at_s: float
    late: bool = False


class Lateness:
    """``call_deadline_s`` is how long one call may take. Times are seconds of a monotonic clock."""

    def __init__(self, call_deadline_s: float) -> None:
        self._call_deadline_s = call_deadline_s
        self._expected: dict[str, None] = {}
        self._asked: dict[str, _Asked] = {}

    @property
    def expected(self) -> tuple[str, ...]:
        return tuple(self._expected)

    def expect(self, devices: Iterable[str]) -> None:
        """From now on these are polled, and the source itself; what is no longer among them owes nothing."""
        self._expected = dict.fromkeys((SOURCE, *devices))
        self._asked = {device: asked for device, asked in self._asked.items() if device in self._expected}

    def free(self) -> tuple[str, ...]:
        """The devices that owe no answer."""
        return tuple(device for device in self._expected if device not in self._asked)

    def ask(self, poll_id: int, devices: Iterable[str], now_s: float) -> None:
        for device in devices:
            self._asked[device] = _Asked(poll_id, now_s)

    def answer(self, poll_id: int, device: str) -> bool:
        """False: nobody asked that."""
        asked = self._asked.get(device)
        if asked is None or asked.poll_id != poll_id:
            return False
        del self._asked[device]
        return True

    def newly_late(self, now_s: float) -> tuple[str, ...]:
        """The devices that have become late since the last call, the longest waiting first."""
        late = [
            (asked.at_s, device)
            for device, asked in self._asked.items()
            if not asked.late and asked.at_s + self._call_deadline_s <= now_s
        ]
        for _, device in late:
            self._asked[device].late = True
        return tuple(device for _, device in sorted(late, key=lambda pair: pair[0]))

    @property
    def late(self) -> tuple[str, ...]:
        """All late ones, the longest waiting first: a hung driver hangs first where it was first asked.

        From any thread.
        """
        owed = tuple(self._asked.items())
        late = sorted((asked.at_s, n, device) for n, (device, asked) in enumerate(owed) if asked.late)
        return tuple(device for _, _, device in late)

    @property
    def all_late(self) -> bool:
        """No device answers any more; where there are none, the source does not."""
        devices = [device for device in self._expected if device != SOURCE] or [SOURCE]
        late = set(self.late)
        return bool(self._expected) and all(device in late for device in devices)

    def due_s(self) -> float | None:
        """When the next one becomes late."""
        return min(
            (asked.at_s + self._call_deadline_s for asked in self._asked.values() if not asked.late),
            default=None,
        )

    def excuse(self, time_s: float) -> None:
        """The daemon did not listen for this long."""
        for asked in self._asked.values():
            asked.at_s += time_s
