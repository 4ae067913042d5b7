"""The double's structures against those of pynvml and against NVIDIA's sizes, and a caller written in C."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any, Final

import pynvml
import pytest

from nodeagent.emulator import build
from nodeagent.emulator.node import EmulatedNode
from tests.emulator.nvml.conftest import Opened

STRUCTURES: Final[dict[str, Any]] = {
    "nvmlPciInfo_t": pynvml.nvmlPciInfo_t,
    "nvmlPciInfoExt_v1_t": pynvml.nvmlPciInfoExt_v1_t,
    "nvmlUUID_v1_t": pynvml.c_nvmlUUID_t,
    "nvmlTemperature_v1_t": pynvml.c_nvmlTemperature_v1_t,
    "nvmlMarginTemperature_v1_t": pynvml.c_nvmlMarginTemperature_v1_t,
    "nvmlMemory_t": pynvml.c_nvmlMemory_t,
    "nvmlMemory_v2_t": pynvml.c_nvmlMemory_v2_t,
    "nvmlBAR1Memory_t": pynvml.c_nvmlBAR1Memory_t,
    "nvmlUtilization_t": pynvml.c_nvmlUtilization_t,
    "nvmlViolationTime_t": pynvml.c_nvmlViolationTime_t,
    "nvmlEccErrorCounts_t": pynvml.c_nvmlEccErrorCounts_t,
    "nvmlEccSramErrorStatus_v1_t": pynvml.c_nvmlEccSramErrorStatus_v1_t,
    "nvmlEccSramUniqueUncorrectedErrorCounts_v1_t": pynvml.c_nvmlEccSramUniqueUncorrectedErrorCounts_v1_t,
    "nvmlEccSramUniqueUncorrectedErrorEntry_v1_t": pynvml.c_nvmlEccSramUniqueUncorrectedErrorEntry_v1_t,
    "nvmlRemappedRowsInfo_v2_t": pynvml.c_nvmlRemappedRowsInfo_v2_t,
    "nvmlRowRemapperHistogramValues_t": pynvml.c_nvmlRowRemapperHistogramValues,
    "nvmlRepairStatus_v1_t": pynvml.c_nvmlRepairStatus_t,
    "nvmlUnrepairableMemory_v1_t": pynvml.c_nvmlUnrepairableMemory_v1_t,
    "nvmlEccBankRemapperStatus_v1_t": pynvml.c_nvmlEccBankRemapperStatus_v1_t,
    "nvmlNvLinkInfo_v1_t": pynvml.c_nvmlNvLinkInfo_v1_t,
    "nvmlNvLinkInfo_v2_t": pynvml.c_nvmlNvLinkInfo_v2_t,
    "nvmlGpuFabricInfo_t": pynvml.c_nvmlGpuFabricInfo_t,
    "nvmlGpuFabricInfo_v2_t": pynvml.c_nvmlGpuFabricInfo_v2_t,
    "nvmlGpuFabricInfo_v3_t": pynvml.c_nvmlGpuFabricInfo_v3_t,
    "nvmlGpuFabricInfo_v4_t": pynvml.c_nvmlGpuFabricInfo_v4_t,
    "nvmlFieldValue_t": pynvml.c_nvmlFieldValue_t,
    "nvmlProcessInfo_t": pynvml.c_nvmlProcessInfo_v3_t,
    "nvmlEventData_t": pynvml.c_nvmlEventData_t,
    "nvmlDeviceAttributes_t": pynvml.c_nvmlDeviceAttributes,
}
VENDOR_SIZES: Final = {
    "nvmlPciInfo_t": 68,
    "nvmlPciInfoExt_v1_t": 64,
    "nvmlUUID_v1_t": 52,
    "nvmlTemperature_v1_t": 12,
    "nvmlMarginTemperature_v1_t": 8,
    "nvmlMemory_t": 24,
    "nvmlMemory_v2_t": 40,
    "nvmlUtilization_t": 8,
    "nvmlViolationTime_t": 16,
    "nvmlEccErrorCounts_t": 32,
    "nvmlEccSramErrorStatus_v1_t": 104,
    "nvmlEccSramUniqueUncorrectedErrorCounts_v1_t": 16,
    "nvmlEccSramUniqueUncorrectedErrorEntry_v1_t": 28,
    "nvmlRemappedRowsInfo_v2_t": 24,
    "nvmlRowRemapperHistogramValues_t": 20,
    "nvmlRepairStatus_v1_t": 12,
    "nvmlUnrepairableMemory_v1_t": 8,
    "nvmlEccBankRemapperStatus_v1_t": 20,
    "nvmlNvLinkInfo_v1_t": 8,
    "nvmlNvLinkInfo_v2_t": 1612,
    "nvmlGpuFabricInfo_t": 28,
    "nvmlGpuFabricInfo_v2_t": 36,
    "nvmlGpuFabricInfo_v3_t": 40,
    "nvmlGpuFabricInfo_v4_t": 548,
    "nvmlFieldValue_t": 40,
    "nvmlProcessInfo_t": 24,
    "nvmlEventData_t": 32,
}


def compile_program(source: Path, program: Path, *options: str) -> Path:
    """A program made of one file as strictly as the libraries are."""
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source), *options]
    subprocess.run(command, check=True)
    return program


@pytest.fixture(scope="module")
def c_layout(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """``structure`` -> its size, ``structure.field`` -> its offset, as the C compiler has them."""
    folder = tmp_path_factory.mktemp("abi")
    lines = ['#include "nvml_abi.h"', "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in structure._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    source = folder / "layout.c"
    source.write_text("\n".join([*lines, "}"]))
    program = compile_program(source, folder / "layout", f"-I{build.SOURCES / 'nvidia'}")
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in (line.split() for line in printed.splitlines())}


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_is_laid_out_as_pynvml_has_it(c_layout: dict[str, int], name: str) -> None:
    structure = STRUCTURES[name]
    of_pynvml = {f"{name}.{field}": getattr(structure, field).offset for field, *_ in structure._fields_}
    of_ours = {key: offset for key, offset in c_layout.items() if key.startswith(f"{name}.")}
    assert of_ours == of_pynvml
    assert c_layout[name] == ctypes.sizeof(structure)


def test_sizes_are_those_of_the_vendors_library(c_layout: dict[str, int]) -> None:
    assert {name: c_layout[name] for name in VENDOR_SIZES} == VENDOR_SIZES


def exported_by(library: Path) -> set[str]:
    """The functions that a library offers."""
    command = ["nm", "-D", "--defined-only", "--format=posix", str(library)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines()}


def test_every_exported_function_is_one_that_nvidia_has(tmp_path: Path) -> None:
    exported = exported_by(EmulatedNode.create(tmp_path / "node", "1xH100").nvml)
    called = set(pynvml.__loader__.get_source("pynvml").split('_nvmlGetFunctionPointer("'))
    known_to_pynvml = {text.split('"', 1)[0] for text in called}
    # Programs in C open the library by a name that pynvml does not use.
    assert exported - known_to_pynvml == {"nvmlInit_v2"}
    assert len(exported) > 100


def test_every_function_refuses_in_the_same_order(h100: Opened) -> None:
    named = exported_by(h100.node.nvml)
    about_a_gpu = sorted(name for name in named if name.startswith("nvmlDevice") and "Handle" not in name)
    about_a_gpu.remove("nvmlDeviceGetCount_v2")
    room = [ctypes.create_string_buffer(2048) for _ in range(4)]

    def answers(handle: Any) -> set[int]:
        return {getattr(h100.library, name)(handle, *room) for name in about_a_gpu}

    assert len(about_a_gpu) > 80
    assert answers(None) == {pynvml.NVML_ERROR_INVALID_ARGUMENT}
    h100.gpus.lose("gpu0")
    assert answers(h100.handle) == {pynvml.NVML_ERROR_GPU_IS_LOST}
    h100.gpus.driver.unload()
    assert answers(h100.handle) == {pynvml.NVML_ERROR_DRIVER_NOT_LOADED}
    pynvml.nvmlShutdown()
    assert answers(h100.handle) == {pynvml.NVML_ERROR_UNINITIALIZED}


def test_a_program_in_c_reads_a_gpu_through_the_double(tmp_path: Path) -> None:
    node = EmulatedNode.create(tmp_path / "node", "2xH100")
    node.set("gpu1", "gpu_temperature_celsius", 66)
    source = Path(__file__).parent / "client.c"
    options = (f"-L{node.directory}", "-l:libnvidia-ml.so.1", f"-Wl,-rpath,{node.directory}")
    program = compile_program(source, tmp_path / "client", *options)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert printed == [
        "driver 615.71",
        "gpu 0: NVIDIA H100 80GB HBM3, 00000000:1B:00.0, 34 C, 79 GiB, fabric 3",
        "gpu 1: NVIDIA H100 80GB HBM3, 00000000:43:00.0, 66 C, 79 GiB, fabric 3",
        "an event: Timeout",
        "an unknown version: Argument version mismatch",
    ]
