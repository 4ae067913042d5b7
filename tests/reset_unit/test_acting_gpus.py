"""Resets of GPUs from the fault to the verdict: the real daemon and driver, with a tool for the double."""

from pathlib import Path

import pytest

from nodeagent.client import Event, EventKind
from tests.reset_unit.acting import TOOL, Acting, acting, called
from tests.reset_unit.conftest import fake_tool

pytestmark = pytest.mark.slow


async def test_story_10_a_gpu_is_reset_once_nothing_of_ours_has_it_open(tmp_path: Path) -> None:
    async with acting(tmp_path, "2xH100") as gpus:
        node = gpus.node
        gpus.daemon.env = fake_tool(
            tmp_path / "bin", "nvidia-smi", TOOL.format(directory=str(node.directory)), gpus.daemon.env
        )
        await gpus.start()
        node.gpus.remap("gpu1", uncorrected=1, pending=True)
        finished = await gpus.event(EventKind.ACTION_FINISHED, "")
        assert (finished.device, finished.why) == ("gpu1", "done: verified by a poll of every member")
        assert called(node) == [f"--gpu-reset -i {node.gpus.pci('gpu1')}.0"]
        assert await gpus.verdicts() == {"gpu0": "ALLOW", "gpu1": "ALLOW"}
        assert [event.code for event in gpus.subscriber.of(EventKind.RAISED)] == ["XID_63"]


async def test_story_10_what_the_tool_says_against_it_is_told_and_takes_the_gpu_out(tmp_path: Path) -> None:
    async with acting(tmp_path, "2xH100") as gpus:
        finished = await _reset_that_the_tool_ends(gpus, tmp_path, "Unknown Error")
        assert "exit status 255, 0 of 1 reported as reset: Unknown Error" in finished.why
        assert "no bug report: nvidia-bug-report.sh is not installed at" in finished.why
        failed = await gpus.subscriber.raised("reset_failed", "gpu1")
        assert failed.verdict.value == "ISOLATE"


async def _reset_that_the_tool_ends(gpus: Acting, tmp_path: Path, saying: str) -> Event:
    """How a reset of gpu1 ended, the only one it may have, where the tool said so and did nothing."""
    gpus.reset = ("limit = 1",)
    program = f"print({saying!r}); sys.exit(255)"
    gpus.daemon.env = fake_tool(tmp_path / "bin", "nvidia-smi", program, gpus.daemon.env)
    await gpus.start()
    gpus.node.gpus.remap("gpu1", uncorrected=1, pending=True)
    return await gpus.event(EventKind.ACTION_FINISHED, "")


async def test_a_gpu_that_the_tool_finds_in_use_is_not_taken_out_for_good(tmp_path: Path) -> None:
    async with acting(tmp_path, "2xH100") as gpus:
        finished = await _reset_that_the_tool_ends(
            gpus, tmp_path, "GPU 00000000:3B:00.0: In use by another client"
        )
        assert finished.why.startswith("refused: nvidia-smi --gpu-reset")
        assert "In use by another client" in finished.why
        assert "reset_failed" not in [event.code for event in gpus.subscriber.of(EventKind.RAISED)]


async def test_a_gpu_whose_reset_goes_on_is_not_opened_by_the_next_life_of_the_daemon(tmp_path: Path) -> None:
    async with acting(tmp_path, "2xH100") as gpus:
        node = gpus.node
        gpus.reset = ('before = [["sleep", "4"]]',)
        gpus.daemon.env = fake_tool(
            tmp_path / "bin", "nvidia-smi", TOOL.format(directory=str(node.directory)), gpus.daemon.env
        )
        await gpus.start()
        node.gpus.remap("gpu1", uncorrected=1, pending=True)
        await gpus.event(EventKind.ACTION_STARTED, "")
        await gpus.daemon.comes(lambda: list(gpus.run_dir.glob("*.begun")), "its process")
        await gpus.kill()
        await gpus.start()
        finished = await gpus.event(EventKind.ACTION_FINISHED, "")
        assert finished.why == "done: verified by a poll of every member"
        assert len(called(node)) == 1
        assert await gpus.verdicts() == {"gpu0": "ALLOW", "gpu1": "ALLOW"}
