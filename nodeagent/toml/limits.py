"""What may stand in a file of any kind: whole numbers that fit, and nothing nested without end.

``tomllib`` and ``json`` take more than can be shown, compared and stored afterwards. What a value means, and
whether it is right where it stands, is not asked here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from nodeagent.toml.lines import KeyPath

DEEPEST: Final = 32
LEAST: Final = -(2**63)
GREATEST: Final = 2**63 - 1

TOO_DEEP: Final = f"nested too deeply; at most {DEEPEST} levels are read"
TOO_LARGE: Final = f"a whole number out of range; it must be from {LEAST} to {GREATEST}"

_LONG_NUMBER: Final = re.compile(r"[0-9][0-9_]{639,}")
"""Python refuses what is longer than ``sys.set_int_max_str_digits`` says, which takes no less than 640."""


def unfit(data: object) -> Iterator[tuple[KeyPath, str]]:
    """What of it cannot be taken: where, and why."""
    path, pending = list[str | int](), [iter(_inside(data) or ())]
    while pending:
        for key, value in pending[-1]:
            if isinstance(value, int):
                if not LEAST <= value <= GREATEST:
                    yield (*path, key), TOO_LARGE
            elif (inner := _inside(value)) is not None:
                if len(pending) < DEEPEST:
                    path.append(key)
                    pending.append(iter(inner))
                    break
                yield (*path, key), TOO_DEEP
        else:
            pending.pop()
            del path[-1:]


def refusal(text: str, error: Exception) -> tuple[int | None, str]:
    """What is wrong with a text that its parser failed over, and on which line, where one is to blame."""
    if isinstance(error, RecursionError):
        lines = [line.count("[") + line.count("{") for line in text.split("\n")]
        return (lines.index(max(lines)) + 1 if max(lines) > DEEPEST else None), TOO_DEEP
    if (number := _LONG_NUMBER.search(text)) is not None:
        return text.count("\n", 0, number.start()) + 1, TOO_LARGE
    return None, f"{type(error).__name__}: {error}"


def _inside(value: object) -> Iterable[tuple[str | int, object]] | None:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list) else None
