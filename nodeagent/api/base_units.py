"""Readings in base units, as metrics and API show them. Drivers use the units of the vendors' libraries."""

from typing import Final

_BASE_UNITS: Final = (
    ("_minutes_total", "_seconds_total", 60.0),
    ("_bits_per_second", "_bytes_per_second", 1 / 8),
)
"""The end of a reading's name, its end in base units (the naming guide of Prometheus has these alone), and
what a value is multiplied by.
"""


def in_base_units(name: str, value: float) -> tuple[str, float]:
    """``name`` may end with the name of a part, after a point."""
    whole, point, part = name.partition(".")
    for ending, base_ending, factor in _BASE_UNITS:
        if whole.endswith(ending):
            return whole.removesuffix(ending) + base_ending + point + part, value * factor
    return name, value
