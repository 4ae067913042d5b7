"""Errors of NVLinks: what each generation counts, what it counts as, and how fast is too fast."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from nodeagent.core.catalog.catalog import CounterRule
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import DeviceSeen, Kind, Verdict
from nodeagent.daemon.sources.telemetry_edges import RuleReadings
from nodeagent.drivers.nvidia.checks.nvlink import bit_error_ratio
from tests.daemon.staged import staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

HOUR_S = 3600
ERROR_CALL = "nvmlDeviceGetNvLinkErrorCounter"


@pytest.fixture
def b200(tmp_path: Path) -> Iterator[GpuNode]:
    node = GpuNode(tmp_path / "b200", "2xB200")
    with node.node:
        yield node


def count(judge: Judge, metric: str, rises: list[int], every_s: float) -> list[str]:
    """The codes that are raised while a counter rises so, one reading after the other."""
    readings = RuleReadings("nvidia", judge.catalog.threshold, judge.catalog.counter)
    judge.take(DeviceSeen(source="nvidia", device="gpu0", kind=Kind.CHIP, vendor="nvidia", identity="GPU-1"))
    value = 1_000
    for rise in (0, *rises):
        value += rise
        for given in readings.take("gpu0", {metric: float(value)}, judge.now_ns):
            judge.take(given)
        judge.skip(every_s)
    return [code for _, _, code in judge.emitted("raised")]


def told_soon(judge: Judge) -> list[CounterRule]:
    """The rules as they are, but that their counters are told each ten seconds."""
    return [replace(rule, time_window_ns=60 * SECOND_NS) for rule in judge.catalog.counter]


def test_a_hundred_damaged_flits_a_second_over_a_minute_keep_new_work_away(judge: Judge) -> None:
    assert count(judge, "nvlink_errors_total.crc", [1100] * 8, 10) == ["NV_NVLINK_CRC_RATE"]
    assert judge.view("gpu0").verdict is Verdict.NO_NEW_JOBS
    judge.skip(61)
    assert judge.open("gpu0") == {}


def test_fewer_than_a_hundred_damaged_flits_a_second_are_no_fault(judge: Judge) -> None:
    assert count(judge, "nvlink_errors_total.crc", [900] * 30, 10) == []


@pytest.mark.parametrize(
    ("metric", "code"),
    [
        ("nvlink_errors_total.replay", "NV_NVLINK_REPLAY"),
        ("nvlink_errors_total.recovery", "NV_NVLINK_RECOVERY"),
        ("nvlink_errors_total.symbol", "NV_NVLINK_SYMBOL_ERRORS"),
        ("nvlink_packet_errors_total", "NV_NVLINK_PACKET_ERRORS"),
    ],
)
def test_the_first_is_told_and_stops_nothing_until_an_hour_goes_by_without(
    judge: Judge, metric: str, code: str
) -> None:
    assert count(judge, metric, [1], 60) == [code]
    assert judge.open("gpu0") == {code: "SubHealthFault"}
    judge.skip(HOUR_S)
    assert judge.open("gpu0") == {}


def test_a_counter_that_is_high_already_and_stays_so_is_no_fault(judge: Judge) -> None:
    assert count(judge, "nvlink_packet_errors_total", [0, 0], 600) == []


def test_ten_recoveries_in_an_hour_keep_new_work_away(judge: Judge) -> None:
    assert count(judge, "nvlink_errors_total.recovery", [5, 5], 600) == [
        "NV_NVLINK_RECOVERY",
        "NV_NVLINK_ERROR_RATE",
    ]
    assert judge.view("gpu0").verdict is Verdict.NO_NEW_JOBS


def test_the_third_recovery_of_one_link_within_hours_keeps_new_work_away(judge: Judge) -> None:
    assert count(judge, "nvlink_recoveries_total.14", [1, 1, 1], 2 * HOUR_S) == ["NV_NVLINK_FLAPPING"]
    assert judge.view("gpu0").level == "PreSeparateNPU"
    (flapping,) = judge.engine.view().conditions
    assert flapping.backing.evidence["part"] == "14"
    judge.skip(6 * HOUR_S)
    assert judge.open("gpu0") == {}


def test_recoveries_of_one_link_that_lie_hours_apart_are_no_flapping(judge: Judge) -> None:
    assert count(judge, "nvlink_recoveries_total.14", [1] * 9, 3 * HOUR_S + 1) == []


@pytest.mark.parametrize(
    ("description", "field"),
    [("2xH100", "gpu_nvlink_recoveries"), ("2xB200", "gpu_nvlink5_recovery_events")],
)
async def test_a_link_that_flaps_is_one_fault_that_names_it(
    tmp_path: Path, judge: Judge, description: str, field: str
) -> None:
    gpus = GpuNode(tmp_path / "flapping", description)
    with gpus.node:
        gpus.node.set("gpu0", field, 505, place=14)
        async with judged(gpus.spec(counter=told_soon(judge)), judge) as stage:
            await stage.back()
            await stage.until(lambda: "nvlink_recoveries_total.14" in stage.health.readings.get("gpu0", {}))
            gpus.node.set("gpu0", field, 508, place=14)
            for link in range(18):
                gpus.node.set("gpu1", field, 2, place=link)
            await stage.until(lambda: judge.open("gpu0") == {"NV_NVLINK_FLAPPING": "PreSeparateNPU"} or None)
            (flapping,) = [each for each in judge.engine.view().conditions if "FLAPPING" in each.code]
            assert (flapping.backing.evidence["part"], flapping.backing.evidence["value"]) == ("14", "508")
            await stage.until(lambda: "NV_NVLINK_ERROR_RATE" in judge.open("gpu1") or None)
            assert "NV_NVLINK_FLAPPING" not in judge.open("gpu1")


@pytest.mark.parametrize(
    ("packed", "is_too_high"),
    [(0x000, False), (0xFFF, False), (0x10C, False), (0xA0D, False), (0x20C, True), (0xB0D, True)],
)
def test_a_bit_error_ratio_above_1e_12_is_too_high(judge: Judge, packed: int, is_too_high: bool) -> None:
    """The bounds are those of DCGM's own tests (common/tests/DcgmUtilitiesTests.cpp)."""
    (rule,) = [rule for rule in judge.catalog.threshold if rule.code == "NV_NVLINK_BIT_ERRORS"]
    assert (bit_error_ratio(packed) > rule.above) is is_too_high


