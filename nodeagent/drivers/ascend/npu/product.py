"""Which series of NPUs a chip is of, as the vendor's library itself decides: by its PCI device. Pure.

The name that a chip gives does not: the library calls an A3 "Ascend910" (``dcmi_copy_npu_chip_name_v2`` of
dcmi_inner_info_get.c), which is the older 910's name too. Where PCI cannot be read an A3 is known by its
board, as MindCluster knows it (``Is910A3Chip`` of ascend-common/devmanager/common/utils.go), any other by its
name.
"""

from enum import StrEnum
from typing import Final


class Series(StrEnum):
    """What decides with which others a chip is reset."""

    ASCEND_310 = "310"
    ASCEND_910 = "910"
    ASCEND_910B = "910B"
    A3 = "A3"
    ASCEND_950 = "950"


BY_PCI_DEVICE: Final = {
    0xD100: Series.ASCEND_310,
    0xD105: Series.ASCEND_310,
    0xD500: Series.ASCEND_310,
    0xD801: Series.ASCEND_910,
    0xD802: Series.ASCEND_910B,
    0xD803: Series.A3,
    0xD806: Series.ASCEND_950,
}
"""``chip_info_table`` of the vendor's dcmi_init_basic.c."""

A3_BOARDS: Final = frozenset({0x81, 0x83, 0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xD1, 0xD3})
"""``a3BoardIds`` of MindCluster's devmanager/common/constants.go."""

NAME_OF_TWO: Final = "Ascend910"
"""The name of a 910, and of an A3."""

_BY_NAME: Final = (
    ("910_93", Series.A3),
    ("910B", Series.ASCEND_910B),
    ("310", Series.ASCEND_310),
    ("950", Series.ASCEND_950),
)


def series_of(name: str, board: int | None, pci_device: int | None) -> Series | None:
    """None where it is unknown: "Ascend910" alone may be either. "" and None: not known."""
    if pci_device in BY_PCI_DEVICE:
        return BY_PCI_DEVICE[pci_device]
    named = next((series for part, series in _BY_NAME if part in name), None)
    if named is None and board in A3_BOARDS:
        return Series.A3
    if named is None and "910" in name and name != NAME_OF_TWO:
        return Series.ASCEND_910
    return named
