"""What is put into the node's state is what pynvml reads, in NVML's units."""

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml
import pytest

from tests.emulator.nvml.conftest import Opened, OpenNode
from tests.emulator.nvml_codes import code_of

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
VERSION_MISMATCH = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


@pytest.mark.parametrize(
    ("function", "field", "value"),
    [
        ("nvmlDeviceGetPowerUsage", "gpu_power_milliwatts", 512_345),
        ("nvmlDeviceGetEnforcedPowerLimit", "gpu_power_enforced_milliwatts", 650_000),
        ("nvmlDeviceGetPowerManagementLimit", "gpu_power_limit_milliwatts", 640_000),
        ("nvmlDeviceGetPowerManagementDefaultLimit", "gpu_power_default_milliwatts", 700_001),
        ("nvmlDeviceGetTotalEnergyConsumption", "gpu_energy_millijoules", 1 << 40),
        ("nvmlDeviceGetPerformanceState", "gpu_performance_state", 8),
        ("nvmlDeviceGetCurrentClocksEventReasons", "gpu_clock_reasons", 0x48),
        ("nvmlDeviceGetCurrentClocksThrottleReasons", "gpu_clock_reasons", 0x80),
        ("nvmlDeviceGetSupportedClocksEventReasons", "gpu_known_clock_reasons", 0x7FF),
        ("nvmlDeviceGetSupportedClocksThrottleReasons", "gpu_known_clock_reasons", 0x3FF),
        ("nvmlDeviceGetMarginTemperature", "gpu_margin_celsius", -3),
        ("nvmlDeviceGetCurrPcieLinkGeneration", "gpu_pcie_generation", 1),
        ("nvmlDeviceGetCurrPcieLinkWidth", "gpu_pcie_width", 8),
        ("nvmlDeviceGetMaxPcieLinkGeneration", "gpu_pcie_generation_limit", 6),
        ("nvmlDeviceGetMaxPcieLinkWidth", "gpu_pcie_width_limit", 4),
        ("nvmlDeviceGetPcieReplayCounter", "gpu_pcie_replays", 7),
        ("nvmlDeviceGetPersistenceMode", "gpu_persistence_mode", 0),
        ("nvmlDeviceGetComputeMode", "gpu_compute_mode", 3),
        ("nvmlDeviceGetVirtualizationMode", "gpu_virtualization_mode", 2),
        ("nvmlDeviceGetIrqNum", "gpu_irq", 55),
    ],
)
def test_one_value(h100: Opened, function: str, field: str, value: int) -> None:
    h100.node.set("gpu1", field, value)
    call: Callable[[Any], int] = getattr(pynvml, function)
    assert call(h100.handles[1]) == value
    assert call(h100.handles[0]) != value


def test_the_temperature_is_told_by_the_old_call_and_by_the_versioned_one(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_temperature_celsius", 91)
    assert pynvml.nvmlDeviceGetTemperature(h100.handle, pynvml.NVML_TEMPERATURE_GPU) == 91
    assert pynvml.nvmlDeviceGetTemperatureV(h100.handle, pynvml.NVML_TEMPERATURE_GPU) == 91
    assert code_of(pynvml.nvmlDeviceGetTemperature, h100.handle, 9) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetTemperatureV, h100.handle, 9) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_thresholds_are_told_in_nvmls_order_where_a_product_has_them(open_node: OpenNode) -> None:
    a100 = open_node("1xA100").handle
    answered = [pynvml.nvmlDeviceGetTemperatureThreshold(a100, threshold) for threshold in range(4)]
    assert answered == [92, 89, 95, 85]
    assert code_of(pynvml.nvmlDeviceGetTemperatureThreshold, a100, 4) == NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetTemperatureThreshold, a100, 8) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlDeviceGetMarginTemperature, a100) == NOT_SUPPORTED
    b200 = open_node("1xB200").handle
    assert code_of(pynvml.nvmlDeviceGetTemperatureThreshold, b200, 0) == NOT_SUPPORTED
    assert pynvml.nvmlDeviceGetMarginTemperature(b200) == 57


