"""The binding on the real double: both generations, refusals, and what no library should answer."""

import pytest

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.ascend import dcmi
from nodeagent.drivers.ascend.dcmi import DcmiLibrary
from nodeagent.drivers.ascend.dcmi_calls import (
    DCMI_STATUS,
    DcmiChip,
    DcmiGeneration,
    ImpossibleValue,
    NotReady,
    NotSupported,
)
from nodeagent.drivers.ascend.telemetry import ChipTelemetry
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate


def opened(node: EmulatedNode) -> DcmiLibrary:
    return dcmi.open_library(str(node.dcmi))


def chip_of(node: EmulatedNode, device: str = "npu3") -> DcmiChip:
    library = opened(node)
    places = [place for card in library.cards() for place in library.places(card)]
    return library.chip(next(place for place in places if f"npu{place.physical}" == device))


@pytest.mark.parametrize(
    ("description", "generation", "chips"),
    [
        ("8x910B", DcmiGeneration.V1, 8),
        ("16x910B", DcmiGeneration.V1, 16),
        ("16xA3", DcmiGeneration.V1, 16),
        ("4x300IDuo", DcmiGeneration.V1, 4),
        ("8x950", DcmiGeneration.V2, 8),
    ],
)
def test_the_chips_of_every_product_are_found(
    emulate: Emulate, description: str, generation: DcmiGeneration, chips: int
) -> None:
    library = opened(emulate(description))
    places = [place for card in library.cards() for place in library.places(card)]
    assert library.generation is generation
    assert sorted(place.physical for place in places) == list(range(chips))
    assert len({place.address for place in places}) == chips


def test_a_card_s_management_unit_is_no_chip(emulate: Emulate) -> None:
    library = opened(emulate("16xA3"))
    assert {len(library.places(card)) for card in library.cards()} == {2}


@pytest.mark.parametrize("status", DCMI_STATUS)
def test_a_failure_says_which_call_and_what_its_code_means(node: EmulatedNode, status: int) -> None:
    chip = chip_of(node)
    node.answer(status, "npu3", "dcmi_get_device_health")
    with pytest.raises(CallFailed) as failed:
        chip.unsigned("health")
    name, meaning = DCMI_STATUS[status]
    assert str(failed.value) == f"dcmi_get_device_health: {meaning} ({name}, {status})"
    assert failed.value.errno == -status


def test_a_code_that_no_document_has_is_told_as_it_is(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.answer(-4711, "npu3")
    with pytest.raises(CallFailed, match=r"a code that the vendor does not document \(UNKNOWN, -4711\)"):
        chip.error_codes()


def test_a_chip_that_is_not_ready_is_told_apart(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.drop("npu3")
    with pytest.raises(NotReady):
        chip.unsigned("health")


def test_a_call_that_the_product_lacks_is_told_apart(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.set_supported("dcmi_get_device_health", False)
    with pytest.raises(NotSupported):
        chip.unsigned("health")


def test_a_symbol_that_the_library_lacks_is_a_call_not_supported(node: EmulatedNode) -> None:
    node.without("dcmi_get_device_voltage", "dcmi_get_device_type")
    with pytest.raises(NotSupported, match=r"dcmi_get_device_voltage: the library has no such function"):
        chip_of(node).unsigned("voltage")


def test_a_call_of_the_other_generation_is_not_supported(emulate: Emulate) -> None:
    with pytest.raises(NotSupported, match="dcmi_get_netdev_brother_device"):
        chip_of(emulate("8x950")).signed("brother")


@pytest.mark.parametrize("count", [-1, 129, 10_000])
def test_a_count_of_codes_that_cannot_be_is_refused(node: EmulatedNode, count: int) -> None:
    chip = chip_of(node)
    node.set("npu3", "code_count_lie", count)
    with pytest.raises(
        ImpossibleValue, match=f"the number of error codes is given as {count}; it must be 0 to 128"
    ):
        chip.error_codes()


@pytest.mark.parametrize("count", [-1, 65, 10_000])
def test_a_count_of_cards_that_cannot_be_is_refused(node: EmulatedNode, count: int) -> None:
    library = opened(node)
    node.set_node("card_count_lie", count)
    with pytest.raises(ImpossibleValue, match=f"the number of cards is given as {count}"):
        library.cards()


def test_the_codes_are_those_that_stand(node: EmulatedNode) -> None:
    chip = chip_of(node)
    node.raise_code("npu3", 0x80E01801)
    node.raise_code("npu3", 0x81078603)
    codes, full = chip.error_codes()
    assert (sorted(codes), full) == ([0x80E01801, 0x81078603], False)


def test_a_number_that_the_library_never_wrote_is_no_measured_value() -> None:
    telemetry = ChipTelemetry(DcmiChip({"temperature": lambda *_: 0}, DcmiGeneration.V1, (0, 0)))
    assert (telemetry.read(slow_round=True), telemetry.refused) == ({}, 1)


def test_a_list_filled_to_its_end_is_told_as_full(node: EmulatedNode) -> None:
    chip = chip_of(node)
    for number in range(130):
        node.raise_code("npu3", 0x80000001 + number, deliver=False)
    codes, full = chip.error_codes()
    assert (len(codes), full) == (128, True)


def test_a_950_tells_the_severity_of_standing_faults(emulate: Emulate) -> None:
    node = emulate("8x950")
    chip = chip_of(node)
    node.raise_code("npu3", 0x80E01801, severity=3, deliver=False)
    assert [(event.event_id, event.severity) for event in chip.current_events()] == [(0x80E01801, 3)]


def test_a_driver_that_refuses_to_start_is_unavailable_with_its_answer(node: EmulatedNode) -> None:
    node.answer(-8010, None, "dcmi_init")
    with pytest.raises(Unavailable) as refused:
        opened(node)
    assert str(refused.value) == "dcmi_init: sending a message to the device failed (SEND_MSG_FAIL, -8010)"
    assert (refused.value.errno, refused.value.absent) == (8010, False)


def test_a_driver_that_permits_nothing_is_told_by_the_vendors_name(node: EmulatedNode) -> None:
    node.answer(-8002, None, "dcmi_init")
    with pytest.raises(Unavailable, match="OPER_NOT_PERMITTED"):
        opened(node)
