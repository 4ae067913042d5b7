"""Which part is in a place: its die id, its label, and other facts that do not change.

All of it is read while the chip is polled, because any of these calls may hang. A value that cannot be read
is left out. Only the die id is the identity: a serial number belongs to a card of one, two or four chips.

The library reads the label (product, model, serial number) from the card's MCU through the chip. If the MCU
does not answer, it tries for two seconds for each text, and returns 0 with the text "NA"
(``dcmi_mcu_get_device_elabel_info`` of libdcmi). So the label is read in a thread of its own, "NA" is
dropped, and a label without a serial number is read again after growing pauses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.abi import BoardInfo, ChipInfo, DieId, ElabelInfo, PcieInfo, Structure, text
from nodeagent.drivers.ascend.dcmi import ChipPlace
from nodeagent.drivers.ascend.dcmi_calls import DcmiChip, DcmiGeneration, NotSupported
from nodeagent.drivers.ascend.reset_groups import ProductSeries, series_of
from nodeagent.drivers.ascend.slow_calls import BackgroundCall

DIE_TYPE: Final = {DcmiGeneration.V1: 1, DcmiGeneration.V2: 2}
"""``dcmi_die_type``: the VDIE, but of a 950 the DDIE, for that refuses the VDIE (``dcmi_get_npu_device_die``
of the vendor's dcmi_inner_info_get.c). MindCluster knows chips by the same (its dcmi/constants.go).
"""

Answer = TypeVar("Answer")

_EMPTY_DIES: Final = ((0,) * 5, (0xFFFFFFFF,) * 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipIdentity:
    """``die`` "" : it could not be read. ``attributes`` as ``DeviceSeen`` has them, but for the reset group,
    which follows from ``series``, ``board`` and ``brother`` (see ``reset_groups``). Not ``complete``: a call
    failed that may yet answer.
    """

    die: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    series: ProductSeries | None = None
    board: int | None = None
    brother: int | None = None
    complete: bool = False


def read_die(chip: DcmiChip) -> str:
    """The five words of the die id, "" if they are empty. Raises ``CallFailed``."""
    words = tuple(chip.structure("die", DieId, DIE_TYPE[chip.generation]).soc_die)
    return "" if words in _EMPTY_DIES else "-".join(f"{word:08x}" for word in words)


def read_identity(chip: DcmiChip, place: ChipPlace, die: str) -> ChipIdentity:
    """The part whose die id was read, with all else that can be read of it."""
    asked = _IdentityCalls(chip)
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
    return ChipIdentity(
        die=die,
        attributes={name: value for name, value in attributes.items() if value},
        series=series,
        board=board_id,
        brother=asked.brother() if series is ProductSeries.A3 else None,
        complete=not asked.failed,
    )


class _IdentityCalls:
    """The calls that describe a part. ``failed``: one of them did, and not because the chip lacks it."""

    def __init__(self, chip: DcmiChip) -> None:
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


FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
"""A silent MCU is asked through the driver for eight seconds each time."""

NOT_AVAILABLE: Final = "NA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The label of the part with this die id. Not ``complete``: a later reading may return more."""

    die: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False


class LabelReader:
    """Reads the label of the chip in one place. ``chip`` is used by the thread that asks alone."""

    def __init__(self, chip: DcmiChip, device: str) -> None:
        self._chip = chip
        self._die = ""
        self._background = BackgroundCall(self._read, Label(), device, "label")
        self._asked_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def texts(self) -> Mapping[str, str]:
        """The texts of the label of the part that was named last, as far as known."""
        label = self._background.read(ask=False)
        return label.texts if label.die == self._die else {}

    def want(self, die: str, now_s: float) -> None:
        """This part is in the place, "" if that is unknown: ask for its label, if it is time to."""
        if die not in ("", self._die):
            self._die, self._asked_s, self._pause_s = die, None, FIRST_PAUSE_S
        label = self._background.read(ask=False)
        if self._background.is_waiting or (label.complete and label.die == die):
            return
        if self._asked_s is None or now_s - self._asked_s >= self._pause_s:
            if self._asked_s is not None:
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            self._asked_s = now_s
            self._background.read(ask=True)

    def wait(self, limit_s: float) -> None:
        """Wait at most so long for the answer to what was asked."""
        self._background.wait(limit_s)

    def end(self) -> None:
        """The label is not needed any more."""
        self._background.end()

    def _read(self) -> Label:
        die = self._die
        try:
            label = self._chip.structure("elabel", ElabelInfo)
        except NotSupported:
            return Label(die=die, complete=True)
        except CallFailed:
            # Not known for now; it is asked for again.
            return Label(die=die)
        texts = {
            "product": text(label.product_name),
            "model": text(label.model),
            "serial": text(label.serial_number),
        }
        known = {name: value for name, value in texts.items() if value not in ("", NOT_AVAILABLE)}
        return Label(die=die, texts=known, complete="serial" in known)
