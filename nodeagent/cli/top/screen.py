"""The screen of ``top`` as lines that fit it: a state, the choices of a person and a size go in.

It reads no clock and writes nothing. Each line is readable without colour.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.device_tables import DeviceNow, in_tables, now
from nodeagent.cli.ask.measured import Readings, celsius, count, memory_ratio, percent, watts
from nodeagent.cli.ask.overview import DeviceRow, reset_lines, row_of, worst_first
from nodeagent.cli.shared.output import Piece, Styled, coloured, shortened
from nodeagent.cli.shared.printable import printable
from nodeagent.cli.shared.texts import headline, local_time
from nodeagent.cli.top.choices import Choices, OnScreen, Pane, Sort, first_of_text, place_of
from nodeagent.core.model import NODE
from nodeagent.core.state.names import natural
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


class WrittenLine(NamedTuple):
    """A line of a text that was written for the terminal, with its colours."""

    text: str


Line = Sequence[Piece | WrittenLine]

_DEVICE_KEYS: Final = "up/down select  Enter why  e events  s sort  a all  ? help  q quit"
_TEXT_KEYS: Final = "up/down scroll  Esc back  ? help  q quit"
_AROUND: Final = 4
"""Two lines above the devices, the heads of the columns, and the line of keys."""

_LEAST_DEVICES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAnswer:
    """What the daemon answered last. ``at`` is when that was, ``silent`` why it does not answer any more."""

    node: str
    snapshot: pb.Snapshot
    at: Timestamp
    readings: Mapping[str, Readings]
    durable: bool = True
    silent: str = ""


class Size(NamedTuple):
    columns: int
    lines: int


class _Row(NamedTuple):
    row: DeviceRow
    measured: DeviceNow


class _Column(NamedTuple):
    """``from_columns``: shown on a screen of this width and wider ones."""

    head: str
    show: Callable[[_Row], str]
    is_number: bool = False
    from_columns: int = 0


_COLUMNS: Final[Sequence[_Column]] = (
    _Column("DEVICE", lambda each: each.row.device),
    _Column("VERDICT", lambda each: each.row.verdict),
    _Column("TEMP", lambda each: celsius(each.measured.values.temperature_c), is_number=True),
    _Column("POWER", lambda each: watts(each.measured.values.power_w), is_number=True),
    _Column("USE", lambda each: percent(each.measured.values.use), is_number=True),
    _Column("MEM", lambda each: percent(memory_ratio(each.measured.values)), is_number=True),
    _Column("USERS", lambda each: count(each.measured.values.users), is_number=True, from_columns=100),
    _Column("AGE", lambda each: each.row.age, is_number=True),
    _Column("NEXT", lambda each: each.row.next_step or "-", from_columns=110),
    _Column("JOB", lambda each: each.row.job or "-", from_columns=130),
    _Column("FAULT", lambda each: " ".join(filter(None, (each.row.code, each.row.fault))) or "-"),
)

_MEASURES: Final[Mapping[Sort, Callable[[DeviceNow], float | None]]] = {
    Sort.TEMPERATURE: lambda each: each.values.temperature_c,
    Sort.USE: lambda each: each.values.use,
    Sort.POWER: lambda each: each.values.power_w,
}


def ordered(seen: LastAnswer, choices: Choices) -> list[str]:
    """The names of the devices that are listed, as they are sorted; what is not known comes last."""
    devices = seen.snapshot.devices
    shown = devices if choices.every else in_tables(devices)[0]
    measure = _MEASURES.get(choices.sort)
    if measure is not None:
        values = {each.name: measure(now(each, seen.readings)) for each in shown}
        known = [name for name in values if values[name] is not None]
        known.sort(key=lambda name: (-(values[name] or 0.0), natural(name)), reverse=choices.is_reversed)
        return known + sorted((name for name in values if values[name] is None), key=natural)
    if choices.sort is Sort.NAME:
        names = sorted((each.name for each in shown), key=natural)
    else:
        names = [each.name for each in sorted(shown, key=worst_first)]
    return names[::-1] if choices.is_reversed else names


def shown_of(names: Sequence[str], text: Sequence[str], size: Size) -> OnScreen:
    return OnScreen(names, len(text), _page(size))


def _page(size: Size) -> int:
    """How many devices or lines of a text fit; those have no heads of columns."""
    return max(_LEAST_DEVICES, size.lines - _AROUND)


def screen(
    seen: LastAnswer, choices: Choices, text: Sequence[str], size: Size, present: Timestamp
) -> list[Line]:
    """``size.lines`` lines. ``text`` is what a pane other than that of the devices shows."""
    current = pb.Snapshot()
    current.CopyFrom(seen.snapshot)
    current.at.CopyFrom(present)
    is_list = choices.pane is Pane.DEVICES
    body = _devices(seen, current, choices, size) if is_list else _text(choices, text, size)
    top = [*_head(seen, current, choices, size), *body][: size.lines - 1]
    blank = [[""]] * (size.lines - 1 - len(top))
    keys = _DEVICE_KEYS if is_list else _TEXT_KEYS
    return [*top, *blank, [Styled(shortened(keys, size.columns), bold=True)]]


def _head(seen: LastAnswer, current: pb.Snapshot, choices: Choices, size: Size) -> list[Line]:
    """What the node is, and whether what is shown is of now."""
    node = next((each for each in current.devices if each.name == NODE), types_pb2.Device(name=NODE))
    clock = local_time(current.at, current.at, with_age=False)
    first = shortened(
        printable(f"{seen.node}: {headline(node, current.devices)}"), size.columns - len(clock) - 2
    )
    return [
        [Styled(first, bold=True, width=size.columns - len(clock) - 1), clock],
        [_second(seen, current, choices, size)],
    ]


def _second(seen: LastAnswer, current: pb.Snapshot, choices: Choices, size: Size) -> Piece:
    if seen.silent:
        of = local_time(seen.at, current.at)
        return Styled(
            shortened(f"NO ANSWER, this is of {of}: {printable(seen.silent)}", size.columns),
            colour="red",
            bold=True,
        )
    if not seen.durable:
        return Styled(shortened("not durable: the store's disk fails", size.columns), colour="red", bold=True)
    order = "reversed" if choices.is_reversed else "the worst first" if choices.sort is Sort.VERDICT else ""
    titles = {
        Pane.DEVICES: ", ".join(filter(None, (f"by {choices.sort}", order, f"{current.seq} events"))),
        Pane.WHY: f"why {choices.selected}",
        Pane.EVENTS: "the newest events",
        Pane.HELP: "keys",
    }
    return shortened(titles[choices.pane], size.columns)


def _devices(seen: LastAnswer, current: pb.Snapshot, choices: Choices, size: Size) -> list[Line]:
    names = ordered(seen, choices)
    page, place = _page(size), place_of(choices, names)
    first = max(0, min(place - page // 2, len(names) - page))
    by_name = {each.name: each for each in current.devices}
    rows = [
        _Row(row_of(by_name[name], current), now(by_name[name], seen.readings))
        for name in names[first : first + page]
    ]
    lines = _table(rows, place - first, size)
    left = size.lines - _AROUND - len(rows)
    return lines + [[shortened(printable(line), size.columns)] for line in _below(current, left)]


def _below(current: pb.Snapshot, left: int) -> list[str]:
    """Where room is left: the resets that have not ended, and what does not observe."""
    lines = [line for reset, line in reset_lines(current) if reset.stage != types_pb2.RESET_STAGE_ENDED]
    lines += [
        f"source {each.name} does not observe: {each.reason}"
        for each in current.sources
        if not each.observing and not each.device_id
    ]
    return ["", *lines][: max(0, left)] if lines else []


def _table(rows: Sequence[_Row], selected: int, size: Size) -> list[Line]:
    """The last column is cut to what is left of the line."""
    columns = [each for each in _COLUMNS if each.from_columns <= size.columns]
    texts = [[column.head, *(printable(column.show(row)) for row in rows)] for column in columns]
    widths = [max(map(len, each)) for each in texts]
    room = size.columns - 2 - sum(width + 2 for width in widths[:-1])
    lines: list[Line] = []
    for at in range(len(rows) + 1):
        is_head, is_selected = at == 0, at == selected + 1
        cells = [
            each[at].rjust(width) if column.is_number else each[at]
            for column, each, width in zip(columns, texts, widths, strict=True)
        ]
        cells[-1] = shortened(cells[-1], max(1, room))
        pieces = [
            Styled(cell, bold=True, width=width + 1) if is_head else coloured(cell, width + 1)
            for cell, width in zip(cells[:-1], widths[:-1], strict=True)
        ]
        mark = ">" if is_selected else " "
        lines.append([mark, *pieces, Styled(cells[-1], bold=is_head or is_selected)])
    return lines


def _text(choices: Choices, text: Sequence[str], size: Size) -> list[Line]:
    shown = shown_of((), text, size)
    first = first_of_text(choices, shown)
    return [[WrittenLine(line)] for line in text[first : first + shown.page]]
