"""Event sets: Xids and recovery actions reach whoever registered for them, at once, once, and in order."""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nodeagent.emulator.gpus import EVENT_DOUBLE_BIT_ECC, EVENT_RECOVERY_ACTION, EVENT_XID, Gpus
from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.node import EmulatedNode
from tests.emulator.nvml.conftest import Opened
from tests.emulator.nvml_codes import code_of

NOT_NOW_MS = 0
LONG_MS = 60_000
TIMEOUT = pynvml.NVML_ERROR_TIMEOUT
LOST = pynvml.NVML_ERROR_GPU_IS_LOST


def registered(opened: Opened, types: int = EVENT_XID) -> Any:
    """A new event set for these types of every GPU."""
    events = pynvml.nvmlEventSetCreate()
    for handle in opened.handles:
        pynvml.nvmlDeviceRegisterEvents(handle, types, events)
    return events


def take(events: Any, timeout_ms: int = NOT_NOW_MS) -> tuple[int, int, int]:
    """The next event: index of the GPU, type, data."""
    received = pynvml.nvmlEventSetWait_v2(events, timeout_ms)
    return pynvml.nvmlDeviceGetIndex(received.device), received.eventType, received.eventData


def during_a_wait(events: Any, happen: Callable[[], object]) -> int | tuple[int, int, int]:
    """What a wait that began before something happens receives: the event, or the error."""
    received: list[int | tuple[int, int, int]] = []

    def wait() -> None:
        try:
            received.append(take(events, LONG_MS))
        except pynvml.NVMLError as error:
            received.append(int(error.value))

    waiting = threading.Thread(target=wait)
    waiting.start()
    happen()
    waiting.join(timeout=30)
    assert received, "the wait went on"
    return received[0]


def test_an_xid_wakes_whoever_waits(h100: Opened) -> None:
    events = registered(h100)
    assert during_a_wait(events, lambda: h100.gpus.raise_xid("gpu1", 79)) == (1, EVENT_XID, 79)


def test_events_that_came_before_the_wait_are_told_in_their_order(h100: Opened) -> None:
    events = registered(h100)
    for device, xid in (("gpu0", 63), ("gpu1", 94), ("gpu0", 154)):
        h100.gpus.raise_xid(device, xid)
    assert [take(events) for _ in range(3)] == [(0, EVENT_XID, 63), (1, EVENT_XID, 94), (0, EVENT_XID, 154)]
    assert code_of(take, events) == TIMEOUT


def test_what_happened_before_registering_is_not_told(h100: Opened) -> None:
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(h100.handles[0], EVENT_XID, events)
    h100.gpus.raise_xid("gpu1", 79)
    pynvml.nvmlDeviceRegisterEvents(h100.handles[1], EVENT_XID, events)
    assert code_of(take, events) == TIMEOUT


def test_only_registered_types_of_registered_gpus_are_told(h100: Opened) -> None:
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(h100.handles[0], EVENT_DOUBLE_BIT_ECC, events)
    h100.gpus.raise_xid("gpu0", 48)
    h100.gpus.post("gpu1", EVENT_DOUBLE_BIT_ECC, 1)
    h100.gpus.post("gpu0", EVENT_DOUBLE_BIT_ECC, 2)
    assert take(events) == (0, EVENT_DOUBLE_BIT_ECC, 2)
    assert code_of(take, events) == TIMEOUT


def test_every_event_set_is_told_every_event(h100: Opened) -> None:
    sets = [registered(h100), registered(h100)]
    h100.gpus.raise_xid("gpu0", 13)
    assert [take(events) for events in sets] == [(0, EVENT_XID, 13)] * 2


def test_a_recovery_action_has_an_event_and_an_xid(h100: Opened) -> None:
    events = registered(h100, EVENT_XID | EVENT_RECOVERY_ACTION)
    h100.gpus.set_recovery_action("gpu1", pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET)
    assert [take(events), take(events)] == [(1, EVENT_RECOVERY_ACTION, 1), (1, EVENT_XID, 154)]


