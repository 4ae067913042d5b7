"""Resets by the real daemon over the vendor's library: what is announced, drained and checked has to be
exactly what is reset, starts and is read again.

Each begins with a fault, or a chip that drops, and ends with polls of every member or with a refusal.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.client import Event, EventKind
from nodeagent.drivers.ascend.npu.reset import TRY_PAUSES_S
from tests.compare_dcmi import trace
from tests.compare_dcmi.trace import BOOT_STATUS, CODES, PROCESSES, RESET, Call, roles
from tests.reset_unit.acting import Acting, acting

GRACE_S: Final = 5
STARTED: Final = 16
"""``DCMI_SYSTEM_START_FINISH``."""

REFUSED: Final = 51
"""``DRV_ERROR_TRY_AGAIN``."""
INBAND_TRIES: Final = 1 + len(TRY_PAUSES_S)

MAY_BE_USED: Final = "ALLOW"

NOTHING: Final = {"announced": frozenset[str](), "reset": frozenset[str]()}

MEANWHILE: Final = "asked by the worker while let alone"
"""The driver refuses a reset while a call of any process is under way on the chip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``removed``: a chip that the driver has taken away, before the daemon starts or, as it runs, ``later``.
    ``out_of_band``: the driver refuses each reset in-band. ``ends``: how the end of the reset begins; where
    it is refused nothing may have been reset.
    """

    product: str
    device: str
    drops: bool = False
    removed: str = ""
    later: bool = False
    out_of_band: bool = False
    ends: str = "done: verified"

    @property
    def is_done(self) -> bool:
        return self.ends.startswith("done")


CASES: Final = (
    Case(product="8x910B", device="npu3"),
    Case(product="8x910B", device="npu3", drops=True),
    Case(product="8x800IA2", device="npu2"),
    Case(product="16xA3", device="npu8"),
    Case(product="16xA3", device="npu8", drops=True, ends="refused: the library does not list npu8"),
    Case(product="16xA3", device="npu8", out_of_band=True),
    Case(
        product="16xA3", device="npu4", removed="npu1", ends="refused: the library takes npu3, npu4 for one"
    ),
    Case(
        product="16xA3",
        device="npu4",
        removed="npu1",
        later=True,
        ends="refused: npu11, npu12, npu3, npu4 are reset together; asked for was npu4, npu5, npu12, npu13",
    ),
    Case(product="16x9000A3", device="npu5"),
    Case(product="4x300IDuo", device="npu1"),
    Case(product="4x310P", device="npu1"),
    Case(product="8x950", device="npu3"),
    Case(product="8x950Pod", device="npu3"),
    Case(product="8x950", device="npu3", drops=True, ends="refused: the library does not list npu3"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What became of one case: ``sets`` are the devices by what was done with them."""

    case: Case
    lines: Sequence[str]
    sets: Mapping[str, frozenset[str]]
    why: str

    @property
    def wrong(self) -> Sequence[str]:
        """What does not hold, in words; nothing where all is right."""
        found = [] if self.why.startswith(self.case.ends) else [f"it was to end with {self.case.ends!r}"]
        if not self.case.is_done:
            return found + ([f"reset: {_listed(self.sets['reset'])}"] if self.sets["reset"] else [])
        for name, devices in self.sets.items():
            if name == MEANWHILE:
                found += [f"{name}: {_listed(devices)}"] if devices else []
                continue
            # A chip that has dropped cannot be asked who is on it: the card has no id in a new process.
            lacking = {self.case.device} if name == "checked" and self.case.drops else set()
            if devices != self.sets["announced"] - lacking:
                found.append(f"{name} are not those that were announced")
        return found


def all_resets(library: Path) -> Iterator[Course]:
    """Of each case what came of it."""
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="compare-dcmi-") as folder:
            try:
                yield asyncio.run(_reset(case, library, Path(folder)))
            except AssertionError as error:
                # Of what never came, with the daemon's last words: the other cases are worth their answer.
                yield Course(case=case, lines=str(error).splitlines(), sets=NOTHING, why="it has no end")


