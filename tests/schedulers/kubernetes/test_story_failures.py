"""The bridge with an API server that is slow, away, or says no: each fault gets there all the same.

As in ``test_story_bridge``: a real daemon, and a double that checks what it is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.schedulers.kubernetes.bench import (
    HBM,
    HBM_CODE,
    NODE_KEY,
    OF_ANOTHER,
    OURS,
    TAINT_OF_ANOTHER,
    Bench,
    between,
)

pytestmark = pytest.mark.slow


async def test_whatever_is_wrong_with_the_api_server_each_fault_gets_there(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        await bench.start_with_a_healthy_node()
        troubles = (conflict, throttled, broken, token_refused, nonsense, history_gone, away)
        for number, trouble in enumerate(troubles):
            over = await trouble(bench)
            bench.npus.node.raise_code(f"npu{number}", HBM)
            await bench.npus.raised(f"npu{number}", HBM_CODE)
            await over()
            words = f"nodeagent: npu0 {HBM_CODE} #" if number == 0 else f", npu{number} {HBM_CODE} #"
            await bench.comes(partial(bench.mentions, words), words)
            assert bench.taints == [OF_ANOTHER, OURS]

            # The watch is there again: it tells that another has taken the taint away.
            await bench.api.put(NODE_KEY, dict(bench.node, spec={"taints": [dict(TAINT_OF_ANOTHER)]}))
            await bench.comes(lambda: OURS in bench.taints, f"the taint again, after {trouble.__name__}")
        await bench.acknowledged_all()


Over = Callable[[], Awaitable[None]]
"""What ends the trouble."""


async def nothing() -> None:
    """It ends by itself."""


async def conflict(bench: Bench) -> Over:
    bench.api.refuse(409, times=3, verbs="patch")
    return nothing


async def throttled(bench: Bench) -> Over:
    bench.api.refuse(429, times=2, Retry_After="1")
    return nothing


async def broken(bench: Bench) -> Over:
    bench.api.refuse(503, times=4)
    await bench.api.cut_watches()
    return nothing


async def token_refused(bench: Bench) -> Over:
    bench.api.refuse(401, times=3)
    return nothing


async def nonsense(bench: Bench) -> Over:
    """As a proxy that answers in place of the API server: yes, and nothing that was asked for."""
    bench.api.refuse(200, times=6)
    await bench.api.cut_watches()
    return nothing


async def history_gone(bench: Bench) -> Over:
    bench.api.forget_history()
    await bench.api.cut_watches()
    return nothing


async def away(bench: Bench) -> Over:
    await bench.api.stop()
    return bench.api.start


async def test_a_server_that_ends_each_watch_at_once_is_not_asked_without_a_pause(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        bench.api.watches_end = True
        await bench.start()
        await bench.comes(lambda: "the watch ended at once" in bench.log, "that it is noticed")
        bench.npus.node.raise_code("npu3", HBM)
        await bench.comes(bench.says("False"), "an unhealthy node")
        assert bench.taints == [OF_ANOTHER, OURS]


async def test_after_a_slow_answer_only_the_last_state_is_written(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        await bench.start_with_a_healthy_node()
        before = len(bench.asked("patch"))
        bench.api.held = asyncio.Event()
        for number in range(5):
            bench.npus.node.raise_code(f"npu{number}", HBM)
            await bench.npus.raised(f"npu{number}", HBM_CODE)
            await bench.npus.polled(f"npu{number}", 2)
        bench.api.held.set()
        await bench.comes(lambda: bench.mentions(f", npu4 {HBM_CODE} #"), "all five")
        assert bench.asked("patch")[before:] == [
            "patch nodes node-1: 200",
            "patch nodes/status node-1: 200",
            "patch nodes/status node-1: 200",
        ]