def test_types_that_a_product_does_not_have_cannot_be_registered(a100: Opened) -> None:
    events = pynvml.nvmlEventSetCreate()
    supported = pynvml.nvmlDeviceGetSupportedEventTypes(a100.handle)
    assert supported & EVENT_XID
    assert not supported & EVENT_RECOVERY_ACTION
    register = pynvml.nvmlDeviceRegisterEvents
    wanted = EVENT_XID | EVENT_RECOVERY_ACTION
    assert code_of(register, a100.handle, wanted, events) == pynvml.NVML_ERROR_NOT_SUPPORTED
    assert code_of(register, a100.handle, 0, events) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    a100.gpus.raise_xid("gpu0", 79)
    assert code_of(take, events) == TIMEOUT


def test_a_lost_gpu_is_told_after_the_events_that_were_still_to_come(h100: Opened) -> None:
    events = registered(h100)
    h100.gpus.raise_xid("gpu1", 79)
    h100.gpus.lose("gpu1")
    received = pynvml.nvmlEventSetWait_v2(events, NOT_NOW_MS)
    assert received.eventData == 79
    assert ctypes.cast(received.device, ctypes.c_void_p).value == (
        ctypes.cast(h100.handles[1], ctypes.c_void_p).value
    )
    assert code_of(take, events) == LOST
    h100.gpus.raise_xid("gpu0", 31)
    assert take(events) == (0, EVENT_XID, 31)


def test_a_driver_can_be_one_that_says_nothing_of_a_lost_gpu(h100: Opened) -> None:
    events = registered(h100)
    h100.node.set_node("gpu_wait_answers_lost", 0)
    h100.gpus.lose("gpu1")
    assert code_of(take, events) == TIMEOUT


@pytest.mark.parametrize(
    ("happen", "answer"),
    [
        (lambda opened, _: opened.gpus.lose("gpu0"), LOST),
        (lambda opened, _: opened.gpus.driver.unload(), pynvml.NVML_ERROR_DRIVER_NOT_LOADED),
        (lambda _, events: pynvml.nvmlEventSetFree(events), pynvml.NVML_ERROR_INVALID_ARGUMENT),
        (lambda *_: pynvml.nvmlShutdown(), pynvml.NVML_ERROR_UNINITIALIZED),
    ],
    ids=["gpu lost", "driver unloaded", "set freed", "library closed"],
)
def test_a_wait_ends_when_there_is_nothing_left_to_wait_for(
    h100: Opened, happen: Callable[[Opened, Any], object], answer: int
) -> None:
    events = registered(h100)
    assert during_a_wait(events, lambda: happen(h100, events)) == answer


def test_a_freed_set_is_no_set_any_more(h100: Opened) -> None:
    events = registered(h100)
    pynvml.nvmlEventSetFree(events)
    assert code_of(take, events) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert code_of(pynvml.nvmlEventSetFree, events) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_sets_are_limited_and_end_with_the_session(h100: Opened) -> None:
    sets = [pynvml.nvmlEventSetCreate() for _ in range(64)]
    assert len(sets) == 64
    assert code_of(pynvml.nvmlEventSetCreate) == pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    pynvml.nvmlEventSetCreate()
    assert [client.event_sets for client in h100.gpus.driver.clients()] == [1]


def test_who_falls_behind_is_told_the_newest_events(h100: Opened) -> None:
    events = registered(h100)
    ring = LIMITS["EVENTS"]
    for number in range(ring + 10):
        h100.gpus.post("gpu0", EVENT_XID, number)
    assert take(events) == (0, EVENT_XID, 10)


def test_another_process_is_told_as_well(tmp_path: Path) -> None:
    node = EmulatedNode.create(tmp_path / "node", "1xH100")
    script = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
import pynvml
pynvml.nvmlInit()
events = pynvml.nvmlEventSetCreate()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
pynvml.nvmlDeviceRegisterEvents(gpu, pynvml.nvmlEventTypeXidCriticalError, events)
print("waiting", flush=True)
print(pynvml.nvmlEventSetWait_v2(events, 60000).eventData)
"""
    command = [sys.executable, "-c", script, str(node.nvml)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiter:
        assert waiter.stdout is not None
        assert waiter.stdout.readline() == "waiting\n"
        Gpus(node.state, node.nvml).raise_xid("gpu0", 79)
        assert waiter.stdout.readline() == "79\n"
