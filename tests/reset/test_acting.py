"""Resets from the fault to the verdict: the real daemon, driver, process and library, on emulated NPUs."""

from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.reset.acting import CODE, INBAND, acting

pytestmark = pytest.mark.slow

RING = [f"npu{number}" for number in range(8)]
ALLOWED = dict.fromkeys(RING, "ALLOW")
ISOLATED = dict.fromkeys(RING, "ISOLATE")


async def test_a_fault_on_one_of_a_free_ring_is_reset_away_and_all_may_be_used_again(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.reset = (f'before = [["sh", "-c", "echo $NODEAGENT_DEVICES >{tmp_path}/hook"]]',)
        await npus.start()
        npus.break_("npu3")
        proposed = await npus.told(EventKind.ACTION_PROPOSED, "reset of npu3")
        assert await npus.verdicts() == ISOLATED
        finished = await npus.told(EventKind.ACTION_FINISHED, "done")
        assert npus.node.calls(INBAND) == 1
        assert [npus.node.chip(name).resets for name in RING] == [1] * 8
        assert npus.actions == [
            ("action_proposed", f"reset of npu3, npu0, npu1, npu2, npu4, npu5, npu6, npu7 for {CODE}"),
            ("action_started", "reset of npu3, npu0, npu1, npu2, npu4, npu5, npu6, npu7"),
            ("action_finished", "done: verified by a poll of every member"),
        ]
        assert float(finished.evidence["ended_after_s"]) > float(finished.evidence["started_after_s"]) >= 5
        assert await npus.verdicts() == ALLOWED
        assert {event.code for event in npus.subscriber.of(EventKind.RAISED)} == {CODE}
        assert (tmp_path / "hook").read_text().split()[0] == "npu3"
        (evidence,) = (tmp_path / "state/evidence").iterdir()
        assert sorted(path.name for path in evidence.iterdir()) == [
            "events.jsonl",
            "kernel.log",
            "request.json",
        ]
        assert proposed.condition_id in (evidence / "events.jsonl").read_text()
        await npus.until(lambda: not list(npus.run_dir.glob("*.result")), "the end of its files")
