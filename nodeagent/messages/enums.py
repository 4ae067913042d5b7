"""The enums of the API and those of the core: one table for each, built whole at import.

A name without a number, or a number without a name, stops the import. It decides nothing and reads nothing.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from nodeagent.core.model import (
    Assertion,
    EventKind,
    Handling,
    HoldKind,
    JobStage,
    Kind,
    Level,
    Recommendation,
    Reported,
    ResetMode,
    ResetStage,
    Verdict,
    Wanted,
)
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2
from nodeagent.messages.pb import types_pb2 as pb

Name = TypeVar("Name", bound=str)


class EnumError(Exception):
    """The names and numbers of an enum do not match; the message names it and what to add."""


def names_of(enum: EnumTypeWrapper, prefix: str) -> dict[str, int]:
    """Number by name without the prefix, but for the first: ``PREFIX_UNSPECIFIED``."""
    return {name.removeprefix(f"{prefix}_"): number for name, number in enum.items() if number}


def numbers_of(
    members: type[StrEnum],
    enum: EnumTypeWrapper,
    prefix: str,
    other_names: Mapping[str, str] | None = None,
) -> dict[Any, Any]:
    """Number by member of the core's enum. Its name in the proto is the prefix and the member's;
    ``other_names`` has those that differ.

    Raises ``EnumError`` unless they are one to one.
    """
    other_names, left = other_names or {}, names_of(enum, prefix)
    numbers = {}
    for member in members:
        name = other_names.get(member.name, member.name)
        if name not in left:
            raise EnumError(
                f"{members.__name__}.{member.name}: the proto's enum has no {prefix}_{name}; add it"
            )
        numbers[member] = left.pop(name)
    if left:
        added = ", ".join(left)
        raise EnumError(f"the proto's enum {prefix} also has {added}; add it to {members.__name__}")
    return numbers


def _names(enum: EnumTypeWrapper, prefix: str) -> dict[str, Any]:
    """An enum that the core has no class for: its names in small letters."""
    return {name.lower(): number for name, number in names_of(enum, prefix).items()}


KINDS: Final[Mapping[Kind, pb.Kind]] = numbers_of(Kind, pb.Kind, "KIND")
VERDICTS: Final[Mapping[Verdict, pb.Verdict]] = numbers_of(Verdict, pb.Verdict, "VERDICT")
HANDLINGS: Final[Mapping[Handling, pb.Handling]] = numbers_of(Handling, pb.Handling, "HANDLING")
EVENT_KINDS: Final[Mapping[EventKind, pb.EventKind]] = numbers_of(EventKind, pb.EventKind, "EVENT_KIND")
ASSERTIONS: Final[Mapping[Assertion, pb.Assertion]] = numbers_of(Assertion, pb.Assertion, "ASSERTION")
HOLD_KINDS: Final[Mapping[HoldKind, pb.HoldKind]] = numbers_of(HoldKind, pb.HoldKind, "HOLD_KIND")
RESET_MODES: Final[Mapping[ResetMode, pb.ResetMode]] = numbers_of(ResetMode, pb.ResetMode, "RESET_MODE")
RESET_STAGES: Final[Mapping[ResetStage, pb.ResetStage]] = numbers_of(ResetStage, pb.ResetStage, "RESET_STAGE")
JOB_STAGES: Final[Mapping[JobStage, pb.JobStage]] = numbers_of(JobStage, pb.JobStage, "JOB_STAGE")
WANTED: Final[Mapping[Wanted, pb.Wanted]] = numbers_of(Wanted, pb.Wanted, "WANTED")
RECOMMENDATIONS: Final[Mapping[Recommendation, pb.Recommendation]] = numbers_of(
    Recommendation, pb.Recommendation, "RECOMMENDATION"
)
LEVELS: Final[Mapping[Level, pb.Level]] = numbers_of(
    Level, pb.Level, "LEVEL", {"NOT_HANDLE": "NOT_HANDLE_FAULT", "SUB_HEALTH": "SUB_HEALTH_FAULT"}
)
PUBLIC_FAULT_OUTCOMES: Final[Mapping[Reported, control_service_pb2.PublicFaultOutcome]] = numbers_of(
    Reported, control_service_pb2.PublicFaultOutcome, "PUBLIC_FAULT_OUTCOME"
)
PUBLIC_FAULT_TYPES: Final[Mapping[str, control_service_pb2.PublicFaultType]] = _names(
    control_service_pb2.PublicFaultType, "PUBLIC_FAULT_TYPE"
)
REASON_KINDS: Final[Mapping[str, pb.ReasonKind]] = _names(pb.ReasonKind, "REASON_KIND")
SNAPSHOT_REASONS: Final[Mapping[str, fault_service_pb2.SnapshotReason]] = _names(
    fault_service_pb2.SnapshotReason, "SNAPSHOT_REASON"
)


def _reversed(numbers: Mapping[Name, Any]) -> dict[int, Name]:
    return {number: name for name, number in numbers.items()}


KIND_OF: Final = _reversed(KINDS)
VERDICT_OF: Final = _reversed(VERDICTS)
HANDLING_OF: Final = _reversed(HANDLINGS)
EVENT_KIND_OF: Final = _reversed(EVENT_KINDS)
ASSERTION_OF: Final = _reversed(ASSERTIONS)
RESET_MODE_OF: Final = _reversed(RESET_MODES)
RESET_STAGE_OF: Final = _reversed(RESET_STAGES)
JOB_STAGE_OF: Final = _reversed(JOB_STAGES)
WANTED_OF: Final = _reversed(WANTED)
RECOMMENDATION_OF: Final = _reversed(RECOMMENDATIONS)
LEVEL_OF: Final = _reversed(LEVELS)
PUBLIC_FAULT_TYPE_OF: Final = _reversed(PUBLIC_FAULT_TYPES)
REASON_KIND_OF: Final = _reversed(REASON_KINDS)
HOLD_KIND_OF: Final = _reversed(HOLD_KINDS)
SNAPSHOT_REASON_OF: Final = _reversed(SNAPSHOT_REASONS)

NUMBERS: Final[Mapping[str, Mapping[Any, Any]]] = {
    "Kind": KINDS,
    "Verdict": VERDICTS,
    "Handling": HANDLINGS,
    "EventKind": EVENT_KINDS,
    "Assertion": ASSERTIONS,
    "HoldKind": HOLD_KINDS,
    "ResetMode": RESET_MODES,
    "ResetStage": RESET_STAGES,
    "JobStage": JOB_STAGES,
    "Wanted": WANTED,
    "Recommendation": RECOMMENDATIONS,
    "Level": LEVELS,
    "PublicFaultOutcome": PUBLIC_FAULT_OUTCOMES,
    "PublicFaultType": PUBLIC_FAULT_TYPES,
    "ReasonKind": REASON_KINDS,
    "SnapshotReason": SNAPSHOT_REASONS,
}
"""By the enum's name in the proto: number by name."""

NAMES: Final[Mapping[str, Mapping[int, str]]] = {name: _reversed(each) for name, each in NUMBERS.items()}
"""By the enum's name in the proto: name by number."""


def level_number(level: Level | None) -> pb.Level:
    return pb.LEVEL_UNSPECIFIED if level is None else LEVELS[level]
