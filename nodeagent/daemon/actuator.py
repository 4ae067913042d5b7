"""Has what the core decided done: a reset, in a process of its own that outlives the daemon.

    act ──> devices let alone ──> request, process started ──> its result, or its end ──> devices asked again
                                        ^                            ──> ActionResult to the pump
    a start finds it under way ─────────┘

It decides nothing, touches no device, and has nothing done twice: what was begun is waited for, and what left
neither a result nor a living process was interrupted.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeagent.config import Config
from nodeagent.core.model import (
    Action,
    ActionResult,
    ActionState,
    DeviceView,
    Event,
    Holder,
    Input,
    Reset,
    ResetMode,
    ResetStage,
    View,
)
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.launching import NotStarted, start
from nodeagent.daemon.supervisor import Supervisor
from nodeagent.reset.folder import Device, Folder, Locked, Process, Request, name_of
from nodeagent.store.board import Board
from nodeagent.store.errors import StoreUnreadableError
from nodeagent.store.ledger import Ledger

log = logging.getLogger(__name__)

LETS_GO: Final = frozenset({"nvidia"})
"""Vendors whose devices nobody may have open while they are reset: the worker ends. Others are let alone."""

LOOK_EACH_S: Final = 0.2
START_LIMIT_S: Final = 30.0
"""For the process to begin, under systemd by way of its queue."""

BACK_LIMIT_S: Final = 30.0
"""For the devices to be read again, before it is told how the reset went."""

MAX_EVENTS: Final = 500
MAX_REASON: Final = 1000
_PROVISIONAL: Final = "slot:"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One attempt of an action, by its file's name. ``devices``: the asker first."""

    action: str
    name: str
    vendor: str
    devices: tuple[DeviceView, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(device.name for device in self.devices)


class Actuator:
    """``sources`` by the name of their driver, which is its vendor's for those that can be reset."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        board: Board,
        ledger: Ledger,
        ask: Callable[[Input], Awaitable[tuple[Event, ...]]],
        sources: Mapping[str, Supervisor],
    ) -> None:
        self._config = config
        self._clock = clock
        self._board = board
        self._ledger = ledger
        self._ask = ask
        self._sources = sources
        self._folder = Folder(Path(config.reset.run_dir))
        self._todo: asyncio.Queue[Coroutine[Any, Any, None]] = asyncio.Queue()

    def act(self, action: Action, durable: bool) -> None:
        """Have it done. One that is only remembered in memory is not: a crash would have it done again."""
        if durable:
            self._todo.put_nowait(self._do(action))
        else:
            self._todo.put_nowait(self._tell(action.id, ActionState.REFUSED, "the store is not durable"))

    def adopt(self, view: View) -> None:
        """Before the sources run: what goes on, goes on; what has ended without the daemon is told."""
        running = [reset for reset in view.resets if reset.stage is ResetStage.RUNNING]
        wanted = {}
        for reset in running:
            attempt = _attempt(view, reset)
            wanted[attempt.name] = attempt
        if self._config.reset.acts:
            self._forget_all_but(wanted)
        for attempt in wanted.values():
            if self._goes_on(attempt):
                log.info("%s goes on, begun before this start", attempt.name)
                self._begin_apart(attempt)
            self._todo.put_nowait(self._finish(attempt, time.monotonic()))

    def _forget_all_but(self, wanted: Collection[str]) -> None:
        try:
            for name in self._folder.names():
                if name not in wanted and not self._folder.is_locked(name):
                    self._folder.forget(name)
        except OSError as error:
            log.warning("what earlier resets left stays: %s", error)

    def _goes_on(self, attempt: _Attempt) -> bool:
        try:
            return self._folder.is_locked(attempt.name)
        except OSError:
            return False

    async def run(self) -> None:
        """Until it is cancelled. What is under way then goes on by itself, and is found at the next start."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(_at_the_rim(await self._todo.get()))

    # ------------------------------------------------------------------ one attempt

    async def _do(self, action: Action) -> None:
        view = self._board.current.view
        reset = next((each for each in view.resets if each.id == action.id), None)
        if reset is None or reset.stage is not ResetStage.RUNNING or reset.mode is ResetMode.DRY_RUN:
            return
        attempt = _attempt(view, reset)
        if why := self._config.reset.forbidden():
            await self._tell(action.id, ActionState.REFUSED, f"resets are forbidden: {why}")
            return
        if attempt.vendor not in self._config.drivers:
            unknown = f"nobody knows how to reset a device of {attempt.vendor or 'no vendor'}"
            await self._tell(action.id, ActionState.FAILED, unknown)
            return
        if not await self._set_apart(attempt):
            await self._take_back(attempt)
            held = f"a call of the {attempt.vendor} worker hangs, and holds the devices"
            await self._tell(action.id, ActionState.FAILED, held)
            return
        try:
            request = await self._request(attempt, reset, action)
            self._folder.make()
            self._folder.forget(attempt.name)
            self._folder.ask(request)
            await start(self._folder.path, attempt.name)
        except (NotStarted, OSError, ValueError) as error:
            log.error("%s cannot be started: %s", attempt.name, error)
            if self._is_withdrawn(attempt.name):
                await self._take_back(attempt)
                await self._tell(action.id, ActionState.FAILED, f"it could not be started: {error}")
                return
        await self._finish(attempt, time.monotonic() + START_LIMIT_S)

    def _is_withdrawn(self, name: str) -> bool:
        """False: it may have begun, or nobody can tell."""
        try:
            return self._folder.withdraw(name)
        except OSError as error:
            log.error("%s cannot be taken back: %s", name, error)
            return False

    async def _finish(self, attempt: _Attempt, start_until_s: float) -> None:
        """``start_until_s``: when its process must have begun."""
        state, reason = await self._outcome(attempt.name, start_until_s)
        await self._take_back(attempt)
        await self._back(attempt)
        await self._tell(attempt.action, state, reason)
        self._folder.forget(attempt.name)

    async def _outcome(self, name: str, start_until_s: float) -> tuple[ActionState, str]:
        while True:
            try:
                if (result := self._folder.result(name)) is not None:
                    return result.action_state, result.told()
                waits = self._folder.is_asked(name) and time.monotonic() < start_until_s
                if not waits and (ended := self._ended(name)) is not None:
                    return ended
            except (OSError, ValueError) as error:
                return ActionState.INTERRUPTED, f"its result cannot be read: {error}"
            await asyncio.sleep(LOOK_EACH_S)

    def _ended(self, name: str) -> tuple[ActionState, str] | None:
        """None while its process lives. Under its lock nobody can begin it, or answer, any more."""
        try:
            with self._folder.locked(name):
                if (result := self._folder.result(name)) is not None:
                    return result.action_state, result.told()
                if self._folder.is_asked(name) and self._folder.withdraw(name):
                    return ActionState.INTERRUPTED, "it was asked for, and nobody began it"
                return ActionState.INTERRUPTED, "it left no result"
        except Locked:
            return None
        except FileNotFoundError:
            return ActionState.INTERRUPTED, "it left no trace"

    async def _tell(self, action_id: str, state: ActionState, reason: str) -> None:
        log.info("%s: %s: %s", action_id, state, reason)
        await self._ask(ActionResult(action_id=action_id, state=state, reason=reason[:MAX_REASON]))

    async def _request(self, attempt: _Attempt, reset: Reset, action: Action) -> Request:
        config, section = self._config, self._config.drivers[attempt.vendor]
        left_ns = action.deadline_ns - self._clock.rule_ns()
        return Request(
            action=action.id,
            attempt=reset.attempt,
            vendor=attempt.vendor,
            group=_group(attempt.devices[0]),
            devices=tuple(_as_asked(device) for device in attempt.devices),
            reasons=action.reasons,
            deadline_ns=self._clock.boottime_ns() + left_ns,
            start_limit_s=config.reset.verify_timeout_ns / 1e9,
            library=section.library,
            procfs=str(getattr(section, "procfs", "/proc")),
            before=config.reset.before,
            after=config.reset.after,
            hook_timeout_s=config.reset.hook_timeout_ns / 1e9,
            do_not_touch=config.reset.do_not_touch,
            kernel_command_line=config.reset.kernel_command_line,
            evidence_dir=str(Path(config.agent.state_dir) / "evidence"),
            kernel_log=config.kmsg.path,
            ended_first=tuple(_as_process(holder) for holder in action.holders),
            grace_s=config.reset.terminate_grace_ns / 1e9,
            readings=self._readings(attempt),
            events=await self._events(attempt),
        )

    def _readings(self, attempt: _Attempt) -> dict[str, Mapping[str, float]]:
        source = self._sources.get(attempt.vendor)
        readings = source.health().readings if source is not None else {}
        return {name: readings[name] for name in attempt.names if name in readings}

    async def _events(self, attempt: _Attempt) -> tuple[str, ...]:
        """The last ones about its devices, each as JSON."""
        try:
            stored = await self._ledger.read_events(max(0, self._board.current.seq - MAX_EVENTS), MAX_EVENTS)
        except StoreUnreadableError as error:
            return (f'{{"unreadable": "{error}"}}',)
        about = {device.id for device in attempt.devices}
        return tuple(msgspec.json.encode(each).decode() for each in stored if each.event.device_id in about)

    # ------------------------------------------------------------------ its devices, meanwhile

    async def _set_apart(self, attempt: _Attempt) -> bool:
        """False: what we have open of them cannot be closed."""
        source = self._sources.get(attempt.vendor)
        if source is None:
            return True
        if attempt.vendor in LETS_GO:
            return await source.let_go(_why(attempt))
        await source.rest(attempt.names, _why(attempt))
        return True

    def _begin_apart(self, attempt: _Attempt) -> None:
        """As ``_set_apart``, before the source runs."""
        source = self._sources.get(attempt.vendor)
        if source is not None and attempt.vendor in LETS_GO:
            source.hold_off()
        elif source is not None:
            source.begin_at_rest(attempt.names, _why(attempt))

    async def _take_back(self, attempt: _Attempt) -> None:
        source = self._sources.get(attempt.vendor)
        if source is not None and attempt.vendor in LETS_GO:
            source.take_up()
        elif source is not None:
            await source.wake(attempt.names)

    async def _back(self, attempt: _Attempt) -> None:
        """Wait until all of them are read again, or long enough."""
        about = {device.id for device in attempt.devices}
        try:
            async with asyncio.timeout(BACK_LIMIT_S):
                publication = self._board.current
                while any(view.id in about and not view.observed for view in publication.view.devices):
                    publication = await self._board.wait_change(publication)
        except TimeoutError:
            log.warning("%s: not all of its devices can be read", attempt.name)


async def _at_the_rim(work: Coroutine[Any, Any, None]) -> None:
    """What goes wrong with one action costs neither another one nor the daemon: its time runs out."""
    try:
        await work
    except Exception:  # the rim of a task
        log.exception("an action cannot be followed any more")


def _attempt(view: View, reset: Reset) -> _Attempt:
    by_id = {device.id: device for device in view.devices}
    devices = tuple(by_id[member] for member in reset.members if member in by_id)
    return _Attempt(
        action=reset.id,
        name=name_of(reset.id, reset.attempt),
        vendor=devices[0].vendor if devices else "",
        devices=devices,
    )


def _as_process(holder: Holder) -> Process:
    return Process(pid=holder.pid, start_time=holder.start_time, command=holder.command)


def _as_asked(device: DeviceView) -> Device:
    identity = "" if device.id.startswith(_PROVISIONAL) else device.id
    return Device(name=device.name, identity=identity, attributes=device.attributes)


def _group(device: DeviceView) -> str:
    return f"{device.vendor} {device.attributes.get('group') or device.id}"


def _why(attempt: _Attempt) -> str:
    return f"it is let alone for {attempt.action}"
