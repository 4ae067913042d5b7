"""When processes on a chip look hung: by samples as values, and by the real driver on an emulated chip."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.drivers.ascend.driver import AscendDriver
from nodeagent.drivers.ascend.users import SUSPECTED_HANG, ChipHangWatch, HangRule, HangSample, sample_of
from nodeagent.emulator.node import EmulatedNode
from nodeagent.wire import DeviceUser
from tests.drivers.ascend.recorder import Recorder

MINUTE_NS = 60_000_000_000
RULE = HangRule()
STILL = HangSample(
    processes=frozenset({(4711, 12345)}),
    aicore_ratio=0.0,
    memory_ratio=0.8,
    packets=1000,
    cpu_s=90.0,
)
AICORE, HBM = 2, 6
RECEIVED, SENT = 30, 33


def watched(*samples: HangSample, rule: HangRule = RULE) -> ChipHangWatch:
    """One sample a minute."""
    watch = ChipHangWatch(rule)
    for minute, sample in enumerate(samples):
        assert watch.due(minute * MINUTE_NS)
        watch.see(sample, minute * MINUTE_NS)
    return watch


def test_five_idle_minutes_with_processes_are_suspicious_and_four_are_not() -> None:
    assert not watched(*[STILL] * 5).suspected
    assert watched(*[STILL] * 6).suspected


def test_a_sample_is_due_once_a_minute() -> None:
    watch = watched(STILL)
    assert [watch.due(at_ns) for at_ns in (1, MINUTE_NS - 1, MINUTE_NS)] == [False, False, True]


@pytest.mark.parametrize(
    "alive",
    [
        pytest.param(replace(STILL, processes=frozenset()), id="free"),
        pytest.param(replace(STILL, processes=frozenset({(4711, 99)})), id="another process of that id"),
        pytest.param(replace(STILL, aicore_ratio=0.05), id="it computes"),
        pytest.param(replace(STILL, memory_ratio=0.81), id="it takes memory"),
        pytest.param(replace(STILL, packets=1100), id="it talks"),
        pytest.param(replace(STILL, cpu_s=95.0), id="its host side computes"),
        pytest.param(replace(STILL, packets=1100, cpu_s=None), id="it talks, and not all is known"),
    ],
)
def test_any_sign_of_life_ends_it_and_counting_begins_anew(alive: HangSample) -> None:
    assert not watched(*[STILL] * 6, alive).suspected
    assert not watched(*[STILL] * 5, alive, *[alive] * 4).suspected


@pytest.mark.parametrize(
    "nearly_still",
    [
        pytest.param(replace(STILL, aicore_ratio=0.049), id="computes a little"),
        pytest.param(replace(STILL, memory_ratio=0.7), id="gives memory back"),
        pytest.param(replace(STILL, packets=1099), id="talks a little"),
        pytest.param(replace(STILL, cpu_s=94.99), id="its host side computes a little"),
    ],
)
def test_what_stays_below_the_bounds_is_no_sign_of_life(nearly_still: HangSample) -> None:
    assert watched(*[STILL] * 5, nearly_still).suspected


@pytest.mark.parametrize("unread", ["processes", "aicore_ratio", "memory_ratio", "packets", "cpu_s"])
def test_what_cannot_be_read_is_unknown_and_does_not_look_idle(unread: str) -> None:
    unknown = replace(STILL, **{unread: None})
    assert not watched(*[unknown] * 20).suspected
    assert not watched(*[STILL] * 5, unknown, STILL).suspected


@pytest.mark.parametrize("unread", ["processes", "aicore_ratio", "memory_ratio", "packets", "cpu_s"])
def test_what_cannot_be_read_for_a_while_ends_no_suspicion(unread: str) -> None:
    unknown = replace(STILL, **{unread: None})
    assert watched(*[STILL] * 6, unknown, unknown, STILL).suspected
    assert not watched(*[STILL] * 6, unknown, STILL, replace(STILL, aicore_ratio=0.9)).suspected


def test_a_counter_that_went_back_says_nothing() -> None:
    wrapped = replace(STILL, packets=3)
    assert not watched(*[STILL] * 5, wrapped).suspected
    assert not watched(*[STILL] * 5, *[wrapped] * 5).suspected
    assert watched(*[STILL] * 5, *[wrapped] * 6).suspected


def test_a_chip_that_was_away_begins_anew() -> None:
    watch = watched(*[STILL] * 6)
    watch.forget()
    assert (watch.suspected, watch.due(0)) == (False, True)


def test_a_sample_holds_what_a_poll_has_read() -> None:
    readings = {
        "utilization_ratio.aicore": 0.01,
        "utilization_ratio.memory": 0.5,
        "link_received_packets_total.roce": 40.0,
        "link_sent_packets_total.roce": 2.0,
    }
    holder = DeviceUser(pid=7, start_time=70, command="train")
    assert sample_of(readings, (holder,), 1.5) == HangSample(
        processes=frozenset({(7, 70)}), aicore_ratio=0.01, memory_ratio=0.5, packets=42.0, cpu_s=1.5
    )
    del readings["link_sent_packets_total.roce"]
    assert sample_of(readings, None, None) == HangSample(
        processes=None, aicore_ratio=0.01, memory_ratio=0.5, packets=None, cpu_s=None
    )


@pytest.fixture
def driver(node: EmulatedNode, tmp_path: Path) -> Iterator[AscendDriver]:
    """It takes a sample at each poll."""
    driver = AscendDriver(
        library=str(node.dcmi),
        sysfs=tmp_path,
        procfs=Path("/proc"),
        skip=frozenset(),
        emit=Recorder(),
        hang_rule=HangRule(period_ns=0, cpu_s=3600.0),
    )
    driver.open()
    driver.devices()
    yield driver
    driver.close()


def codes(driver: AscendDriver, device: str) -> list[str]:
    return [active.code for active in driver.poll(device).active or ()]


def test_a_job_that_does_nothing_is_told_by_the_chips_poll(node: EmulatedNode, driver: AscendDriver) -> None:
    node.set("npu3", "utilization_percent", 0, AICORE)
    node.hold("npu3", os.getpid())
    assert [codes(driver, "npu3") for _ in range(6)] == [[]] * 5 + [[SUSPECTED_HANG]]
    assert driver.poll("npu3").complete
    assert codes(driver, "npu4") == []

    node.set("npu3", "utilization_percent", 60, AICORE)
    assert codes(driver, "npu3") == []


def test_a_job_that_is_profiled_is_not_suspected(node: EmulatedNode, driver: AscendDriver) -> None:
    node.set("npu3", "utilization_percent", 97, AICORE)
    node.set("npu3", "profiling", 1)
    node.hold("npu3", os.getpid())
    assert [codes(driver, "npu3") for _ in range(10)] == [[]] * 10


def test_a_chip_without_a_network_of_its_own_is_never_suspected(
    node: EmulatedNode, driver: AscendDriver
) -> None:
    node.set_supported("dcmi_get_netdev_pkt_stats_info", False)
    node.set("npu3", "utilization_percent", 0, AICORE)
    node.hold("npu3", os.getpid())
    assert [codes(driver, "npu3") for _ in range(10)] == [[]] * 10


def test_packets_count_in_both_directions(node: EmulatedNode, driver: AscendDriver) -> None:
    node.set("npu3", "network_counters", 500, RECEIVED)
    node.set("npu3", "network_counters", 70, SENT)
    readings = driver.poll("npu3").readings
    assert readings["link_received_packets_total.roce"] == 500
    assert readings["link_sent_packets_total.roce"] == 70
