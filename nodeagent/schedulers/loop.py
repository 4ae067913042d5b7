"""The loop of a bridge: inputs are taken into a state, and what a pure function decides is done, one by one.

It knows neither Slurm nor Kubernetes. It performs one effect at a time, and takes all inputs that came
meanwhile before it decides on the next one: only the last state matters.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from nodeagent.client import ClientError

State = TypeVar("State")
Input = TypeVar("Input")
Effect = TypeVar("Effect")


@dataclass(frozen=True, slots=True)
class LoopTick:
    """Time has passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Generic[State, Effect]):
    """One effect at most; without one, decide again at ``wake_ns`` (CLOCK_MONOTONIC) or on an input."""

    state: State
    effect: Effect | None
    wake_ns: int | None


class BridgeLoop(Generic[State, Input, Effect]):
    """``decide`` takes inputs, the oldest first. ``perform`` does an effect and returns its result, an input.
    ``note`` is called after each decision with the state before, the state after, and the inputs.
    """

    def __init__(
        self,
        state: State,
        decide: Callable[[State, Sequence[Input | LoopTick]], Decision[State, Effect]],
        perform: Callable[[Effect], Awaitable[Input]],
        note: Callable[[State, State, Sequence[Input | LoopTick]], None],
    ) -> None:
        self.state = state
        self._decide = decide
        self._perform = perform
        self._note = note
        self._inputs: asyncio.Queue[Input] = asyncio.Queue()

    def give(self, given: Input) -> None:
        self._inputs.put_nowait(given)

    async def run(self) -> None:
        """Until it is cancelled, or ``perform`` raises."""
        given: list[Input | LoopTick] = [await self._next(None)]
        while True:
            while not self._inputs.empty():
                given.append(self._inputs.get_nowait())
            before, decision = self.state, self._decide(self.state, given)
            self.state = decision.state
            self._note(before, self.state, given)
            if decision.effect is None:
                given = [await self._next(decision.wake_ns)]
            else:
                given = [await self._perform(decision.effect)]

    async def _next(self, wake_ns: int | None) -> Input | LoopTick:
        wait_s = None if wake_ns is None else max(0.0, (wake_ns - time.monotonic_ns()) / 1e9)
        try:
            async with asyncio.timeout(wait_s):
                return await self._inputs.get()
        except TimeoutError:
            return LoopTick()


async def run_together(*parts: Coroutine[None, None, None]) -> None:
    """Run the tasks of a bridge until one fails for good, or until cancelled. Raises the ``ClientError`` of a
    part by itself; anything else comes in a group.

    Not by ``except*``: before Python 3.11.4 what is raised there comes in a group too (cpython issue 103590).
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(part)
    except ExceptionGroup as failed:
        of_client, others = failed.split(ClientError)
        if of_client is None or others is not None:
            raise
        raise of_client.exceptions[0] from None
