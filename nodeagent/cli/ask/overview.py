"""What is wrong on a node and what happens next, as short lines: one for each device that is not well.

A snapshot goes in, values and texts come out. It judges nothing, reads no clock and writes nothing: ages are
counted to the time of the snapshot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.shared.texts import age, counted, enum_text, for_people, is_unlisted, named
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.model import NODE
from nodeagent.core.state.names import natural
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

JOB: Final = "JOB"
"""The head of the column of jobs."""

_NO_SUPERVISOR: Final = (types_pb2.JOB_STAGE_UNSPECIFIED, types_pb2.JOB_STAGE_ENDED)

_BY_HANDLING: Final[Mapping[int, str]] = {
    types_pb2.HANDLING_JOB_STRATEGY: "the job decides",
    types_pb2.HANDLING_RERUN_REQUEST: "requests run again",
    types_pb2.HANDLING_RESTART_JOB: "the job runs again",
    types_pb2.HANDLING_RESET_WHEN_IDLE: "reset once idle",
    types_pb2.HANDLING_STOP_RESET_RESTART: "job stops, reset",
    types_pb2.HANDLING_RESCHEDULE: "jobs move away",
}
_BY_STAGE: Final[Mapping[int, str]] = {
    types_pb2.RESET_STAGE_ASKING: "reset: approve it",
    types_pb2.RESET_STAGE_WAITING: "reset waits",
    types_pb2.RESET_STAGE_RUNNING: "is reset now",
    types_pb2.RESET_STAGE_VERIFYING: "reset, is checked",
}
_BY_RESULT: Final[Mapping[str, str]] = {"": "", "done": "", "refused": "reset refused"}
"""How a reset ended for a fault that is still open; any other is a failure."""

_AT_WORK: Final = (types_pb2.RESET_STAGE_RUNNING, types_pb2.RESET_STAGE_VERIFYING)

_STAGES: Final[Mapping[int, str]] = {
    types_pb2.RESET_STAGE_ASKING: "is refused unless approved before {due}: nodeagent approve {asker}",
    types_pb2.RESET_STAGE_WAITING: "waits, until {due} at the latest",
    types_pb2.RESET_STAGE_RUNNING: "is being done",
    types_pb2.RESET_STAGE_VERIFYING: "is done; a poll has to show that the chips are well",
    types_pb2.RESET_STAGE_ANNOUNCED: "begins at {due}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRow:
    """A device that is not well: its worst fault, since when, the job on it, and what happens next."""

    device: str
    verdict: str
    code: str = ""
    age: str = "-"
    job: str = ""
    next_step: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """``held`` are the devices that only wait for the reset of another, by its name. ``explained`` are the
    ids of the holds whose reason a row shows. ``well`` counts the other devices, ``harmless`` the open
    conditions that have no row.
    """

    rows: tuple[DeviceRow, ...]
    held: Mapping[str, tuple[str, ...]]
    explained: frozenset[str]
    well: int
    harmless: int


def overview(current: pb.Snapshot, *, every: bool) -> Overview:
    """``every``: also a row for each device that is well, and for each condition."""
    states = [_DeviceState(device, current) for device in sorted(current.devices, key=worst_first)]
    held: dict[str, list[str]] = {}
    rows: list[DeviceRow] = []
    explained: set[str] = set()
    well = shown = 0
    for state in states:
        if not every and state.is_well:
            well += state.device.name != NODE
        elif not every and (asker := state.held_for):
            held.setdefault(asker, []).append(state.device.name)
        elif state.device.name != NODE or not state.is_well:
            rows.extend(state.rows(every=every))
            explained.update(state.explained)
            shown += len(state.conditions)
    return Overview(
        rows=tuple(rows),
        held={asker: tuple(devices) for asker, devices in held.items()},
        explained=frozenset(explained),
        well=well,
        harmless=len(current.conditions) - shown,
    )


def row_of(device: types_pb2.Device, current: pb.Snapshot) -> DeviceRow:
    """Its row, also where it is well."""
    return _DeviceState(device, current).rows(every=False)[0]


def worst_first(device: types_pb2.Device) -> tuple[bool, bool, int, int, object]:
    """Chips that no driver lists come last, as in the headline: they may be an old log's."""
    return (
        device.name != NODE,
        is_unlisted(device),
        -device.verdict,
        -device.handling,
        natural(device.name),
    )


def next_step(device: types_pb2.Device, current: pb.Snapshot) -> str:
    """What becomes of it without a person, or which person decides; "" where nothing does."""
    return _DeviceState(device, current).next_step()


