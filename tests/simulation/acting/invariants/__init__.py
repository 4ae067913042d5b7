"""What must hold of resets in every simulated node, one sentence a class. New ones join the list here."""

from tests.simulation.acting.invariants.ends import (
    DoneIsSeen,
    FailureIsSaid,
    HoldsLastAsLong,
    LimitIsReported,
)
from tests.simulation.acting.invariants.limits import ChipsHaveALimit, CoolsDown, NodeHasALimit, OneAtATime
from tests.simulation.acting.invariants.records import (
    DurableFirst,
    EndsByItsResult,
    ReloadProposesNothing,
    StepsInOrder,
)
from tests.simulation.acting.invariants.starts import (
    HasAReason,
    ModeAllowsIt,
    NobodyUsesIt,
    NothingStandsInTheWay,
    WasConfirmed,
    WholeGroup,
)
from tests.simulation.acting.known import Known
from tests.simulation.acting.tables import acting_catalogs
from tests.simulation.invariants import general_invariants
from tests.simulation.watch import Invariant


def acting_invariants() -> list[Invariant]:
    """Fresh ones: they remember what they have seen."""
    known = Known()
    return [
        known,
        ChipsHaveALimit(),
        NodeHasALimit(),
        OneAtATime(),
        CoolsDown(),
        HasAReason(known),
        WasConfirmed(known),
        NobodyUsesIt(known),
        NothingStandsInTheWay(known),
        ModeAllowsIt(known),
        WholeGroup(known),
        DurableFirst(),
        StepsInOrder(),
        EndsByItsResult(),
        ReloadProposesNothing(),
        HoldsLastAsLong(),
        DoneIsSeen(known),
        FailureIsSaid(),
        LimitIsReported(),
        *general_invariants(acting_catalogs()),
    ]
