"""ECC counters and how memory is repaired."""

import ctypes
from typing import Any

import pynvml
import pytest

from nodeagent.emulator.layout import FieldError
from tests.emulator.nvml.conftest import Opened
from tests.emulator.nvml_codes import code_of

CORRECTED, UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
VOLATILE, AGGREGATE = pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC
DRAM, SRAM = pynvml.NVML_MEMORY_LOCATION_DRAM, pynvml.NVML_MEMORY_LOCATION_SRAM
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED


def sram_status(handle: Any) -> Any:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return status


def test_errors_are_counted_by_type_span_and_location(h100: Opened) -> None:
    h100.gpus.count_ecc("gpu0", "dram", corrected=3, uncorrected=1)
    h100.gpus.count_ecc("gpu0", "sram", corrected=5)
    h100.node.set("gpu0", "gpu_ecc_corrected_aggregate", 40, place=DRAM)
    count = pynvml.nvmlDeviceGetMemoryErrorCounter
    assert count(h100.handle, CORRECTED, VOLATILE, DRAM) == 3
    assert count(h100.handle, CORRECTED, AGGREGATE, DRAM) == 40
    assert count(h100.handle, UNCORRECTED, VOLATILE, DRAM) == 1
    assert count(h100.handle, CORRECTED, VOLATILE, SRAM) == 5
    assert pynvml.nvmlDeviceGetTotalEccErrors(h100.handle, CORRECTED, VOLATILE) == 8
    assert pynvml.nvmlDeviceGetTotalEccErrors(h100.handle, CORRECTED, AGGREGATE) == 45
    assert pynvml.nvmlDeviceGetTotalEccErrors(h100.handles[1], CORRECTED, VOLATILE) == 0
    assert pynvml.nvmlDeviceGetDetailedEccErrors(h100.handle, CORRECTED, VOLATILE).deviceMemory == 3


def test_a_location_that_a_product_does_not_count_is_not_supported(h100: Opened) -> None:
    call = pynvml.nvmlDeviceGetMemoryErrorCounter
    assert code_of(call, h100.handle, CORRECTED, VOLATILE, 0) == NOT_SUPPORTED
    assert code_of(call, h100.handle, CORRECTED, VOLATILE, 8) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(call, h100.handle, 2, VOLATILE, DRAM) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    with pytest.raises(FieldError, match="gpu0: it does not count corrected errors of l1"):
        h100.gpus.count_ecc("gpu0", "l1", corrected=1)


