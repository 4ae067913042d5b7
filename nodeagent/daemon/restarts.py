"""Which keys of the configuration only a start takes, so that a reload can tell of them. Pure."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import fields

from nodeagent.config import Config

_SECTIONS: Final = ("agent", "metrics", "grpc", "reset", "store")
_AT_A_RELOAD: Final = frozenset(
    f"agent.{key}"
    for key in (
        "mode",
        "tables",
        "request_tolerance",
        "self_healing",
        "max_isolated_chips",
        "stale_after",
        "once_hold",
        "unknown_level",
    )
)
_OF_RESETS: Final = "reset."
_WHERE_RESETS_RUN: Final = "reset.run_dir"


def left_for_a_start(started_with: Config, now: Config) -> tuple[str, ...]:
    """One sentence for each key that has changed and that a reload does not take."""
    return tuple(
        f"{key} has changed: it is taken at the next start, not by a reload"
        for key in _changed(started_with, now)
        if key not in _AT_A_RELOAD and (not key.startswith(_OF_RESETS) or key == _WHERE_RESETS_RUN)
    )


def _changed(before: Config, after: Config) -> Iterator[str]:
    for section in _SECTIONS:
        yield from _changed_in(section, getattr(before, section), getattr(after, section))
    for name in sorted(after.drivers):
        yield from _changed_in(f"drivers.{name}", before.drivers[name], after.drivers[name])


def _changed_in(section: str, before: Struct, after: Struct) -> Iterator[str]:
    for field in fields(after):
        if getattr(before, field.name) != getattr(after, field.name):
            yield f"{section}.{field.encode_name}"
