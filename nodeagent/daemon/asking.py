"""What the process of a reset is asked: all that it needs to do it, and what is known of its devices before.

It starts nothing. What is known is bounded: no reset fails for its evidence.
"""

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from nodeagent.config import Config
from nodeagent.core.devices import identity_of
from nodeagent.core.model import Action, DeviceView, Holder
from nodeagent.daemon.attempt import Attempt
from nodeagent.daemon.clock import Clock
from nodeagent.reset.config import ResetConfig
from nodeagent.reset.folder import Device, Process, Request
from nodeagent.store.board import Board
from nodeagent.store.errors import StoreDamagedError, StoreUnreadableError
from nodeagent.store.ledger import Ledger

MAX_EVENTS: Final = 500
MAX_EVENTS_BYTES: Final = 1 << 20
"""An event of a device with many faults names them all."""


class Asking:
    """``reset`` is the configuration of the newest reload; all else is as the workers were started with."""

    def __init__(self, config: Config, clock: Clock, board: Board, ledger: Ledger) -> None:
        self._config = config
        self._clock = clock
        self._board = board
        self._ledger = ledger
        self.reset: ResetConfig = config.reset

    async def request(
        self, attempt: Attempt, action: Action, readings: Mapping[str, Mapping[str, float]]
    ) -> Request:
        """Raises KeyError where no driver has its vendor's name."""
        config, reset, section = self._config, self.reset, self._config.drivers[attempt.vendor]
        left_ns = action.deadline_ns - self._clock.rule_ns()
        return Request(
            action=action.id,
            attempt=attempt.number,
            vendor=attempt.vendor,
            group=attempt.group,
            devices=tuple(_as_asked(device) for device in attempt.devices),
            reasons=action.reasons,
            deadline_ns=self._clock.boottime_ns() + left_ns,
            start_limit_s=reset.verify_timeout_ns / 1e9,
            library=section.library,
            procfs=str(getattr(section, "procfs", "/proc")),
            before=reset.before,
            after=reset.after,
            hook_timeout_s=reset.hook_timeout_ns / 1e9,
            do_not_touch=reset.do_not_touch,
            kernel_command_line=reset.kernel_command_line,
            evidence_dir=str(Path(config.agent.state_dir) / "evidence"),
            kernel_log=config.kmsg.path,
            ended_first=tuple(_as_process(holder) for holder in action.holders),
            grace_s=reset.terminate_grace_ns / 1e9,
            readings=readings,
            events=await self._events(attempt),
        )

    async def _events(self, attempt: Attempt) -> tuple[str, ...]:
        """The last ones about its devices, each as JSON."""
        try:
            stored = await self._ledger.read_events(max(0, self._board.current.seq - MAX_EVENTS), MAX_EVENTS)
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
    return Process(pid=holder.pid, start_time=holder.start_time, command=holder.command)


def _as_asked(device: DeviceView) -> Device:
    return Device(name=device.name, identity=identity_of(device.id), attributes=device.attributes)
