"""Which keys of the configuration only a start takes, so that a reload can name them. Pure."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import fields

from nodeagent.config.config import Config

_SECTIONS: Final = ("agent", "metrics", "grpc", "reset", "store", "jobs", "nvrx")
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
_EXPECTED_CHIPS: Final = ".expected_chips"
"""The end of this key of each driver that has it."""

_OF_RESETS: Final = "reset."
_OF_JOBS: Final = "jobs."
_WHERE_JOBS_COME: Final = ("jobs.enabled", "jobs.socket")
_WHERE_RESETS_RUN: Final = "reset.run_dir"


def left_for_a_start(started_with: Config, now: Config) -> tuple[str, ...]:
    """One sentence for each key that has changed and that a reload does not take."""
    return tuple(
        f"{key} changed: restart nodeagent to apply it"
        for key in _changed(started_with, now)
        if not _is_taken_at_a_reload(key)
    )


def _is_taken_at_a_reload(key: str) -> bool:
    if key.startswith(_OF_RESETS):
        return key != _WHERE_RESETS_RUN
    if key.startswith(_OF_JOBS):
        return key not in _WHERE_JOBS_COME
    return key in _AT_A_RELOAD or key.endswith(_EXPECTED_CHIPS)


def _changed(before: Config, after: Config) -> Iterator[str]:
    for section in _SECTIONS:
        yield from _changed_in(section, getattr(before, section), getattr(after, section))
    for name in sorted(after.drivers):
        yield from _changed_in(f"drivers.{name}", before.drivers[name], after.drivers[name])


def _changed_in(section: str, before: Struct, after: Struct) -> Iterator[str]:
    for field in fields(after):
        if getattr(before, field.name) != getattr(after, field.name):
            yield f"{section}.{field.encode_name}"
