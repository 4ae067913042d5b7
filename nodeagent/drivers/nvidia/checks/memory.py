"""The memory of a GPU: error counters, repaired and spare rows; and its InfoROM.

**Errors.** A count alone does not show that a part is bad. The tables judge the flags that are reported here
as active codes, and how fast counters rise. No limit is set here, and no counter is reset.

**Spare rows.** A bank of memory has about eight. The histogram counts the banks by spare rows left: "low" is
one, "none" is none (RUSD_MEM_ROW_REMAP_INFO in src/common/sdk/nvidia/inc/class/cl00de.h of NVIDIA's open
modules). From Blackwell on, a bank without spare rows is replaced as a whole, as long as its group has a
spare bank (nvmlEccBankRemapperStatus in nvml.h).

**The InfoROM** holds the records of the board. NVML reads it from the flash and compares checksums
(nvmlDeviceValidateInforom in nvml.h). This is slow, and the records hardly ever change: it is done at the
start and once an hour, as in DCGM (``SetInforom`` in modules/health/DcgmHealthWatch.cpp). Nothing is
repaired.
"""

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.nvml.calls import Calls, GpuReadings, asks
from nodeagent.drivers.nvidia.nvml.fields import Cached, Field, FieldValues

ROWS = "remap_spare_banks"
"""Banks by how many spare rows they have left."""
GROUPS = "remap_spare_groups"
"""Groups of banks by whether they have a spare bank left."""


def summarize(readings: GpuReadings) -> None:
    """Fill in how many banks have hardly a spare row left, and in how many the next row that fails cannot be
    replaced. Once one could not be (``remap_failed``), that is the fault, and no bank counts in addition.
    """
    low, none = (readings.values.get(f"{ROWS}.{left}") for left in ("low", "none"))
    if low is None or none is None:
        return
    has_spare_banks = readings.values.get(f"{GROUPS}.none") == 0
    none = 0.0 if readings.values.get("remap_failed") else none
    exhausted = 0.0 if has_spare_banks else none
    readings.put("remap_exhausted_banks", exhausted)
    readings.put("remap_scarce_banks", low + none - exhausted)


REMAP_PENDING: Final = "XID_63"
REMAP_FAILED: Final = "XID_64"
"""A row or page waits for a reset to be replaced, or could not be: the Xids report the same as it happens."""

Flag = tuple[frozenset[str], Callable[[GpuReadings], list[str] | None]]
"""A reader, after all the codes that it may find. It returns None if it does not know."""

ROW_CODES: Final = frozenset({REMAP_PENDING, REMAP_FAILED})

_ROWS: Final[tuple[Field, ...]] = (
    (pynvml.NVML_FI_DEV_REMAPPED_COR, 0),
    (pynvml.NVML_FI_DEV_REMAPPED_UNC, 0),
    (pynvml.NVML_FI_DEV_REMAPPED_PENDING, 0),
    (pynvml.NVML_FI_DEV_REMAPPED_FAILURE, 0),
)

SRAM_THRESHOLD: Final = "NV_SRAM_THRESHOLD"
CHANNEL_REPAIR: Final = "NV_CHANNEL_REPAIR_PENDING"
TPC_REPAIR: Final = "NV_TPC_REPAIR_PENDING"
BANK_REMAP: Final = "NV_BANK_REMAP_PENDING"
UNREPAIRABLE: Final = "NV_MEMORY_UNREPAIRABLE"

_KINDS: Final[Mapping[str, int]] = {"corrected": 0, "uncorrected": 1}
_VOLATILE: Final = 0
_AGGREGATE: Final = 1
_LOCATIONS: Final[Mapping[str, int]] = {
    "l1_cache": 0,
    "l2_cache": 1,
    "dram": 2,
    "register_file": 3,
    "texture_memory": 4,
    "texture_shared": 5,
    "cbu": 6,
    "sram": 7,
}
_SRAM_COUNTS: Final[Mapping[str, str]] = {
    "parity": "aggregateUncParity",
    "secded": "aggregateUncSecDed",
    "l2": "aggregateUncBucketL2",
    "sm": "aggregateUncBucketSm",
    "pcie": "aggregateUncBucketPcie",
    "mcu": "aggregateUncBucketMcu",
    "other": "aggregateUncBucketOther",
}
_HISTOGRAM: Final = ("max", "high", "partial", "low", "none")


