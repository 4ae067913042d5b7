"""Opening the library: who holds what, and what a driver or a GPU that comes and goes does to it."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nodeagent.emulator.gpus import Gpus
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.nvml import NvmlClient
from tests.emulator.nvml_codes import code_of

DescribeNode = Callable[..., tuple[EmulatedNode, Gpus]]

READ_A_GPU = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
import pynvml
pynvml.nvmlInit()
print(pynvml.nvmlDeviceGetCount(), pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(1)))
"""

HOLD_THE_LIBRARY = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
import pynvml
pynvml.nvmlInit()
pynvml.nvmlInit()
held = pynvml.nvmlDeviceGetHandleByIndex(0)
print("held", flush=True)
sys.stdin.read()
"""


def python(script: str, library: Path) -> str:
    """What a process of its own prints that runs a script with the path of a library."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(library)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_unmodified_pynvml_finds_a_double_that_was_loaded_by_its_path(tmp_path: Path) -> None:
    node = EmulatedNode.create(tmp_path / "node", "2xH100")
    assert python(READ_A_GPU, node.nvml) == "2 NVIDIA H100 80GB HBM3"


def test_a_library_without_a_node_beside_it_has_no_driver(tmp_path: Path) -> None:
    node = EmulatedNode.create(tmp_path / "node", "1xH100")
    alone = tmp_path / "libnvidia-ml.so.1"
    alone.write_bytes(node.nvml.read_bytes())
    assert ctypes.CDLL(str(alone)).nvmlInitWithFlags(0) == pynvml.NVML_ERROR_DRIVER_NOT_LOADED


def test_nothing_is_answered_before_the_library_is_opened(describe_node: DescribeNode) -> None:
    describe_node()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlSystemGetDriverVersion) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlShutdown) == pynvml.NVML_ERROR_UNINITIALIZED


def test_the_library_stays_open_until_it_was_closed_as_often_as_opened(describe_node: DescribeNode) -> None:
    describe_node()
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() == 2
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED


def test_a_handle_ends_with_its_session(describe_node: DescribeNode) -> None:
    describe_node()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlDeviceGetName, handle) == pynvml.NVML_ERROR_UNINITIALIZED
    pynvml.nvmlInit()
    assert code_of(pynvml.nvmlDeviceGetName, handle) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    pynvml.nvmlShutdown()


@pytest.mark.parametrize("bits", [None, 1, 0x7FFF_DEAD_BEEF, 0x4E56_0000_0077_0001, 0xFFFF_FFFF_FFFF_FFFF])
def test_a_made_up_handle_is_refused_and_not_followed(h100: Any, bits: int | None) -> None:
    handle = ctypes.cast(ctypes.c_void_p(bits), pynvml.c_nvmlDevice_t)
    assert code_of(pynvml.nvmlDeviceGetName, handle) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_what_a_process_holds_is_counted_until_it_closes(describe_node: DescribeNode) -> None:
    _, gpus = describe_node()
    assert gpus.driver.clients() == []
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    for _ in range(2):
        pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceGetHandleByIndex(1)
    events = pynvml.nvmlEventSetCreate()
    assert gpus.driver.clients() == [NvmlClient(os.getpid(), inits=2, handles=2, event_sets=1)]
    pynvml.nvmlEventSetFree(events)
    pynvml.nvmlShutdown()
    assert gpus.driver.clients() == [NvmlClient(os.getpid(), inits=1, handles=2, event_sets=0)]
    pynvml.nvmlShutdown()
    assert gpus.driver.clients() == []


def test_other_processes_stand_in_the_way_of_a_reset_until_they_end(describe_node: DescribeNode) -> None:
    node, gpus = describe_node()
    node.hold("gpu1", 4242)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LIBRARY, str(node.nvml)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert gpus.driver.clients() == [NvmlClient(holder.pid, inits=2, handles=1, event_sets=0)]
        assert gpus.obstacles("gpu0") == [holder.pid]
        assert gpus.obstacles("gpu1") == sorted([4242, holder.pid])
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert gpus.driver.clients() == []
    assert gpus.obstacles("gpu1") == [4242]


def test_an_unloaded_driver_is_told_in_every_call(h100: Any) -> None:
    h100.gpus.driver.unload()
    expected = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert code_of(pynvml.nvmlInit) == expected
    assert code_of(pynvml.nvmlDeviceGetCount) == expected
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, h100.handle) == expected


