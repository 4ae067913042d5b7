"""No chip is reset while anybody has a call under way on it: our own polls, and those of others."""

import asyncio
import sys
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.reset_unit.acting import INBAND, POLLED, acting

pytestmark = pytest.mark.slow

EXPORTER = """
import ctypes, sys
library, text = ctypes.CDLL(sys.argv[1]), ctypes.create_string_buffer(256)
while True:
    library.dcmi_get_device_errorcode_string(5, 0, 1, text, 256)
"""


async def test_polls_of_ours_hinder_no_reset_however_long_they_take(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.node.delay(150, function=POLLED)
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        finished = await npus.event(EventKind.ACTION_FINISHED, "done")
        assert "once more" not in finished.evidence["report"]
        assert npus.node.calls(INBAND) == 1


async def test_a_program_that_calls_all_the_time_is_outwaited_if_it_pauses_once(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await npus.start()
        npus.node.hang("npu5", "dcmi_get_device_errorcode_string")
        exporter = await asyncio.create_subprocess_exec(sys.executable, "-c", EXPORTER, npus.node.dcmi)
        npus.break_("npu3")
        await npus.announced(1)
        await npus.daemon.comes(lambda: npus.node.calls(INBAND) >= 1, "the first try")
        exporter.kill()
        await exporter.wait()
        npus.node.release()
        finished = await npus.event(EventKind.ACTION_FINISHED, "done")
        assert "(INVALID_PARAMETER, -8001); once more in 1 s" in finished.evidence["report"]
        assert [npus.node.chip(name).resets for name in npus.node.names()] == [1] * 8
