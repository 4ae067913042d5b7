"""What the process of a reset is asked: which devices, why, and what is known of them before. Never how.

It starts nothing. What is known is bounded: no reset fails for its evidence.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

import msgspec

from nodeagent.config.config import Config
from nodeagent.config.reset import ResetConfig
from nodeagent.core.model import Action, DeviceView, Holder
from nodeagent.core.state.registry import identity_of
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.resets.attempt import Attempt
from nodeagent.reset_unit.exchange.request import Device, Process, Request
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger

MAX_EVENTS: Final = 500
MAX_EVENTS_BYTES: Final = 1 << 20
"""An event of a device with many faults names them all."""


class RequestBuilder:
    """``reset`` is the configuration of the newest reload."""

    def __init__(self, config: Config, clock: Clock, feed: EventFeed, ledger: Ledger) -> None:
        self._clock = clock
        self._feed = feed
        self._ledger = ledger
        self.reset: ResetConfig = config.reset

    async def request(
        self, attempt: Attempt, action: Action, readings: Mapping[str, Mapping[str, float]]
    ) -> Request:
        left_ns = action.deadline_ns - self._clock.rule_ns()
        return Request(
            action=action.id,
            attempt=attempt.number,
            vendor=attempt.vendor,
            devices=tuple(_as_asked(device) for device in attempt.devices),
            reasons=action.reasons,
            once=attempt.once,
            deadline_ns=self._clock.boottime_ns() + left_ns,
            ended_first=tuple(_as_process(holder) for holder in action.holders),
            readings=readings,
            events=await self._events(attempt),
        )

    async def _events(self, attempt: Attempt) -> tuple[str, ...]:
        """The last ones about its devices, each as JSON."""
        try:
            stored = await self._ledger.read_events(max(0, self._feed.current.seq - MAX_EVENTS), MAX_EVENTS)
        except (StoreUnreadableError, StoreDamagedError) as error:
            return (msgspec.json.encode({"unreadable": str(error)}).decode(),)
        about = {device.id for device in attempt.devices}
        kept: deque[str] = deque()
        left_bytes = MAX_EVENTS_BYTES
        for each in reversed(stored):
            if each.event.device_id in about:
                line = msgspec.json.encode(each)
                left_bytes -= len(line)
                if left_bytes < 0:
                    break
                kept.appendleft(line.decode())
        return tuple(kept)


def _as_process(holder: Holder) -> Process:
    return Process(pid=holder.pid, start_time=holder.start_time)


def _as_asked(device: DeviceView) -> Device:
    return Device(name=device.name, identity=identity_of(device.id), pci=device.attributes.get("pci", ""))