def test_clocks_are_told_by_their_number(h100: Opened) -> None:
    for clock, megahertz in enumerate([1980, 1755, 2619, 1545]):
        h100.node.set("gpu0", "gpu_clocks_megahertz", megahertz, place=clock)
    answered = [pynvml.nvmlDeviceGetClockInfo(h100.handle, clock) for clock in range(4)]
    assert answered == [1980, 1755, 2619, 1545]
    assert pynvml.nvmlDeviceGetMaxClockInfo(h100.handle, pynvml.NVML_CLOCK_MEM) == 2619
    assert pynvml.nvmlDeviceGetApplicationsClock(h100.handle, pynvml.NVML_CLOCK_SM) == 1980
    assert code_of(pynvml.nvmlDeviceGetClockInfo, h100.handle, 4) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_power_limits_and_violations(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_violation_ns", 5_000_000, place=pynvml.NVML_PERF_POLICY_THERMAL)
    assert pynvml.nvmlDeviceGetPowerManagementLimitConstraints(h100.handle) == [200_000, 700_000]
    answered = pynvml.nvmlDeviceGetViolationStatus(h100.handle, pynvml.NVML_PERF_POLICY_THERMAL)
    assert answered.violationTime == 5_000_000
    assert answered.referenceTime > 0
    assert code_of(pynvml.nvmlDeviceGetViolationStatus, h100.handle, 12) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_utilisation_and_pcie_throughput(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_utilization_percent", 97)
    h100.node.set("gpu0", "gpu_memory_utilization_percent", 41)
    h100.node.set("gpu0", "gpu_pcie_kibibytes", 1024, place=pynvml.NVML_PCIE_UTIL_RX_BYTES)
    rates = pynvml.nvmlDeviceGetUtilizationRates(h100.handle)
    assert (rates.gpu, rates.memory) == (97, 41)
    assert pynvml.nvmlDeviceGetPcieThroughput(h100.handle, pynvml.NVML_PCIE_UTIL_RX_BYTES) == 1024
    assert pynvml.nvmlDeviceGetPcieThroughput(h100.handle, pynvml.NVML_PCIE_UTIL_TX_BYTES) == 0


def test_memory_is_told_with_and_without_what_the_driver_reserves(h100: Opened) -> None:
    total, reserved, used = 85_520_809_984, 535_822_336, 10 << 30
    h100.node.set("gpu0", "gpu_memory_used_bytes", used)
    first = pynvml.nvmlDeviceGetMemoryInfo(h100.handle)
    assert (first.total, first.used, first.free) == (total, used + reserved, total - used - reserved)
    second = pynvml.nvmlDeviceGetMemoryInfo(h100.handle, version=pynvml.nvmlMemory_v2)
    assert (second.total, second.reserved, second.used, second.free) == (
        total,
        reserved,
        used,
        total - used - reserved,
    )
    bar1 = pynvml.nvmlDeviceGetBAR1MemoryInfo(h100.handle)
    assert bar1.bar1Free + bar1.bar1Used == bar1.bar1Total == 128 << 30


def test_persistence_mode_can_be_set(h100: Opened) -> None:
    pynvml.nvmlDeviceSetPersistenceMode(h100.handle, 0)
    assert pynvml.nvmlDeviceGetPersistenceMode(h100.handle) == 0
    assert h100.node.chip("gpu0").gpu_persistence_mode == 0
    assert code_of(pynvml.nvmlDeviceSetPersistenceMode, h100.handle, 2) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_value_that_a_product_lacks_is_not_supported(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_power_milliwatts", 0xFFFF_FFFF)
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, h100.handle) == NOT_SUPPORTED


@pytest.mark.parametrize(
    ("function", "size"),
    [
        ("nvmlDeviceGetTemperatureV", 12),
        ("nvmlDeviceGetMarginTemperature", 8),
        ("nvmlDeviceGetMemoryInfo_v2", 40),
        ("nvmlDeviceGetPciInfoExt", 64),
        ("nvmlDeviceGetSramEccErrorStatus", 104),
        ("nvmlDeviceGetRepairStatus", 12),
        ("nvmlDeviceGetUnrepairableMemoryFlag_v1", 8),
        ("nvmlDeviceGetNvLinkInfo", 1612),
        ("nvmlDeviceGetGpuFabricInfoV", 40),
    ],
)
@pytest.mark.parametrize("version", [0, 0x0100_0000, 0x0900_0000, 0xFFFF_FFFF])
def test_a_structure_of_an_unknown_version_is_refused_untouched(
    h100: Opened, function: str, size: int, version: int
) -> None:
    room = (ctypes.c_uint32 * (size // 4))(version, *[0xAAAA_AAAA] * (size // 4 - 1))
    assert getattr(h100.library, function)(h100.handle, ctypes.byref(room)) == VERSION_MISMATCH
    assert list(room) == [version, *[0xAAAA_AAAA] * (size // 4 - 1)]
