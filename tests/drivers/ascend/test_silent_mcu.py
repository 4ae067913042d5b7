"""Cards whose MCU is silent: their chips are well all the same, and only their labels are unknown."""

import pytest

from nodeagent.drivers.ascend import dcmi
from nodeagent.drivers.ascend.driver import LOOK_LIMIT_S
from nodeagent.drivers.ascend.identity import LabelReader
from nodeagent.emulator.node import EmulatedNode
from tests.daemon.staged import HANG_S
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.judged import judged
from tests.drivers.worker_specs import ascend_spec
from tests.waiting import WAIT_LIMIT_S, wait_until

LABEL = "dcmi_get_card_elabel_v2"
WAIT_MS = int((LOOK_LIMIT_S + HANG_S) * 1000 / 4) + 150
"""So long for each of four texts: the label takes longer than the first look and a poll may take together."""


def silence(node: EmulatedNode, wait_ms: int) -> None:
    for device in node.names():
        node.set(device, "mcu_silent_ms", wait_ms)


async def test_chips_whose_mcus_are_all_silent_are_observed_and_none_is_late(emulate: Emulate) -> None:
    node = emulate("2x910B")
    silence(node, WAIT_MS)
    async with judged(ascend_spec(node.dcmi, node.sysfs, call_deadline_s=HANG_S)) as stage:
        asked = node.calls(LABEL, "npu1")
        await stage.until(lambda: node.calls(LABEL, "npu1") > asked, "another question for the label")
        assert stage.faults("driver_unresponsive") == []
        assert stage.health.restarts == 0
        assert stage.device("npu1").observed
        assert stage.device("npu1").attributes.keys().isdisjoint({"product", "model", "serial"})


async def test_the_label_of_an_mcu_that_answers_again_is_told(emulate: Emulate) -> None:
    node = emulate("2x910B")
    silence(node, 10)
    async with judged(ascend_spec(node.dcmi, node.sysfs, poll_interval_s=0.05)) as stage:
        before = stage.device("npu1")
        assert "serial" not in before.attributes
        silence(node, 0)
        await stage.until(lambda: "serial" in stage.device("npu1").attributes, "its serial number")
        assert stage.device("npu1").id == before.id


@pytest.fixture
def label(node: EmulatedNode) -> LabelReader:
    library = dcmi.open_library(str(node.dcmi))
    (place,) = library.places(3)
    return LabelReader(library.chip(place), "npu3")


def asked_at(label: LabelReader, node: EmulatedNode, until_s: int) -> list[int]:
    """Each second the label is wanted; when it was asked for, once each question was answered."""
    times_s = []
    for now_s in range(until_s):
        before = node.calls(LABEL, "npu3")
        label.want("die", now_s)
        label.wait(WAIT_LIMIT_S)
        if node.calls(LABEL, "npu3") > before:
            times_s.append(now_s)
    return times_s


def test_a_label_that_is_not_told_is_asked_for_ever_more_seldom(
    node: EmulatedNode, label: LabelReader
) -> None:
    node.answer(-8006, "npu3", LABEL)
    times_s = asked_at(label, node, 1500)
    assert (times_s[:6], times_s[-1] - times_s[-2]) == ([0, 1, 3, 7, 15, 31], 300)


def test_a_label_that_was_told_is_asked_for_once(node: EmulatedNode, label: LabelReader) -> None:
    assert asked_at(label, node, 50) == [0]


def test_the_label_of_the_part_that_was_there_before_is_not_the_new_ones(
    node: EmulatedNode, label: LabelReader
) -> None:
    label.want("old", 0.0)
    wait_until(lambda: "serial" in label.texts())
    node.hang("npu3", LABEL)
    label.want("new", 0.0)
    assert label.texts() == {}
    node.replace_die("npu3", 77)
    node.release()
    wait_until(lambda: label.texts().get("serial") == "2102316000000077")
