"""The loop of a bridge: what it takes before each decision, when it wakes, and what its parts raise."""

import asyncio
from collections.abc import Sequence

import pytest

from nodeagent.client import ClientError
from nodeagent.schedulers.loop import BridgeLoop, Decision, LoopTick, run_together

REFUSED = ClientError("PERMISSION_DENIED", "consumer 'slurm' belongs to uid:65534")


async def refused() -> None:
    raise REFUSED


async def defect() -> None:
    raise KeyError("npu3")


class Waiting:
    ended = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


async def test_what_the_daemon_refuses_is_raised_by_itself_and_ends_the_others() -> None:
    other = Waiting()
    with pytest.raises(ClientError) as raised:
        await run_together(other.run(), refused())
    assert raised.value is REFUSED
    assert other.ended


async def test_a_defect_is_not_hidden_by_what_the_daemon_refuses() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        await run_together(refused(), defect())
    assert [type(each) for each in raised.value.exceptions] == [ClientError, KeyError]


def counted(total: int, given: Sequence[int | LoopTick]) -> Decision[int, str]:
    """The state is the sum of all inputs; a sum of ten is announced."""
    total += sum(each for each in given if isinstance(each, int))
    return Decision(state=total, effect=f"sum {total}" if total % 10 == 0 else None, wake_ns=None)


class Shell:
    """Performs effects, and gives more inputs while it does the first one."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.noted: list[tuple[int, int, int]] = []
        self.rested = asyncio.Event()
        self.loop = BridgeLoop[int, int, str](0, counted, self.perform, self.note)

    async def perform(self, effect: str) -> int:
        self.done.append(effect)
        if len(self.done) == 1:
            self.loop.give(3)
            self.loop.give(6)
        return 1

    def note(self, before: int, after: int, given: Sequence[int | LoopTick]) -> None:
        self.noted.append((before, after, len(given)))
        if after % 10:
            self.rested.set()


async def test_what_comes_during_an_effect_is_taken_before_the_next_decision() -> None:
    shell = Shell()
    shell.loop.give(10)
    running = asyncio.create_task(shell.loop.run())
    async with asyncio.timeout(10):
        await shell.rested.wait()
    running.cancel()
    assert shell.done == ["sum 10", "sum 20"]
    assert shell.noted == [(0, 10, 1), (10, 20, 3), (20, 21, 1)]


async def test_a_loop_decides_again_when_its_time_has_come() -> None:
    ticked = asyncio.Event()

    def decide(state: int, given: Sequence[int | LoopTick]) -> Decision[int, str]:
        if given == [LoopTick()]:
            ticked.set()
        return Decision(state=state, effect=None, wake_ns=None if ticked.is_set() else 0)

    async def perform(_effect: str) -> int:
        raise AssertionError("there is no effect")

    loop = BridgeLoop[int, int, str](0, decide, perform, lambda *_: None)
    loop.give(1)
    running = asyncio.create_task(loop.run())
    async with asyncio.timeout(10):
        await ticked.wait()
    running.cancel()
