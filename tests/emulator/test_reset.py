"""Resets as the products do them: who is reset with whom, by which channel, and how it can go wrong."""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from nodeagent.emulator.node import EmulatedNode
from tests.waiting import wait_until

MakeNode = Callable[[str], EmulatedNode]
OUTBAND, INBAND = 0, 1
MODULE = ("npu0", "npu1", "npu8", "npu9")
"""Of an A3: cards 0 and 4."""


def reset(node: EmulatedNode, card: int, device: int = 0, channel: int = INBAND) -> int:
    return int(ctypes.CDLL(str(node.dcmi)).dcmi_set_device_reset(card, device, channel))


def boot_status(node: EmulatedNode, card: int) -> tuple[int, int]:
    """The answer, and the status."""
    status = ctypes.c_uint(99)
    answer = ctypes.CDLL(str(node.dcmi)).dcmi_get_device_boot_status(card, 0, ctypes.byref(status))
    return int(answer), status.value


def reset_devices(node: EmulatedNode) -> list[str]:
    return [device for device in node.names() if node.chip(device).resets]


@pytest.mark.parametrize(
    ("description", "card", "together"),
    [
        ("8x910B", 3, [f"npu{number}" for number in range(8)]),
        ("8x800IA2", 3, ["npu3"]),
        ("16xA3", 2, ["npu4", "npu5", "npu12", "npu13"]),
        ("16x9000A3", 2, ["npu4", "npu5"]),
        ("4x300IDuo", 1, ["npu2", "npu3"]),
    ],
)
def test_chips_are_reset_together(
    make_node: MakeNode, description: str, card: int, together: list[str]
) -> None:
    node = make_node(description)

    assert (reset(node, card), reset_devices(node)) == (0, together)


def test_a_950_is_reset_alone(make_node: MakeNode) -> None:
    node = make_node("8x950")

    assert ctypes.CDLL(str(node.dcmi)).dcmiv2_reset_device(3, INBAND) == 0
    assert reset_devices(node) == ["npu3"]


@pytest.mark.parametrize("number", [8, 0xFF])
def test_a_950_that_is_not_there_is_not_reset(make_node: MakeNode, number: int) -> None:
    node = make_node("8x950")

    assert ctypes.CDLL(str(node.dcmi)).dcmiv2_reset_device(number, INBAND) == -8001
    assert reset_devices(node) == []


def test_all_cards_of_an_a3_are_reset_at_once(make_node: MakeNode) -> None:
    node = make_node("16xA3")

    assert (reset(node, 0xFF), len(reset_devices(node))) == (0, 16)


def test_no_other_has_all_its_cards_reset_at_once(make_node: MakeNode) -> None:
    node = make_node("8x910B")

    assert (reset(node, 0xFF) < 0, reset_devices(node)) == (True, [])


def test_a_card_of_a_300i_duo_is_reset_by_its_first_die_only(make_node: MakeNode) -> None:
    node = make_node("4x300IDuo")

    assert (reset(node, 0, device=1), reset_devices(node)) == (-8255, [])


def test_an_a3_is_not_reset_by_a_process_that_found_only_one_of_its_cards(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    node.drop("npu1")
    library = ctypes.CDLL(str(node.dcmi))

    assert library.dcmi_init() == 0
    assert (library.dcmi_set_device_reset(4, 0, INBAND), reset_devices(node)) == (-8005, [])


def test_a_process_on_a_chip_that_has_dropped_hinders_whoever_knows_the_chip(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    library = ctypes.CDLL(str(node.dcmi))
    assert library.dcmi_init() == 0
    node.hold("npu1", 4711)
    node.drop("npu1")

    assert (library.dcmi_set_device_reset(0, 0, INBAND), reset_devices(node)) == (-8012, [])


EXPORTER = """
import ctypes, sys
library, power = ctypes.CDLL(sys.argv[1]), ctypes.c_int()
library.dcmi_get_device_power_info(5, 0, ctypes.byref(power))
"""


@pytest.mark.parametrize("how", ["comes back", "is killed"])
def test_no_chip_is_reset_while_any_process_has_a_call_under_way_on_one_of_its_group(
    make_node: MakeNode, how: str
) -> None:
    node = make_node("8x910B")
    node.hang("npu5", "dcmi_get_device_power_info")
    with subprocess.Popen([sys.executable, "-c", EXPORTER, str(node.dcmi)]) as exporter:
        wait_until(lambda: node.calls("dcmi_get_device_power_info"), "the exporter's call")
        assert (reset(node, 3), reset_devices(node)) == (-8001, [])
        if how == "is killed":
            exporter.kill()
        else:
            node.release()
        exporter.wait(10)
    assert (reset(node, 3), reset_devices(node)) == (0, list(node.names()))


def test_calls_about_chips_of_other_groups_hinder_no_reset(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    node.hang("npu10", "dcmi_get_device_power_info")
    with subprocess.Popen([sys.executable, "-c", EXPORTER, str(node.dcmi)]):
        wait_until(lambda: node.calls("dcmi_get_device_power_info"), "the exporter's call")
        library = ctypes.CDLL(str(node.dcmi))
        assert (library.dcmi_pre_reset_soc(1, 0), library.dcmi_pre_reset_soc(0, 0)) == (-8001, 0)
        assert (reset(node, 0), reset_devices(node)) == (0, list(MODULE))
        node.release()


def test_a_reset_that_is_refused_begins_nothing(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.set("npu3", "reset_answer", -8015)

    assert (reset(node, 3), reset(node, 3, channel=OUTBAND), reset(node, 3, channel=7)) == (
        -8015,
        -8255,
        -8255,
    )
    assert reset_devices(node) == []


def test_a_reset_that_never_ends_stays_before_its_end(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    for device in MODULE:
        node.set(device, "reset_ends", 0)
        node.set(device, "reset_ms", 1)
    reset(node, 0)
    pause = threading.Event()
    while boot_status(node, 0) != (0, 2):
        pause.wait(0.002)

    assert (node.chip("npu0").ready, boot_status(node, 2)) == (0, (0, 16))


def test_out_of_band_needs_a_preparation_and_a_rescan(make_node: MakeNode) -> None:
    node = make_node("16xA3")
    library = ctypes.CDLL(str(node.dcmi))
    channel = ctypes.c_int(99)
    for device in MODULE:
        node.set(device, "reset_ms", 1)

    assert (library.dcmi_get_device_outband_channel_state(0, 0, ctypes.byref(channel)), channel.value) == (
        0,
        1,
    )
    assert reset(node, 0, channel=OUTBAND) == -8015
    assert library.dcmi_pre_reset_soc(0, 0) == 0
    assert reset(node, 0, channel=OUTBAND) == 0
    assert boot_status(node, 4) == (0, 0)
    assert library.dcmi_rescan_soc(0, 0) == 0
    pause = threading.Event()
    while boot_status(node, 4) != (0, 16):
        pause.wait(0.002)
    assert reset_devices(node) == list(MODULE)


@pytest.mark.parametrize(("heals", "left"), [(1, []), (0, [0x80E01801])])
def test_what_stands_is_gone_after_a_reset_that_heals(
    make_node: MakeNode, heals: int, left: list[int]
) -> None:
    node = make_node("8x910B")
    node.raise_code("npu3", 0x80E01801)
    for device in node.names():
        node.set(device, "reset_ms", 1)
        node.set(device, "reset_heals", heals)
    reset(node, 3)
    pause = threading.Event()
    while boot_status(node, 3) != (0, 16):
        pause.wait(0.002)

    assert node.codes("npu3") == left
