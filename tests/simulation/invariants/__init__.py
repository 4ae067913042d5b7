"""What must hold of every simulated node, one sentence a class. New ones join a list here.

What must hold of resets is in ``tests.simulation.acting.invariants``.
"""

from collections.abc import Mapping

from nodeagent.core.catalog.catalog import Catalog
from tests.simulation.catalogs import catalogs
from tests.simulation.invariants.clocks import RuleClock
from tests.simulation.invariants.devices import NoOtherDevice, StartsClean
from tests.simulation.invariants.durable import NothingTwice, NothingVisibleBeforeDurable, SequenceWithoutGap
from tests.simulation.invariants.durations import DurationsAreExact
from tests.simulation.invariants.folding import FoldGivesTheView
from tests.simulation.invariants.frequencies import RepetitionPromotes
from tests.simulation.invariants.holds import HoldsAreTheirOwners
from tests.simulation.invariants.jobs import ThirdMovesTheJob
from tests.simulation.invariants.observing import NodeIsObserved, UnknownOnlyUnobserved, UnobservedIsNotJudged
from tests.simulation.invariants.once import OnceCloses
from tests.simulation.invariants.polls import PollsHeal
from tests.simulation.invariants.reloads import ReloadBeginsNothing
from tests.simulation.invariants.rest import DeadlinesFire, EverythingEnds, MemoryBounded
from tests.simulation.invariants.tolerances import ToleratedForItsTime
from tests.simulation.invariants.verdicts import StrictestOfAll, UserInducedNeverIsolates
from tests.simulation.watch import Invariant


def general_invariants(catalogs: Mapping[str, Catalog]) -> list[Invariant]:
    """What holds under any tables. Fresh ones: they remember what they have seen."""
    return [
        SequenceWithoutGap(),
        NothingVisibleBeforeDurable(),
        NothingTwice(catalogs),
        RuleClock(),
        FoldGivesTheView(),
        StrictestOfAll(),
        DeadlinesFire(),
        MemoryBounded(),
        EverythingEnds(),
    ]


def all_invariants() -> list[Invariant]:
    """Those of rules too. Fresh ones: they remember what they have seen."""
    return [
        *general_invariants(catalogs()),
        NoOtherDevice(),
        StartsClean(),
        UserInducedNeverIsolates(),
        UnobservedIsNotJudged(),
        UnknownOnlyUnobserved(),
        NodeIsObserved(),
        HoldsAreTheirOwners(),
        ReloadBeginsNothing(),
        PollsHeal(),
        OnceCloses(),
        ToleratedForItsTime(),
        DurationsAreExact(),
        RepetitionPromotes(),
        ThirdMovesTheJob(),
    ]
