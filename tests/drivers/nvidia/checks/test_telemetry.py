"""Persistence mode: reported where it is off, and no reason to use a GPU less.

What a poll reads: base units, nothing made up, nothing asked twice that is not there.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pynvml
import pytest

from nodeagent.core.model import Handling, ProcessesListed, Verdict
from nodeagent.drivers.nvidia.checks.telemetry import OFF
from nodeagent.drivers.nvidia.gpu import SELDOM
from tests.daemon.staged import Staged, staged
from tests.drivers.nvidia.bench import GpuNode, Judge, judged

NOT_SUPPORTED_VALUE = 0xFFFFFFFF


async def test_a_gpu_whose_persistence_mode_is_off_is_told_until_it_is_on_and_stays_in_service(
    h100: GpuNode, judge: Judge
) -> None:
    h100.node.set("gpu1", "gpu_discovery_ms", 0)
    h100.node.set("gpu1", "gpu_persistence_mode", 0)
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert (judge.open("gpu1"), judge.open("gpu0")) == ({OFF: "NotHandleFault"}, {})
        assert (judge.view("gpu1").verdict, judge.view("gpu1").handling) == (Verdict.ALLOW, Handling.NONE)
        h100.node.set("gpu1", "gpu_persistence_mode", 1)
        await stage.until(lambda: judge.open("gpu1") == {})


async def test_where_the_driver_has_no_such_mode_none_is_missed(h100: GpuNode, judge: Judge) -> None:
    h100.node.set("gpu1", "gpu_persistence_mode", NOT_SUPPORTED_VALUE)
    h100.node.answer(pynvml.NVML_ERROR_NO_PERMISSION, "gpu2", "nvmlDeviceGetPersistenceMode")
    async with judged(h100.spec(), judge) as stage:
        await stage.back()
        assert (judge.open("gpu1"), judge.open("gpu2")) == ({}, {})


BEYOND_ALL_PIDS = 2**22 + 1


async def read(stage: Staged, device: str, **expected: float) -> Mapping[str, float]:
    """The device's readings once these are among them; a dot of a name is written ``__``."""
    wanted = {name.replace("__", "."): value for name, value in expected.items()}
    return await stage.until(
        lambda: (
            found
            if (found := stage.health.readings.get(device, {})) and wanted.items() <= found.items()
            else None
        ),
        str(wanted),
    )


