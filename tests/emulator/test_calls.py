"""What can be done to calls: counted, refused, made to hang, crashed, taken out of the library."""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeagent.emulator.layout import NoSuchFunction
from nodeagent.emulator.node import EmulatedNode
from tests.waiting import wait_until

MakeNode = Callable[[str], EmulatedNode]
CALLER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
health = ctypes.c_uint()
print("ready", flush=True)
for card in sys.stdin:
    print(library.dcmi_get_device_health(int(card), 0, ctypes.byref(health)), flush=True)
"""


def health(node: EmulatedNode, card: int) -> int:
    """The answer of a call in this process."""
    return int(ctypes.CDLL(str(node.dcmi)).dcmi_get_device_health(card, 0, ctypes.byref(ctypes.c_uint())))


@contextmanager
def caller(node: EmulatedNode) -> Iterator["subprocess.Popen[str]"]:
    """A process that asks for the health of each card that it is given."""
    with subprocess.Popen(
        [sys.executable, "-c", CALLER, node.dcmi], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def ask(process: "subprocess.Popen[str]", card: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{card}\n")
    process.stdin.flush()


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_for_calls(node: EmulatedNode, function: str, count: int) -> None:
    """Until so many calls have begun."""
    wait_until(lambda: node.calls(function) >= count, f"{count} calls of {function}")


def test_calls_are_counted_by_function_and_chip(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    for card in (3, 3, 5):
        health(node, card)

    counted = [node.calls("dcmi_get_device_health", device) for device in ("npu3", "npu5", "npu0")]
    assert (counted, node.calls("dcmi_set_device_reset")) == ([2, 1, 0], 0)


def test_an_answer_is_given_so_many_times_after_so_many_calls(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.answer(-8006, "npu3", "dcmi_get_device_*", times=2, skip=1)

    assert [health(node, 3) for _ in range(5)] == [0, -8006, -8006, 0, 0]
    assert health(node, 4) == 0


def test_a_call_hangs_until_it_is_released_while_other_chips_answer(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    number = node.hang("npu5")
    with caller(node) as process:
        ask(process, 5)
        wait_for_calls(node, "dcmi_get_device_health", 1)
        assert health(node, 4) == 0

        node.release(number)
        assert answer(process) == "0"


def test_a_hang_can_be_in_state_d(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.hang("npu5", uninterruptibly=True)
    with caller(node) as process:
        ask(process, 5)
        status = Path(f"/proc/{process.pid}/stat")
        pause = threading.Event()
        while status.read_text().rpartition(")")[2].split()[0] != "D":
            pause.wait(0.002)

        node.release()
        assert answer(process) == "0"


def test_the_lock_of_the_driver_stops_every_process_and_goes_with_its_holder(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.hang("npu5", lock=True)
    with caller(node) as other:
        with caller(node) as holder:
            ask(holder, 5)
            wait_for_calls(node, "dcmi_get_device_health", 1)
            ask(other, 2)
            wait_for_calls(node, "dcmi_get_device_health", 2)
            assert node.state.overrides[0].lock_process == holder.pid
        ask(other, 3)
        node.release()

        assert (answer(other), answer(other)) == ("0", "0")


def test_the_lock_of_one_vendor_s_driver_stops_no_other_vendor_s(make_node: MakeNode) -> None:
    node = make_node("8x910B+8xH100")
    node.hang("npu5", lock=True)
    with caller(node) as holder:
        ask(holder, 5)
        wait_for_calls(node, "dcmi_get_device_health", 1)

        assert ctypes.CDLL(str(node.nvml)).nvmlInit_v2() == 0


def test_a_crash_ends_the_process_that_calls(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.crash("npu1", signal_number=6)
    with caller(node) as process:
        ask(process, 0)
        assert answer(process) == "0"
        ask(process, 1)
        assert process.wait(timeout=60) == -6


def test_a_chip_that_dropped_is_listed_and_not_ready(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.drop("npu3")
    assert health(node, 3) == -8012

    node.return_("npu3")
    node.take_out("npu4")
    assert (health(node, 3), health(node, 4)) == (0, -8001)


def test_a_function_can_be_missing_and_not_only_unsupported(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    node.without("dcmiv2_*", "dcmi_get_driver_version")
    library = ctypes.CDLL(str(node.dcmi))

    assert not hasattr(library, "dcmiv2_init")
    assert not hasattr(library, "dcmi_get_driver_version")
    assert library.dcmi_init() == 0
    with pytest.raises(NoSuchFunction, match=r"libdcmi\.so has no function dcmi_get_driver_version"):
        node.without("dcmi_get_driver_version")


def test_every_exported_function_has_its_row_of_products(make_node: MakeNode) -> None:
    node = make_node("8x910B")
    printed = subprocess.run(
        ["nm", "-D", "--defined-only", node.dcmi], check=True, capture_output=True, text=True
    ).stdout

    rows = {slot.name.decode() for slot in node.state.functions if slot.used}
    assert {line.split()[-1] for line in printed.splitlines()} == rows


def test_a_library_without_a_node_beside_it_says_so(make_node: MakeNode, tmp_path: Path) -> None:
    node = make_node("8x910B")
    alone = tmp_path / "libdcmi.so"
    alone.write_bytes(node.dcmi.read_bytes())

    assert ctypes.CDLL(str(alone)).dcmi_init() == -8005
