"""What earlier supervisors have left: the session by its journal, what of its run still lives, the counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodeagent.job.counts import run_state
from nodeagent.job.inputs import Process
from nodeagent.job.json_file import JsonFileError
from nodeagent.job.model import Counts
from nodeagent.job.orders import Report
from nodeagent.job.policy.environment import SCHEDULE_COUNT
from nodeagent.job.session.journal_records import decode, replay
from nodeagent.job.session.session import Session
from nodeagent.job.session.session_state import Phase
from nodeagent.job.shell.disk import regular_files
from nodeagent.job.shell.disk.state import State
from nodeagent.job.shell.messages import print_message
from nodeagent.job.shell.processes.tree import survivors_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """``reports`` are all that were ordered: which of them the daemon has taken, the daemon knows."""

    session: Session = field(default_factory=Session)
    reports: tuple[Report, ...] = ()
    survivors: tuple[Process, ...] = ()

    def has_left(self, counts: Counts) -> bool:
        """Whether that session left, and only the exit of its supervisor was missing. One that a signal ended
        is no end of the job: whoever starts another supervisor wants it to run.
        """
        state = self.session.state
        return state.phase is Phase.LEFT and state.signal is None and state.counts.schedule == counts.schedule


def recover(lines: Sequence[bytes], marker: tuple[str, str] | None) -> Recovered:
    """``marker``: a variable that each process of the job has in its environment.

    Raises ``journal_records.JournalError``.
    """
    session, orders = replay(decode(lines))
    return Recovered(
        session=session,
        reports=tuple(order for order in orders if isinstance(order, Report)),
        survivors=survivors_of(session.state.process, marker),
    )


def counts_of(place: State | None, job: str, environment: Mapping[str, str], session: Session) -> Counts:
    """What the placements before have left, with the number of this one: as the platform says, else as Slurm
    counts restarts, else one more than before.
    """
    kept = None if place is None or not place.is_given else kept_counts(place, job)
    restarts = _number(environment.get("SLURM_RESTART_COUNT"))
    schedule = _number(environment.get(SCHEDULE_COUNT))
    if not schedule and restarts is not None:
        schedule = restarts + 1
    if not schedule:
        goes_on = session.state.phase is not Phase.NEW
        schedule = session.state.counts.schedule if goes_on else 1 + (0 if kept is None else kept.schedule)
    if kept is None:
        return Counts(schedule=schedule, placements=restarts or 0)
    return replace(kept, schedule=schedule)


def kept_counts(place: State, job: str) -> Counts | None:
    """None where there are none; what is no such file is moved aside, and a message says so."""
    try:
        text = regular_files.read(place.counts, run_state.MAX_BYTES).decode()
        return run_state.decode(text, job=job)
    except FileNotFoundError:
        return None
    except OSError as error:
        print_message(f"{place.counts}: {error.strerror}; counting begins anew")
        return None
    except (JsonFileError, UnicodeDecodeError) as error:
        print_message(f"{place.counts}: {error}; {_moved(place)}, counting begins anew")
        return None


def _moved(place: State) -> str:
    try:
        return f"it is moved to {place.move_counts_aside().name}"
    except OSError as error:
        return f"it cannot be moved aside ({error.strerror})"


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