async def test_readings_are_in_base_units(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        h100.node.set("gpu1", "gpu_temperature_celsius", 71)
        h100.node.set("gpu1", "gpu_memory_temperature_celsius", 83)
        h100.node.set("gpu1", "gpu_utilization_percent", 50)
        h100.node.set("gpu1", "gpu_memory_used_bytes", 1 << 30)
        h100.node.set("gpu1", "gpu_clock_reasons", 0x4)
        readings = await read(
            stage,
            "gpu1",
            temperature_celsius=71.0,
            temperature_celsius__memory=83.0,
            utilization_ratio__gpu=0.5,
            memory_used_bytes=float(1 << 30),
            throttle__sw_power_cap=1.0,
            throttle__hw_slowdown=0.0,
        )
        assert (readings["power_limit_watts"], readings["frequency_hertz.memory"]) == (700.0, 2.619e9)
        assert (readings["pcie_width_lanes"], readings["nvlink_links_up"]) == (16.0, 18.0)


async def test_readings_hold_over_the_polls_that_take_none(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await read(stage, "gpu0", temperature_celsius=34.0)
        for _ in range(2 * SELDOM):
            await stage.polled("gpu0")
            assert stage.health.readings["gpu0"]["temperature_celsius"] == 34.0


async def test_the_links_of_the_fifth_generation_tell_their_recoveries_and_bit_error_rates(
    tmp_path: Path,
) -> None:
    bench = GpuNode(tmp_path, "2xB200")
    with bench.node:
        bench.node.set("gpu0", "gpu_nvlink5_recovery_events", 4, place=2)
        bench.node.set("gpu0", "gpu_nvlink5_recovered", 3, place=2)
        bench.node.set("gpu0", "gpu_nvlink5_not_recovered", 1, place=2)
        bench.node.set("gpu0", "gpu_nvlink5_effective_ber", 0x30A, place=2)
        async with staged(bench.spec()) as stage:
            await read(
                stage,
                "gpu0",
                nvlink_errors_total__recovery=4.0,
                nvlink_errors_total__recovery_failed=1.0,
                nvlink_link_errors_total__2=4.0,
                nvlink_bit_error_ratio__effective=3e-10,
            )


async def test_counters_are_told_by_their_place(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        h100.gpus.count_ecc("gpu0", "dram", corrected=5)
        h100.gpus.count_ecc("gpu0", "sram", uncorrected=2)
        h100.node.set("gpu0", "gpu_nvlink_replays", 7, place=3)
        h100.node.set("gpu0", "gpu_pcie_replays", 9)
        await read(
            stage,
            "gpu0",
            ecc_corrected_total=5.0,
            ecc_corrected_total__dram=5.0,
            ecc_uncorrected_total__sram=2.0,
            nvlink_errors_total__replay=7.0,
            nvlink_link_errors_total__3=7.0,
            nvlink_link_errors_total__4=0.0,
            pcie_replay_total=9.0,
        )


async def test_a_call_that_fails_leaves_its_reading_out(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await read(stage, "gpu0", utilization_ratio__gpu=0.0)
        h100.node.answer(999, "gpu0", "nvmlDeviceGetUtilizationRates")
        await stage.until(lambda: "utilization_ratio.gpu" not in stage.health.readings["gpu0"])
        assert stage.health.readings["gpu0"]["temperature_celsius"] == 34.0
        h100.node.release()
        await read(stage, "gpu0", utilization_ratio__gpu=0.0)


async def test_what_no_gpu_can_mean_is_refused_and_counted(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await read(stage, "gpu0", temperature_celsius=34.0)
        h100.node.set("gpu0", "gpu_temperature_celsius", 4_000_000)
        await stage.until(lambda: "temperature_celsius" not in stage.health.readings["gpu0"])
        await stage.until(lambda: stage.health.readings.get("*", {}).get("refused_values_total", 0) > 0)


async def test_an_unreadable_identity_is_no_other_part(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        before = [str(given) for given in stage.inputs if "DeviceSeen" in str(given)]
        h100.node.set("gpu0", "gpu_uuid", "GPU-nonsense")
        await stage.polled("gpu0", times=3)
        assert [str(given) for given in stage.inputs if "DeviceSeen" in str(given)] == before


async def test_what_a_gpu_does_not_have_is_asked_once(h100: GpuNode) -> None:
    h100.node.set_supported("nvmlDeviceGetUtilizationRates", False)
    async with staged(h100.spec()) as stage:
        await stage.polled("gpu0", times=5 * SELDOM)
        assert h100.node.calls("nvmlDeviceGetUtilizationRates", "gpu0") == 1
        assert h100.node.calls("nvmlDeviceGetTemperatureV", "gpu0") > 3


@pytest.mark.parametrize("vintage", ["570", "520"])
async def test_an_older_library_is_asked_by_its_older_calls(h100: GpuNode, vintage: str) -> None:
    h100.gpus.driver.make_older(vintage)
    async with staged(h100.spec()) as stage:
        readings = await read(stage, "gpu0", temperature_celsius=34.0, throttle__idle=1.0)
        assert {"power_watts", "memory_total_bytes", "remapped_rows.corrected", "nvlink_links_up"} <= set(
            readings
        )
        assert stage.health.poll_failures == 0


@pytest.mark.parametrize(
    ("product", "has", "has_not"),
    [
        ("2xA100", {"nvlink_errors_total.replay", "remap_spare_banks.max"}, {"fabric_state"}),
        ("2xH200", {"fabric_state", "temperature_margin_celsius"}, {"nvlink_errors_total.symbol"}),
        ("2xB200", {"nvlink_errors_total.symbol", "fabric_health", "link_sent_bytes_total"}, set()),
    ],
)
async def test_each_generation_tells_what_it_has(
    tmp_path: Path, product: str, has: set[str], has_not: set[str]
) -> None:
    bench = GpuNode(tmp_path, product)
    with bench.node:
        async with staged(bench.spec()) as stage:
            readings = await read(stage, "gpu1", persistence_mode=1.0)
            assert has - set(readings) == set()
            assert has_not & set(readings) == set()
            assert stage.health.poll_failures == 0


async def test_processes_on_a_gpu_hold_it(h100: GpuNode) -> None:
    async with staged(h100.spec()) as stage:
        await stage.back()
        h100.node.hold("gpu2", os.getpid())
        held = await stage.until(
            lambda: next((g for g in reversed(held_by(stage, "gpu2")) if g.holders), None)
        )
        assert [holder.pid for holder in held.holders] == [os.getpid()]
        assert held.holders[0].start_time > 0
        h100.node.let_go("gpu2")
        await stage.until(lambda: held_by(stage, "gpu2")[-1].holders == ())


async def test_processes_that_cannot_be_listed_are_not_none(h100: GpuNode) -> None:
    h100.node.answer(999, "gpu0", "nvmlDeviceGetComputeRunningProcesses*")
    async with staged(h100.spec()) as stage:
        await stage.polled("gpu0", times=2)
        await stage.polled("gpu1", times=2)
        assert held_by(stage, "gpu0") == []
        assert held_by(stage, "gpu1")[-1].holders == ()


async def test_a_process_that_nvml_lists_and_nobody_sees_is_not_none(h100: GpuNode) -> None:
    """It is of another namespace, or the list is garbled, as by drivers 535.54 to 535.86."""
    h100.node.hold("gpu0", os.getpid())
    h100.node.hold("gpu0", BEYOND_ALL_PIDS)
    async with staged(h100.spec()) as stage:
        await stage.polled("gpu0", times=3)
        assert [held for held in held_by(stage, "gpu0") if held.known] == []


def held_by(stage: Staged, device: str) -> list[ProcessesListed]:
    return [given for given in stage.inputs if isinstance(given, ProcessesListed) and given.device == device]
