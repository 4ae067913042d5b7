"""Processes on a GPU, and GPUs cut into MIG devices."""

import ctypes
import os

import pynvml
import pytest

from nodeagent.emulator.layout import FieldError
from tests.emulator.nvml.conftest import Opened, OpenNode
from tests.emulator.nvml_codes import code_of

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
INVALID = pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_processes_are_told_with_their_memory(h100: Opened) -> None:
    h100.node.hold("gpu0", 4242, memory_bytes=1 << 30)
    h100.node.hold("gpu0", 4243, memory_bytes=2 << 30)
    for call in (
        pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
        pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
    ):
        answered = [(process.pid, process.usedGpuMemory) for process in call(h100.handles[0])]
        assert answered == [(4242, 1 << 30), (4243, 2 << 30)]
        assert call(h100.handles[1]) == []
    for call in (
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
        pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    ):
        assert call(h100.handles[0]) == []
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses(h100.handle) == []
    h100.node.let_go("gpu0")
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(h100.handle) == []


def test_room_for_too_few_processes_says_how_many_there_are(h100: Opened) -> None:
    for process_id in (7, 8, 9):
        h100.node.hold("gpu0", process_id)
    count = ctypes.c_uint(2)
    room = (pynvml.c_nvmlProcessInfo_v2_t * 2)()
    call = h100.library.nvmlDeviceGetComputeRunningProcesses_v3
    assert call(h100.handle, ctypes.byref(count), room) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert (count.value, room[0].pid) == (3, 0)


def test_a_process_has_its_command_as_name(h100: Opened) -> None:
    assert "python" in pynvml.nvmlSystemGetProcessName(os.getpid())
    assert code_of(pynvml.nvmlSystemGetProcessName, 0x7FFF_FFFF) == pynvml.NVML_ERROR_NOT_FOUND


def test_a_whole_gpu_has_no_mig_devices(h100: Opened) -> None:
    assert pynvml.nvmlDeviceGetMigMode(h100.handle) == [0, 0]
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(h100.handle) == 7
    call = pynvml.nvmlDeviceGetMigDeviceHandleByIndex
    assert code_of(call, h100.handle, 0) == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(pynvml.nvmlDeviceGetGpuInstanceId, h100.handle) == NOT_SUPPORTED
    assert pynvml.nvmlDeviceIsMigDeviceHandle(h100.handle).value == 0


def test_mig_devices_are_devices_of_their_own(h100: Opened) -> None:
    h100.gpus.partition("gpu0", [3, 2, 1])
    assert pynvml.nvmlDeviceGetMigMode(h100.handle) == [1, 1]
    parts = [pynvml.nvmlDeviceGetMigDeviceHandleByIndex(h100.handle, index) for index in range(3)]
    names = [pynvml.nvmlDeviceGetName(part) for part in parts]
    assert names == [f"NVIDIA H100 80GB HBM3 MIG {size}" for size in ("3g.30gb", "2g.20gb", "1g.10gb")]
    assert [pynvml.nvmlDeviceGetMemoryInfo(part).total >> 30 for part in parts] == [30, 20, 10]
    assert [pynvml.nvmlDeviceGetAttributes_v2(part).gpuInstanceSliceCount for part in parts] == [3, 2, 1]
    assert len({pynvml.nvmlDeviceGetGpuInstanceId(part) for part in parts}) == 3
    assert {pynvml.nvmlDeviceGetComputeInstanceId(part) for part in parts} == {0}
    uuids = [pynvml.nvmlDeviceGetUUID(part) for part in parts]
    assert len({*uuids, pynvml.nvmlDeviceGetUUID(h100.handle)}) == 4
    found = pynvml.nvmlDeviceGetHandleByUUID(uuids[1])
    assert pynvml.nvmlDeviceIsMigDeviceHandle(found).value == 1
    whole = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(found)
    assert pynvml.nvmlDeviceGetIndex(whole) == 0
    call = pynvml.nvmlDeviceGetMigDeviceHandleByIndex
    assert code_of(call, h100.handle, 3) == pynvml.NVML_ERROR_NOT_FOUND


def test_a_cut_gpu_tells_neither_utilisation_nor_remapped_rows(h100: Opened) -> None:
    h100.gpus.partition("gpu0", [7])
    for call in (
        pynvml.nvmlDeviceGetUtilizationRates,
        pynvml.nvmlDeviceGetRemappedRows,
        pynvml.nvmlDeviceGetRowRemapperHistogram,
    ):
        assert code_of(call, h100.handles[0]) == NOT_SUPPORTED
        assert code_of(call, h100.handles[1]) == 0
    part = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(h100.handle, 0)
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, part) == INVALID
    h100.gpus.partition("gpu0", [])
    assert pynvml.nvmlDeviceGetMigMode(h100.handle) == [0, 0]
    assert code_of(pynvml.nvmlDeviceGetUtilizationRates, h100.handle) == 0


def test_seven_slices_are_all_that_there_are(open_node: OpenNode) -> None:
    a100 = open_node("1xA100")
    with pytest.raises(FieldError, match="MIG devices of 1, 2, 3, 4 or 7 slices, 7 in all, are right"):
        a100.gpus.partition("gpu0", [4, 4])
