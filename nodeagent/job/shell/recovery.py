"""What an earlier supervisor has left: the session as its journal tells it, and what of its run still lives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nodeagent.job.model import Process, Report
from nodeagent.job.session import Session
from nodeagent.job.session_state import Phase
from nodeagent.job.shell.tree import survivors_of

if TYPE_CHECKING:
    from nodeagent.job.shell.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """``reports`` are all that were ordered: which of them the daemon has taken, the daemon knows."""

    session: Session = field(default_factory=Session)
    reports: tuple[Report, ...] = ()
    survivors: tuple[Process, ...] = ()

    @property
    def has_left(self) -> bool:
        """It had come to its end, and only its exit was missing."""
        return self.session.state.phase is Phase.LEFT


def recover(journal: Journal | None, marker: tuple[str, str]) -> Recovered:
    """``marker``: a variable that each process of the job has in its environment. Raises ``JournalError``."""
    if journal is None or not journal.earlier:
        return Recovered()
    session = Session()
    reports: list[Report] = []
    for at_ns, given in journal.given():
        orders = session.step(at_ns, given)
        reports += (order for order in orders if isinstance(order, Report))
    survivors = survivors_of(session.state.process, marker)
    return Recovered(session=session, reports=tuple(reports), survivors=survivors)
