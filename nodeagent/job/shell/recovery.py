"""What an earlier supervisor has left: the session as its journal tells it, and what of its run still lives."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nodeagent.job.journal_records import decode
from nodeagent.job.model import Counts, Process, Report
from nodeagent.job.session import Session
from nodeagent.job.session_state import Phase
from nodeagent.job.shell.tree import survivors_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """``reports`` are all that were ordered: which of them the daemon has taken, the daemon knows."""

    session: Session = field(default_factory=Session)
    reports: tuple[Report, ...] = ()
    survivors: tuple[Process, ...] = ()

    def status_of(self, counts: Counts) -> int | None:
        """With which status that session left, where only the exit of its supervisor was missing."""
        state = self.session.state
        is_this = state.phase is Phase.LEFT and state.counts.schedule == counts.schedule
        return state.status if is_this else None


def recover(lines: Sequence[bytes], marker: tuple[str, str] | None) -> Recovered:
    """``marker``: a variable that each process of the job has in its environment. Raises ``JournalError``."""
    session = Session()
    reports: list[Report] = []
    for at_ns, given in decode(lines):
        reports += (order for order in session.step(at_ns, given) if isinstance(order, Report))
    survivors = survivors_of(session.state.process, marker)
    return Recovered(session=session, reports=tuple(reports), survivors=survivors)
