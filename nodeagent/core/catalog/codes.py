"""Codes as such: how they are compared, and what the digits of an event code mean. No row, no rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_HEX_DIGITS = frozenset("0123456789ABCDEF")


def canonical(code: str) -> str:
    """The form in which codes are compared: upper case; hexadecimal codes by value.

    >>> canonical("020001002") == canonical("20001002")
    True
    """
    upper = code.strip().upper()
    return f"{int(upper, 16):08X}" if is_hexadecimal(upper) else upper


def root(code: str) -> str:
    """As it is compared, without what refines it.

    >>> root("XID_154.1")
    'XID_154'
    """
    return canonical(code).partition(".")[0]


def is_hexadecimal(code: str) -> bool:
    """True for a code that is a number: eight hexadecimal digits, or nine in the vendor's newer form."""
    return len(code) in (8, 9) and _HEX_DIGITS.issuperset(code.upper())


def covers(named: str, key: str) -> bool:
    """Whether it is that code, or the family (``XID_*``) that includes it; both as they are compared."""
    return key.startswith(named[:-1]) if named.endswith("*") else named == key


def part_of(key: str) -> str:
    """The part of a chip, three digits, that an event code of the device names as it is compared; else ""."""
    on_device = len(key) == 8 and key[0] == "8" and is_hexadecimal(key)
    return f"{_part(int(key, 16)):03X}" if on_device else ""


def _part(event_code: int) -> int:
    return event_code >> 17 & 0x7FF


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """What a part of a chip watches; ``states`` by the number of the state, "" for one without a text."""

    name: str
    states: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The texts for the fields of an event code, so that a code of no row still has a name.

    Of eight digits: bits 30-31 the side (1 host, 2 device), 28-29 not zero for black-box codes, which
    have no fields, 17-27 the part, 9-16 the sensor, 0-8 its state. ``parts`` are keyed by three digits,
    ``sensors`` by two.
    """

    parts: Mapping[str, str] = field(default_factory=dict)
    sensors: Mapping[str, Sensor] = field(default_factory=dict)

    def name(self, code: str) -> str | None:
        """``HBM RAS State: parity error``; None where the code has no such fields, or neither is known."""
        code = code.strip()
        if len(code) != 8 or code[0] not in "48" or not is_hexadecimal(code):
            return None
        number = int(code, 16)
        part_number, sensor_number, state = _part(number), number >> 9 & 0xFF, number & 0x1FF
        part = self.parts.get(f"{part_number:03X}")
        sensor = self.sensors.get(f"{sensor_number:02X}")
        if part is None and sensor is None:
            return None
        text = sensor.states[state] if sensor is not None and state < len(sensor.states) else ""
        watched = sensor.name if sensor is not None else f"Sensor 0x{sensor_number:X}"
        side = " (host side)" if code[0] == "4" else ""
        return f"{part or f'Part 0x{part_number:X}'} {watched}: {text or f'state {state}'}{side}"
