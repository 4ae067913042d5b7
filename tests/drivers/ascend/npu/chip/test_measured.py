"""When a chip is measured: seldom while nothing changes, and at once where something does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.watched_chip import MEASURE_EACH, SLOW_ROUND
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.recorder import Recorder

HBM, HBM_CODE = 0x80E01801, "80E01801"


@pytest.fixture
def driver(node: EmulatedNode, tmp_path: Path) -> Iterator[AscendDriver]:
    driver = AscendDriver(
        library=str(node.dcmi), sysfs=tmp_path, procfs=Path("/proc"), skip=frozenset(), emit=Recorder()
    )
    driver.open()
    driver.devices()
    yield driver
    driver.close()


def at_rest(driver: AscendDriver, chip: str = "npu3") -> None:
    """The last poll has measured, and the next ones need not."""
    for _ in range(SLOW_ROUND):
        driver.poll(chip)
    while not driver.poll(chip).measured:
        pass


def test_the_first_poll_measures(driver: AscendDriver) -> None:
    reading = driver.poll("npu3")
    assert reading.measured
    assert reading.readings["temperature_celsius"] > 0


def test_while_nothing_changes_each_fifth_poll_measures(driver: AscendDriver) -> None:
    at_rest(driver)
    polled = [driver.poll("npu3") for _ in range(2 * MEASURE_EACH)]
    assert [reading.measured for reading in polled] == [*[False] * 4, True] * 2
    assert [bool(reading.readings) for reading in polled] == [reading.measured for reading in polled]


def test_the_chips_take_turns(driver: AscendDriver) -> None:
    for chip in range(5):
        driver.poll(f"npu{chip}")
    assert [sum(driver.poll(f"npu{chip}").measured for chip in range(5)) for _ in range(10)] == [1] * 10


def test_what_is_measured_beside_a_new_code_is_of_its_time(node: EmulatedNode, driver: AscendDriver) -> None:
    at_rest(driver)
    node.set("npu3", "temperature_celsius", 93)
    node.raise_code("npu3", HBM)
    reading = driver.poll("npu3")
    assert [active.code for active in reading.active or ()] == [HBM_CODE]
    assert (reading.readings["temperature_celsius"], reading.readings["health"]) == (93, 2)
    assert not driver.poll("npu3").measured
    node.clear_code("npu3", HBM)
    assert driver.poll("npu3").readings["health"] == 0
