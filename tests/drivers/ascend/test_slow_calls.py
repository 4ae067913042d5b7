"""What is asked beside a chip's polls: the health of its network, which may wait for the network itself.

What a chip refuses is asked seldom: the vendor's library logs each call that it answers by an error.
"""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nodeagent.drivers.ascend import dcmi
from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.slow_calls import BackgroundCall
from nodeagent.drivers.ascend.telemetry import MAY_WAIT, ChipTelemetry
from nodeagent.drivers.ascend.watched_chip import CARD_DROPPED, SLOW_ROUND
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.recorder import Recorder
from tests.waiting import wait_until

NETWORK = "dcmi_get_device_network_health"


Readings = Mapping[str, float]


def telemetry_of(node: EmulatedNode, card: int) -> ChipTelemetry:
    library = dcmi.open_library(str(node.dcmi))
    return ChipTelemetry(library.chip(library.places(card)[0]), MAY_WAIT)


def beside_of(telemetry: ChipTelemetry, device: str) -> BackgroundCall[Readings]:
    return BackgroundCall(lambda: telemetry.read(slow_round=True), {}, device)


@pytest.fixture
def telemetry(node: EmulatedNode) -> ChipTelemetry:
    return telemetry_of(node, 3)


@pytest.fixture
def beside(node: EmulatedNode, telemetry: ChipTelemetry) -> Iterator[BackgroundCall[Readings]]:
    beside = beside_of(telemetry, "npu3")
    yield beside
    node.release()
    beside.end()


def answered(beside: BackgroundCall[Readings], *, ask: bool = True) -> Readings:
    """What it answers once it answers anything."""
    wait_until(lambda: bool(beside.read(ask=ask)))
    return beside.read(ask=False)


def test_the_answer_is_told_from_when_it_has_come(
    node: EmulatedNode, beside: BackgroundCall[Readings]
) -> None:
    node.set("npu3", "network_health", 3)
    assert beside.read(ask=False) == {}
    assert answered(beside) == {"network_health": 3}
    assert node.calls(NETWORK, "npu3") >= 1


def test_an_answer_that_does_not_come_is_waited_for_by_nobody_and_unknown(
    node: EmulatedNode, beside: BackgroundCall[Readings]
) -> None:
    assert answered(beside) == {"network_health": 0}
    node.hang("npu3", NETWORK)
    wait_until(lambda: beside.read(ask=True) == {})
    asked = node.calls(NETWORK, "npu3")
    for _ in range(10):
        assert beside.read(ask=True) == {}
    assert node.calls(NETWORK, "npu3") == asked

    node.release()
    node.set("npu3", "network_health", 1)
    wait_until(lambda: beside.read(ask=True) == {"network_health": 1})


def test_a_value_that_cannot_be_is_refused_and_counted(
    node: EmulatedNode, telemetry: ChipTelemetry, beside: BackgroundCall[Readings]
) -> None:
    node.set("npu3", "network_health", 9)
    beside.read(ask=True)
    wait_until(lambda: telemetry.refused == 1)
    assert beside.read(ask=False) == {}


def test_a_product_without_such_a_network_is_asked_once(emulate: Emulate) -> None:
    node = emulate("4x300IDuo")
    beside = beside_of(telemetry_of(node, 1), "npu2")
    for _ in range(3):
        beside.read(ask=True)
        wait_until(lambda: node.calls(NETWORK, "npu2") == 1)
        assert beside.read(ask=False) == {}
    beside.end()


def test_its_thread_is_gone_when_its_chip_is_no_longer_watched(beside: BackgroundCall[Readings]) -> None:
    before = threading.enumerate()  # among them perhaps those of tests that have just ended
    assert answered(beside) == {"network_health": 0}
    (thread,) = {*threading.enumerate()} - {*before}
    assert thread.name == "npu3 slow"
    beside.end()
    thread.join(timeout=60)
    assert not thread.is_alive()


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