def test_without_ecc_nothing_is_counted(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_ecc_mode", 0)
    assert pynvml.nvmlDeviceGetEccMode(h100.handle) == [0, 1]
    assert pynvml.nvmlDeviceGetEccMode(h100.handles[1]) == [1, 1]
    assert code_of(pynvml.nvmlDeviceGetTotalEccErrors, h100.handle, CORRECTED, VOLATILE) == NOT_SUPPORTED
    assert code_of(sram_status, h100.handle) == NOT_SUPPORTED


def test_sram_has_a_status_of_its_own_with_a_threshold(h100: Opened) -> None:
    h100.gpus.count_ecc("gpu0", "sram", corrected=2, uncorrected=3)
    h100.node.set("gpu0", "gpu_sram_parity_aggregate", 6)
    h100.node.set("gpu0", "gpu_sram_buckets", 4, place=4)
    status = sram_status(h100.handle)
    assert (status.aggregateUncParity, status.aggregateUncSecDed, status.aggregateCor) == (6, 3, 2)
    assert (status.volatileUncParity, status.volatileUncSecDed, status.volatileCor) == (0, 3, 2)
    assert (status.aggregateUncBucketL2, status.aggregateUncBucketOther) == (3, 4)
    assert status.bThresholdExceeded == 0
    h100.node.set("gpu0", "gpu_sram_threshold_exceeded", 1)
    assert sram_status(h100.handle).bThresholdExceeded == 1


def test_each_place_of_sram_that_failed_is_told_in_two_steps(h100: Opened) -> None:
    h100.node.set("gpu0", "gpu_sram_error_count", 2)
    for place, word in enumerate([1, 2, 3, 4, 0x50, 1, 6, 7, 8, 9, 10, 0xB0, 0, 12]):
        h100.node.set("gpu0", "gpu_sram_errors", word, place=place)
    answered = pynvml.c_nvmlEccSramUniqueUncorrectedErrorCounts_v1_t()
    call = h100.library.nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts
    assert (call(h100.handle, ctypes.byref(answered)), answered.entryCount) == (0, 2)
    entries = (pynvml.c_nvmlEccSramUniqueUncorrectedErrorEntry_v1_t * 2)()
    answered.entries = entries
    assert call(h100.handle, ctypes.byref(answered)) == 0
    assert [(entry.unit, entry.address, entry.isParity, entry.count) for entry in entries] == [
        (1, 0x50, 1, 6),
        (7, 0xB0, 0, 12),
    ]
    answered.entryCount = 1
    assert call(h100.handle, ctypes.byref(answered)) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert answered.entryCount == 2


def test_remapped_rows_and_their_histogram(h100: Opened) -> None:
    h100.gpus.remap("gpu0", corrected=1, uncorrected=2, pending=True)
    assert pynvml.nvmlDeviceGetRemappedRows(h100.handle) == (1, 2, 1, 0)
    h100.gpus.fail_remap("gpu0")
    assert pynvml.nvmlDeviceGetRemappedRows(h100.handle) == (1, 2, 1, 1)
    histogram = pynvml.nvmlDeviceGetRowRemapperHistogram(h100.handle)
    assert [getattr(histogram, name) for name in ("max", "high", "partial", "low", "none")] == [
        2556,
        3,
        0,
        0,
        1,
    ]
    assert pynvml.nvmlDeviceGetRemappedRows(h100.handles[1]) == (0, 0, 0, 0)


def test_only_the_newest_product_tells_inactive_remaps_banks_and_repairs(b200: Opened, a100: Opened) -> None:
    b200.node.set("gpu0", "gpu_rows_corrected_inactive", 4)
    b200.node.set("gpu0", "gpu_channel_repair_pending", 1)
    b200.node.set("gpu0", "gpu_banks_active", 2)
    b200.node.set("gpu0", "gpu_unrepairable_memory", 1)
    assert repairs(b200) == ([4, 0, 0], [1, 0], 1, [2, 0, 0, 512])
    rows = pynvml.c_nvmlRemappedRowsInfo_v2_t()
    banks = pynvml.c_nvmlEccBankRemapperStatus_v1_t()
    calls = a100.library
    assert calls.nvmlDeviceGetRemappedRows_v2(a100.handle, ctypes.byref(rows)) == NOT_SUPPORTED
    assert calls.nvmlDeviceGetBankRemapperStatus_v1(a100.handle, ctypes.byref(banks)) == NOT_SUPPORTED


def repairs(opened: Opened) -> tuple[list[int], list[int], int, list[int]]:
    """Inactive and pending rows, repairs, the unrepairable flag, banks: active, inactive, pending, full."""
    rows = pynvml.c_nvmlRemappedRowsInfo_v2_t()
    banks = pynvml.c_nvmlEccBankRemapperStatus_v1_t()
    flag = pynvml.c_nvmlUnrepairableMemory_v1_t()
    repair = pynvml.c_nvmlRepairStatus_t()
    for function, answered in (
        ("nvmlDeviceGetRemappedRows_v2", rows),
        ("nvmlDeviceGetBankRemapperStatus_v1", banks),
        ("nvmlDeviceGetUnrepairableMemoryFlag_v1", flag),
        ("nvmlDeviceGetRepairStatus", repair),
    ):
        assert getattr(opened.library, function)(opened.handle, ctypes.byref(answered)) == 0
    return (
        [rows.corrInactiveRemaps, rows.uncInactiveRemaps, rows.bPending],
        [repair.bChannelRepairPending, repair.bTpcRepairPending],
        flag.unrepairableMemory,
        [
            banks.activeRemappings,
            banks.inactiveRemappings,
            banks.bPending,
            banks.histogram.maxSpareGroupCount,
        ],
    )


def test_retired_pages_are_asked_for_twice(a100: Opened) -> None:
    cause = pynvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
    assert code_of(pynvml.nvmlDeviceGetRetiredPages, a100.handle, cause) == NOT_SUPPORTED
    a100.node.set("gpu0", "gpu_retired_double_count", 2)
    for place, (address, at_ms) in enumerate([(0x1000, 5), (0x2000, 6)]):
        a100.node.set("gpu0", "gpu_retired_double_pages", address, place=place)
        a100.node.set("gpu0", "gpu_retired_double_ms", at_ms, place=place)
    a100.node.set("gpu0", "gpu_retired_pending", 1)
    assert pynvml.nvmlDeviceGetRetiredPages(a100.handle, cause) == [0x1000, 0x2000]
    assert pynvml.nvmlDeviceGetRetiredPages_v2(a100.handle, cause) == [
        {"address": 0x1000, "timestamp": 5000},
        {"address": 0x2000, "timestamp": 6000},
    ]
    assert pynvml.nvmlDeviceGetRetiredPagesPendingStatus(a100.handle) == 1


def test_room_for_too_few_pages_says_how_many_there_are(a100: Opened) -> None:
    a100.node.set("gpu0", "gpu_retired_single_count", 3)
    count = ctypes.c_uint(2)
    pages = (ctypes.c_ulonglong * 2)(7, 7)
    call = a100.library.nvmlDeviceGetRetiredPages
    assert call(a100.handle, 0, ctypes.byref(count), pages) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert (count.value, list(pages)) == (3, [7, 7])
