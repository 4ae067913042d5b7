"""Readings of devices as metrics: named, labelled, and only while they are observed."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.metrics.daemon import SourceHealth
from nodeagent.metrics.telemetry import HELP, telemetry

Readings = dict[str, dict[str, float]]


def source(name: str, readings: Readings) -> SourceHealth:
    return SourceHealth(source=name, state="ready", readings=readings)


def exposed(*sources: SourceHealth, taken: frozenset[str] = frozenset()) -> str:
    """As Prometheus reads it."""

    class Collected:
        def collect(self) -> list[Metric]:
            return list(telemetry(sources, taken))

    registry = CollectorRegistry()
    registry.register(Collected())
    return generate_latest(registry).decode()


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_reading_is_a_gauge_of_its_device_and_its_part() -> None:
    text = exposed(
        source("ascend", {"npu0": {"temperature_celsius": 41.5, "temperature_celsius.memory": 50.0}})
    )
    assert text.splitlines() == [
        "# HELP nodeagent_temperature_celsius Temperature; without a part the chip's.",
        "# TYPE nodeagent_temperature_celsius gauge",
        'nodeagent_temperature_celsius{device="npu0"} 41.5',
        'nodeagent_temperature_celsius{device="npu0",part="memory"} 50.0',
    ]


def test_what_ends_in_total_is_a_counter() -> None:
    text = exposed(source("nvidia", {"gpu0": {"ecc_corrected_total.dram": 12.0, "pcie_replay_total": 3.0}}))
    types = [line for line in text.splitlines() if line.startswith("# TYPE")]
    assert types == [
        "# TYPE nodeagent_ecc_corrected_total counter",
        "# TYPE nodeagent_pcie_replay_total counter",
    ]
    assert lines(text) == [
        'nodeagent_ecc_corrected_total{device="gpu0",part="dram"} 12.0',
        'nodeagent_pcie_replay_total{device="gpu0"} 3.0',
    ]


def test_times_and_rates_are_in_base_units() -> None:
    text = exposed(
        source(
            "nvidia",
            {"gpu0": {"hw_slowdown_minutes_total": 1.5}, "eth0": {"link_rate_bits_per_second": 4e11}},
        )
    )
    assert lines(text) == [
        'nodeagent_hw_slowdown_seconds_total{device="gpu0"} 90.0',
        'nodeagent_link_rate_bytes_per_second{device="eth0"} 5e+10',
    ]


def test_a_reading_of_a_source_itself_is_a_metric_of_the_source() -> None:
    text = exposed(
        source("ascend", {"*": {"refused_values_total": 2.0}}),
        source("nvidia", {"*": {"refused_values_total": 1.0}, "gpu0": {"refused_values_total": 4.0}}),
    )
    assert lines(text) == [
        'nodeagent_refused_values_total{device="gpu0"} 4.0',
        'nodeagent_source_refused_values_total{source="ascend"} 2.0',
        'nodeagent_source_refused_values_total{source="nvidia"} 1.0',
    ]


def test_all_devices_of_all_sources_share_a_family() -> None:
    text = exposed(
        source("ascend", {"npu0": {"power_watts": 70.0}, "npu1": {"power_watts": 71.0}}),
        source("nvidia", {"gpu0": {"power_watts": 300.0}}),
    )
    (family,) = text_string_to_metric_families(text)
    assert {sample.labels["device"]: sample.value for sample in family.samples} == {
        "npu0": 70.0,
        "npu1": 71.0,
        "gpu0": 300.0,
    }


def test_of_two_sources_that_measure_the_same_the_first_is_told() -> None:
    text = exposed(
        source("host", {"gpu0": {"pcie_errors_total.correctable": 1.0}}),
        source("nvidia", {"gpu0": {"pcie_errors_total.correctable": 9.0}}),
    )
    assert lines(text) == ['nodeagent_pcie_errors_total{device="gpu0",part="correctable"} 1.0']


def test_a_reading_named_like_a_metric_of_the_agent_is_left_out() -> None:
    text = exposed(
        source("ascend", {"npu0": {"inputs_total": 1.0, "power_watts": 70.0}}),
        taken=frozenset({"nodeagent_inputs"}),
    )
    assert lines(text) == ['nodeagent_power_watts{device="npu0"} 70.0']


def test_an_unknown_name_is_told_with_a_general_help_and_made_fit() -> None:
    text = exposed(source("ascend", {"npu0": {"odd-name{}": 1.0, 'part.with"quotes\\': 2.0}}))
    families = list(text_string_to_metric_families(text))
    assert [family.name for family in families] == ["nodeagent_odd_name__", "nodeagent_part"]
    assert families[0].documentation == "Reading of a device or a source, as its driver names it."
    assert families[1].samples[0].labels == {"device": "npu0", "part": 'with"quotes\\'}


def test_nothing_read_is_nothing_told() -> None:
    assert exposed(source("ascend", {}), source("nvidia", {"gpu0": {}})) == ""


def test_every_help_is_a_sentence_and_every_counter_named_as_one() -> None:
    assert all(text.endswith(".") and text[0].isalnum() for text in HELP.values())
