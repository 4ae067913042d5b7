"""A 910B drops from its card: what becomes of it and of its seven neighbours, step by step.

The golden list has the actions in order, then what was emitted of each chip, from the drop on.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.client import Event, EventKind
from tests.reset_unit.acting import ACTIONS, Acting, acting

pytestmark = pytest.mark.slow

DROPPED = "40F84E00"
HEALTH = "dcmi_get_device_health"
WAITS = "it waits: "
RING = [f"npu{number}" for number in range(8)]
GOLDEN = Path(__file__).with_name("a_dropped_910b.txt")


async def test_the_job_moves_the_group_is_drained_and_reset_and_all_eight_may_be_used_again(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        job = await asyncio.create_subprocess_exec("sleep", "600")
        for name in RING:
            npus.node.hold(name, job.pid)
        await npus.start()
        await npus.read_again()
        before = len(npus.subscriber.events)
        npus.node.drop("npu3")
        await npus.event(EventKind.ACTION_PROPOSED, "reset of npu3")
        await _polled_again(npus, "npu3")
        npus.pass_time(5)
        await npus.event(
            EventKind.ACTION_PROPOSED, "it waits: the users of npu3 are not known; npu3 is used by"
        )
        job.terminate()
        await job.wait()
        for name in RING:
            npus.node.let_go(name)
        await npus.event(EventKind.ACTION_FINISHED, "done")
        await npus.subscriber.until(
            lambda received: isinstance(received, Event) and _lets_go(received, RING[-1])
        )
        assert [npus.node.chip(name).resets for name in RING] == [1] * 8
        assert _story(npus.subscriber.events[before:]) == GOLDEN.read_text()


async def test_after_a_restart_of_the_daemon_nothing_is_reset_while_nobody_can_tell_who_is_on_it(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await _a_drop_that_nobody_resets(npus)
        await npus.kill()
        npus.mode = "on"
        await npus.start()
        await npus.subscriber.raised("device_lost", "npu3")
        await _all_are_announced_and_it_waits(npus)


async def test_after_a_restart_of_the_worker_nothing_is_reset_while_nobody_can_tell_who_is_on_it(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await _a_drop_that_nobody_resets(npus)
        npus.node.crash(device="npu0", function=HEALTH, times=1)
        await npus.subscriber.raised("device_lost", "npu3")
        npus.mode = "on"
        await npus.reload()
        await _all_are_announced_and_it_waits(npus)


async def _a_drop_that_nobody_resets(npus: Acting) -> None:
    npus.mode = "off"
    await npus.start()
    await npus.read_again()
    npus.node.drop("npu3")
    await npus.subscriber.raised(DROPPED, "npu3")


async def _polled_again(npus: Acting, device: str) -> None:
    before = npus.node.calls(HEALTH, device)
    await npus.daemon.comes(lambda: npus.node.calls(HEALTH, device) >= before + 3, f"polls of {device}")


async def _all_are_announced_and_it_waits(npus: Acting) -> None:
    npus.break_("npu5")
    proposed = await npus.event(EventKind.ACTION_PROPOSED, "reset of npu5")
    assert proposed.evidence["devices"] == "npu5, npu0, npu1, npu2, npu3, npu4, npu6, npu7"
    assert await npus.verdicts() == dict.fromkeys(RING, "ISOLATE")
    npus.pass_time(5)
    waiting = await npus.event(EventKind.ACTION_PROPOSED, WAITS)
    assert waiting.why.startswith(
        "it waits: npu3 is reset together with the others, and its driver no longer lists it: "
        "who uses it is unknown; power-cycle the node"
    )
    assert not any(npus.node.chip(name).resets for name in RING)


def _lets_go(event: Event, device: str) -> bool:
    return event.kind is EventKind.RELEASED and event.device == device


def _story(events: Sequence[Event]) -> str:
    """The actions, of those who leave one by one only how it began; then each chip's events with its verdict
    and handling after them.
    """
    actions = [f"{event.kind.value}: {event.why}" for event in events if event.kind in ACTIONS]
    parts = {
        "actions": [
            line for n, line in enumerate(actions) if WAITS not in line or WAITS not in actions[n - 1]
        ]
    }
    for name in RING:
        parts[name] = [
            " ".join(filter(None, (event.kind.value, event.code, event.verdict.value, event.handling.value)))
            for event in events
            if event.device == name and event.kind not in ACTIONS
        ]
    printed = "\n".join(
        f"{title}\n" + "".join(f"  {line}\n" for line in lines) for title, lines in parts.items()
    )
    return re.sub(r"pid \d+", "pid PID", printed)
