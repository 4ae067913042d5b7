"""The front: it passes every call on, and changes what its lines say while a program uses it."""

import ctypes
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from nodeagent.cli.local import emulator as commands
from nodeagent.emulator.build import SOURCES
from nodeagent.emulator.layout import FieldError
from nodeagent.emulator.nvml import Front
from tests.documents import ROOT
from tests.emulator.nvml.conftest import Opened, OpenNode, point_pynvml_at
from tests.waiting import wait_until

XID = pynvml.nvmlEventTypeXidCriticalError


@pytest.fixture
def front(tmp_path: Path, open_node: OpenNode) -> Iterator[Front]:
    """In front of two H100, opened by pynvml."""
    opened = open_node("2xH100")
    front = Front.create(tmp_path / "front", opened.node.nvml)
    point_pynvml_at(ctypes.CDLL(str(front.path)))
    pynvml.nvmlInit()
    yield front
    point_pynvml_at(opened.library)


def handle(index: int) -> object:
    return pynvml.nvmlDeviceGetHandleByIndex(index)


def answer_of(ask: object, *arguments: object) -> object:
    """The value, or the number of the error."""
    try:
        return ask(*arguments)  # type: ignore[operator]
    except pynvml.NVMLError as error:
        return error.value


def field(gpu: object, number: int, scope: int = 0) -> tuple[int, int, object]:
    """nvmlReturn, type and value as a whole number, or as a double where it is one."""
    (value,) = pynvml.nvmlDeviceGetFieldValues(gpu, [(number, scope)])
    is_double = value.valueType == 0
    return value.nvmlReturn, value.valueType, value.value.dVal if is_double else value.value.uiVal


def test_without_a_line_all_is_as_behind_it(front: Front) -> None:
    gpu = handle(0)
    assert pynvml.nvmlDeviceGetCount() == 2
    assert pynvml.nvmlDeviceGetUUID(gpu).startswith("GPU-")
    assert pynvml.nvmlDeviceGetMemoryErrorCounter(gpu, 0, 1, 2) == 0
    assert pynvml.nvmlDeviceGetRemappedRows(gpu) == (0, 0, 0, 0)
    assert field(gpu, 82) == (0, 1, 41)


def test_a_function_of_one_gpu_answers_another_code_until_it_does_not(front: Front) -> None:
    first, second = handle(0), handle(1)
    front.change(["nvmlDeviceGetPersistenceMode r 3 1", "nvmlDeviceGetRemapped* r 4 0"])
    wait_until(lambda: answer_of(pynvml.nvmlDeviceGetPersistenceMode, second) == 3)
    assert answer_of(pynvml.nvmlDeviceGetPersistenceMode, first) == 1
    assert answer_of(pynvml.nvmlDeviceGetRemappedRows, first) == 4
    front.clear()
    wait_until(lambda: answer_of(pynvml.nvmlDeviceGetPersistenceMode, second) == 1)


def test_a_handle_and_the_whole_library_can_answer_another_code(front: Front) -> None:
    front.change(["nvmlDeviceGetHandleByIndex_v2 r 8 1", "nvmlDeviceGetCount_v2 r 999"])
    wait_until(lambda: answer_of(handle, 1) == 8)
    assert answer_of(pynvml.nvmlDeviceGetCount) == 999
    assert isinstance(answer_of(handle, 0), ctypes._Pointer)


def test_a_value_is_another(front: Front) -> None:
    gpu = handle(0)
    front.change(["nvmlDeviceGetNvLinkRemoteDeviceType v 0", "nvmlDeviceGetPowerUsage v 654321 0"])
    wait_until(lambda: pynvml.nvmlDeviceGetPowerUsage(gpu) == 654321)
    assert pynvml.nvmlDeviceGetPowerUsage(handle(1)) != 654321
    assert pynvml.nvmlDeviceGetNvLinkRemoteDeviceType(gpu, 3) == 0


def test_a_field_of_one_link_is_another(front: Front) -> None:
    gpu = handle(0)
    front.change(["field 165 3 0 0 1 0", "field 82 -1 0 3", "field 230 -1 0 -1", "field 185 0 0 0 0 2.5"])
    wait_until(lambda: field(gpu, 165, 3) == (0, 1, 0))
    assert field(gpu, 165, 4) == (0, 1, 1)
    assert field(gpu, 82)[0] == 3
    assert field(gpu, 185) == (0, 0, 2.5)
    assert field(gpu, 230)[:2] == (0, 0), "as pynvml sends it"
    assert field(handle(1), 82) == (0, 1, 41)


def test_the_call_for_fields_can_fail_where_none_has_a_value(front: Front) -> None:
    gpu = handle(0)
    front.change(["unpopulated 3", "field 82 -1 -1 3"])
    wait_until(lambda: answer_of(pynvml.nvmlDeviceGetFieldValues, gpu, [82]) == 3)
    assert [each.nvmlReturn for each in pynvml.nvmlDeviceGetFieldValues(gpu, [82, 165])] == [3, 0]


def waiting(gpu: object) -> object:
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(gpu, XID, events)
    return events


def next_event(events: object, limit_ms: int = 30_000) -> object:
    try:
        data = pynvml.nvmlEventSetWait_v2(events, limit_ms)
    except pynvml.NVMLError as error:
        return error.value
    uuid = pynvml.nvmlDeviceGetUUID(data.device)
    return uuid, data.eventData, data.gpuInstanceId, data.computeInstanceId


