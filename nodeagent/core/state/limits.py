"""What bounds the core's memory: how many of each thing it keeps, and what it forgets first.

What changes a verdict is never forgotten: beyond its cap it is refused, or something milder makes way
(``faults.conditions``), and ``too_many_faults`` reports it. What only counts (windows, sightings, traces,
notices) is forgotten, the longest unused first.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    Absorbed,
    Cell,
    Condition,
    Device,
    Hold,
    Job,
    JobStage,
    Ordinal,
    Promotion,
    Reset,
    RuleCell,
    Severity,
    Sighting,
    Trace,
    Window,
    Withdrawn,
)
from nodeagent.core.state.names import answers_for, is_first_of_cgroup
from nodeagent.core.state.state import EngineState

MAX_DEVICES = 1024
MAX_PARTS_ON_CHIP = 32
MAX_CONDITIONS = 4096
MAX_CONDITIONS_ON_DEVICE = 256
MAX_REPORTED_ON_DEVICE = 128
"""Conditions that other systems report: half of what a device may have, so that its own sources always find
room. A message has at most 100 faults.
"""

MAX_INJECTED = 256
MAX_PROMOTIONS = 4096
MAX_HOLDS = 1024
MAX_HOLDS_OF_OWNER = 16
"""The most holds of one owner on one device."""

MAX_CLAIMS_ON_DEVICE = 64
MAX_RESETS = 256
MAX_JOBS = 64
"""With a supervisor that has not left."""

MAX_JOBS_UNPROVEN = 40
"""But for the first of each job that a cgroup proves: a user has as many others as he has processes."""

MAX_JOBS_OF_USER = 32
"""Those of a supervisor that died count for a minute: no user may keep all of the others out."""

MAX_ENDED_JOBS = 256
ENDED_JOBS_NS = 30 * 24 * 3600 * SECOND_NS
MAX_NOTICED = 1024
MAX_ORDINALS = 8192

MAX_RULE_CELLS = 8192
"""The most cells of each kind of rules."""

_REMEMBERED: dict[type[Cell], int] = {
    Window: 4096,
    Sighting: 4096,
    Severity: 4096,
    Trace: 4096,
    Absorbed: 4096,
    Withdrawn: 4096,
}

INJECTED = "!injected"
"""Ends the name of a condition that is injected."""

_FORGOTTEN = ""
"""The key of the ordinal that replaces all of a device's that were forgotten."""
_NO_DEVICE = ""
"""The device of the ordinal that replaces those of all devices."""


def room_for_device(state: EngineState) -> bool:
    return len(state.cells[Device]) < MAX_DEVICES


def room_for_part(state: EngineState, chip: Device) -> bool:
    return room_for_device(state) and len(state.parts(chip.id)) < MAX_PARTS_ON_CHIP


def room_for_promotion(state: EngineState) -> bool:
    return len(state.cells[Promotion]) < MAX_PROMOTIONS


def room_for_rule_cell(state: EngineState, of: type[RuleCell]) -> bool:
    return len(state.cells[of]) < MAX_RULE_CELLS


def why_no_job(state: EngineState, name: str, uid: int) -> str:
    """Why no job of that name may begin, "" where it may: those that have ended count by themselves."""
    if len(state.live_jobs) >= MAX_JOBS:
        return f"{MAX_JOBS} jobs are supervised already"
    unproven = sum(not is_first_of_cgroup(job.name) for job in state.live_jobs.values())
    if not is_first_of_cgroup(name) and unproven >= MAX_JOBS_UNPROVEN:
        return f"{MAX_JOBS_UNPROVEN} jobs besides the first of each cgroup are supervised already"
    counted_for = answers_for(name, uid)
    of_same = sum(answers_for(job.name, job.peer.uid) == counted_for for job in state.live_jobs.values())
    if of_same >= MAX_JOBS_OF_USER:
        return f"{MAX_JOBS_OF_USER} jobs of {counted_for} are supervised already"
    return ""


def forget_ended_jobs(state: EngineState) -> None:
    """Drop those beyond the cap: first those that may be of any number, then those that ended first."""
    ended = [job for job in state.all(Job) if job.stage is JobStage.ENDED]
    ended.sort(key=lambda job: (is_first_of_cgroup(job.name), job.since_ns, job.name))
    for job in ended[: max(0, len(ended) - MAX_ENDED_JOBS)]:
        state.drop(job)


def remember(state: EngineState, cell: Window | Sighting | Severity | Trace | Absorbed | Withdrawn) -> None:
    """Put it; where there are too many of its type, the one not put for longest goes."""
    state.put(cell)
    cells = state.cells[type(cell)]
    if len(cells) > _REMEMBERED[type(cell)]:
        state.drop(next(iter(cells.values())))


def number_of_code(key: str, injected: bool = False) -> str:
    """The key under which the conditions of a code (as codes are compared) are numbered."""
    return f"{key}{INJECTED}" if injected else key


def number_of_rule(rule: str) -> str:
    """The key under which the promotions of a rule are numbered."""
    return f"rule:{rule}"


def next_id(
    state: EngineState,
    of: type[Condition | Promotion | Hold | Reset],
    device_id: str,
    name: str,
    key: str = "",
) -> str:
    """The id of a new one of that name, numbered under ``key`` (``name`` if empty): no id comes twice, even
    where a number was forgotten, nor one that is there though damage has lost its number.
    """
    key = key or name
    before = state.get(Ordinal, device_id, key) or Ordinal(device_id=device_id, key=key, last=0)
    last = 1 + max(before.last, _last_forgotten(state, device_id), _last_forgotten(state, _NO_DEVICE))
    while state.get(of, f"{device_id}/{name}#{last}") is not None:
        last += 1
    state.put(replace(before, last=last))
    while len(state.cells[Ordinal]) > MAX_ORDINALS:
        _forget(state, next(iter(state.cells[Ordinal].values())))
    return f"{device_id}/{name}#{last}"


def _forget(state: EngineState, oldest: Ordinal) -> None:
    """First into its device's, then into that of all: so it becomes less, however many devices there were."""
    state.drop(oldest)
    device_id = oldest.device_id if oldest.key != _FORGOTTEN else _NO_DEVICE
    last = max(oldest.last, _last_forgotten(state, device_id))
    state.put(Ordinal(device_id=device_id, key=_FORGOTTEN, last=last))


def _last_forgotten(state: EngineState, device_id: str) -> int:
    forgotten = state.get(Ordinal, device_id, _FORGOTTEN)
    return forgotten.last if forgotten is not None else 0


# ---------------------------------------------------------------------- what makes way


Ranked = TypeVar("Ranked", Condition, Promotion)
Worth = tuple[bool, int, bool, bool]
"""Real, how strict, of a device that a driver lists, and found by this node: of two that are compared, the
greater stays.
"""

MADE_WAY = "it made way for a worse fault: there are too many"


def mildest(state: EngineState, among: Iterable[Ranked], than: Worth) -> Ranked | None:
    """The one of least worth, of several the one not reported for longest; None where none is worth less."""
    found = min(among, key=lambda cell: (worth(state, cell), _heard_ns(cell)))
    return found if worth(state, found) < than else None


def worth(state: EngineState, cell: Condition | Promotion) -> Worth:
    is_seen = state.device(cell.device_id).seen
    if isinstance(cell, Promotion):
        return True, PRECEDENCE[cell.level], is_seen, True
    return not cell.origin.injected, PRECEDENCE[cell.level], is_seen, cell.origin.report is None


def _heard_ns(cell: Condition | Promotion) -> int:
    return cell.presence.heard_ns if isinstance(cell, Condition) else cell.fired_ns