class _DeviceState:
    """One device, and what is open on it, the worst first."""

    def __init__(self, device: types_pb2.Device, current: pb.Snapshot) -> None:
        self.device = device
        self.conditions = sorted(
            (each for each in current.conditions if each.device_id == device.id), key=_highest_first
        )
        self._current = current
        self._holds = [each for each in current.holds if each.device_id == device.id]
        self._promotions = [each for each in current.promotions if each.device_id == device.id]
        resets = [each for each in current.resets if device.name in each.devices]
        self._resets = [each for each in resets if each.stage != types_pb2.RESET_STAGE_ENDED]
        self._ended = [each for each in resets if each not in self._resets and each.devices[0] == device.name]

    @property
    def is_well(self) -> bool:
        device = self.device
        return device.verdict == types_pb2.VERDICT_ALLOW and device.handling == types_pb2.HANDLING_NONE

    @property
    def held_for(self) -> str:
        """The device whose reset is the only reason that this one takes no work, "" where it is not so."""
        others = [each for each in self._resets if each.devices[0] != self.device.name]
        only_held = {each.kind for each in self._holds} == {types_pb2.HOLD_KIND_RESET_PENDING}
        is_faulty = any(each.level != types_pb2.LEVEL_NOT_HANDLE_FAULT for each in self.conditions)
        is_seen = self.device.observed or self._is_reset_now
        if not others or not only_held or is_faulty or self._promotions or not is_seen:
            return ""
        return others[0].devices[0]

    @property
    def _is_reset_now(self) -> bool:
        """No device is observed meanwhile."""
        return any(each.stage in _AT_WORK for each in self._resets)

    @property
    def explained(self) -> list[str]:
        """A hold without an end, where nothing else is open."""
        is_all = len(self._holds) == 1 and not self.conditions and not self._promotions
        return [each.id for each in self._holds if is_all and not each.HasField("until")]

    def rows(self, *, every: bool) -> list[DeviceRow]:
        code, since, fault = self._worst()
        more = self.conditions[1:]
        if more and not every:
            fault = f"{fault} (and {len(more)} more)"
        row = DeviceRow(
            device=self.device.name,
            verdict=enum_text(enums.VERDICT_OF, self.device.verdict),
            code=code,
            age=age(since, self._current.at) if since is not None else "-",
            job=self._job(),
            next_step=self.next_step(),
            fault=fault,
        )
        return [row, *(self._further(each) for each in more if every)]

    def _worst(self) -> tuple[str, Timestamp | None, str]:
        """Code, since when, and name of its worst fault; where none is open, of what else keeps work away."""
        if self.conditions:
            first = self.conditions[0]
            return first.code, first.opened_at, first.name
        if self._promotions:
            promotion = self._promotions[0]
            return promotion.code, promotion.fired_at, promotion.name
        if self._holds:
            return "", self._holds[0].since, self._holds[0].reason
        return self._of_another()

    def _of_another(self) -> tuple[str, Timestamp | None, str]:
        """The worst of what another device has against this one, as a port may against its node."""
        reason = max(self.device.reasons, key=severity, default=types_pb2.Reason())
        opened = {each.id: (each.opened_at, each.device) for each in self._current.conditions}
        fired = {each.id: (each.fired_at, each.device) for each in self._current.promotions}
        since, device = (opened | fired).get(reason.id, (None, ""))
        return reason.code, since, f"{reason.text} on {device}" if device else reason.text

    def _further(self, condition: types_pb2.Condition) -> DeviceRow:
        return DeviceRow(
            device=self.device.name,
            verdict="",
            code=condition.code,
            age=age(condition.opened_at, self._current.at),
            fault=condition.name,
        )

    def _job(self) -> str:
        name = self.device.name
        supervised = [each.name for each in self._current.jobs if name in each.devices and each.stage]
        jobs = dict.fromkeys((*supervised, *(claim.job for claim in self.device.claims)))
        first = next(iter(jobs), "")
        return f"{first} +{len(jobs) - 1}" if len(jobs) > 1 else first

    def next_step(self) -> str:
        if not self.device.observed and self.device.name != NODE and not self._is_reset_now:
            return "is not observed"
        for reset in self._resets:
            if reset.mode == types_pb2.RESET_MODE_DRY_RUN:
                return "" if self.is_well else "no reset: dry-run"
            if _needs_approval(reset):
                return _BY_STAGE[types_pb2.RESET_STAGE_ASKING]
            if reset.stage == types_pb2.RESET_STAGE_ANNOUNCED:
                return f"reset in {age(self._current.at, reset.due_at)}"
            return _BY_STAGE.get(reset.stage, "reset")
        for hold in self._holds:
            if hold.kind == types_pb2.HOLD_KIND_ISOLATION:
                return f"isolated by {hold.owner}"
            if hold.kind == types_pb2.HOLD_KIND_QUIESCE:
                return "quiesced"
        if self._promotions:
            return "release or replace"
        return self._failed_reset() or _BY_HANDLING.get(self.device.handling, "")

    def _failed_reset(self) -> str:
        """How the last reset for its worst fault ended, "" where none was in vain."""
        codes = {each.code for each in self.conditions[:1]}
        ended = [each.result for each in self._ended if codes & set(each.codes)]
        return _BY_RESULT.get(ended[-1].partition(":")[0], "reset failed") if ended else ""