def test_an_xid_is_sent_once_to_who_registered_for_its_gpu(front: Front) -> None:
    first, second = handle(0), handle(1)
    sets = [waiting(first), waiting(second)]
    threading.Timer(0.1, lambda: front.change(["xid 1 1 79 -1 -1"])).start()
    assert next_event(sets[1]) == (pynvml.nvmlDeviceGetUUID(second), 79, 0xFFFFFFFF, 0xFFFFFFFF)
    assert [next_event(each, 100) for each in sets] == [10, 10]
    front.add(["xid 2 0 94 0 0"])
    assert next_event(sets[0])[1:] == (94, 0, 0)  # type: ignore[index]


def test_an_xid_can_reach_the_set_of_another_gpu(front: Front) -> None:
    first, second = handle(0), handle(1)
    sets = [waiting(first), waiting(second)]
    front.change(["xid 1 1 94 0 0 0"])
    assert next_event(sets[0]) == (pynvml.nvmlDeviceGetUUID(second), 94, 0, 0)
    assert next_event(sets[1], 100) == 10
    front.change(["xid 2 1 31 -1 -1 -1"])
    assert [next_event(each)[1] for each in sets] == [31, 31]  # type: ignore[index]


def test_events_of_the_library_behind_come_through(front: Front, open_node: OpenNode) -> None:
    opened = open_node("2xH100")
    front = Front.create(front.directory, opened.node.nvml)
    program = f"""
import ctypes, pynvml
ctypes.CDLL({str(front.path)!r})
pynvml.nvmlInit()
events = pynvml.nvmlEventSetCreate()
pynvml.nvmlDeviceRegisterEvents(pynvml.nvmlDeviceGetHandleByIndex(1), {XID}, events)
print("ready", flush=True)
print(pynvml.nvmlEventSetWait_v2(events, 30000).eventData)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        opened.gpus.raise_xid("gpu1", 48)
        assert other.stdout.readline() == "48\n"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("nonsense", "nonsense: the name of a function of NVML, field, unpopulated or xid is right"),
        ("nvmlDeviceGetNothing r 3", "nvmlDeviceGetNothing: NVML has no such function"),
        (
            "nvmlDeviceGetName v 3",
            "nvmlDeviceGetName has no single value that could be changed",
        ),
        ("nvmlDeviceGetPowerUsage r x", "CODE: the number of an nvmlReturn_t, such as 3, is right, not x"),
        (
            "nvmlDeviceGetPowerUsage r",
            "nvmlDeviceGetPowerUsage r CODE [GPU], nvmlDeviceGetPower",
        ),
        ("nvmlDeviceGetPowerUsage r 3 64", "GPU: its index, 0 to 63, or -1 for each, is right, not 64"),
        ("field 165 3 0", "field ID SCOPE GPU RETURN [TYPE VALUE] is right"),
        ("field 165 3 0 3 1 0", "field: a value is right only where RETURN is 0"),
        ("field 165 3 0 0 9 0", "TYPE: the number of an nvmlValueType_t, 0 (double) to 6, is right, not 9"),
        ("unpopulated 0", "CODE: the number of an nvmlReturn_t other than 0 is right, not 0"),
        ("xid 1 -1 79", "GPU: its index is right, for an Xid is of one GPU"),
        ("xid 0 1 79", "NUMBER: greater than that of the Xid before is right, such as 1, not 0"),
        ("x" * 300, "a line has at most 255 bytes and 10 words"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_changes_nothing(front: Front, line: str, wrong: str) -> None:
    front.change(["nvmlDeviceGetPowerUsage r 3 0"])
    with pytest.raises(FieldError) as refused:
        front.change(["# well", "nvmlDeviceGetPowerUsage r 4 0", line])
    assert str(refused.value).startswith(f"answers: line 3: {wrong}")
    assert front.lines == ["nvmlDeviceGetPowerUsage r 3 0"]


def test_a_file_that_is_wrong_leaves_the_lines_before_in_force(
    front: Front, capfd: pytest.CaptureFixture[str]
) -> None:
    gpu = handle(0)
    front.change(["nvmlDeviceGetPowerUsage v 1 0"])
    wait_until(lambda: pynvml.nvmlDeviceGetPowerUsage(gpu) == 1)
    (front.directory / "answers").write_text("nvmlDeviceGetPowerUsage v 2 0\nnvmlDeviceGetPowerUsage q 2\n")
    said: list[str] = []
    wait_until(lambda: pynvml.nvmlDeviceGetPowerUsage(gpu) == 1 and said_of(capfd, said))
    assert f"front: {front.directory}/answers: line 2: " in "".join(said)


def said_of(capfd: pytest.CaptureFixture[str], said: list[str]) -> bool:
    said.append(capfd.readouterr().err)
    return any("line 2" in each for each in said)


def test_all_that_the_driver_asks_is_passed_on() -> None:
    listed = set(re.findall(r"\((\w+)", (SOURCES / "nvidia_front/functions.def").read_text()))
    drivers = (ROOT / "nodeagent/drivers/nvidia").rglob("*.py")
    named = re.compile(r"pynvml\.(nvml(?:D|S|Init)\w+)")
    asked = {name for path in drivers for name in named.findall(path.read_text())}
    versions = {re.sub(r"_v\d$", "", name) for name in listed} | listed
    assert asked - versions == set()
    assert len(listed) > 400


def test_the_help_names_each_kind_of_line() -> None:
    for word in ("FUNCTION r", "FUNCTION v", "FUNCTION d", "field ID", "unpopulated", "xid NUMBER"):
        assert word in commands.LINES


def test_a_front_that_is_not_there_says_how_to_make_one(tmp_path: Path, opened: Opened) -> None:
    with pytest.raises(FieldError, match="make one with nodeagent emulator front start"):
        Front(tmp_path)
    with pytest.raises(FieldError, match="no such library"):
        Front.create(tmp_path, tmp_path / "none.so")


@pytest.fixture
def opened(open_node: OpenNode) -> Opened:
    return open_node("2xH100")
