"""What the real daemon sees over the vendor's library on nodes that are in trouble: a story each, judged.

They end where all was seen that has to be; the time limits are those that an operator was promised.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.client import EventKind
from nodeagent.client.values import Device
from tests.compare_dcmi import trace
from tests.compare_dcmi.resets import all_may_be_used
from tests.reset_unit.acting import Acting, acting

DEVICE: Final = "npu3"
SILENT_LIMIT_S: Final = 60.0
"""For all chips to be observed where every MCU is silent."""

PIDS_FROM: Final = 10_000_000
"""Above any process of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """``words``: what was seen, with its figures; ``lines``: the calls, where they tell something."""

    story: str
    words: str
    is_right: bool
    lines: tuple[str, ...] = ()


Story = Callable[[Acting], Awaitable[Seen]]


def all_stories(library: Path) -> Iterator[Seen]:
    """Of each what was seen."""
    for story in STORIES:
        with tempfile.TemporaryDirectory(prefix="compare-dcmi-") as folder:
            try:
                yield asyncio.run(_observed(story, library, Path(folder)))
            except AssertionError as error:
                lines = tuple(str(error).splitlines())
                name = story.__name__.replace("_", " ")
                yield Seen(story=name, words="it has no end", is_right=False, lines=lines)


async def _observed(story: Story, library: Path, folder: Path) -> Seen:
    async with acting(folder, "8x910B") as npus:
        shutil.copyfile(library, npus.node.dcmi)
        return await story(npus)


async def silent_mcus(npus: Acting) -> Seen:
    """The library asks each card's MCU for its board at its initialisation, ten times over."""
    for name in npus.node.names():
        npus.node.set(name, "mcu_silent_ms", 1)
    began_s = time.monotonic()
    await npus.start()
    await npus.daemon.comes(lambda: all_may_be_used(npus), "verdicts")
    took_s = time.monotonic() - began_s
    restarts = npus.daemon.log.count("stopping worker")
    return Seen(
        story="all MCUs are silent",
        words=f"8 of 8 chips ALLOW after {took_s:.1f} s; {restarts} workers killed",
        is_right=took_s <= SILENT_LIMIT_S and restarts == 0,
    )


async def thirty_three_processes(npus: Acting) -> Seen:
    return await _held_by(npus, 33)


async def sixty_four_processes(npus: Acting) -> Seen:
    return await _held_by(npus, 64)


async def _held_by(npus: Acting, count: int) -> Seen:
    for number in range(count):
        npus.node.hold(DEVICE, PIDS_FROM + number)
    await npus.start()
    await npus.daemon.comes(lambda: all_may_be_used(npus), "verdicts")
    device = await _device(npus)
    seen = "unknown" if device.holders is None else str(len(device.holders))
    return Seen(
        story=f"{count} processes on {DEVICE}",
        words=f"{seen} holders, verdict {device.verdict}",
        is_right=seen == str(count),
    )


async def process_that_ends(npus: Acting) -> Seen:
    """It ends between the library's list and its question for the memory of each."""
    process = await asyncio.create_subprocess_exec("sleep", "600", stdout=asyncio.subprocess.DEVNULL)
    try:
        npus.node.hold(DEVICE, process.pid)
        await npus.start()
        await npus.daemon.comes(lambda: all_may_be_used(npus), "verdicts")
        await npus.daemon.comes(lambda: _is_held(npus, process.pid), f"{process.pid} as a holder")
    finally:
        process.kill()
        await process.wait()
    before = len(npus.subscriber.events)
    trace.begin(npus.node)
    npus.node.end_process(DEVICE, process.pid)
    await npus.daemon.comes(lambda: _is_free(npus), "a free chip")
    calls = trace.calls(npus.node)
    lists = [call for call in calls if call.device == DEVICE and call.name == trace.PROCESSES]
    refused = [call for call in lists if call.answer != 0]
    seen = [event.kind for event in npus.subscriber.events[before:]]
    return Seen(
        story=f"a process on {DEVICE} ends during the call",
        words=f"{len(refused)} list refused, {DEVICE} is free; events: {', '.join(seen) or 'none'}",
        is_right=len(refused) == 1 and not seen,
        lines=tuple(trace.shown(lists[:3], [])),
    )


async def removed_chip(npus: Acting) -> Seen:
    """By the driver, while the daemon runs: the library lists it on, and its health tells that it is gone."""
    await npus.start()
    await npus.daemon.comes(lambda: all_may_be_used(npus), "verdicts")
    began_s = time.monotonic()
    npus.node.take_out(DEVICE)
    raised = await npus.subscriber.event(EventKind.RAISED, "device_lost", DEVICE)
    took_s = time.monotonic() - began_s
    others = {name: verdict for name, verdict in (await npus.verdicts()).items() if name != DEVICE}
    return Seen(
        story=f"the driver removes {DEVICE}",
        words=f"device_lost after {took_s:.1f} s, verdict {raised.verdict}; "
        f"the others: {', '.join(sorted(set(others.values())))}",
        is_right=set(others.values()) == {"ALLOW"} and raised.verdict != "ALLOW",
    )


async def _device(npus: Acting) -> Device:
    return next(device for device in (await npus.snapshot()).devices if device.name == DEVICE)


async def _is_held(npus: Acting, process: int) -> bool:
    return [holder.pid for holder in (await _device(npus)).holders or ()] == [process]


async def _is_free(npus: Acting) -> bool:
    return (await _device(npus)).holders == ()


STORIES: Final[tuple[Story, ...]] = (
    silent_mcus,
    thirty_three_processes,
    sixty_four_processes,
    process_that_ends,
    removed_chip,
)