def reset_lines(current: pb.Snapshot) -> list[tuple[types_pb2.Reset, str]]:
    """A line for each reset: what is reset, where that is, and the first thing that it waits for."""
    return [(reset, _reset_line(reset, current)) for reset in current.resets]


def _reset_line(reset: types_pb2.Reset, current: pb.Snapshot) -> str:
    asker, *others = reset.devices
    which = f"{asker} (and with it {named(others)})" if others else asker
    why = f"ordered by {reset.who} ({reset.reason})" if reset.who else f"for {', '.join(reset.codes)}"
    head = f"reset of {which} {why}"
    if reset.stage == types_pb2.RESET_STAGE_ENDED:
        ended_at = reset.ended_at if reset.HasField("ended_at") else reset.proposed_at
        return f"{head}: {reset.result or 'ended'}, {age(ended_at, current.at)} ago"
    if reset.mode == types_pb2.RESET_MODE_DRY_RUN:
        return (
            f"{head}: only recorded, resets are not done here (reset.mode is dry-run);"
            f' nodeagent reset {asker} --once --reason "..." does it'
        )
    if _needs_approval(reset) and reset.stage == types_pb2.RESET_STAGE_ANNOUNCED:
        return f"{head} needs an approval: nodeagent approve {asker}"
    due = for_people(reset.due_at, current.at) if reset.HasField("due_at") else "?"
    stage = _STAGES.get(reset.stage, "goes on").format(due=due, asker=asker)
    waits = ""
    if reset.blocked_by:
        more = f" (and {len(reset.blocked_by) - 1} more)" if len(reset.blocked_by) > 1 else ""
        waits = f": {reset.blocked_by[0]}{more}"
    attempt = f", attempt {reset.attempt}" if reset.attempt > 1 else ""
    return f"{head}{attempt} {stage}{waits}"


def _needs_approval(reset: types_pb2.Reset) -> bool:
    is_asked = reset.stage in (types_pb2.RESET_STAGE_ANNOUNCED, types_pb2.RESET_STAGE_ASKING)
    return is_asked and reset.mode == types_pb2.RESET_MODE_ASK and not reset.approved


def job_counts(current: pb.Snapshot, *, every: bool) -> tuple[list[types_pb2.Job], int]:
    """The supervised jobs that do not simply run (``every``: all), and how many others there are."""
    supervised = [job for job in current.jobs if job.stage not in _NO_SUPERVISOR]
    moved = [job for job in supervised if every or _is_moved(job)]
    return moved, len(supervised) - len(moved)


def _is_moved(job: types_pb2.Job) -> bool:
    return job.stage != types_pb2.JOB_STAGE_RUNNING or job.recommended != types_pb2.RECOMMENDATION_NONE


def rest_line(shown: Overview) -> str:
    """What has no row, "" where there is nothing more."""
    parts = []
    if shown.well:
        what = "other device" if shown.rows else "device"
        parts.append(f"{counted(shown.well, what)} {'is' if shown.well == 1 else 'are'} well")
    if shown.harmless:
        affect = "affects" if shown.harmless == 1 else "affect"
        parts.append(f"{counted(shown.harmless, 'open condition')} that {affect} no work")
    return f"{'; '.join(parts)}; --all shows each" if parts else ""


def severity(reason: types_pb2.Reason) -> int:
    """The place of its level among the levels; 0 for none, and for one that only a newer daemon knows."""
    level = enums.LEVEL_OF.get(reason.level)
    return PRECEDENCE[level] if level else 0


def _highest_first(condition: types_pb2.Condition) -> tuple[int, int]:
    level = enums.LEVEL_OF.get(condition.level)
    return -PRECEDENCE[level] if level else -len(PRECEDENCE), condition.opened_at.seconds


def texts_of(rows: Sequence[DeviceRow]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of a table; the job has a column where there is one."""
    has_jobs = any(row.job for row in rows)
    columns = ["DEVICE", "VERDICT", "AGE", "NEXT", *([JOB] if has_jobs else []), "FAULT"]
    cells = [
        [
            *(row.device, row.verdict, row.age, row.next_step or "-"),
            *([row.job or "-"] if has_jobs else []),
            " ".join(filter(None, (row.code, row.fault))),
        ]
        for row in rows
    ]
    return columns, cells
