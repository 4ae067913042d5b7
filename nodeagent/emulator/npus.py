"""The NPUs of an emulated node: the fields of each, its active faults, and the events that subscribers
receive.
"""

import socket
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.state import NO_LIE, EmulatorState

SUPPORT: Final[Mapping[str, frozenset[str]]] = {
    function: frozenset(row["products"])
    for row in tomllib.loads((Path(__file__).parent / "npu_functions.toml").read_text())["calls"]
    for function in row["functions"]
}
"""Function of ``libdcmi.so`` -> the products that have it."""

BROTHER_OFFSET: Final = 4
"""``BRO_CARD_OFFSET``."""

_TEXTS: Final = ("chip_type", "chip_name", "chip_version", "npu_name", "product_name")
_NUMBERS: Final = ("aicore_count", "board_id", "pci_product")
_NO_VALUE: Final = LIMITS["NO_VALUE"]
_IDLE: Final = {
    "temperature_celsius": 41,
    "power_deciwatts": 935,
    "card_power_deciwatts": 1900,
    "voltage_centivolts": 85,
    "pod_type": 1,
    "reset_heals": 1,
    "reset_ends": 1,
    "reset_ms": 3000,
    "outband_state": _NO_VALUE,
    "code_count_lie": NO_LIE,
    "health_lie": NO_LIE,
    "process_count_lie": NO_LIE,
}
_IDLE_TEXTS: Final = {
    "cpu_affinity": b"0-23",
    "model": b"emulated",
    "manufacturer": b"Huawei",
    "manufactured": b"2025-06-01",
}
_FREQUENCIES: Final = {
    "core": {2: 1900, 7: 800, 9: 1800},
    "vector": {12: 800},
    "hbm": {6: 1600},
    "ddr": {1: 2000},
}
_UTILIZATIONS: Final = {"core": (2, 3, 4, 13), "vector": (12, 14), "hbm": (6, 10), "ddr": (1, 5)}
_ECC: Final[Mapping[str, tuple[int, ...]]] = {"core": (), "vector": (), "hbm": (2,), "ddr": (0,)}


def matching(function: str) -> list[str]:
    """The functions of ``libdcmi.so`` that a name means; ``*`` at its end: all that begin so."""
    beginning = function.removesuffix("*")
    return [name for name in SUPPORT if name.startswith(beginning)] if function != beginning else [function]


def fill_npus(state: EmulatorState, first: int, count: int, product: Mapping[str, Any]) -> None:
    """Describes ``count`` chips of a product from ``first`` on. Raises ``ValueError`` for half a card."""
    dies = product["dies"]
    if count % dies:
        raise ValueError(f"{count} chips: a card has {dies}, so a multiple of {dies} is right")
    cards = count // dies
    node = state.node
    node.generation, node.mcu_id = product["generation"], product["mcu_id"]
    node.mainboard_id = product["mainboard_id"]
    node.card_count, node.card_count_lie, node.ecc_words = cards, NO_LIE, 7
    node.dcmi_version, node.driver_version = b"24.1.0", b"24.1.0"
    node.fabric_fault_count_lie, node.fabric_poll_ms = NO_LIE, 300
    for card in range(cards):
        node.cards[card] = card
    for number in range(count):
        chip = state.chips[first + number]
        _identify(chip, number, dies, product)
        _let_idle(chip, product)
        _connect(chip, number, product)
    for function, products in SUPPORT.items():
        state.function(function).unsupported = int(product["support"] not in products)


def _identify(chip: Any, number: int, dies: int, product: Mapping[str, Any]) -> None:
    chip.kind, chip.present, chip.ready = LIMITS["KIND_NPU"], 1, 1
    chip.card_id, chip.device_id = divmod(number, dies)
    chip.logic_id = chip.physical_id = number
    chip.brother_card_id = _brother_of(chip.card_id) if product.get("brothers") else -1
    chip.chip_slot, chip.slot_id = chip.device_id, chip.card_id
    chip.pci_bus, chip.pci_vendor = 0x01 + 4 * number, 0x19E5
    chip.pci_subvendor, chip.pci_subproduct = 0x0200, 0x0100
    for name in _TEXTS:
        setattr(chip, name, product[name].encode())
    for name in _NUMBERS:
        setattr(chip, name, product[name])
    chip.serial = f"2102315{chip.card_id:09d}".encode()
    set_die(chip, 0x1000 + number)
    groups = {
        "board": 0,
        "card": chip.card_id,
        "card+brother": min(chip.card_id, _brother_of(chip.card_id)),
        "chip": number,
    }
    chip.reset_group = groups[product["group"]]
    chip.reset_first_die_only = int(product.get("first_die_only", False))


def _brother_of(card: int) -> int:
    """The card that shares a card's network (``dcmi_get_netdev_brother_device`` of the vendor's library)."""
    return card - BROTHER_OFFSET if card >= BROTHER_OFFSET else card + BROTHER_OFFSET


def set_die(chip: Any, seed: int) -> None:
    """Gives the chip another die: five numbers that no other seed gives."""
    for word in range(5):
        chip.vdie[word] = (seed * 0x9E3779B1 + word * 0x85EBCA6B) & 0xFFFFFFFF


