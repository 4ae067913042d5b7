"""What a described NPU is, field by field: cards, dies, numbers, identity, and values of a chip that idles."""

from collections.abc import Mapping
from typing import Any, Final

from nodeagent.emulator.layout import LIMITS
from nodeagent.emulator.state import NO_LIE, State

_TEXTS: Final = ("chip_type", "chip_name", "chip_version", "npu_name", "product_name")
_NUMBERS: Final = ("aicore_count", "board_id", "pci_product")


def fill_npus(state: State, first: int, count: int, product: Mapping[str, Any]) -> None:
    """Describes ``count`` chips of a product from chip ``first`` on. Raises ``ValueError`` for half a card."""
    dies = product["dies"]
    if count % dies:
        raise ValueError(
            f"{count} chips: this product has {dies} on a card, so a multiple of {dies} is right"
        )
    cards = count // dies
    node = state.node
    node.generation, node.mcu_id = product["generation"], product["mcu_id"]
    node.mainboard_id = product["mainboard_id"]
    node.card_count, node.card_count_lie, node.ecc_words = cards, NO_LIE, 7
    node.dcmi_version, node.driver_version = b"24.1.0", b"24.1.0"
    # No library promises an order, so it is none that a program could rely on.
    order = [*range(cards // 2, cards), *range(cards // 2)]
    for place, card in enumerate(order):
        node.cards[place] = card
    for number in range(count):
        _fill(state.chips[first + number], number, dies, product)


def _fill(chip: Any, number: int, dies: int, product: Mapping[str, Any]) -> None:
    chip.kind, chip.present, chip.ready = LIMITS["KIND_NPU"], 1, 1
    chip.card_id, chip.device_id = divmod(number, dies)
    chip.logic_id = chip.physical_id = number
    chip.brother_card_id = chip.card_id ^ 1 if product.get("brothers") else -1
    chip.chip_slot, chip.slot_id = chip.device_id, chip.card_id
    chip.pci_bus, chip.pci_vendor = 0x01 + 4 * number, 0x19E5
    chip.pci_subvendor, chip.pci_subproduct = 0x0200, 0x0100
    for name in _TEXTS:
        setattr(chip, name, product[name].encode())
    for name in _NUMBERS:
        setattr(chip, name, product[name])
    chip.serial = f"2102315{chip.card_id:09d}".encode()
    chip.model, chip.manufacturer, chip.manufactured = b"emulated", b"Huawei", b"2025-06-01"
    set_die(chip, 0x1000 + number)
    chip.code_count_lie = chip.health_lie = NO_LIE


def set_die(chip: Any, seed: int) -> None:
    """Gives the chip another die: five words that no other seed gives."""
    for word in range(5):
        chip.vdie[word] = (seed * 0x9E3779B1 + word * 0x85EBCA6B) & 0xFFFFFFFF
        chip.ndie[word] = (seed * 0xC2B2AE35 + word * 0x27D4EB2F) & 0xFFFFFFFF
