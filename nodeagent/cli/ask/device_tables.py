"""The devices of a node as tables: chips as nvidia-smi and npu-smi show them, each other kind in its own.

Devices and readings go in, texts come out. Nothing is judged or written.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from nodeagent.cli.ask.measured import (
    UNKNOWN,
    Measured,
    Readings,
    celsius,
    count,
    measured,
    memory,
    pair,
    parts,
    percent,
    watts,
)
from nodeagent.cli.shared.texts import enum_text
from nodeagent.core.state.names import natural
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2


class DeviceNow(NamedTuple):
    """A device with what was measured of it last."""

    device: types_pb2.Device
    readings: Readings
    values: Measured


Show = Callable[[DeviceNow], str]


class Column(NamedTuple):
    """``is_number``: its texts end at the same place. ``is_wide``: shown only where lines may be long."""

    head: str
    show: Show
    is_number: bool = False
    is_wide: bool = False


class DeviceTable(NamedTuple):
    """``left_out``: the heads of columns for which there is no room."""

    heads: list[str]
    rows: list[list[str]]
    left_out: list[str]


def _attribute(*keys: str) -> Show:
    """The first of these that the device has."""
    return lambda now: next(
        (now.device.attributes[each] for each in keys if each in now.device.attributes), UNKNOWN
    )


def _verdict(now: DeviceNow) -> str:
    return enum_text(enums.VERDICT_OF, now.device.verdict)


def _handling(now: DeviceNow) -> str:
    return enum_text(enums.HANDLING_OF, now.device.handling)


def _ecc(now: DeviceNow) -> str:
    return pair(now.values.ecc_corrected, now.values.ecc_uncorrected)


def _state(now: DeviceNow) -> str:
    is_up = now.readings.get("link_up") if now.device.observed else None
    return UNKNOWN if is_up is None else "up" if is_up else "down"


def _rate(now: DeviceNow) -> str:
    rate = now.readings.get("link_rate_bytes_per_second")
    return UNKNOWN if rate is None else f"{rate * 8 / 1e9:g} Gb/s"


def _sum(name: str) -> Show:
    def show(now: DeviceNow) -> str:
        found = parts(now.readings, name)
        return count(sum(found.values()) if found else None)

    return show


_DEVICE: Final = Column("DEVICE", lambda now: now.device.name)
_VERDICT: Final = Column("VERDICT", _verdict)
_WIDE: Final = (
    Column("HANDLING", _handling, is_wide=True),
    Column("PRODUCT", _attribute("product", "model"), is_wide=True),
    Column("SERIAL", _attribute("serial"), is_wide=True),
    Column("SLOT", _attribute("slot"), is_wide=True),
    Column("PCI", _attribute("pci"), is_wide=True),
    Column("FIRMWARE", _attribute("firmware"), is_wide=True),
    Column("DRIVER", _attribute("driver"), is_wide=True),
)
_PLAIN: Final = (
    _DEVICE,
    _VERDICT,
    Column("HANDLING", _handling),
    Column("OBSERVED", lambda now: "yes" if now.device.observed else "no"),
)

_COLUMNS: Final[Mapping[int, Sequence[Column]]] = {
    types_pb2.KIND_CHIP: (
        _DEVICE,
        _VERDICT,
        Column("TEMP", lambda now: celsius(now.values.temperature_c), is_number=True),
        Column("POWER", lambda now: watts(now.values.power_w), is_number=True),
        Column("USE", lambda now: percent(now.values.use), is_number=True),
        Column(
            "MEMORY",
            lambda now: memory(now.values.memory_used_bytes, now.values.memory_total_bytes),
            is_number=True,
        ),
        Column("USERS", lambda now: count(now.values.users), is_number=True),
        Column("ECC C/U", _ecc, is_number=True),
        Column("LINKS", lambda now: pair(now.values.links_up, now.values.links_total), is_number=True),
        *_WIDE,
    ),
    types_pb2.KIND_INSTANCE: (
        *_PLAIN,
        Column("USERS", lambda now: count(now.values.users), is_number=True),
    ),
    types_pb2.KIND_LINK: (
        _DEVICE,
        _VERDICT,
        Column("STATE", _state),
        Column("RATE", _rate, is_number=True),
        Column("LOSSES", _sum("link_losses_total"), is_number=True),
        Column("ERRORS", _sum("port_errors_total"), is_number=True),
        Column("RDMA", _attribute("rdma"), is_wide=True),
        *_WIDE,
        Column("CHIPS", _attribute("chips")),
    ),
    types_pb2.KIND_UNIFIEDBUS: _PLAIN,
    types_pb2.KIND_HOST: (
        *_PLAIN,
        Column("ECC C/U", _ecc, is_number=True),
        Column("LABEL", _attribute("label", "hostname")),
        Column("LOCATION", _attribute("location"), is_wide=True),
    ),
}
"""By kind, in the order of the tables. The node has the kind of the host or one of its own."""

_BETWEEN: Final = 2
_LEAST_COLUMNS: Final = 2

_ALWAYS: Final = (types_pb2.KIND_CHIP, types_pb2.KIND_INSTANCE)
_SAME: Final[Mapping[int, int]] = {types_pb2.KIND_NODE: types_pb2.KIND_HOST}


def now(device: types_pb2.Device, readings: Mapping[str, Readings]) -> DeviceNow:
    """``readings`` by the names of the devices."""
    of_device = readings.get(device.name, {})
    return DeviceNow(device, of_device, measured(device, of_device))


def device_tables(
    devices: Iterable[types_pb2.Device],
    readings: Mapping[str, Readings],
    *,
    wide: bool,
    room: int | None = None,
) -> list[DeviceTable]:
    """A table for each kind that there is. ``readings`` by the names of the devices.

    ``room``: how many columns the terminal has; None for any.
    """
    by_kind: dict[int, list[DeviceNow]] = {kind: [] for kind in _COLUMNS}
    for device in sorted(devices, key=lambda each: natural(each.name)):
        kind = _SAME.get(device.kind, device.kind)
        by_kind.setdefault(kind, []).append(now(device, readings))
    return [
        _table(_COLUMNS.get(kind, _PLAIN), each, wide=wide, room=room)
        for kind, each in by_kind.items()
        if each
    ]


def _table(
    columns: Sequence[Column], devices: Sequence[DeviceNow], *, wide: bool, room: int | None
) -> DeviceTable:
    """Numbers end below each other. The last of them are left out where a line would not fit; a text is not,
    it can be wrapped.
    """
    shown = [each for each in columns if wide or not each.is_wide]
    texts = [[column.head, *map(column.show, devices)] for column in shown]
    aligned = [
        [text.rjust(max(map(len, each))) for text in each] if column.is_number else each
        for column, each in zip(shown, texts, strict=True)
    ]
    fitting = len(aligned)
    if room is not None and shown[-1].is_number:
        fitting = _fitting([max(map(len, each)) for each in aligned], room)
    heads, *rows = (list(each) for each in zip(*aligned[:fitting], strict=True))
    return DeviceTable(heads, rows, [each.head for each in shown[fitting:]])


def _fitting(widths: Sequence[int], room: int) -> int:
    """How many columns fit, with two blanks between them; device and verdict in any case."""
    ends = accumulate(width + _BETWEEN for width in widths)
    return max(_LEAST_COLUMNS, sum(end - _BETWEEN <= room for end in ends))


def in_tables(devices: Iterable[types_pb2.Device]) -> tuple[list[types_pb2.Device], list[types_pb2.Device]]:
    """Those that the tables are about, and the others: well, and neither chips nor parts of chips."""
    shown: list[types_pb2.Device] = []
    well: list[types_pb2.Device] = []
    for device in devices:
        is_well = device.verdict == types_pb2.VERDICT_ALLOW and device.handling == types_pb2.HANDLING_NONE
        (well if is_well and device.kind not in _ALWAYS else shown).append(device)
    return shown, well