def _let_idle(chip: Any, product: Mapping[str, Any]) -> None:
    for name, value in (_IDLE | _IDLE_TEXTS).items():
        setattr(chip, name, value)
    for values in (chip.frequency_mhz, chip.utilization_percent, chip.ecc_enabled):
        for place in range(len(values)):
            values[place] = _NO_VALUE
    for part in product["parts"]:
        for place, megahertz in _FREQUENCIES[part].items():
            chip.frequency_mhz[place] = megahertz
        for place in _UTILIZATIONS[part]:
            chip.utilization_percent[place] = 0
        for place in _ECC[part]:
            chip.ecc_enabled[place] = 1
    if "hbm" in product["parts"]:
        chip.hbm_size_mb, chip.hbm_used_mb = product["memory_mb"], 3072
        chip.hbm_frequency_mhz, chip.hbm_temperature_celsius = 1600, 39
    else:
        chip.memory_size_mb, chip.memory_available_mb = product["memory_mb"], product["memory_mb"] - 1024
        chip.memory_frequency_mhz, chip.memory_utilization_percent = 2000, 2


def _connect(chip: Any, number: int, product: Mapping[str, Any]) -> None:
    chip.ip_address = int.from_bytes(socket.inet_aton(f"192.0.2.{number + 1}"), "little")
    chip.ip_mask = int.from_bytes(socket.inet_aton("255.255.255.0"), "little")
    links = product["links"]
    chip.hccs_hdlc_status = 3 if "hccs" in links else _NO_VALUE
    chip.sio_sent_errors = 0 if "sio" in links else _NO_VALUE
    chip.pod_device_id, chip.pod_size = (number, 384) if "pod" in links else (_NO_VALUE, 0)
    if product.get("outband"):
        chip.outband_state = 1
    if product["generation"] == 2:
        chip.ub_link_status = 1
        for port in (4, 5, 6):
            chip.ub_ports[port] = 1
        chip.urma_device_count, chip.urma_ids_per_device = 1, 2


RECOVER: Final = 0
OCCUR: Final = 1
ONCE: Final = 2
"""The vendor's assertions."""


@dataclass(frozen=True, slots=True)
class NpuFault:
    """``severity`` is the library's: 0 suggestion, 1 minor, 2 major, 3 critical; ``part`` the number of the
    part of the chip that has it, such as a port.
    """

    code: int
    severity: int = 2
    name: str = ""
    part: int = 0

    @property
    def text(self) -> bytes:
        return (self.name or f"fault {self.code:08X}").encode()


class TooManyFaults(ValueError):
    """There is no room for another fault of this chip."""


def standing(state: EmulatorState, chip: int) -> list[NpuFault]:
    """The active faults of a chip, oldest first."""
    rows = state.standing[chip][: state.chips[chip].code_count]
    return [NpuFault(row.code, row.severity, row.name.decode(), row.part) for row in rows]


def add_active_fault(state: EmulatorState, chip: int, fault: NpuFault) -> None:
    """Makes a fault active; an active one of that code and part stays as it is. Raises
    ``TooManyFaults``.
    """
    with state.locked():
        count = int(state.chips[chip].code_count)
        if any((row.code, row.part) == (fault.code, fault.part) for row in state.standing[chip][:count]):
            return
        if count == LIMITS["CODES"]:
            raise TooManyFaults(f"{count} faults are active on this chip already: clear some first")
        row: Any = state.standing[chip][count]
        row.part = fault.part
        row.code, row.severity, row.name = fault.code, fault.severity, fault.text[: LIMITS["NAME"] - 1]
        row.serial, row.raised_ms = state.node.next_serial + 1, time.time_ns() // 1_000_000
        state.chips[chip].code_count = count + 1


def remove_active_fault(state: EmulatorState, chip: int, code: int, part: int = 0) -> NpuFault:
    """Ends a fault and returns it; if none is active, one as it could have been."""
    removed = NpuFault(code, part=part)
    with state.locked():
        rows, kept = state.standing[chip], 0
        for place in range(state.chips[chip].code_count):
            if (rows[place].code, rows[place].part) == (code, part):
                removed = NpuFault(code, rows[place].severity, rows[place].name.decode(), part)
                continue
            if kept != place:
                rows[kept] = rows[place]
            kept += 1
        state.chips[chip].code_count = kept
    return removed


def send_event(
    state: EmulatorState, chip: int, fault: NpuFault, assertion: int, device_id: int | None = None
) -> None:
    """Sends it to subscribers, whatever is active. ``device_id``: instead of the chip's own number."""
    with state.locked():
        state.post(
            library=LIMITS["LIBRARY_DCMI"],
            chip=chip,
            code=fault.code,
            part=fault.part,
            assertion=assertion,
            device_id_lie=NO_LIE if device_id is None else device_id,
            severity=fault.severity,
            name=fault.text[: LIMITS["TEXT"] - 1],
            unterminated=state.node.unterminated,
        )