class MemoryState:
    """The memory of one GPU; each method returns the codes that its flags make active."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._row_fields = FieldValues(calls, _ROWS)

    def rows(self, readings: GpuReadings) -> list[str] | None:
        """Rows replaced and to be replaced; None if unknown."""
        rows = self._calls.newest((_remapped_rows_v2, _rows_v2), (pynvml.nvmlDeviceGetRemappedRows, _rows_v1))
        if rows is None and self._calls.lacks(pynvml.nvmlDeviceGetRemappedRows):
            rows = self._rows_by_fields()
        if rows is None:
            return None
        corrected, uncorrected, pending, failed = rows
        readings.put("remapped_rows.corrected", corrected, most=2.0**31)
        readings.put("remapped_rows.uncorrected", uncorrected, most=2.0**31)
        readings.put("remap_pending", float(bool(pending)))
        readings.put("remap_failed", float(bool(failed)))
        return [code for code, flag in ((REMAP_PENDING, pending), (REMAP_FAILED, failed)) if flag]

    @property
    def flags(self) -> Sequence[Flag]:
        """The codes of the other faults, with what reads which of them are there."""
        return (
            (frozenset({SRAM_THRESHOLD}), self._sram),
            (frozenset({CHANNEL_REPAIR, TPC_REPAIR}), self._repairs),
            (frozenset({BANK_REMAP}), self._banks),
            (frozenset({UNREPAIRABLE}), self._unrepairable),
            (frozenset({REMAP_PENDING}), self._retired),
        )

    def counters(self, readings: GpuReadings) -> None:
        """Errors, modes, and how many spare rows are left."""
        self._modes(readings)
        self._counters(readings)
        self._histogram(readings)

    def _rows_by_fields(self) -> tuple[float, float, float, float] | None:
        """In MIG mode the calls are not there, and the fields may be."""
        read = self._row_fields.read()
        if not set(_ROWS[2:]) <= read.keys():
            return None
        corrected, uncorrected, pending, failed = (read.get(field, 0.0) for field in _ROWS)
        return corrected, uncorrected, pending, failed

    def _modes(self, readings: GpuReadings) -> None:
        if (modes := self._calls.ask(pynvml.nvmlDeviceGetEccMode)) is not None:
            readings.put("ecc_mode", modes[0], most=1)
            readings.put("ecc_mode_pending", modes[1], most=1)

    def _counters(self, readings: GpuReadings) -> None:
        calls = self._calls
        for kind, number in _KINDS.items():
            total = calls.ask(
                pynvml.nvmlDeviceGetTotalEccErrors, number, _AGGREGATE, variant=(number, _AGGREGATE)
            )
            readings.put(f"ecc_{kind}_total", total)
            since_load = calls.ask(
                pynvml.nvmlDeviceGetTotalEccErrors, number, _VOLATILE, variant=(number, _VOLATILE)
            )
            readings.put(f"ecc_volatile_{kind}_total", since_load)
            for location, place in _LOCATIONS.items():
                errors = calls.ask(
                    pynvml.nvmlDeviceGetMemoryErrorCounter,
                    number,
                    _AGGREGATE,
                    place,
                    variant=(number, place),
                )
                readings.put(f"ecc_{kind}_total.{location}", errors)

    def _histogram(self, readings: GpuReadings) -> None:
        """How many banks have how many spare rows left."""
        histogram = self._calls.ask(pynvml.nvmlDeviceGetRowRemapperHistogram)
        if histogram is not None:
            for name in _HISTOGRAM:
                readings.put(f"{ROWS}.{name}", getattr(histogram, name), most=2.0**31)
            summarize(readings)

    def _sram(self, readings: GpuReadings) -> list[str] | None:
        status = self._calls.ask(_sram_status)
        if status is None:
            return None
        for name, count in _SRAM_COUNTS.items():
            readings.put(f"sram_uncorrected_total.{name}", getattr(status, count))
        return [SRAM_THRESHOLD] if status.bThresholdExceeded else []

    def _repairs(self, _: GpuReadings) -> list[str] | None:
        repairs = self._calls.ask(pynvml.nvmlDeviceGetRepairStatus)
        if repairs is None:
            return None
        return [code for code, flag in zip((CHANNEL_REPAIR, TPC_REPAIR), repairs, strict=True) if flag]

    def _banks(self, readings: GpuReadings) -> list[str] | None:
        banks = self._calls.ask(_bank_status)
        if banks is None:
            return None
        readings.put(f"{GROUPS}.max", banks.histogram.maxSpareGroupCount, most=2.0**31)
        readings.put(f"{GROUPS}.none", banks.histogram.noSpareGroupCount, most=2.0**31)
        return [BANK_REMAP] if banks.bPending else []

    def _unrepairable(self, _: GpuReadings) -> list[str] | None:
        flag = self._calls.ask(pynvml.nvmlDeviceGetUnrepairableMemoryFlag_v1)
        if flag is None:
            return None
        return [UNREPAIRABLE] if flag else []

    def _retired(self, readings: GpuReadings) -> list[str] | None:
        """Pages taken out of use, on GPUs from before the spare rows."""
        calls = self._calls
        causes, retired = (("single", 0), ("double", 1)), list[int]()
        for name, cause in causes:
            pages = calls.newest((_RETIRED_PAGES_V2[cause], len), (_RETIRED_PAGES[cause], len))
            readings.put(f"ecc_isolated_pages.{name}", pages)
            retired += [] if pages is None else [pages]
        if retired:
            readings.put("ecc_isolated_pages", sum(retired))
        pending = calls.ask(pynvml.nvmlDeviceGetRetiredPagesPendingStatus)
        if pending is None:
            return None
        return [REMAP_PENDING] if pending == 1 else []


@asks("nvmlDeviceGetRemappedRows_v2")
def _remapped_rows_v2(handle: Any) -> Any:
    info = pynvml.c_nvmlRemappedRowsInfo_v2_t()
    pynvml.nvmlDeviceGetRemappedRows_v2(handle, ctypes.byref(info))
    return info


def _rows_v2(info: Any) -> tuple[int, int, int, int]:
    corrected = info.corrActiveRemaps + info.corrInactiveRemaps
    uncorrected = info.uncActiveRemaps + info.uncInactiveRemaps
    return corrected, uncorrected, info.bPending, info.bfailureOccurred


def _rows_v1(rows: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return rows


@asks("nvmlDeviceGetSramEccErrorStatus")
def _sram_status(handle: Any) -> Any:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, ctypes.byref(status))
    return status


@asks("nvmlDeviceGetBankRemapperStatus_v1")
def _bank_status(handle: Any) -> Any:
    status = pynvml.c_nvmlEccBankRemapperStatus_v1_t()
    pynvml.nvmlDeviceGetBankRemapperStatus_v1(handle, ctypes.byref(status))
    return status


@asks("nvmlDeviceGetRetiredPages_v2/0")
def _single_v2(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetRetiredPages_v2(handle, 0)


@asks("nvmlDeviceGetRetiredPages_v2/1")
def _double_v2(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetRetiredPages_v2(handle, 1)


@asks("nvmlDeviceGetRetiredPages/0")
def _single(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetRetiredPages(handle, 0)


@asks("nvmlDeviceGetRetiredPages/1")
def _double(handle: Any) -> Any:
    return pynvml.nvmlDeviceGetRetiredPages(handle, 1)


_RETIRED_PAGES_V2: Final = (_single_v2, _double_v2)
_RETIRED_PAGES: Final = (_single, _double)


CORRUPT: Final = "NV_INFOROM_CORRUPT"
INFOROM_CODES: Final = frozenset({CORRUPT})
EACH_S: Final = 3600.0


class Inforom:
    """The inforom of one GPU. ``now_s`` is a clock that does not step."""

    def __init__(self, calls: Calls, now_s: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._is_valid = Cached(lambda: _answer(calls), EACH_S, now_s)

    def read(self, _: GpuReadings) -> list[str] | None:
        """The codes that are active, None where that is unknown. Raises as ``Calls.ask``."""
        is_valid = self._is_valid.get()
        if self._calls.is_lost(_inforom_is_valid):
            return None
        return [CORRUPT] if is_valid is False else []


def _answer(calls: Calls) -> bool | None:
    is_valid: bool | None = calls.ask(_inforom_is_valid)
    return is_valid


@asks("nvmlDeviceValidateInforom")
def _inforom_is_valid(handle: Any) -> bool:
    try:
        pynvml.nvmlDeviceValidateInforom(handle)
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_CORRUPTED_INFOROM:
            raise
        return False
    return True
