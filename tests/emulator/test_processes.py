"""Which processes the doubles of the vendors' libraries list on a chip, and until when."""

import ctypes
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nodeagent.emulator.control.server import answer_line
from nodeagent.emulator.layout import FieldError
from nodeagent.emulator.node import EmulatedNode

MakeNode = Callable[[str], EmulatedNode]
Process = subprocess.Popen[bytes]
NO_PROCESS = 10_000_000
"""Above the greatest pid that the kernel gives."""


class _OfNpu(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_int), ("memory", ctypes.c_ulong))


class _OfGpu(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("memory", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2))


@pytest.fixture
def process() -> Iterator[Process]:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


def on_npu(node: EmulatedNode) -> list[int]:
    listed, count = (_OfNpu * 64)(), ctypes.c_int()
    library = ctypes.CDLL(str(node.dcmi))
    assert library.dcmi_get_device_resource_info(0, 0, listed, ctypes.byref(count)) == 0
    return [each.pid for each in listed[: count.value]]


def on_gpu(node: EmulatedNode) -> list[int]:
    listed, count, device = (_OfGpu * 64)(), ctypes.c_uint(64), ctypes.c_void_p()
    library = ctypes.CDLL(str(node.nvml))
    assert library.nvmlInit_v2() == 0
    assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    assert library.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), listed) == 0
    return [each.pid for each in listed[: count.value]]


LISTED = pytest.mark.parametrize(
    ("description", "device", "listed"),
    [("8x910B", "npu0", on_npu), ("8xH100", "gpu0", on_gpu)],
    ids=["npu", "gpu"],
)


@LISTED
def test_a_real_process_is_on_the_chip_until_it_ends_also_where_nobody_has_waited_for_it(
    make_node: MakeNode,
    process: Process,
    description: str,
    device: str,
    listed: Callable[[EmulatedNode], list[int]],
) -> None:
    node = make_node(description)
    node.hold(device, NO_PROCESS)
    node.hold(device, process.pid, is_real=True)
    node.hold(device, NO_PROCESS + 1)
    held = listed(node)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert held == [NO_PROCESS, process.pid, NO_PROCESS + 1]
    assert listed(node) == [NO_PROCESS, NO_PROCESS + 1]


@LISTED
def test_the_node_shows_who_is_on_a_chip_and_has_not_ended(
    make_node: MakeNode,
    process: Process,
    description: str,
    device: str,
    listed: Callable[[EmulatedNode], list[int]],
) -> None:
    node = make_node(description)
    order = {"do": "hold", "device": device, "process": process.pid, "real": True}
    answer_line(node, json.dumps(order).encode())
    before = shown(node, device)
    process.kill()
    process.wait()

    assert before == [process.pid]
    assert shown(node, device) == []


def test_a_process_that_has_ended_is_refused_as_a_real_one(make_node: MakeNode) -> None:
    with pytest.raises(FieldError, match=f"^process: {NO_PROCESS} does not run$"):
        make_node("8x910B").hold("npu0", NO_PROCESS, is_real=True)


def shown(node: EmulatedNode, device: str) -> Any:
    devices = json.loads(answer_line(node, b'{"do":"show"}'))["ok"]["devices"]
    return next(each["processes"] for each in devices if each["device"] == device)
