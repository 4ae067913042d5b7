"""What is done with each report, in order for each node: it is shown and given to a command, then its
position is kept.

Nodes do not wait for each other, except for a place where commands run. The command gets the report as a line
of JSON on its standard input, and its main fields in its environment. A command that fails or takes too long
is run again a few times; then it is reported and skipped, so that one event does not block a node for ever.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from nodeagent.client import Event, EventKind, Position
from nodeagent.fleet.news import News
from nodeagent.fleet.positions import Positions

ATTEMPTS: Final = 5
FIRST_PAUSE_S: Final = 1.0
TERM_PAUSE_S: Final = 5.0
"""Between the request to end and the end."""

_log = logging.getLogger(__name__)


class Execution:
    """``command`` is a program with its arguments, for no shell. What it prints goes to standard error."""

    def __init__(
        self, command: Sequence[str], *, at_once: int, limit_s: float, first_pause_s: float = FIRST_PAUSE_S
    ) -> None:
        self._command = tuple(command)
        self._places = asyncio.Semaphore(at_once)
        self._limit_s = limit_s
        self._first_pause_s = first_pause_s

    async def run(self, news: News, line: bytes) -> None:
        """Until it has succeeded, or ``ATTEMPTS`` have failed. Cancelled, it ends the command first."""
        pause_s = self._first_pause_s
        for attempt in range(1, ATTEMPTS + 1):
            async with self._places:
                failure = await self._attempt(news, line)
            if not failure:
                return
            what = f"{news.node.endpoint.name}: --exec for {_named(news)}"
            if attempt == ATTEMPTS:
                _log.error("%s %s; given up after %d attempts", what, failure, ATTEMPTS)
                return
            _log.warning("%s %s; again in %g s", what, failure, pause_s)
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def _attempt(self, news: News, line: bytes) -> str:
        """Why it failed, "" where it did not."""
        try:
            process = await self._start(news)
        except OSError as error:
            return f"could not be started: {error}"
        try:
            async with asyncio.timeout(self._limit_s):
                await process.communicate(line)
        except TimeoutError:
            await _end(process)
            return f"took longer than {self._limit_s:g} s and was ended"
        except asyncio.CancelledError:
            await _end(process)
            raise
        return _failure(process.returncode)

    async def _start(self, news: News) -> asyncio.subprocess.Process:
        """Cancelled amid it, it ends the command: asyncio kills the process alone, and not its children."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=sys.stderr,
                env={**os.environ, **environment(news)},
                start_new_session=True,
            )
        )
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(OSError):
                await _end(await starting)
            raise


def environment(news: News) -> Mapping[str, str]:
    """What a command knows without reading the line. No value of an environment can hold a zero byte."""
    node, event = news.node, news.value
    given = {"NODE": node.endpoint.name, "WHAT": str(news.what)}
    if isinstance(event, Event):
        given |= {
            "SEQ": str(event.seq),
            "KIND": str(event.kind),
            "DEVICE": event.device,
            "CODE": event.code,
            "VERDICT": str(event.verdict),
            "HANDLING": str(event.handling),
        }
    else:
        given |= {"VERDICT": str(node.verdict), "HANDLING": str(node.handling)}
    return {f"NODEAGENT_{name}": value.replace("\0", "") for name, value in given.items()}


def _named(news: News) -> str:
    return f"event {news.value.seq}" if isinstance(news.value, Event) else f"its {news.what}"


def _failure(status: int | None) -> str:
    if status is not None and status < 0:
        return f"was ended by signal {-status}"
    return f"ended with status {status}" if status else ""


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its whole session: also a script's children that ignore TERM, and also where the follower ends now."""
    try:
        _signal(process, signal.SIGTERM)
        await _wait(process)
    finally:
        _signal(process, signal.SIGKILL)
        await _wait(process)


async def _wait(process: asyncio.subprocess.Process) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(TERM_PAUSE_S):
            await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """Signal its group, while anybody is left in it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


Show = Callable[[News], Awaitable[None]]
Encode = Callable[[News], bytes]


class NewsDelivery:
    """``encode`` makes what a command reads. ``kinds`` are the events that are delivered; all where it is
    empty.
    """

    def __init__(
        self,
        *,
        show: Show,
        encode: Encode,
        kinds: Collection[EventKind] = (),
        execution: Execution | None = None,
        positions: Positions | None = None,
    ) -> None:
        self._show = show
        self._encode = encode
        self._kinds = frozenset(kinds)
        self._execution = execution
        self._positions = positions

    def position_of(self, node: str) -> Position | None:
        """Where to continue; None: with the whole state."""
        return None if self._positions is None else self._positions.of(node)

    async def deliver(self, news: News) -> None:
        """Ends when its effect is done."""
        if self._is_wanted(news):
            await self._show(news)
            if self._execution is not None and news.is_durable:
                await self._execution.run(news, self._encode(news))
        if news.position is not None:
            self.pass_over(news.node.endpoint.name, news.position)

    def pass_over(self, node: str, position: Position) -> None:
        """Everything up to there is done."""
        if self._positions is not None:
            self._positions.note(node, position)

    def _is_wanted(self, news: News) -> bool:
        return not self._kinds or not isinstance(news.value, Event) or news.value.kind in self._kinds
