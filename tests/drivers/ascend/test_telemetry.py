"""When a chip is measured: seldom while nothing changes, and at once where something does.

What a chip measures, read from the double: units, what is refused, what is asked how often.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nodeagent.drivers.ascend import dcmi
from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.telemetry import ChipTelemetry
from nodeagent.drivers.ascend.watched_chip import MEASURE_EACH, SLOW_ROUND
from nodeagent.emulator.node import EmulatedNode
from tests.drivers.ascend.conftest import Emulate
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


def telemetry_of(node: EmulatedNode, device: str = "npu3") -> ChipTelemetry:
    library = dcmi.open_library(str(node.dcmi))
    places = [place for card in library.cards() for place in library.places(card)]
    return ChipTelemetry(library.chip(next(each for each in places if f"npu{each.physical}" == device)))


def parts(readings: Mapping[str, float], metric: str) -> dict[str, float]:
    return {name.partition(".")[2]: value for name, value in readings.items() if name.split(".")[0] == metric}


def test_readings_are_in_base_units(node: EmulatedNode) -> None:
    node.set("npu3", "temperature_celsius", 61)
    node.set("npu3", "power_deciwatts", 3105)
    node.set("npu3", "voltage_centivolts", 87)
    node.set("npu3", "frequency_mhz", 1650, 7)
    node.set("npu3", "utilization_percent", 29, 2)
    node.set("npu3", "hbm_used_mb", 1024)
    readings = telemetry_of(node).read(slow_round=False)
    assert readings["temperature_celsius"] == 61
    assert readings["power_watts"] == 310.5
    assert readings["voltage_volts"] == 0.87
    assert readings["frequency_hertz.aicore"] == 1_650_000_000
    assert readings["utilization_ratio.aicore"] == 0.29
    assert (readings["memory_used_bytes"], readings["memory_total_bytes"]) == (1 << 30, 64 << 30)


@pytest.mark.parametrize("words", [7, 9])
def test_ecc_counters_are_read_whichever_structure_the_library_fills(node: EmulatedNode, words: int) -> None:
    node.set_node("ecc_words", words)
    node.set("npu3", "ecc_total_single", 12, 2)
    node.set("npu3", "ecc_total_double", 3, 2)
    node.set("npu3", "ecc_isolated_single", 2, 2)
    node.set("npu3", "ecc_isolated_double", 1, 2)
    readings = telemetry_of(node).read(slow_round=False)
    assert (readings["ecc_corrected_total.hbm"], readings["ecc_uncorrected_total.hbm"]) == (12, 3)
    assert parts(readings, "ecc_isolated_pages") == {"single": 2, "double": 1}


def test_a_call_that_fails_is_unknown_and_not_zero(node: EmulatedNode) -> None:
    telemetry = telemetry_of(node)
    node.answer(-8006, "npu3", "dcmi_get_device_temperature")
    assert "temperature_celsius" not in telemetry.read(slow_round=False)
    node.release()
    assert telemetry.read(slow_round=False)["temperature_celsius"] == 41
    assert telemetry.refused == 0


def test_a_call_that_is_not_supported_is_made_once(node: EmulatedNode) -> None:
    telemetry = telemetry_of(node)
    node.set_supported("dcmi_get_device_voltage", False)
    readings = [telemetry.read(slow_round=False) for _ in range(3)]
    assert [name for each in readings for name in each if name == "voltage_volts"] == []
    assert node.calls("dcmi_get_device_voltage", "npu3") == 1


@pytest.mark.parametrize(
    ("field", "value", "place", "metric"),
    [
        ("utilization_percent", 255, 2, "utilization_ratio.aicore"),
        ("utilization_percent", 0xFFFFFFFF, 12, "utilization_ratio.vector"),
        ("temperature_celsius", -300, None, "temperature_celsius"),
        ("temperature_celsius", 0x7FFF, None, "temperature_celsius"),
        ("hbm_bandwidth_percent", 101, None, "utilization_ratio.memory_bandwidth"),
        ("hbm_used_mb", 1 << 40, None, "memory_used_bytes"),
        ("ecc_total_single", 0xFFFFFFFF, 2, "ecc_corrected_total.hbm"),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_counted(
    node: EmulatedNode, field: str, value: int, place: int | None, metric: str
) -> None:
    telemetry = telemetry_of(node)
    node.set("npu3", field, value, place)
    readings = telemetry.read(slow_round=False)
    assert metric not in readings
    assert telemetry.refused == 1
    assert len(readings) > 20


def test_what_changes_slowly_is_asked_in_the_slow_round_and_told_in_between(node: EmulatedNode) -> None:
    telemetry = telemetry_of(node)
    for turn in range(4):
        readings = telemetry.read(slow_round=turn == 3)
        assert readings["boot_status"] == 16
    assert node.calls("dcmi_get_device_boot_status", "npu3") == 2
    assert node.calls("dcmi_get_device_temperature", "npu3") == 4


def test_links_tell_their_state_and_their_traffic(node: EmulatedNode) -> None:
    node.set("npu3", "hccs_hdlc_status", 0)
    node.set("npu3", "hccs_crc_errors", 5, 1)
    node.set("npu3", "hccs_crc_errors", 2, 3)
    sent, received = 21, 25
    node.set("npu3", "network_counters", 1111, sent)
    node.set("npu3", "network_counters", 2222, received)
    readings = telemetry_of(node).read(slow_round=True)
    assert parts(readings, "link_up") == {"hccs": 0}
    assert readings["link_errors_total.hccs_crc"] == 7
    assert readings["link_sent_bytes_total.roce"] == 1111
    assert readings["link_received_bytes_total.roce"] == 2222


def test_a_950_tells_the_state_of_its_ports_and_its_pcie_errors(emulate: Emulate) -> None:
    node = emulate("4x950")
    node.set("npu3", "ub_ports", 3, 5)
    node.set("npu3", "ub_ports", 2, 6)
    node.set("npu3", "pcie_errors", 4, 10)
    readings = telemetry_of(node).read(slow_round=True)
    assert parts(readings, "link_up")["ub5"] == 0
    assert parts(readings, "link_up")["ub6"] == 1
    assert readings["pcie_errors_total.lcrc"] == 4


def test_use_that_nobody_can_tell_while_cores_are_profiled_is_left_out(node: EmulatedNode) -> None:
    node.set("npu3", "utilization_percent", 97, 2)
    node.set("npu3", "profiling", 1)
    telemetry = telemetry_of(node)
    readings = telemetry.read(slow_round=False)
    assert {"aicore", "vector"}.isdisjoint(parts(readings, "utilization_ratio"))
    assert parts(readings, "profiled") == {"aicore": 1, "vector": 1}
    node.set("npu3", "profiling", 0)
    readings = telemetry.read(slow_round=False)
    assert readings["utilization_ratio.aicore"] == 0.97
    assert parts(readings, "profiled") == {"aicore": 0, "vector": 0}
    node.set("npu3", "utilization_percent", 0, 2)
    readings = telemetry.read(slow_round=False)
    assert (readings["utilization_ratio.aicore"], readings["utilization_ratio.vector"]) == (0, 0)


def test_a_chip_that_does_not_tell_of_each_core_is_asked_once(node: EmulatedNode) -> None:
    node.answer(-8255, "npu3", "dcmi_get_device_info")
    telemetry = telemetry_of(node)
    for _ in range(4):
        assert telemetry.read(slow_round=False)["utilization_ratio.aicore"] == 0
    asked = node.calls("dcmi_get_device_info", "npu3")
    telemetry.read(slow_round=False)
    assert node.calls("dcmi_get_device_info", "npu3") == asked


def test_a_card_without_hbm_tells_of_its_own_memory(emulate: Emulate) -> None:
    readings = telemetry_of(emulate("4x300IDuo")).read(slow_round=True)
    assert "utilization_ratio.ddr" in readings
    assert "memory_total_bytes" not in readings


def test_a_chip_that_was_away_is_asked_anew_what_it_can_tell(node: EmulatedNode) -> None:
    telemetry = telemetry_of(node)
    node.answer(-8255, "npu3", "dcmi_get_device_temperature", times=1)
    assert "temperature_celsius" not in telemetry.read(slow_round=False)
    assert "temperature_celsius" not in telemetry.read(slow_round=False)
    telemetry.forget()
    assert telemetry.read(slow_round=False)["temperature_celsius"] == 41
