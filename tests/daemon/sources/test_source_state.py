"""The table of a source: what follows in each state from all that can happen, and what is reported of it."""

import itertools
from collections.abc import Callable, Mapping

import pytest

from nodeagent import wire
from nodeagent.core.model import Input, Kind, SourceAbsent, SourceBack, SourceLost
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.source_state import TRANSITIONS, SourceState, SourceTrigger
from nodeagent.daemon.sources.translate import StampClock

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns)
CHIP = wire.Device(device="npu0", kind=Kind.CHIP, vendor="ascend")
ABSENT = wire.Unavailable(reason="no library", absent=True)


def opened(observation: Observation) -> list[Input]:
    return observation.hello(wire.Hello(devices=(CHIP,)), ())


def read(observation: Observation) -> list[Input]:
    """A first read that is complete."""
    answer = wire.Reply(id=1, device="npu0", begun_ns=1, took_ns=1)
    return [*opened(observation), *observation.reply(answer)]


HAPPENS: Mapping[SourceTrigger, Callable[[Observation], list[Input]]] = {
    SourceTrigger.OPENED: opened,
    SourceTrigger.READ: read,
    SourceTrigger.FAILED: lambda observation: observation.lost("failed"),
    SourceTrigger.RELEASED: lambda observation: observation.let_go("released"),
    SourceTrigger.NOT_FOUND: lambda observation: observation.unavailable(ABSENT),
}
WAY_TO: Mapping[SourceState, list[Callable[[Observation], list[Input]]]] = {
    SourceState.OPENING: [opened],
    SourceState.ABSENT: [HAPPENS[SourceTrigger.NOT_FOUND]],
    SourceState.UNOPENED: [HAPPENS[SourceTrigger.FAILED]],
    SourceState.OBSERVING: [read],
    SourceState.LOST: [read, HAPPENS[SourceTrigger.FAILED]],
    SourceState.LET_GO: [read, HAPPENS[SourceTrigger.RELEASED]],
}
REPORTED = {
    SourceState.OBSERVING: SourceBack,
    SourceState.LOST: SourceLost,
    SourceState.UNOPENED: SourceLost,
    SourceState.LET_GO: SourceLost,
    SourceState.ABSENT: SourceAbsent,
}
"""On the way into each state."""

SAYS_NOTHING = (SourceState.ABSENT, SourceTrigger.RELEASED)
"""What nobody ever saw is not let go."""


def observation_in(state: SourceState) -> Observation:
    observation = Observation("ascend", False, CLOCK)
    for happens in WAY_TO[state]:
        happens(observation)
    return observation


def test_the_table_knows_what_follows_in_every_state() -> None:
    assert TRANSITIONS.keys() == set(itertools.product(SourceState, SourceTrigger))


@pytest.mark.parametrize(("state", "trigger"), sorted(TRANSITIONS.keys() - {SAYS_NOTHING}))
def test_a_source_goes_by_the_table_and_tells_when_it_is_lost_let_go_and_back(
    state: SourceState, trigger: SourceTrigger
) -> None:
    observation = observation_in(state)

    inputs = HAPPENS[trigger](observation)

    after = TRANSITIONS[state, trigger]
    reported = [type(given) for given in inputs if isinstance(given, SourceBack | SourceLost | SourceAbsent)]
    is_let_go = trigger is SourceTrigger.RELEASED and after is SourceState.LET_GO
    is_news = is_let_go or state is not after
    assert observation.state is after
    assert reported == [REPORTED[each] for each in (after,) if is_news and each in REPORTED]


def test_of_a_source_that_was_never_found_nothing_is_let_go() -> None:
    observation = observation_in(SourceState.ABSENT)

    assert observation.let_go("released") == []
    assert observation.absent