def test_a_session_does_not_outlive_a_reload_of_the_driver(describe_node: DescribeNode) -> None:
    _, gpus = describe_node()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    gpus.driver.unload()
    gpus.driver.load()
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, handle) == pynvml.NVML_ERROR_UNKNOWN
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(0)) == 72_000
    pynvml.nvmlShutdown()


def test_what_a_session_without_its_driver_answers_can_be_chosen(h100: Any) -> None:
    h100.node.set_node("gpu_unloaded_answer", pynvml.NVML_ERROR_UNINITIALIZED)
    h100.node.set_node("gpu_reloaded_answer", pynvml.NVML_ERROR_GPU_IS_LOST)
    h100.gpus.driver.unload()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlInit) == pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    h100.gpus.driver.load()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_GPU_IS_LOST
    h100.gpus.driver.load("620.10")
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH


def test_an_upgraded_library_fits_only_once_its_driver_is_loaded(describe_node: DescribeNode) -> None:
    node, gpus = describe_node()
    pynvml.nvmlInit()
    gpus.driver.upgrade_library("620.10")
    assert pynvml.nvmlSystemGetNVMLVersion() == "13.615.71"
    mismatch = pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH
    try_to_open = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).nvmlInitWithFlags(0))"
    assert python(try_to_open, node.nvml) == str(mismatch)
    gpus.driver.load("620.10")
    pynvml.nvmlShutdown()
    assert code_of(pynvml.nvmlInit) == mismatch
    assert python(try_to_open, node.nvml) == "0"


def test_a_gpu_that_was_taken_out_is_missing_from_the_next_session(describe_node: DescribeNode) -> None:
    node, _ = describe_node("3xH100")
    pynvml.nvmlInit()
    second = pynvml.nvmlDeviceGetHandleByIndex(1)
    third = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(2))
    node.take_out("gpu1")
    assert pynvml.nvmlDeviceGetCount() == 3
    assert code_of(pynvml.nvmlDeviceGetUUID, second) == pynvml.NVML_ERROR_GPU_IS_LOST
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 2
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(1)) == third
    pynvml.nvmlShutdown()


def test_a_lost_gpu_is_still_counted_and_answers_nothing_else(h100: Any) -> None:
    h100.gpus.lose("gpu1")
    assert pynvml.nvmlDeviceGetCount() == 2
    for call, argument in (
        (pynvml.nvmlDeviceGetHandleByIndex, 1),
        (pynvml.nvmlDeviceGetUUID, h100.handles[1]),
        (pynvml.nvmlDeviceGetUtilizationRates, h100.handles[1]),
    ):
        assert code_of(call, argument) == pynvml.NVML_ERROR_GPU_IS_LOST
    assert code_of(pynvml.nvmlDeviceGetUUID, h100.handles[0]) == 0
    h100.node.return_("gpu1")
    assert code_of(pynvml.nvmlDeviceGetUUID, h100.handles[1]) == 0


@pytest.mark.parametrize("answer", [pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_NOT_READY])
def test_a_gpu_can_answer_one_error_to_everything(h100: Any, answer: int) -> None:
    h100.gpus.answer_always("gpu0", answer)
    assert code_of(pynvml.nvmlDeviceGetTemperature, h100.handles[0], 0) == answer
    assert code_of(pynvml.nvmlDeviceGetTemperature, h100.handles[1], 0) == 0
    h100.gpus.answer_always("gpu0", 0)
    assert code_of(pynvml.nvmlDeviceGetTemperature, h100.handles[0], 0) == 0


def test_one_call_about_one_gpu_can_be_told_what_to_answer(h100: Any) -> None:
    h100.node.answer(pynvml.NVML_ERROR_TIMEOUT, "gpu1", "nvmlDeviceGetPowerUsage", times=1)
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, h100.handles[0]) == 0
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, h100.handles[1]) == pynvml.NVML_ERROR_TIMEOUT
    assert code_of(pynvml.nvmlDeviceGetPowerUsage, h100.handles[1]) == 0
    assert h100.node.calls("nvmlDeviceGetPowerUsage", "gpu1") == 2


def test_every_return_code_has_the_words_that_pynvml_gives_it(h100: Any) -> None:
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_GPU_IS_LOST) == "GPU is lost"
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_DRIVER_NOT_LOADED) == "Driver Not Loaded"
    assert pynvml.nvmlErrorString(777) == "Unknown Error"
    h100.library.nvmlErrorString.restype = ctypes.c_char_p
    assert None not in [h100.library.nvmlErrorString(code) for code in [*range(31), 999, -1]]
