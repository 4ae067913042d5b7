"""A fault comes in two ways, by its event and in the list of a poll, and is reported once."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nodeagent.core.model import Assertion
from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.events import ON_ITS_WAY_NS
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.recorder import Recorder

HBM, HBM_CODE = 0x80E01801, "80E01801"
LINK, LINK_CODE = 0x81078603, "81078603"
OCCUR = 1
LIST = "dcmi_get_device_errorcode_v2"
PATIENCE_S = 60.0


@pytest.fixture
def emit() -> Recorder:
    return Recorder()


@pytest.fixture
def driver(node: EmulatedNode, tmp_path: Path, emit: Recorder) -> Iterator[AscendDriver]:
    """Subscribed, and polled once; it waits for an event as long as a test may need to send it."""
    driver = AscendDriver(
        library=str(node.dcmi),
        sysfs=tmp_path,
        procfs=Path("/proc"),
        skip=frozenset(),
        emit=emit,
        list_leads_s=PATIENCE_S,
    )
    driver.open()
    driver.devices()
    driver.devices()
    driver.poll("npu3")
    yield driver
    driver.close()


def codes(driver: AscendDriver) -> tuple[list[str], bool]:
    """What a poll lists, and whether that is all."""
    reading = driver.poll("npu3")
    return [active.code for active in reading.active or ()], reading.complete


def test_what_the_list_shows_first_is_left_to_the_event_that_follows(
    node: EmulatedNode, driver: AscendDriver, emit: Recorder
) -> None:
    node.raise_code("npu3", HBM, deliver=False)
    asked = node.calls(LIST, "npu3")
    with ThreadPoolExecutor(1) as pool:
        polled = pool.submit(codes, driver)
        while node.calls(LIST, "npu3") == asked:
            time.sleep(0.001)
        node.send_event("npu3", HBM, OCCUR)
        assert polled.result() == ([], False)
    emit.until(lambda: bool(emit.signals))
    assert [(signal.code, signal.assertion) for signal in emit.signals] == [(HBM_CODE, Assertion.OCCUR)]


def test_what_an_event_has_told_is_listed_once_it_has_arrived(
    node: EmulatedNode, driver: AscendDriver, emit: Recorder
) -> None:
    node.raise_code("npu3", HBM)
    emit.until(lambda: len(emit.signals) == 1)
    time.sleep(ON_ITS_WAY_NS / 1e9)
    assert codes(driver) == ([HBM_CODE], True)


def test_what_stood_before_is_listed_beside_what_an_event_is_telling(
    node: EmulatedNode, driver: AscendDriver, emit: Recorder
) -> None:
    node.raise_code("npu3", LINK)
    emit.until(lambda: len(emit.signals) == 1)
    time.sleep(ON_ITS_WAY_NS / 1e9)
    assert codes(driver) == ([LINK_CODE], True)
    node.raise_code("npu3", HBM)
    listed, _ = codes(driver)
    assert LINK_CODE in listed
    emit.until(lambda: [signal.code for signal in emit.signals] == [LINK_CODE, HBM_CODE])
