"""Which part sits in a place: its die id, and what else the library knows of it that does not change.

Read when the chip is polled, for any of these calls may hang. What cannot be read is left out; only the
die id makes the identity, since a serial number (see ``label``) stands for a card of one, two or four chips.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.library.abi import BoardInfo, ChipInfo, DieId, PcieInfo, Structure, text
from nodeagent.drivers.ascend.library.chip import Chip
from nodeagent.drivers.ascend.library.dcmi import Place
from nodeagent.drivers.ascend.library.errors import NotSupported
from nodeagent.drivers.ascend.library.functions import Generation
from nodeagent.drivers.ascend.npu.product import Series, series_of

DIE_TYPE: Final = {Generation.V1: 1, Generation.V2: 2}
"""``dcmi_die_type``: the VDIE, but of a 950 the DDIE, for that refuses the VDIE (``dcmi_get_npu_device_die``
of the vendor's dcmi_inner_info_get.c). MindCluster knows chips by the same (its dcmi/constants.go).
"""

Answer = TypeVar("Answer")

_EMPTY_DIES: Final = ((0,) * 5, (0xFFFFFFFF,) * 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """``die`` "" : it could not be read. ``attributes`` as ``DeviceSeen`` has them, but for the reset group,
    which follows from ``series``, ``board`` and ``brother`` (see ``reset_groups``). Not ``complete``: a call
    failed that may yet answer.
    """

    die: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    series: Series | None = None
    board: int | None = None
    brother: int | None = None
    complete: bool = False


def read_die(chip: Chip) -> str:
    """The five words of the die id, "" where they say nothing. Raises ``CallFailed``."""
    words = tuple(chip.structure("die", DieId, DIE_TYPE[chip.generation]).soc_die)
    return "" if words in _EMPTY_DIES else "-".join(f"{word:08x}" for word in words)


def read(chip: Chip, place: Place, die: str) -> Identity:
    """The part whose die id was read, with all else that can be read of it."""
    asked = _Asked(chip)
    attributes: dict[str, str] = {"card": str(place.card)}
    info = asked.structure("chip_info", ChipInfo) or asked.structure("chip_info_older", ChipInfo)
    if info is not None:
        attributes["chip"] = text(info.chip_name)
        attributes["npu"] = text(info.npu_name)
        attributes["chip_version"] = text(info.chip_ver)
    board = asked.structure("board_info", BoardInfo)
    if board is not None:
        attributes["board"] = f"{board.board_id:#x}"
        attributes["slot"] = str(board.slot_id)
    pcie = asked.structure("pcie_info", PcieInfo)
    if pcie is not None:
        attributes["pci"] = _pci_address(pcie)
    board_id = None if board is None else int(board.board_id)
    series = series_of(attributes.get("chip", ""), board_id, None if pcie is None else int(pcie.deviceid))
    attributes["series"] = series or ""
    return Identity(
        die=die,
        attributes={name: value for name, value in attributes.items() if value},
        series=series,
        board=board_id,
        brother=asked.brother() if series is Series.A3 else None,
        complete=not asked.failed,
    )


class _Asked:
    """The calls that describe a part. ``failed``: one of them did, and not because the chip lacks it."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self.failed = False

    def structure(self, name: str, form: type[Structure]) -> Structure | None:
        """None where the call fails: what it would have answered is left out."""
        return self._answer(lambda: self._chip.structure(name, form))

    def brother(self) -> int | None:
        """The card that shares its network, below zero where there is none; None where the call fails."""
        return self._answer(lambda: self._chip.signed("brother"))

    def _answer(self, call: Callable[[], Answer]) -> Answer | None:
        try:
            return call()
        except NotSupported:
            return None
        except CallFailed:
            self.failed = True
            return None


def _pci_address(info: PcieInfo) -> str:
    """As the kernel writes it, "" where it is none."""
    if info.bdf_busid > 0xFF or info.bdf_deviceid > 0x1F or info.bdf_funcid > 7:
        return ""
    return f"{info.domain & 0xFFFF:04x}:{info.bdf_busid:02x}:{info.bdf_deviceid:02x}.{info.bdf_funcid:x}"
