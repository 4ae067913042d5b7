"""Chips whose clock is far below that of the others of their job: the daemon looks at its own readings.

No report of a supervisor is needed, and none proves anything. The rule is that of
``nodeagent.job.slow.chips``: ten minutes in use, equal chips of one training job, no lower limit that
somebody has set. The condition goes when the chip is seen at work at the clock of its peers: a job that ends
repairs nothing.

It finds the open conditions in what is published, so that a start of the daemon goes on with them.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import chips
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import AGENT, Assertion, Condition, JobStage, JobView, Signal, View
from nodeagent.job.slow.chips import ChipHistory, SlowChip, differences, keeps_up, slow_chips
from nodeagent.store.event_feed import EventFeed

LOOK_EACH_S: Final = 10.0
CODE: Final = "clock_below_peers"
TRAINING: Final = "training"

_KEY: Final = canonical(CODE)


class SlowChips:
    """``readings`` gives the last of each observed device, by its name; ``now_s`` is CLOCK_MONOTONIC."""

    def __init__(
        self,
        feed: EventFeed,
        ask: Ask,
        readings: Callable[[], Mapping[str, chips.Readings]],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.look_each_s = LOOK_EACH_S
        self._feed = feed
        self._ask = ask
        self._readings = readings
        self._now_s = now_s
        self._jobs: dict[tuple[str, int], dict[str, ChipHistory]] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            if signals := self.look():
                await self._ask(*signals)
            await asyncio.sleep(self.look_each_s)

    def look(self) -> list[Signal]:
        """What has begun, and what is over. A new run of a job begins without readings."""
        view, now_s = self._feed.current.view, self._now_s()
        running = {(job.name, job.run): job for job in view.jobs if _is_judged(job)}
        self._jobs = {key: self._jobs.get(key, {}) for key in running}
        names = {device.id: device.name for device in view.devices}
        known = {names.get(each.device_id, "") for each in view.conditions if _is_own(each)}
        signals = list[Signal]()
        for key, job in running.items():
            kept = self._jobs[key]
            self._add(view, job, kept, now_s)
            slow = {each.name: each for each in slow_chips(kept)}
            signals += [_occurs(each, kept) for name, each in slow.items() if name not in known]
            signals += [_recovers(name) for name in kept if name in known and keeps_up(name, kept)]
        return signals

    def _add(self, view: View, job: JobView, kept: dict[str, ChipHistory], now_s: float) -> None:
        readings = self._readings()
        for device in chips.devices_of(view, job):
            if device.observed and device.name in readings:
                nobody = dict.fromkeys(device.holders or ())
                reading = chips.chip(device, readings[device.name], nobody)
                kept.setdefault(device.name, ChipHistory()).add(now_s, reading)


def _is_judged(job: JobView) -> bool:
    return job.stage is JobStage.RUNNING and job.kind == TRAINING


def _is_own(condition: Condition) -> bool:
    """What was injected ends by hand."""
    return canonical(condition.code) == _KEY and not condition.origin.injected and condition.source == AGENT


def _occurs(slow: SlowChip, kept: Mapping[str, ChipHistory]) -> Signal:
    evidence = {
        "clock_mhz": f"{slow.clock_mhz:.0f}",
        "peers_mhz": f"{slow.peers_mhz:.0f}",
        "seconds": f"{slow.seconds:.0f}",
        "differs": "; ".join(differences(slow.name, kept)),
    }
    return Signal(source=AGENT, device=slow.name, code=CODE, assertion=Assertion.OCCUR, evidence=evidence)


def _recovers(name: str) -> Signal:
    return Signal(source=AGENT, device=name, code=CODE, assertion=Assertion.RECOVER, evidence={})
