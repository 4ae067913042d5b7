"""The daemon is down while a duration rule's time runs out: what has gone meanwhile was never judged."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from nodeagent.emulator.node import EmulatedNode
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.subscriber import without_gap
from tests.stories.conftest import Follow, Launch

LINK_DOWN = 0x81078603
CODE = f"{LINK_DOWN:08X}"
TIMEOUT_S = 6

RULES = f"""
kind = "chip"
vendor = "ascend"

[codes.{CODE}]
name = "link down"
level = "NotHandleFault"
clear_on = ["recover", "reboot"]
description = "The network port has no link."
action = "Check the cable."

[[duration]]
id = "link-down"
codes = ["{CODE}"]
fault_timeout = "{TIMEOUT_S}s"
recover_timeout = "60s"
level = "PreSeparateNPU"
"""


@pytest.fixture
def npus(tmp_path: Path) -> Iterator[EmulatedNode]:
    with EmulatedNode.create(tmp_path / "npus", "8x910B") as node:
        yield node


async def test_a_fault_still_there_is_judged_from_its_start_and_one_that_has_gone_just_clears(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, npus: EmulatedNode
) -> None:
    daemon = launch(
        fake_log,
        kmsg_keys=("[drivers.ascend]", f'library = "{npus.dcmi}"', f'sysfs = "{npus.directory}"'),
    )
    (daemon.tables / "rules.toml").write_text(RULES)
    subscriber = await follow(daemon)
    npus.raise_code("npu0", LINK_DOWN)
    npus.raise_code("npu1", LINK_DOWN)
    await subscriber.raised(CODE, "npu0")
    lasting = await subscriber.raised(CODE, "npu1")
    await daemon.kill()
    npus.clear_code("npu0", LINK_DOWN, deliver=False)
    await asyncio.sleep(TIMEOUT_S)

    await daemon.start()
    await subscriber.follow()
    judged = await subscriber.event(EventKind.LEVEL_CHANGED, CODE, "npu1")
    cleared = await subscriber.event(EventKind.CLEARED, CODE, "npu0")

    assert abs(judged.at - lasting.at - timedelta(seconds=TIMEOUT_S)) < timedelta(seconds=1)
    assert (judged.condition_level, judged.verdict) == ("PreSeparateNPU", "NO_NEW_JOBS")
    assert cleared.condition_level == "NotHandleFault"
    assert [event.device for event in subscriber.of(EventKind.LEVEL_CHANGED)] == ["npu1"]
    assert without_gap(subscriber.events)
