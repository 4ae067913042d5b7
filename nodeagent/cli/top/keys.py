"""From the bytes that a terminal sends to the names of keys. It reads nothing and knows no action."""

import re
from collections.abc import Mapping
from typing import Final

UP: Final = "up"
DOWN: Final = "down"
PAGE_UP: Final = "page up"
PAGE_DOWN: Final = "page down"
HOME: Final = "home"
END: Final = "end"
ENTER: Final = "Enter"
ESCAPE: Final = "Esc"

_SEQUENCES: Final[Mapping[bytes, str]] = {
    b"\x1b[A": UP,
    b"\x1bOA": UP,
    b"\x1b[B": DOWN,
    b"\x1bOB": DOWN,
    b"\x1b[5~": PAGE_UP,
    b"\x1b[6~": PAGE_DOWN,
    b"\x1b[H": HOME,
    b"\x1bOH": HOME,
    b"\x1b[1~": HOME,
    b"\x1b[F": END,
    b"\x1bOF": END,
    b"\x1b[4~": END,
    b"\r": ENTER,
    b"\n": ENTER,
    b"\x1b": ESCAPE,
    b"\x7f": ESCAPE,
}
"""As xterm and its descendants send them (XTerm Control Sequences, "PC-Style Function Keys"). A backspace
goes back as Esc does.
"""

_ONE: Final = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)
_BEGUN: Final = re.compile(rb"\x1b(?:\[[0-9;]*|O)?\Z")


def keys(sent: bytes) -> list[str]:
    """The keys in their order; what is no key that has a name or a printable character is left out."""
    found = (_ONE.findall(sent)) if sent else []
    return [name for each in found if (name := _SEQUENCES.get(each) or _character(each))]


def is_begun(sent: bytes) -> bool:
    """Whether it ends in what may be the beginning of a sequence; alone it is the key Esc."""
    return _BEGUN.search(sent) is not None


def _character(sent: bytes) -> str:
    text = sent.decode("ascii", "replace")
    return text if len(text) == 1 and " " <= text <= "~" else ""
