"""A job on GPUs: stopped for the reset that an Xid asks for, and run again once that is done."""

from functools import partial
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.reset_unit.acting import TOOL, Acting, acting, called
from tests.reset_unit.conftest import fake_tool
from tests.stories.jobs import beside, claim, living

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.xdist_group("cgroup")]

GPUS = ("gpu0", "gpu1")
CODE = "XID_62"
"""RestartNPU: the GPU's microcontroller has halted."""


async def test_the_ranks_are_stopped_the_gpu_is_reset_once_and_the_command_goes_on(tmp_path: Path) -> None:
    async with acting(tmp_path, "2xH100") as node:
        tool = TOOL.format(directory=str(node.node.directory))
        node.daemon.env = fake_tool(tmp_path / "bin", "nvidia-smi", tool, node.daemon.env)
        await node.start()
        async with beside(node, tmp_path / "job", GPUS) as job:
            job.policy = ("--grace", "2s", "--in-place", "--placements", "3")
            await node.daemon.comes(partial(both_are_seen, node), "both GPUs")
            await claim(job, *GPUS)
            await job.start()
            first = await job.trains(1)
            node.node.gpus.raise_xid("gpu1", 62)
            await node.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
            await job.trains(2)

            assert living(first) == []
            assert called(node.node) == [f"--gpu-reset -i {node.node.gpus.pci('gpu1')}.0"]
            assert job.course() == ["job_begun", "job_asked", "job_stopped", "job_rerun"]
            assert {each.code for each in job.events() if each.kind is EventKind.JOB_ASKED} == {CODE}
            assert await node.verdicts() == {"gpu0": "ALLOW", "gpu1": "ALLOW"}


async def both_are_seen(node: Acting) -> bool:
    """Maybe before the subscriber came, so that no event of its stream tells it."""
    return {*await node.verdicts()} >= {*GPUS}
