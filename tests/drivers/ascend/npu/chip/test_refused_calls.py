"""What a chip refuses is asked seldom: the vendor's library logs each call that it answers by an error."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.watched_chip import CARD_DROPPED, SLOW_ROUND
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.recorder import Recorder

POLLS = 100


@pytest.fixture
def driver(node: EmulatedNode, tmp_path: Path) -> Iterator[AscendDriver]:
    driver = AscendDriver(
        library=str(node.dcmi), sysfs=tmp_path, procfs=Path("/proc"), skip=frozenset(), emit=Recorder()
    )
    driver.open()
    driver.devices()
    # What a product lacks is found out once.
    for _ in range(SLOW_ROUND):
        driver.poll("npu3")
    yield driver
    driver.close()


def refused_by(node: EmulatedNode, driver: AscendDriver) -> int:
    """In so many polls of a chip."""
    before = node.refused()
    for _ in range(POLLS):
        driver.poll("npu3")
    return node.refused() - before


def test_a_healthy_chip_refuses_nothing(node: EmulatedNode, driver: AscendDriver) -> None:
    assert refused_by(node, driver) == 0


@pytest.mark.parametrize("holders", [0, 1])
def test_a_chip_that_has_dropped_is_asked_seldom(
    node: EmulatedNode, driver: AscendDriver, holders: int
) -> None:
    for _ in range(holders):
        node.hold("npu3", 4711)
    node.drop("npu3")
    calls_each = 1 + holders
    assert refused_by(node, driver) <= calls_each * (4 + POLLS / SLOW_ROUND)
    node.return_("npu3")
    polled = [driver.poll("npu3") for _ in range(SLOW_ROUND)]
    assert [reading.active for reading in polled if reading.active is not None][-1] == ()


def test_polls_in_between_say_nothing_of_the_faults_of_a_chip_that_has_dropped(
    node: EmulatedNode, driver: AscendDriver
) -> None:
    node.drop("npu3")
    polled = [driver.poll("npu3") for _ in range(POLLS)]
    assert {reading.complete for reading in polled} == {False}
    shown = [reading.active for reading in polled if reading.active is not None]
    assert {active.code for codes in shown for active in codes} == {CARD_DROPPED}
    assert len(shown) < POLLS / 2
    assert {reading.users for reading in polled} == {()}


@pytest.mark.parametrize(
    "function",
    [
        "dcmi_get_device_voltage",
        "dcmi_get_device_resource_info",
        "dcmi_get_device_die_v2",
        "dcmi_get_device_info",
    ],
)
@pytest.mark.parametrize("answer", [-8005, -8255])
def test_a_call_that_is_refused_again_and_again_is_made_seldom(
    node: EmulatedNode, driver: AscendDriver, function: str, answer: int
) -> None:
    node.answer(answer, "npu3", function)
    before = node.calls(function, "npu3")
    for _ in range(POLLS):
        driver.poll("npu3")
    assert node.calls(function, "npu3") - before <= 60
    node.release()
    for _ in range(SLOW_ROUND):
        driver.poll("npu3")
    assert refused_by(node, driver) == 0
