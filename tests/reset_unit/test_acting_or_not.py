"""Resets that must not be, or not yet: for faults of the past, and while a driver is upgraded."""

import contextlib
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.reset_unit.acting import BROKEN, CODE, INBAND, acting

pytestmark = pytest.mark.slow


async def test_story_07_a_fault_that_is_over_when_resets_are_switched_on_is_not_acted_on(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.mode = "off"
        await npus.start()
        npus.break_("npu3")
        await npus.subscriber.raised(CODE, "npu3")
        npus.node.clear_code("npu3", BROKEN)
        await npus.subscriber.cleared(CODE, "npu3")
        npus.break_("npu4")
        await npus.subscriber.raised(CODE, "npu4")
        await npus.kill()
        npus.node.clear_code("npu4", BROKEN)
        npus.mode = "on"
        await npus.start()
        await npus.subscriber.cleared(CODE, "npu4")
        npus.pass_time(3600)
        await npus.read_again()
        assert npus.actions == []
        assert npus.node.calls(INBAND) == 0


async def test_story_07_a_fault_that_was_open_when_resets_were_switched_on_waits_for_its_next_occurrence(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.mode = "off"
        await npus.start()
        npus.break_("npu3")
        await npus.subscriber.raised(CODE, "npu3")
        await npus.kill()
        npus.mode = "on"
        await npus.start()
        npus.pass_time(60)
        await npus.read_again()
        assert npus.actions == []
        npus.break_("npu3")
        await npus.announced(1)
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1


async def test_story_10_while_a_driver_is_upgraded_a_reset_waits_and_nothing_of_ours_is_open(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await npus.start()
        npus.break_("npu3")
        await npus.event(EventKind.ACTION_PROPOSED, "reset of npu3")
        assert (await npus.order("quiesce"))[0] == 0
        await npus.event(EventKind.SOURCE_LOST, "quiesced by ")
        npus.pass_time(5)
        waiting = await npus.event(EventKind.ACTION_PROPOSED, "it waits: ")
        assert "quiesced by " in waiting.why
        assert npus.node.calls(INBAND) == 0
        assert _who_has_open(npus.node.dcmi) == []
        assert (await npus.order("resume"))[0] == 0
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1


def _who_has_open(library: Path) -> list[str]:
    """The commands of the processes that have loaded it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(library) in (process / "maps").read_text():
                found.append((process / "cmdline").read_text())
    return found
