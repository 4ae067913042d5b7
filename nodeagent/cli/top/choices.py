"""What a person chose on the screen, and what each key makes of that. Pure: a key is a row of a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from nodeagent.cli.top import keys


class Sort(StrEnum):
    VERDICT = "verdict"
    NAME = "name"
    TEMPERATURE = "temperature"
    USE = "use"
    POWER = "power"


class Pane(Enum):
    """What fills the screen."""

    DEVICES = "devices"
    WHY = "why"
    EVENTS = "events"
    HELP = "help"


_LAST: Final = 10**6
"""A line beyond every text: its end is shown, also when it grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """``selected`` is the name of a device, "" for the first. ``first_line`` is the first that is shown of a
    text. ``every``: also devices that are well and no chips.
    """

    pane: Pane = Pane.DEVICES
    sort: Sort = Sort.VERDICT
    is_reversed: bool = False
    every: bool = False
    selected: str = ""
    first_line: int = 0
    has_quit: bool = False


class OnScreen(NamedTuple):
    """What is on the screen: the devices in their order, the lines of a text, and how many fit."""

    devices: Sequence[str]
    lines: int
    page: int


Action = Callable[[Choices, OnScreen], Choices]


class Key(NamedTuple):
    """``keys`` do the same. ``text`` is for the help."""

    keys: tuple[str, ...]
    text: str
    action: Action


def pressed(choices: Choices, key: str, shown: OnScreen) -> Choices:
    """The choices after a key; the same where it has no meaning there."""
    action = _ACTIONS[choices.pane is Pane.DEVICES].get(key)
    return choices if action is None else action(choices, shown)


def place_of(choices: Choices, devices: Sequence[str]) -> int:
    """Where the selected device is; the first where it is gone."""
    return devices.index(choices.selected) if choices.selected in devices else 0


def first_of_text(choices: Choices, shown: OnScreen) -> int:
    """The first line of a text that is shown: the screen is full where there are enough."""
    return max(0, min(choices.first_line, shown.lines - shown.page))


def _moved(step: Callable[[int, OnScreen], int]) -> Action:
    def action(choices: Choices, shown: OnScreen) -> Choices:
        if not shown.devices:
            return choices
        place = step(place_of(choices, shown.devices), shown)
        return replace(choices, selected=shown.devices[max(0, min(place, len(shown.devices) - 1))])

    return action


def _scrolled(step: Callable[[int, OnScreen], int]) -> Action:
    def action(choices: Choices, shown: OnScreen) -> Choices:
        at = first_of_text(choices, shown)
        last = max(0, shown.lines - shown.page)
        return replace(choices, first_line=max(0, min(step(at, shown), last)))

    return action


def _to(pane: Pane) -> Action:
    def action(choices: Choices, shown: OnScreen) -> Choices:
        selected = shown.devices[place_of(choices, shown.devices)] if shown.devices else ""
        back = Pane.DEVICES if choices.pane is pane else pane
        first_line = _LAST if back is Pane.EVENTS else 0
        return replace(choices, pane=back, first_line=first_line, selected=selected)

    return action


def _sorted_by(sort: Sort) -> Action:
    def action(choices: Choices, _shown: OnScreen) -> Choices:
        return replace(choices, sort=sort, is_reversed=False)

    return action


def _next_sort(choices: Choices, _shown: OnScreen) -> Choices:
    sorts = list(Sort)
    return replace(choices, sort=sorts[(sorts.index(choices.sort) + 1) % len(sorts)], is_reversed=False)


def _reversed(choices: Choices, _shown: OnScreen) -> Choices:
    return replace(choices, is_reversed=not choices.is_reversed)


def _every(choices: Choices, _shown: OnScreen) -> Choices:
    return replace(choices, every=not choices.every)


def _quit(choices: Choices, _shown: OnScreen) -> Choices:
    return replace(choices, has_quit=True)


def _moves(make: Callable[[Callable[[int, OnScreen], int]], Action], what: str) -> list[Key]:
    steps: Sequence[tuple[tuple[str, ...], str, Callable[[int, OnScreen], int]]] = (
        ((keys.UP, "k"), f"{what} before", lambda at, _: at - 1),
        ((keys.DOWN, "j"), f"{what} after", lambda at, _: at + 1),
        ((keys.PAGE_UP,), "a screen up", lambda at, shown: at - shown.page),
        ((keys.PAGE_DOWN, " "), "a screen down", lambda at, shown: at + shown.page),
        ((keys.HOME, "g"), "the first", lambda _at, _: 0),
        ((keys.END, "G"), "the last", lambda _at, shown: max(shown.lines, len(shown.devices))),
    )
    return [Key(each, text, make(step)) for each, text, step in steps]


_EVERYWHERE: Final = (
    Key(("e",), "events, the newest last; again: back", _to(Pane.EVENTS)),
    Key(("?", "h"), "this help; again: back", _to(Pane.HELP)),
    Key(("q",), "quit", _quit),
)
DEVICE_KEYS: Final[Sequence[Key]] = (
    *_moves(_moved, "the device"),
    Key((keys.ENTER,), "why the device has its verdict, and what to do", _to(Pane.WHY)),
    Key(("s",), "sort by the next of the following", _next_sort),
    Key(("v",), "sort by verdict, the worst first", _sorted_by(Sort.VERDICT)),
    Key(("n",), "sort by name", _sorted_by(Sort.NAME)),
    Key(("t",), "sort by temperature, the highest first", _sorted_by(Sort.TEMPERATURE)),
    Key(("u",), "sort by use, the highest first", _sorted_by(Sort.USE)),
    Key(("p",), "sort by power, the highest first", _sorted_by(Sort.POWER)),
    Key(("r",), "the other way round", _reversed),
    Key(("a",), "also ports, switches and host parts that are well", _every),
    *_EVERYWHERE,
)
TEXT_KEYS: Final[Sequence[Key]] = (
    *_moves(_scrolled, "the line"),
    Key((keys.ESCAPE, keys.ENTER), "back to the devices", _to(Pane.DEVICES)),
    *_EVERYWHERE,
)


def _by_key(table: Iterable[Key]) -> dict[str, Action]:
    return {key: each.action for each in table for key in each.keys}


_ACTIONS: Final[Mapping[bool, Mapping[str, Action]]] = {
    True: _by_key(DEVICE_KEYS),
    False: _by_key(TEXT_KEYS),
}
"""Whether the devices are shown, else a text."""


def help_lines() -> list[str]:
    lines: list[str] = []
    for title, table in (("In the list of devices", DEVICE_KEYS), ("In a text", TEXT_KEYS)):
        lines += ["", title] if lines else [title]
        lines += [
            f"  {' '.join('space' if each == ' ' else each for each in key.keys):<16}{key.text}"
            for key in table
        ]
    return lines
