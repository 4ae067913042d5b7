"""Small, named defects of what becomes of reports: each must be caught."""

from typing import Any

from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.catalog.settings import PublicSettings
from nodeagent.core.faults import reported
from nodeagent.core.model import Condition, Origin, PublicFault, Report
from nodeagent.core.state import deadlines
from nodeagent.core.state.state import EngineState
from tests.simulation.mutations.mutation import Mutation

_silence_ns = deadlines.silence_ns


def _nothing(*_: Any) -> bool:
    return False


def _early(lookup: Lookup, origin: Origin) -> int | None:
    """Beyond what a repetition that was not stored allows."""
    due_ns = _silence_ns(lookup, origin)
    if due_ns is None or origin.report is None:
        return due_ns
    expiry_ns = lookup.settings.public.expiry_ns(origin.report.sender)
    return due_ns - expiry_ns // deadlines.RENEWALS - 1


def _ended_by_anybody(state: EngineState, fault: PublicFault) -> list[tuple[Condition, Report]]:
    return list(reported._open_under(state, fault.report))


def _for_ever(_: PublicSettings, sender: str) -> int:
    return 2**62


MUTATIONS: tuple[Mutation, ...] = (
    Mutation("senders share their fault ids", ((Report, "key", property(lambda self: self.fault_id)),)),
    Mutation("nothing expires", ((deadlines, "silence_ns", lambda *_: None),)),
    Mutation("a fault expires early", ((deadlines, "silence_ns", _early),)),
    Mutation("a repetition renews nothing", ((reported, "_renewed", _nothing),)),
    Mutation("a start leaves no time to repeat", ((reported, "began_again", _nothing),)),
    Mutation("a late occurrence opens again", ((reported, "_is_withdrawn", _nothing),)),
    Mutation("a repetition is always another fault", ((reported, "_is_known", _nothing),)),
    Mutation("anybody ends what another opened", ((reported, "_ended_by", _ended_by_anybody),)),
    Mutation("that it is over is never forgotten", ((PublicSettings, "recovery_kept_ns", _for_ever),)),
)
