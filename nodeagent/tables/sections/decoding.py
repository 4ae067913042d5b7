"""Reads ``[decode]``: the names for the fields of Ascend event codes. The catalog does the decoding."""

import re
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from nodeagent.core.catalog.codes import Decoding, Sensor
from nodeagent.toml.fields import Report, read_form, refuse_unknown_keys, shown
from nodeagent.toml.source import ParsedFile

_PART = re.compile(r"[0-7][0-9A-F]{2}")
_SENSOR = re.compile(r"[0-9A-F]{2}")
_SECTIONS = ("parts", "sensors")

Word = Annotated[str, Meta(min_length=1, max_length=100, description="a short text in quotes")]
State = Annotated[str, Meta(max_length=100)]


class SensorForm(Struct, frozen=True, kw_only=True):
    """``[decode.sensors.C0]``"""

    name: Word
    states: Annotated[
        tuple[State, ...],
        Meta(max_length=512, description='a list of short texts, from state 0 on, "" for one without'),
    ] = ()


class PartForm(Struct, frozen=True, kw_only=True):
    name: Word


def read_decoding(source: ParsedFile, report: Report) -> Decoding:
    """The parts and sensors of the file; what is wrong is reported and left out."""
    table = source.data.get("decode", {})
    if not isinstance(table, Mapping):
        report(("decode",), f"{shown(table)} is given where the tables parts and sensors are needed")
        return Decoding()
    refuse_unknown_keys(table, _SECTIONS, ("decode",), report)
    parts, sensors = dict[str, str](), dict[str, Sensor]()
    for key, name in _entries(table, "parts", _PART, "three hexadecimal digits up to 7FF", report):
        form = read_form(PartForm, {"name": name}, ("decode", "parts", key), report)
        if form is not None:
            parts[key] = form.name
    for key, value in _entries(table, "sensors", _SENSOR, "two hexadecimal digits", report):
        sensor = read_form(SensorForm, value, ("decode", "sensors", key), report)
        if sensor is not None:
            sensors[key] = Sensor(name=sensor.name, states=sensor.states)
    return Decoding(parts=parts, sensors=sensors)


def merged(layers: list[Decoding]) -> Decoding:
    """A later layer wins per part and per sensor."""
    parts, sensors = dict[str, str](), dict[str, Sensor]()
    for layer in layers:
        parts.update(layer.parts)
        sensors.update(layer.sensors)
    return Decoding(parts=parts, sensors=sensors)


def _entries(
    table: Mapping[str, object], section: str, form: re.Pattern[str], right: str, report: Report
) -> list[tuple[str, object]]:
    entries = table.get(section, {})
    if not isinstance(entries, Mapping):
        report(("decode", section), f"{shown(entries)} is given where a table is needed")
        return []
    sound = []
    for key, value in entries.items():
        if form.fullmatch(key):
            sound.append((key, value))
        else:
            report(("decode", section, key), f"not a number of {section}: it must be {right}, in capitals")
    return sound