async def _reset(case: Case, library: Path, folder: Path) -> Course:
    async with acting(folder, case.product) as npus:
        shutil.copyfile(library, npus.node.dcmi)
        if case.out_of_band:
            npus.node.answer(REFUSED, function="dsmi_hot_reset_atomic", times=INBAND_TRIES)
        if case.removed and not case.later:
            npus.node.take_out(case.removed)
        await npus.start()
        await npus.daemon.comes(lambda: _may_be_used(npus, case.device), f"{case.device}'s verdict")
        if case.later:
            npus.node.take_out(case.removed)
            await npus.subscriber.event(EventKind.RAISED, "device_lost", case.removed)
        before = len(npus.subscriber.received)
        trace.begin(npus.node)
        if case.drops:
            npus.node.drop(case.device)
        else:
            npus.break_(case.device)
        proposed = await npus.event(EventKind.ACTION_PROPOSED, f"reset of {case.device}")
        npus.pass_time(GRACE_S)
        finished = await npus.event(EventKind.ACTION_FINISHED, "")
        calls = trace.calls(npus.node)
        events = [event for event in npus.subscriber.received[before:] if isinstance(event, Event)]
        hit = frozenset(name for name in npus.node.names() if npus.node.chip(name).resets)
    sets = {"announced": frozenset(proposed.evidence["devices"].split(", ")), "reset": hit}
    if finished.why.startswith("done"):
        sets |= _done(calls, events, finished, sets["announced"])
    return Course(case=case, lines=list(trace.shown(calls, events)), sets=sets, why=finished.why)


def _done(
    calls: Sequence[Call], events: Sequence[Event], finished: Event, announced: frozenset[str]
) -> dict[str, frozenset[str]]:
    """Which devices were drained and checked before the reset, and which started after it. Of those that were
    announced, which the worker asked just before, and read after it: the others are read all the time.
    """
    (reset,) = (call for call in calls if call.name == RESET and call.answer == 0)
    verdicts = {event.device: event.verdict for event in events if event.at <= reset.at}
    earlier = [call for call in calls if call.answer == 0 and call.at < reset.at]
    alone_at = min(event.at for event in events if event.kind is EventKind.SOURCE_LOST)
    who = roles(calls)
    later = [call for call in calls if call.answer == 0 and reset.at < call.at <= finished.at]
    return {
        "drained": frozenset(
            name for name, verdict in verdicts.items() if verdict != MAY_BE_USED and name != "node"
        ),
        "checked": frozenset(
            call.device
            for call in earlier
            if call.process == reset.process and call.name == PROCESSES and call.shown == 0
        ),
        "started": frozenset(
            call.device
            for call in later
            if call.process == reset.process and call.name == BOOT_STATUS and call.shown == STARTED
        ),
        MEANWHILE: frozenset(
            call.device
            for call in calls
            if alone_at < call.at <= reset.at and who[call.process] == "worker" and call.device in announced
        ),
        "read again": frozenset(
            call.device
            for call in later
            if call.process != reset.process and call.name == CODES and call.device in announced
        ),
    }


async def _may_be_used(npus: Acting, device: str) -> bool:
    return (await npus.verdicts()).get(device) == MAY_BE_USED


async def all_may_be_used(npus: Acting) -> bool:
    """Whether the daemon's verdict on every chip is to use it."""
    return set((await npus.verdicts()).values()) == {MAY_BE_USED}


def _listed(devices: frozenset[str]) -> str:
    return ", ".join(sorted(devices, key=lambda name: int(name.removeprefix("npu")))) or "none"


def lines_of(course: Course) -> Iterator[str]:
    """What is shown of it: every call beside the events, what was done with which devices, what is wrong."""
    what = "drops" if course.case.drops else "has a fault"
    what += ", in-band is refused" if course.case.out_of_band else ""
    what += (
        f", {course.case.removed} is removed{' meanwhile' if course.case.later else ''}"
        if course.case.removed
        else ""
    )
    yield f"{course.case.product}, {course.case.device} {what}: {course.why}"
    yield from (f"    {line}" for line in course.lines)
    for name, devices in course.sets.items():
        yield f"  {name}: {_listed(devices)}"
    yield from (f"  WRONG: {words}" for words in course.wrong)
    if not course.wrong:
        yield "  right: what was announced is what was reset" if course.case.is_done else "  right: no reset"
