"""Calls that hang, crash or lie, as the node is set to: which of them, and which not."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest

from nodeagent.emulator.node import EmulatedNode
from tests.emulator.nvml.conftest import Opened
from tests.emulator.nvml_codes import code_of

TIMEOUT = pynvml.NVML_ERROR_TIMEOUT


class Call:
    """A call in a thread of its own, which may take as long as it likes."""

    def __init__(self, call: Callable[..., object], *arguments: object) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._do, args=(call, arguments), daemon=True)
        self._thread.start()

    def _do(self, call: Callable[..., object], arguments: tuple[object, ...]) -> None:
        code_of(call, *arguments)
        self._over.set()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self) -> None:
        assert self._over.wait(timeout=30), "the call never returned"


def begun(opened: Opened, function: str, device: str | None = None) -> None:
    """Waits until a function was called once."""
    while opened.node.calls(function, device) == 0:
        os.sched_yield()


def test_a_hang_of_one_gpu_holds_up_neither_the_others_nor_event_sets(h100: Opened) -> None:
    events = pynvml.nvmlEventSetCreate()
    for handle in h100.handles:
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
    h100.node.hang("gpu1")
    stuck = Call(pynvml.nvmlDeviceGetPowerUsage, h100.handles[1])
    begun(h100, "nvmlDeviceGetPowerUsage", "gpu1")
    assert pynvml.nvmlDeviceGetPowerUsage(h100.handles[0]) == 72_000
    assert pynvml.nvmlDeviceGetCount() == 2
    assert code_of(pynvml.nvmlEventSetWait_v2, events, 1) == TIMEOUT
    assert not stuck.is_over
    h100.node.release()
    stuck.wait()


def test_a_lock_in_the_driver_holds_up_every_call(h100: Opened) -> None:
    h100.node.hang("gpu1", "nvmlDeviceGetPowerUsage", lock=True)
    first = Call(pynvml.nvmlDeviceGetPowerUsage, h100.handles[1])
    begun(h100, "nvmlDeviceGetPowerUsage", "gpu1")
    others = [Call(pynvml.nvmlDeviceGetPowerUsage, h100.handles[0]), Call(pynvml.nvmlDeviceGetCount)]
    begun(h100, "nvmlDeviceGetPowerUsage", "gpu0")
    assert not any(call.is_over for call in (first, *others[:1]))
    h100.node.release()
    for call in (first, *others):
        call.wait()


def test_a_crash_ends_the_process_that_calls(tmp_path: Path) -> None:
    node = EmulatedNode.create(tmp_path / "node", "1xH100")
    node.crash("gpu0", "nvmlDeviceGetPowerUsage")
    script = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
import pynvml
pynvml.nvmlInit()
pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(0))
"""
    ended = subprocess.run([sys.executable, "-c", script, str(node.nvml)], check=False)
    assert ended.returncode == -11
    assert node.gpus.driver.clients() == []


def test_texts_can_come_without_their_end(h100: Opened) -> None:
    h100.node.set_node("unterminated", 1)
    assert pynvml.nvmlDeviceGetSerial(h100.handle) == "X" * pynvml.NVML_DEVICE_SERIAL_BUFFER_SIZE


@pytest.mark.parametrize(
    ("celsius", "answered"), [(-1, 0xFFFF_FFFF), (-40, 0xFFFF_FFD8), (2**31 - 1, 2**31 - 1)]
)
def test_nonsense_is_told_as_it_stands(h100: Opened, celsius: int, answered: int) -> None:
    h100.node.set("gpu0", "gpu_temperature_celsius", celsius)
    assert pynvml.nvmlDeviceGetTemperature(h100.handle, pynvml.NVML_TEMPERATURE_GPU) == answered


def test_a_function_can_be_one_that_the_product_does_not_have(h100: Opened) -> None:
    h100.node.set_supported("nvmlDeviceGetRemappedRows", False)
    assert code_of(pynvml.nvmlDeviceGetRemappedRows, h100.handle) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(pynvml.nvmlDeviceGetRowRemapperHistogram, h100.handle) == 0


def test_a_call_that_times_out_holds_up_the_calls_for_other_gpus_and_fails(h100: Opened) -> None:
    hour_ms = 3_600_000
    number = h100.node.time_out("gpu1", "nvmlDeviceGetName", delay_ms=hour_ms, answer=TIMEOUT)
    first = Call(pynvml.nvmlDeviceGetName, h100.handles[1])
    while not h100.node.state.overrides[number].lock_process:
        os.sched_yield()
    others = [Call(pynvml.nvmlDeviceGetPowerUsage, h100.handles[0]), Call(pynvml.nvmlDeviceGetCount)]
    begun(h100, "nvmlDeviceGetPowerUsage", "gpu0")
    assert not any(call.is_over for call in (first, *others))
    h100.node.release()
    for call in (first, *others):
        call.wait()


def test_a_time_out_ends_by_itself_with_its_answer_each_time(h100: Opened) -> None:
    h100.node.time_out("gpu1", "nvmlDeviceGetName", delay_ms=20, answer=TIMEOUT, times=2)
    answers = [code_of(pynvml.nvmlDeviceGetName, h100.handles[1]) for _ in range(3)]
    assert answers == [TIMEOUT, TIMEOUT, 0]
