"""What is asked beside a chip's polls: the health of its network, which may wait for the network itself."""

import threading
from collections.abc import Iterator, Mapping

import pytest

from nodeagent.drivers.ascend import dcmi
from nodeagent.drivers.ascend.slow_calls import BackgroundCall
from nodeagent.drivers.ascend.telemetry import MAY_WAIT, ChipTelemetry
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate
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
