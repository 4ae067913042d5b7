"""Libraries of older drivers: newer functions are really missing, newer structures and field ids unknown."""

import ctypes
import shutil
from pathlib import Path

import pynvml
import pytest

from nodeagent.emulator.layout import FieldError, NoSuchFunction, take_away
from nodeagent.emulator.nvml import OLDER
from tests.emulator.nvml.conftest import OpenNode
from tests.emulator.nvml_codes import code_of

NOT_FOUND = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
VERSION_MISMATCH = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
RECOVERY_ACTION = pynvml.nvmlEventTypeGpuRecoveryAction


@pytest.mark.parametrize("older", sorted(OLDER))
def test_what_came_later_is_not_there(open_node: OpenNode, older: str) -> None:
    opened = open_node("1xH100", older=older)
    assert [name for name in OLDER[older]["without"] if hasattr(opened.library, name)] == []
    assert code_of(pynvml.nvmlDeviceGetRepairStatus, opened.handle) == NOT_FOUND
    assert pynvml.nvmlDeviceGetTemperature(opened.handle, 0) == 34
    assert pynvml.nvmlSystemGetDriverVersion().startswith(older)


def test_a_branch_that_is_not_described_is_refused_with_those_that_are(open_node: OpenNode) -> None:
    with pytest.raises(FieldError, match="999: the older branches are 570, 550, 535, 520"):
        open_node("1xH100").gpus.driver.make_older("999")


@pytest.mark.parametrize(
    ("older", "has_second", "has_first"),
    [("570", 0, 0), ("535", NOT_FOUND, 0), ("520", NOT_FOUND, NOT_FOUND)],
)
def test_the_fabric_is_told_in_the_newest_structure_that_the_branch_knows(
    open_node: OpenNode, older: str, has_second: int, has_first: int
) -> None:
    opened = open_node("1xH100", older=older)
    first, second = pynvml.c_nvmlGpuFabricInfo_t(), pynvml.c_nvmlGpuFabricInfo_v2_t()
    third = pynvml.c_nvmlGpuFabricInfo_v3_t()
    newest, oldest = pynvml.nvmlDeviceGetGpuFabricInfoV, pynvml.nvmlDeviceGetGpuFabricInfo
    assert code_of(newest, opened.handle, ctypes.byref(third)) == (has_second or VERSION_MISMATCH)
    assert code_of(newest, opened.handle, ctypes.byref(second)) == has_second
    assert code_of(oldest, opened.handle, ctypes.byref(first)) == has_first


def test_an_older_branch_has_the_calls_that_the_newer_ones_replaced(open_node: OpenNode) -> None:
    opened = open_node("1xH100", older="520")
    opened.node.set("gpu0", "gpu_clock_reasons", 0x8)
    assert code_of(pynvml.nvmlDeviceGetCurrentClocksEventReasons, opened.handle) == NOT_FOUND
    assert pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(opened.handle) == 0x8
    assert code_of(pynvml.nvmlDeviceGetTemperatureV, opened.handle, 0) == NOT_FOUND
    action, pending = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, pynvml.NVML_FI_DEV_REMAPPED_PENDING
    answered = pynvml.nvmlDeviceGetFieldValues(opened.handle, [action, pending])
    assert [value.nvmlReturn for value in answered] == [pynvml.NVML_ERROR_INVALID_ARGUMENT, 0]
    assert pynvml.nvmlDeviceGetSupportedEventTypes(opened.handle) & RECOVERY_ACTION == 0


def test_a_function_that_is_not_there_cannot_be_taken_away(open_node: OpenNode, tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    shutil.copyfile(open_node("1xH100").node.nvml, library)
    before = library.read_bytes()
    with pytest.raises(NoSuchFunction, match="has no function nvmlNonsense"):
        take_away(library, ["nvmlDeviceGetName", "nvmlNonsense"])
    assert library.read_bytes() == before


def test_a_function_is_taken_away_without_those_whose_names_begin_alike(open_node: OpenNode) -> None:
    opened = open_node("1xH100", older="550")
    assert hasattr(opened.library, "nvmlDeviceGetTemperature")
    assert hasattr(opened.library, "nvmlDeviceGetTemperatureThreshold")
    assert hasattr(opened.library, "nvmlDeviceGetRemappedRows")
