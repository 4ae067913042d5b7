"""Texts as they may be shown: they come from reporters, nodes and jobs that may be hostile.

Nothing in them moves the cursor, colours, hides or reorders: such a character is written as the escape that
Python or JSON has for it. Nothing is written here: that is ``output``'s.
"""

import re
from typing import Final

_NAMED: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable although they are invisible: Default_Ignorable_Code_Point of
Unicode's DerivedCoreProperties.txt, as far as these are letters and marks, and the blank of Braille. All
others of that list are in the categories Cc, Cf, Cs, Co, Cn, Zl, Zp and Zs: control characters, marks and
isolates of direction, zero widths, halves of surrogate pairs.
"""


def printable(text: str) -> str:
    r"""The text on one line, with ``\n``, ``\x1b``, ``\u202e`` in place of what cannot be shown."""
    if text.isprintable() and (text.isascii() or _INVISIBLE.search(text) is None):
        return text
    return "".join(map(_escaped, text))


def printable_json(text: str) -> str:
    r"""JSON that means the same, with ``\u001b`` for what cannot be shown, which is in strings only."""
    if text.isprintable() and (text.isascii() or _INVISIBLE.search(text) is None):
        return text
    return "".join(each if _can_be_shown(each) else _in_json(each) for each in text)


def _can_be_shown(character: str) -> bool:
    return character.isprintable() and _INVISIBLE.match(character) is None


def _escaped(character: str) -> str:
    if _can_be_shown(character):
        return character
    number = ord(character)
    if number < 0x100:
        return _NAMED.get(character, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _in_json(character: str) -> str:
    """One or, beyond the first plane, two escapes (RFC 8259, section 7)."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
