"""What the daemon gives to the process of a reset, and what it learns from the record of earlier resets.

A request names the devices, why they are reset, and what is known of them, but never how to reset them. Its
evidence is bounded, so that no reset fails for it. The record counts resets that a lost store has forgotten;
the processes of resets write it, and keep to their limits by it whatever the daemon believes.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nodeagent.config.config import Config
from nodeagent.config.reset import ResetConfig
from nodeagent.core.model import NODE, Action, DeviceView, Holder, HoldKind, Reset, ResetsRecorded, View
from nodeagent.core.state.registry import PROVISIONAL, identity_of
from nodeagent.daemon.clock import Clock
from nodeagent.reset_unit.exchange import record
from nodeagent.reset_unit.exchange.requests import JobProcess, RequestedDevice, ResetRequest, name_of
from nodeagent.store.disk.thread import within
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedAttempt:
    """The ``number``-th of an action, by its file's ``name``. ``devices`` as they were: the asker first.
    ``once``: an operator ordered it where the mode has none done.
    """

    action: str
    number: int
    name: str
    vendor: str
    devices: tuple[DeviceView, ...]
    once: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its devices."""
        return tuple(device.name for device in self.devices)


def attempt_of(view: View, reset: Reset) -> RequestedAttempt:
    """The one that it is at now."""
    by_id = {device.id: device for device in view.devices}
    devices = tuple(by_id[member] for member in reset.members if member in by_id)
    return RequestedAttempt(
        action=reset.id,
        number=reset.attempt,
        name=name_of(reset.id, reset.attempt),
        vendor=devices[0].vendor if devices else "",
        devices=devices,
        once=reset.once,
    )


def came_meanwhile(attempt: RequestedAttempt, view: View) -> str:
    """What would have kept it from beginning, had it been there by then; "" if nothing."""
    claims = {device.id: device.claims for device in attempt.devices}
    for device in view.devices:
        for claim in device.claims if device.id in claims else ():
            if claim not in claims[device.id]:
                job, kind = claim
                return f"{device.name} is claimed by the {kind or 'job'} {job}"
    for hold in view.holds:
        if hold.kind is HoldKind.QUIESCE:
            return f"quiesced by {hold.owner}: {hold.reason}"
        if hold.kind is HoldKind.ISOLATION and hold.device_id in claims:
            return f"isolated by {hold.owner}: {hold.reason}"
    return ""


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
        self, attempt: RequestedAttempt, action: Action, readings: Mapping[str, Mapping[str, float]]
    ) -> ResetRequest:
        left_ns = action.deadline_ns - self._clock.rule_ns()
        return ResetRequest(
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

    async def _events(self, attempt: RequestedAttempt) -> tuple[str, ...]:
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


def _as_process(holder: Holder) -> JobProcess:
    return JobProcess(pid=holder.pid, start_time=holder.start_time)


def _as_asked(device: DeviceView) -> RequestedDevice:
    return RequestedDevice(
        name=device.name, identity=identity_of(device.id), pci=device.attributes.get("pci", "")
    )


log = logging.getLogger(__name__)

READ_LIMIT_S: Final = 2.0
"""A disk that hangs holds up no start."""


async def resets_recorded(folder: Path, rule_ns: int) -> ResetsRecorded:
    """As the record in the folder has them; none where it cannot be read, and that is logged."""
    try:
        past = await within(READ_LIMIT_S, "record", lambda: record.resets_of_late(folder))
    except (OSError, ValueError) as error:
        log.warning(
            "the record of resets cannot be read, so the daemon does not count earlier resets: %s", error
        )
        past = ()
    found: defaultdict[str, list[int]] = defaultdict(list)
    for each in past:
        at_ns = rule_ns - each.ago_ns
        found[NODE].append(at_ns)
        for device in each.devices:
            found[device.identity or f"{PROVISIONAL}{device.pci or device.name}"].append(at_ns)
    return ResetsRecorded(resets_ns=tuple((device, tuple(times)) for device, times in found.items()))