async def test_links_that_go_on_with_too_many_bit_errors_keep_new_work_away(
    b200: GpuNode, judge: Judge
) -> None:
    async with judged(b200.spec(), judge) as stage:
        await stage.back()
        await stage.until(lambda: "nvlink_bit_error_ratio.effective" in stage.health.readings["gpu0"])
        b200.node.set("gpu0", "gpu_nvlink5_effective_ber", 0x20C, place=5)
        await stage.until(
            lambda: stage.health.readings["gpu0"]["nvlink_bit_error_ratio.effective"] == 2e-12 or None
        )
        judge.skip(61)
        assert judge.open("gpu0") == {"NV_NVLINK_BIT_ERRORS": "PreSeparateNPU"}
        b200.node.set("gpu0", "gpu_nvlink5_effective_ber", 0xFFF, place=5)
        await stage.until(lambda: judge.open("gpu0") == {})


@pytest.mark.parametrize(
    "counter",
    [
        "malformed_packets",
        "buffer_overruns",
        "receive_errors",
        "receive_remote_errors",
        "receive_general_errors",
        "integrity_errors",
        "effective_errors",
    ],
)
async def test_each_counter_of_damaged_packets_counts_for_its_gpu_and_its_link(
    b200: GpuNode, counter: str
) -> None:
    b200.node.set("gpu0", f"gpu_nvlink5_{counter}", 3, place=17)
    async with staged(b200.spec()) as stage:
        read = await stage.until(lambda: stage.health.readings.get("gpu0") or None)
        assert (read["nvlink_packet_errors_total"], read["nvlink_link_errors_total.17"]) == (3.0, 3.0)
        other = await stage.until(lambda: stage.health.readings.get("gpu1") or None)
        assert other["nvlink_packet_errors_total"] == 0.0


async def test_what_a_generation_does_not_count_is_left_out_and_asked_no_more(
    b200: GpuNode, h100: GpuNode
) -> None:
    """``gpu_nvlink_recoveries`` is field 162, which nvml.h calls unsupported from Blackwell on."""
    for node, has, lacks in (
        (b200, "nvlink_packet_errors_total", "nvlink_errors_total.crc"),
        (h100, "nvlink_errors_total.crc", "nvlink_packet_errors_total"),
    ):
        async with staged(node.spec()) as stage:
            await stage.polled("gpu1", times=12)
            read = stage.health.readings["gpu1"]
            assert (has in read, lacks in read) == (True, False)
            assert node.node.calls(ERROR_CALL, "gpu1") == 0


async def test_counters_that_cannot_be_read_for_a_while_are_not_asked_for_one_by_one_ever_after(
    h100: GpuNode,
) -> None:
    """18 links with five counters each, where one call reads them all."""
    h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu1", "field:161")
    h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu1", "field:162")
    h100.node.answer(pynvml.NVML_ERROR_UNKNOWN, "gpu1", "field:163")
    async with staged(h100.spec()) as stage:
        await stage.polled("gpu1", times=12)
        assert "nvlink_errors_total.replay" not in stage.health.readings["gpu1"]
        h100.node.release()
        await stage.until(lambda: "nvlink_errors_total.replay" in stage.health.readings["gpu1"] or None)
        assert h100.node.calls(ERROR_CALL, "gpu1") == 0


async def test_a_driver_without_the_fields_tells_each_counter_by_a_call(h100: GpuNode) -> None:
    for field in (161, 162, 163):
        h100.node.answer(pynvml.NVML_ERROR_NOT_SUPPORTED, "gpu1", f"field:{field}")
    h100.node.set("gpu1", "gpu_nvlink_crc_flit_errors", 6, place=2)
    async with staged(h100.spec()) as stage:
        await stage.until(lambda: "nvlink_errors_total.crc" in stage.health.readings.get("gpu1", {}) or None)
        read = stage.health.readings["gpu1"]
        assert (read["nvlink_errors_total.crc"], read["nvlink_link_errors_total.2"]) == (6.0, 6.0)


async def test_a_link_that_goes_down_and_comes_back_takes_back_nothing_that_was_counted(
    h100: GpuNode,
) -> None:
    """A sum that falls would be a counter that began anew: all of it would have come just then."""
    h100.node.set("gpu1", "gpu_nvlink_replays", 40, place=3)
    h100.node.set("gpu1", "gpu_nvlink_replays", 2, place=5)
    async with staged(h100.spec()) as stage:

        async def reported(replays: float, links: float) -> None:
            wanted = {"nvlink_errors_total.replay": replays, "nvlink_links_up": links}
            await stage.until(lambda: wanted.items() <= stage.health.readings.get("gpu1", {}).items() or None)

        await reported(42, 18)
        h100.gpus.set_link("gpu1", 3, active=False)
        await reported(42, 17)
        h100.node.set("gpu1", "gpu_nvlink_replays", 1, place=3)
        h100.gpus.set_link("gpu1", 3, active=True)
        await reported(43, 18)
        assert stage.health.readings["gpu1"]["nvlink_link_errors_total.3"] == 41.0
