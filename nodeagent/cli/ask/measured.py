"""What is measured of a device: the few values that people know from nvidia-smi and npu-smi, and their texts.

A value that is not known is None, and is shown as "-", never as 0. Nothing is judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nodeagent.messages.pb import types_pb2

Readings = Mapping[str, float]
"""Of one device, by the names of docs/metrics.md; a part follows after a point."""

UNKNOWN: Final = "-"
_USE: Final = ("utilization_ratio.aicore", "utilization_ratio.gpu")
"""What moves while a program computes: an NPU has the first, a GPU the second."""

_GIB: Final = 2**30
_SHORT: Final = ((1e9, "G"), (1e6, "M"), (1e4, "k"))
"""Above 10,000 a count is shown in short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """``use`` is 0 to 1. ``users`` are processes. The links are those between chips: NVLink, HCCS, UB."""

    temperature_c: float | None = None
    power_w: float | None = None
    use: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    users: int | None = None
    ecc_corrected: float | None = None
    ecc_uncorrected: float | None = None
    links_up: int | None = None
    links_total: int | None = None


def measured(device: types_pb2.Device, readings: Readings) -> Measured:
    """Of a device that is not observed nothing is known, whatever it had last."""
    if not device.observed:
        return Measured()
    up, total = _links(readings)
    return Measured(
        temperature_c=readings.get("temperature_celsius"),
        power_w=readings.get("power_watts"),
        use=next((readings[each] for each in _USE if each in readings), None),
        memory_used_bytes=readings.get("memory_used_bytes"),
        memory_total_bytes=readings.get("memory_total_bytes"),
        users=len(device.holders.holders) if device.HasField("holders") else None,
        ecc_corrected=_whole_or_sum(readings, "ecc_corrected_total", "edac_corrected_total"),
        ecc_uncorrected=_whole_or_sum(readings, "ecc_uncorrected_total", "edac_uncorrected_total"),
        links_up=up,
        links_total=total,
    )


def parts(readings: Readings, name: str) -> dict[str, float]:
    """The values of a reading by their parts; "" is the device as a whole."""
    found = ((each.partition("."), value) for each, value in readings.items())
    return {part: value for (stem, _, part), value in found if stem == name}


def _whole_or_sum(readings: Readings, *names: str) -> float | None:
    """The value of the whole device, or that of all its parts."""
    for name in names:
        if found := parts(readings, name):
            return found.get("", sum(found.values()))
    return None


def _links(readings: Readings) -> tuple[int | None, int | None]:
    """How many are up, and how many should be: a GPU's driver counts these, else each link has a reading."""
    up, missing = readings.get("nvlink_links_up"), readings.get("nvlink_links_missing")
    if up is not None and missing is not None:
        return int(up), int(up + missing)
    links = parts(readings, "link_up")
    return (int(sum(links.values())), len(links)) if links else (None, None)


def celsius(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f} C"


def watts(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f} W"


def percent(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio * 100:.0f}%"


def count(value: float | None) -> str:
    """Exact up to 9,999, then ``12k``, ``3.4M``."""
    if value is None:
        return UNKNOWN
    for size, unit in _SHORT:
        if value >= size:
            step = value / (1e3 if unit == "k" else size)
            return f"{step:.0f}{unit}" if step >= 10 else f"{step:.1f}{unit}"
    return f"{value:.0f}"


def memory(used: float | None, total: float | None) -> str:
    """``3.0/64 GiB``."""
    return UNKNOWN if used is None or total is None else f"{used / _GIB:.1f}/{total / _GIB:.0f} GiB"


def memory_ratio(values: Measured) -> float | None:
    used, total = values.memory_used_bytes, values.memory_total_bytes
    return used / total if used is not None and total else None


def pair(*values: float | None) -> str:
    """``0/0``; "-" where none of them is known."""
    return UNKNOWN if all(each is None for each in values) else "/".join(map(count, values))


def worded(values: Mapping[str, float], show: str, scale: float = 1.0) -> str:
    """``41 C, memory 39 C``: ``show`` is a format of one value."""
    return ", ".join(
        " ".join(filter(None, (part, show.format(value * scale)))) for part, value in sorted(values.items())
    )
