"""The electronic label of a chip's card: product, model and serial number. It makes no identity.

The library asks the card's MCU for it, by way of the chip. Where the MCU is silent it tries for two seconds
for each text, and answers 0 with "NA" in its place (libdcmi, ``dcmi_mcu_get_device_elabel_info``). So the
label is asked for beside the polls, "NA" is no text, and a label without a serial number is asked for again,
ever more seldom.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.library.abi import ElabelInfo, text
from nodeagent.drivers.ascend.library.chip import Chip
from nodeagent.drivers.ascend.library.errors import NotSupported
from nodeagent.drivers.ascend.npu.chip.background_call import BackgroundCall

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
"""A silent MCU is asked through the driver for eight seconds each time."""

NOT_AVAILABLE: Final = "NA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The label of the part with this die id. Not ``complete``: asked again, it may say more."""

    die: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False


class LabelReader:
    """Reads the label of the chip in one place. ``chip`` is used by the thread that asks alone."""

    def __init__(self, chip: Chip, device: str) -> None:
        self._chip = chip
        self._die = ""
        self._background = BackgroundCall(self._read, Label(), device, "label")
        self._asked_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def texts(self) -> Mapping[str, str]:
        """What the label of the part says that was named last, as far as that is known."""
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
        """Nobody wants it any more."""
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
        known = {name: said for name, said in texts.items() if said not in ("", NOT_AVAILABLE)}
        return Label(die=die, texts=known, complete="serial" in known)
