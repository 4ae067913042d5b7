"""Which codes of the tables are meant by a code that is in none of them. It decides nothing.

Some codes have several parts, of which the first is a number (``[0x00f103b0,155907,na,na]``); people write
that number alone, with or without ``0x``. Others are written as people speak: ``xid 79``.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

_ASKED: Final = re.compile(r"(?:0x)?0*([0-9a-f]+)", re.IGNORECASE)
_KNOWN: Final = re.compile(r"\[?(?:0x)?0*([0-9a-f]+)(?:,.*)?", re.IGNORECASE)
_ZEROS: Final = re.compile(r"(?<=[A-Za-z])_0+(?=[0-9])")
_SEPARATORS: Final = re.compile(r"[^A-Z0-9]+")
_MOST: Final = 3
_ALIKE: Final = 0.75


def with_the_number(code: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known codes that are this number, or begin with it; in their order.

    >>> with_the_number("0xf103b0", ["[0x00f103b0,155907,na,na]", "80E01801"])
    ('[0x00f103b0,155907,na,na]',)
    """
    number = _digits(_ASKED, code)
    return tuple(each for each in known if number and _digits(_KNOWN, each) == number)


def without_zeros(code: str) -> str:
    """A number after a name is the same with zeros before it.

    >>> without_zeros("XID_048")
    'XID_48'
    """
    return _ZEROS.sub("_", code)


def nearest(code: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known codes that are written alike, the nearest first; none where nothing is near.

    >>> nearest("xid 79", ["XID_79", "XID_90", "80E01801"])
    ('XID_79',)
    """
    known = [each for each in known if not each.endswith("*")]
    by_letters = {_letters(each): each for each in known}
    wanted = _letters(code)
    if wanted in by_letters:
        return (by_letters[wanted],)
    if ends := [each for each in by_letters.values() if each.upper().endswith(f"_{code.strip().upper()}")]:
        return tuple(ends[:_MOST])
    alike = difflib.get_close_matches(wanted, by_letters, n=_MOST, cutoff=_ALIKE)
    return tuple(by_letters[each] for each in alike) or _with_a_number_alike(code, known)


def _with_a_number_alike(code: str, known: Iterable[str]) -> tuple[str, ...]:
    """Of those with several parts the first one of each such number: it is less than half of the code."""
    by_number: dict[str, str] = {}
    for each in known:
        if "," in each:
            by_number.setdefault(_digits(_KNOWN, each), each)
    wanted = code.strip().lower().removeprefix("0x").lstrip("0")
    alike = difflib.get_close_matches(wanted, by_number, n=_MOST, cutoff=_ALIKE)
    return tuple(by_number[number] for number in alike)


def _digits(form: re.Pattern[str], code: str) -> str:
    """Hexadecimal, without the zeros before them, in lower case; "" where it is no number."""
    found = form.fullmatch(code.strip())
    return found[1].lower() if found else ""


def _letters(code: str) -> str:
    return _SEPARATORS.sub("", code.upper())
