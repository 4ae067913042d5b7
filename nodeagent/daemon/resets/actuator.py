"""Carries out the resets that the core decided, each in a process of its own that outlives the daemon.

    act ──> devices detached ──>  request, process started ──> its result, or its end ──> devices asked again
                                        ^                            ──> ActionResult to the pump
    a start finds it under way ─────────┘

It decides nothing, touches no device, and has nothing done twice: what was begun is waited for, and what left
neither a result nor a living process was interrupted.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

from nodeagent.config.config import Config
from nodeagent.core.machines.reset_refusal import DONE
from nodeagent.core.model import (
    Action,
    ActionResult,
    ActionState,
    Input,
    ResetStage,
    View,
)
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.resets.detach import Detachment
from nodeagent.daemon.resets.exchange import RequestBuilder, RequestedAttempt, attempt_of, came_meanwhile
from nodeagent.daemon.resets.launch import NotStarted, start
from nodeagent.daemon.sources.supervisor import SourceSupervisor
from nodeagent.reset_unit.exchange.files import Locked
from nodeagent.reset_unit.exchange.requests import RequestFolder
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.vendors import RESETS

log = logging.getLogger(__name__)

LOOK_EACH_S: Final = 0.2
START_LIMIT_S: Final = 30.0
"""So long the process may take to begin, under systemd by way of its queue."""

MAX_REASON: Final = 1000


class Actuator:
    """``sources`` by the name of their driver, which is its vendor's for those that can be reset.

    ``config_path`` is the file that the configuration was read from, None for the usual one.
    """

    def __init__(
        self,
        config: Config,
        clock: Clock,
        feed: EventFeed,
        ledger: Ledger,
        ask: Callable[[Input], Awaitable[object]],
        sources: Mapping[str, SourceSupervisor],
        config_path: Path | None = None,
    ) -> None:
        self._feed = feed
        self._ask = ask
        self._requests = RequestBuilder(config, clock, feed, ledger)
        self._detachment = Detachment(feed, sources)
        self._folder = RequestFolder(Path(config.reset.run_dir))
        self._config_path = config_path
        self._todo: asyncio.Queue[Coroutine[Any, Any, None]] = asyncio.Queue()

    def reload(self, config: Config) -> None:
        """From now on with these modes and files that forbid it; where they meet stays as it was."""
        self._requests.reset = config.reset

    def act(self, action: Action, durable: bool) -> None:
        """Have it done. One that is only remembered in memory is not: a crash would have it done again."""
        if durable:
            self._todo.put_nowait(self._do(action))
        else:
            refused = "the store is not durable"
            self._todo.put_nowait(
                self._report_result(action.id, action.attempt, ActionState.REFUSED, refused)
            )

    def adopt(self, view: View) -> None:
        """Before the sources run: what is in progress is awaited; what ended meanwhile is reported."""
        running = [reset for reset in view.resets if reset.stage is ResetStage.RUNNING]
        wanted = {}
        for reset in running:
            attempt = attempt_of(view, reset)
            wanted[attempt.name] = attempt
        self._forget_all_but(wanted)
        for attempt in wanted.values():
            if self._goes_on(attempt):
                log.info("%s is in progress: it began before this start", attempt.name)
                self._detachment.begin(attempt)
            self._todo.put_nowait(self._finish(attempt, time.monotonic(), ActionState.INTERRUPTED))

    def _forget_all_but(self, wanted: Collection[str]) -> None:
        try:
            for name in self._folder.names():
                if name not in wanted and not self._folder.is_locked(name):
                    self._folder.forget(name)
        except (OSError, ValueError) as error:
            log.warning("the files of earlier resets cannot be removed: %s", error)

    def _goes_on(self, attempt: RequestedAttempt) -> bool:
        try:
            return self._folder.is_locked(attempt.name)
        except (OSError, ValueError):
            return False

    async def run(self) -> None:
        """Until it is cancelled. What is in progress then ends by itself, and is found at the next start."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                tasks.create_task(_at_the_rim(await self._todo.get()))

    # ------------------------------------------------------------------ one attempt

    async def _do(self, action: Action) -> None:
        view = self._feed.current.view
        reset = next((each for each in view.resets if each.id == action.id), None)
        if reset is None or (reset.stage, reset.attempt) != (ResetStage.RUNNING, action.attempt):
            return
        if reset.is_dry_run:
            return
        attempt = attempt_of(view, reset)
        if why := self._requests.reset.forbidden():
            await self._report(attempt, ActionState.REFUSED, f"resets are forbidden: {why}")
            return
        if attempt.vendor not in RESETS:
            unknown = f"nodeagent cannot reset a device of {attempt.vendor or 'no vendor'}"
            await self._report(attempt, ActionState.REFUSED, unknown)
            return
        is_asked = False
        try:
            await self._ask_for(attempt, action)
            is_asked = True
            await start(self._folder.path, attempt.name, self._config_path)
        except (
            Exception
        ) as error:  # the boundary of an attempt: its devices do not stay apart, whatever it was
            log.exception("%s cannot be started", attempt.name)
            if not is_asked or self._is_withdrawn(attempt.name):
                await self._detachment.take_back(attempt)
                await self._report(attempt, ActionState.REFUSED, f"it could not be started: {error}")
                return
        await self._finish(attempt, time.monotonic() + START_LIMIT_S, ActionState.REFUSED)

    async def _ask_for(self, attempt: RequestedAttempt, action: Action) -> None:
        if not await self._detachment.set(attempt):
            raise NotStarted(f"a call of the {attempt.vendor} worker hangs and keeps the devices open")
        request = await self._requests.request(attempt, action, self._detachment.readings(attempt))
        self._folder.make()
        self._folder.forget(attempt.name)
        self._folder.ask(request)

    def _is_withdrawn(self, name: str) -> bool:
        """False: it may have begun, or that is unknown."""
        try:
            return self._folder.withdraw(name)
        except (OSError, ValueError) as error:
            log.error("the request of %s cannot be withdrawn: %s", name, error)
            return False

    async def _finish(self, attempt: RequestedAttempt, start_until_s: float, not_begun: ActionState) -> None:
        """``start_until_s``: when its process must have begun, ``not_begun`` what it is if that has not."""
        state, reason = await self._outcome(attempt, start_until_s, not_begun)
        await self._detachment.take_back(attempt)
        await self._detachment.are_back(attempt)
        await self._report(attempt, state, reason)
        # A result that is only remembered in memory may have to be reported by the next life again.
        if self._feed.current.durable:
            self._folder.forget(attempt.name)

    async def _outcome(
        self, attempt: RequestedAttempt, start_until_s: float, not_begun: ActionState
    ) -> tuple[ActionState, str]:
        name, is_off = attempt.name, False
        while True:
            try:
                if (result := self._folder.result(name)) is not None:
                    return result.action_state, result.summary()
                waits = self._folder.is_asked(name) and time.monotonic() < start_until_s
                if not waits and (ended := self._ended(name, not_begun)) is not None:
                    return ended
                is_off = is_off or self._is_called_off(attempt)
            except (OSError, ValueError) as error:
                return ActionState.INTERRUPTED, f"its result cannot be read: {error}"
            await asyncio.sleep(LOOK_EACH_S)

    def _is_called_off(self, attempt: RequestedAttempt) -> bool:
        """Hooks and evidence take their time: a job, or a person, may come until the vendor is asked."""
        mode = self._requests.reset.of_vendor(attempt.vendor)
        why = came_meanwhile(attempt, self._feed.current.view)
        if mode not in DONE and not attempt.once:
            why = f"the mode of resets is {mode} now"
        if why:
            log.warning("%s is called off, unless it is too late: %s", attempt.name, why)
            self._folder.call_off(attempt.name, why)
        return bool(why)

    def _ended(self, name: str, not_begun: ActionState) -> tuple[ActionState, str] | None:
        """None while its process lives. Under its lock no process can begin it, or answer, any more."""
        try:
            with self._folder.locked(name):
                if (result := self._folder.result(name)) is not None:
                    return result.action_state, result.summary()
                if self._folder.is_asked(name) and self._folder.withdraw(name):
                    return not_begun, "its process did not start in time"
                return ActionState.INTERRUPTED, "it left no result"
        except Locked:
            return None
        except FileNotFoundError:
            return ActionState.INTERRUPTED, "it left no trace"

    async def _report(self, attempt: RequestedAttempt, state: ActionState, reason: str) -> None:
        await self._report_result(attempt.action, attempt.number, state, reason)

    async def _report_result(self, action_id: str, number: int, state: ActionState, reason: str) -> None:
        log.info("%s, attempt %d: %s: %s", action_id, number, state, reason)
        await self._ask(
            ActionResult(action_id=action_id, attempt=number, state=state, reason=reason[:MAX_REASON])
        )


async def _at_the_rim(work: Coroutine[Any, Any, None]) -> None:
    """What goes wrong with one action costs neither another one nor the daemon: its time runs out."""
    try:
        await work
    except Exception:  # the boundary of a task
        log.exception("the result of an action is lost")
