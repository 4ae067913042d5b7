"""``python -m tests.compare_dcmi.asking LIBRARY``: a process with a libdcmi that answers orders.

An order is a line of JSON on stdin, and so is its answer on stdout. ``{"ask": DIES, "cards": CARDS}`` asks
every call about what a chip is and how it is, of every address there could be; ``{"reset": [CARD, DEVICE,
CHANNEL]}`` resets. ``{"subscribe": TIMES}`` subscribes to the events of all chips so often, and ``{"heard":
COUNT}`` lists those that have come, once there are so many or none comes any more. An answer is the library's
status, and what it left where that is 0.
"""

import ctypes
import json
import sys
import time
from collections.abc import Iterator
from ctypes import byref, c_int, c_uint
from typing import Any, Final

from nodeagent.drivers.ascend.library import abi
from nodeagent.drivers.ascend.library.functions import Generation, bind_chip_calls, bind_library_calls

CARDS: Final = 64
UNKNOWN_CARD: Final = 99
CODES: Final = 128
PROCESSES: Final = 64
VDIE: Final = 1
ALL: Final = -1
EVENT_LIMIT_S: Final = 2.0

EVENT_FIELDS: Final = (
    "deviceid",
    "node_type",
    "node_id",
    "sub_node_type",
    "sub_node_id",
    "severity",
    "assertion",
    "event_serial_num",
    "notify_serial_num",
    "event_name",
    "additional_info",
    "os_id",
    "node_type_ex",
    "sub_node_type_ex",
)

Answers = dict[str, Any]


class Asked:
    """One library, as each process has it."""

    def __init__(self, path: str) -> None:
        library = ctypes.CDLL(path)
        self._calls = bind_library_calls(library)
        self._chip = bind_chip_calls(library, Generation.V1)
        self._received: list[list[Any]] = []
        self._callback = abi.FaultCallback(lambda event: self._received.append(_fields_of(event.contents)))

    def initialise(self) -> int:
        return self._calls["dcmi_init"]()

    def reset(self, card: int, device: int, channel: int) -> int:
        return self._chip["reset"](card, device, channel)

    def subscribe(self, times: int) -> list[int]:
        subscribe = self._calls["dcmi_subscribe_fault_event"]
        return [subscribe(ALL, ALL, abi.EventFilter(), self._callback) for _ in range(times)]

    def received(self, count: int) -> list[list[Any]]:
        until_s = time.monotonic() + EVENT_LIMIT_S
        while len(self._received) < count and time.monotonic() < until_s:
            time.sleep(0.01)
        return list(self._received)

    def everything(self, cards: int, dies: int) -> Answers:
        """By the name of the call and its address: of every chip, the MCU behind them, and what is not
        there."""
        answers: Answers = {"cards": self._cards()}
        for card in [*range(cards), UNKNOWN_CARD]:
            count = c_int(-1)
            status = self._calls["dcmi_get_device_num_in_card"](card, byref(count))
            answers[f"device_num {card}"] = [status, count.value] if status == 0 else [status]
            for device in range(dies + 2):
                is_chip = card < cards and device < dies
                for name, answer in (
                    self._of_device(card, device) if is_chip else self._of_place(card, device)
                ):
                    answers[f"{name} {card}/{device}"] = answer
        return answers

    def _cards(self) -> list[Any]:
        count, listed = c_int(-1), (c_int * CARDS)()
        status = self._calls["dcmi_get_card_list"](byref(count), listed, CARDS)
        return [status, sorted(listed[: count.value])] if status == 0 else [status]

    def _of_place(self, card: int, device: int) -> Iterator[tuple[str, list[Any]]]:
        yield "type", self._number("type", c_int(-1), card, device)
        if card == UNKNOWN_CARD:
            yield "health", self._number("health", c_uint(7), card, device)
            yield "logic_id", self._logic_id(card, device)

    def _of_device(self, card: int, device: int) -> Iterator[tuple[str, list[Any]]]:
        for name in ("type", "boot_status", "network_health", "temperature", "brother", "outband_channel"):
            yield name, self._number(name, c_int(-1), card, device)
        yield "health", self._number("health", c_uint(7), card, device)
        yield "logic_id", self._logic_id(card, device)
        for name, form, fields in (
            ("chip_info", abi.ChipInfo, ("chip_name", "npu_name", "chip_type", "aicore_cnt")),
            ("board_info", abi.BoardInfo, ("board_id", "slot_id")),
            ("pcie_info", abi.PcieInfo, ("venderid", "deviceid", "domain", "bdf_busid", "bdf_deviceid")),
        ):
            yield name, self._structure(name, form, fields, card, device)
        yield "die", self._structure("die", abi.DieId, ("soc_die",), card, device, VDIE)
        yield "error_codes", self._codes(card, device)
        yield "processes", self._processes(card, device)
        yield "current_events", self._current_events(card, device)

    def _number(self, name: str, value: Any, card: int, device: int) -> list[Any]:
        status = self._chip[name](card, device, byref(value))
        return [status, value.value] if status == 0 else [status]

    def _logic_id(self, card: int, device: int) -> list[Any]:
        logic, physical = c_int(-1), c_uint(0xFFFFFFFF)
        status = self._calls["dcmi_get_device_logic_id"](byref(logic), card, device)
        if status != 0:
            return [status]
        status = self._calls["dcmi_get_device_phyid_from_logicid"](logic.value, byref(physical))
        return [status, logic.value, physical.value] if status == 0 else [status, logic.value]

    def _structure(
        self,
        name: str,
        form: type[ctypes.Structure],
        fields: tuple[str, ...],
        card: int,
        device: int,
        *selectors: int,
    ) -> list[Any]:
        filled = abi.with_room(form)
        status = self._chip[name](card, device, *selectors, byref(filled))
        return [status, *(_shown(getattr(filled, field)) for field in fields)] if status == 0 else [status]

    def _codes(self, card: int, device: int) -> list[Any]:
        count, codes = c_int(-1), (c_uint * CODES)()
        status = self._chip["error_codes"](card, device, byref(count), codes, CODES)
        return [status, *(f"{code:08X}" for code in codes[: count.value])] if status == 0 else [status]

    def _current_events(self, card: int, device: int) -> list[Any]:
        count, events = c_int(-1), (abi.Event * CODES)()
        status = self._chip["current_events"](card, device, events, CODES, byref(count))
        return [status, *map(_fields_of, events[: count.value])] if status == 0 else [status]

    def _processes(self, card: int, device: int) -> list[Any]:
        count, listed = c_int(PROCESSES), (abi.ProcessMemory * (2 * PROCESSES))()
        status = self._chip["processes"](card, device, listed, byref(count))
        if status != 0:
            return [status]
        return [status, *([each.proc_id, each.proc_mem_usage] for each in listed[: count.value])]


def _fields_of(event: abi.Event) -> list[Any]:
    """Without its time."""
    fault = event.event_t
    return [event.type, f"{fault.event_id:08X}", *(_shown(getattr(fault, name)) for name in EVENT_FIELDS)]


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return abi.text(value)
    return list(value) if isinstance(value, ctypes.Array) else value


def main() -> None:
    asked = Asked(sys.argv[1])
    print(json.dumps(asked.initialise()), flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(asked, json.loads(line))), flush=True)


def _answer(asked: Asked, order: dict[str, Any]) -> Any:
    if "reset" in order:
        return asked.reset(*order["reset"])
    if "subscribe" in order:
        return asked.subscribe(order["subscribe"])
    if "heard" in order:
        return asked.received(order["heard"])
    return asked.everything(order["cards"], order["ask"])


if __name__ == "__main__":
    main()
