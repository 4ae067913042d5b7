"""What must hold of every simulated node, one sentence a class. New ones join the list here.

Rules on what is done to devices (limits of resets, no action without a durable record) join it together
with the policy that acts.
"""

from tests.simulation.invariants.clocks import RuleClock
from tests.simulation.invariants.devices import NoOtherDevice, StartsClean
from tests.simulation.invariants.durable import NothingTwice, NothingVisibleBeforeDurable, SequenceWithoutGap
from tests.simulation.invariants.durations import DurationsAreExact
from tests.simulation.invariants.flashes import OnceCloses
from tests.simulation.invariants.folding import FoldGivesTheView
from tests.simulation.invariants.frequencies import RepetitionPromotes
from tests.simulation.invariants.holds import HoldsAreTheirOwners
from tests.simulation.invariants.jobs import ThirdMovesTheJob
from tests.simulation.invariants.observing import UnknownOnlyUnobserved, UnobservedIsNotJudged
from tests.simulation.invariants.polls import PollsHeal
from tests.simulation.invariants.reloads import ReloadBeginsNothing
from tests.simulation.invariants.rest import DeadlinesFire, EverythingEnds, MemoryBounded
from tests.simulation.invariants.tolerances import ToleratedForItsTime
from tests.simulation.invariants.verdicts import StrictestOfAll, UserInducedNeverIsolates
from tests.simulation.watch import Invariant


def all_invariants() -> list[Invariant]:
    """Fresh ones: they remember what they have seen."""
    return [
        SequenceWithoutGap(),
        NothingVisibleBeforeDurable(),
        NothingTwice(),
        RuleClock(),
        FoldGivesTheView(),
        NoOtherDevice(),
        StartsClean(),
        StrictestOfAll(),
        UserInducedNeverIsolates(),
        UnobservedIsNotJudged(),
        UnknownOnlyUnobserved(),
        HoldsAreTheirOwners(),
        ReloadBeginsNothing(),
        PollsHeal(),
        OnceCloses(),
        ToleratedForItsTime(),
        DurationsAreExact(),
        RepetitionPromotes(),
        ThirdMovesTheJob(),
        DeadlinesFire(),
        MemoryBounded(),
        EverythingEnds(),
    ]
