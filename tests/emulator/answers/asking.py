"""``python -m tests.emulator.answers.asking LIBRARY``: a process with a libdcmi that answers orders.

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
from collections.abc import Iterator, Mapping
from ctypes import byref, c_int, c_uint
from typing import Any, Final

from nodeagent.drivers.ascend import abi
from nodeagent.drivers.ascend.dcmi_calls import DcmiGeneration, Function, bind_chip_calls, bind_library_calls

CARDS: Final = 64
UNKNOWN_CARD: Final = 99
CODES: Final = 128
PROCESSES: Final = 64
DIES: Final = {"ndie": 0, "vdie": 1, "ddie": 2}
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
        self._chips_of = {each: bind_chip_calls(library, each) for each in DcmiGeneration}
        self._generation = DcmiGeneration.V1
        self._is_initialised = False
        self._received: list[list[Any]] = []
        self._callback = abi.FaultCallback(lambda event: self._received.append(_fields_of(event.contents)))

    def initialise(self) -> list[int]:
        """What v1 answers, and v2 where that does not know the chips."""
        answers = [self._calls["dcmi_init"]()]
        if answers[0] != 0:
            answers.append(self._calls["dcmiv2_init"]())
            self._generation = DcmiGeneration.V2
        self._is_initialised = answers[-1] == 0
        return answers

    @property
    def _chip(self) -> Mapping[str, Function]:
        return self._chips_of[self._generation]

    def reset(self, card: int, device: int, channel: int) -> int:
        return self._chip["reset"](*(card, device)[: self._generation.value], channel)

    def subscribe(self, times: int) -> list[int]:
        if self._generation is DcmiGeneration.V1:
            subscribe = self._calls["dcmi_subscribe_fault_event"]
            return [subscribe(ALL, ALL, abi.EventFilter(), self._callback) for _ in range(times)]
        subscribe = self._calls["dcmiv2_subscribe_fault_event"]
        return [subscribe(ALL, abi.EventFilter(), self._callback) for _ in range(times)]

    def received(self, count: int) -> list[list[Any]]:
        until_s = time.monotonic() + EVENT_LIMIT_S
        while len(self._received) < count and time.monotonic() < until_s:
            time.sleep(0.01)
        return list(self._received)

    def everything(self, cards: int, dies: int) -> Answers:
        """By the name of the call and its address: of every chip, the MCU behind them, and what is not
        there. Of a library that could not be initialised nothing: nodeagent asks nothing of it either."""
        if not self._is_initialised:
            return {}
        if self._generation is DcmiGeneration.V2:
            return self._everything_by_number(cards)
        answers: Answers = {"cards": self._cards()}
        for card in [*range(cards), UNKNOWN_CARD]:
            count = c_int(-1)
            status = self._calls["dcmi_get_device_num_in_card"](card, byref(count))
            answers[f"device_num {card}"] = [status, count.value] if status == 0 else [status]
            for device in range(dies + 2):
                is_chip = card < cards and device < dies
                for name, answer in self._of_die(card, device) if is_chip else self._of_place(card, device):
                    answers[f"{name} {card}/{device}"] = answer
        return answers

    def _everything_by_number(self, devices: int) -> Answers:
        """Of a 950, which has no cards."""
        answers: Answers = {"cards": self._devices()}
        for device in [*range(devices), devices, UNKNOWN_CARD]:
            for name, answer in self._of_chip(device) if device < devices else self._of_number(device):
                answers[f"{name} {device}"] = answer
        return answers

    def _cards(self) -> list[Any]:
        count, listed = c_int(-1), (c_int * CARDS)()
        status = self._calls["dcmi_get_card_list"](byref(count), listed, CARDS)
        return [status, sorted(listed[: count.value])] if status == 0 else [status]

    def _devices(self) -> list[Any]:
        count, listed = c_int(-1), (c_int * CARDS)()
        status = self._calls["dcmiv2_get_device_list"](listed, byref(count), CARDS)
        return [status, listed[: count.value]] if status == 0 else [status]

    def _of_place(self, card: int, device: int) -> Iterator[tuple[str, list[Any]]]:
        yield "type", self._number("type", c_int(-1), card, device)
        if card == UNKNOWN_CARD:
            yield "health", self._number("health", c_uint(7), card, device)
            yield "logic_id", self._logic_id(card, device)

    def _of_die(self, card: int, device: int) -> Iterator[tuple[str, list[Any]]]:
        yield "brother", self._number("brother", c_int(-1), card, device)
        yield "logic_id", self._logic_id(card, device)
        yield from self._of_chip(card, device)

    def _of_number(self, device: int) -> Iterator[tuple[str, list[Any]]]:
        yield "type", self._number("type", c_int(-1), device)
        yield "health", self._number("health", c_uint(7), device)
        yield "physical_id", self._physical_id(device)

    def _of_chip(self, *address: int) -> Iterator[tuple[str, list[Any]]]:
        for name in ("type", "boot_status", "network_health", "temperature", "outband_channel"):
            yield name, self._number(name, c_int(-1), *address)
        yield "health", self._number("health", c_uint(7), *address)
        for name, form, fields in (
            ("chip_info", abi.ChipInfo, ("chip_name", "npu_name", "chip_type", "aicore_cnt")),
            ("board_info", abi.BoardInfo, ("board_id", "slot_id")),
            ("pcie_info", abi.PcieInfo, ("venderid", "deviceid", "domain", "bdf_busid", "bdf_deviceid")),
        ):
            yield name, self._structure(name, form, fields, *address)
        for name, die in DIES.items():
            yield name, self._structure("die", abi.DieId, ("soc_die",), *address, die)
        yield "error_codes", self._codes(*address)
        yield "processes", self._processes(*address)
        yield "current_events", self._current_events(*address)
        if self._generation is DcmiGeneration.V2:
            yield "physical_id", self._physical_id(*address)

    def _number(self, name: str, value: Any, *address: int) -> list[Any]:
        status = self._chip[name](*address, byref(value))
        return [status, value.value] if status == 0 else [status]

    def _logic_id(self, card: int, device: int) -> list[Any]:
        logic, physical = c_int(-1), c_uint(0xFFFFFFFF)
        status = self._calls["dcmi_get_device_logic_id"](byref(logic), card, device)
        if status != 0:
            return [status]
        status = self._calls["dcmi_get_device_phyid_from_logicid"](logic.value, byref(physical))
        return [status, logic.value, physical.value] if status == 0 else [status, logic.value]

    def _physical_id(self, device: int) -> list[Any]:
        physical = c_uint(0xFFFFFFFF)
        status = self._calls["dcmiv2_get_chip_phy_id_by_dev_id"](device, byref(physical))
        return [status, physical.value] if status == 0 else [status]

    def _structure(
        self,
        name: str,
        form: type[ctypes.Structure],
        fields: tuple[str, ...],
        *address: int,
    ) -> list[Any]:
        filled = abi.with_room(form)
        status = self._chip[name](*address, byref(filled))
        return [status, *(_shown(getattr(filled, field)) for field in fields)] if status == 0 else [status]

    def _codes(self, *address: int) -> list[Any]:
        count, codes = c_int(-1), (c_uint * CODES)()
        status = self._chip["error_codes"](*address, byref(count), codes, CODES)
        return [status, *(f"{code:08X}" for code in codes[: count.value])] if status == 0 else [status]

    def _current_events(self, *address: int) -> list[Any]:
        count, events = c_int(-1), (abi.DcmiEvent * CODES)()
        status = self._chip["current_events"](*address, events, CODES, byref(count))
        return [status, *map(_fields_of, events[: count.value])] if status == 0 else [status]

    def _processes(self, *address: int) -> list[Any]:
        count, listed = c_int(PROCESSES), (abi.ProcessMemory * (2 * PROCESSES))()
        status = self._chip["processes"](*address, listed, byref(count))
        if status != 0:
            return [status]
        return [status, *([each.proc_id, each.proc_mem_usage] for each in listed[: count.value])]


def _fields_of(event: abi.DcmiEvent) -> list[Any]:
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
