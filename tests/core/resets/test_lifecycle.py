"""The table of a reset's life: nothing moves a reset but along it, and all of it happens."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given

from nodeagent.core.engine import Engine
from nodeagent.core.follow import FOLLOWERS
from nodeagent.core.machines import resets
from nodeagent.core.machines.resets import TRANSITIONS, ResetTrigger
from nodeagent.core.model import ActionState, Cell, Reset, ResetMode, ResetStage
from nodeagent.core.state.state import EngineState
from nodeagent.store.codec import decode_cells
from tests.core.resets.former_resets import ENDED, goes_on
from tests.core.resets.histories import History, begin, histories, moderately, play
from tests.core.resets.ring import Ring
from tests.daemon.former_stores import in_present_terms
from tests.simulation.run import simulate

SEEDS: Final = (1, 5, 11, 13)
"""Lives that together take every edge."""

FORMER: Final = Path(__file__).parents[2] / "fixtures/stores/ended-resets.json"

_put, _advance = EngineState.put, resets.advance


class Watched:
    """What moved resets: ``taken`` along the table, ``beside`` it, and the stages in which they ``began``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: set[tuple[ResetStage, ResetTrigger]] = set()
        self.beside: list[tuple[ResetStage, ResetStage]] = []
        self.began: set[ResetStage] = set()
        self._by_the_table = False
        watched = self

        def put(state: EngineState, cell: Cell) -> None:
            if isinstance(cell, Reset):
                watched._look(state.get(Reset, cell.id), cell)
            _put(state, cell)

        def advance(
            state: EngineState, before: Reset, happened: ResetTrigger, **changes: Any
        ) -> Reset | None:
            watched._by_the_table = True
            after = _advance(state, before, happened, **changes)
            watched._by_the_table = False
            if after is not None:
                watched.taken.add((before.stage, happened))
            return after

        monkeypatch.setattr(EngineState, "put", put)
        monkeypatch.setattr(resets, "advance", advance)

    def _look(self, before: Reset | None, after: Reset) -> None:
        if before is None:
            self.began.add(after.stage)
        elif before.stage is not after.stage and not self._by_the_table:
            self.beside.append((before.stage, after.stage))


EXCLUDED_MEANWHILE: Final = (ResetStage.RUNNING, ResetTrigger.REFUSED_AS_EXCLUDED)
"""No simulated life excludes a chip between the start of its reset and the refusal: ``test_asking_again``
does.
"""


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def reset(stage: ResetStage) -> Reset:
    return Reset(
        id="r", asker_id="die0", members=("die0",), mode=ResetMode.ON, stage=stage, proposed_ns=0, due_ns=None
    )


@pytest.mark.parametrize("stage", ResetStage)
@pytest.mark.parametrize("happened", ResetTrigger)
def test_what_is_not_in_the_table_changes_nothing(stage: ResetStage, happened: ResetTrigger) -> None:
    state = EngineState({}, FOLLOWERS)
    before = reset(stage)
    state.put(before)
    after = resets.advance(state, before, happened, report="changed")
    follows = TRANSITIONS.get((stage, happened))
    assert (after.stage if after else None) is follows
    assert state.get(Reset, "r") == (before if follows is None else after)


def test_pending_under_way_and_ended_mean_what_the_table_says() -> None:
    for stage in ResetStage:
        can = {happened for happened in ResetTrigger if (stage, happened) in TRANSITIONS}
        assert reset(stage).is_pending is (ResetTrigger.CALLED_OFF in can)
        assert reset(stage).is_under_way is (ResetTrigger.GIVEN_UP in can)
        assert reset(stage).has_ended is (not can)


def test_in_simulated_lives_all_of_the_table_happens_and_nothing_beside_it(watched: Watched) -> None:
    for seed in SEEDS:
        simulate(seed, 100, life="acting", judged=False)
    assert (set(TRANSITIONS) - watched.taken, watched.beside) == ({EXCLUDED_MEANWHILE}, [])


@moderately
@given(histories())
def test_no_history_moves_a_reset_beside_the_table(history: History) -> None:
    with pytest.MonkeyPatch.context() as patched:
        watched = Watched(patched)
        engine, _ = begin()
        play(engine, history)
    assert watched.beside == []
    assert watched.began <= {resets.FIRST_STAGE}


# ---------------------------------------------------------------------- as earlier versions stored it


def of_then(name: str) -> dict[str, Any]:
    former: dict[str, Any] = json.loads(FORMER.read_text())[name]
    return former


def opened(name: str) -> Ring:
    """A node whose daemon is a later version than the one that stored this."""
    former = of_then(name)
    rows = [(0, kind, msgspec.msgpack.encode(fields), 0) for kind, fields in former["cells"]]
    ring = Ring()
    ring.engine = Engine({ring.catalog.digest: ring.catalog})
    ring.at_s = former["at_ns"] / 1e9
    for carried in decode_cells(rows):
        ring.engine.replay(former["at_ns"], carried)
    ring.engine.resume(former["at_ns"])
    return ring


def ended_here(name: str) -> Ring:
    ring = Ring()
    ENDED[name](ring)
    return ring


@pytest.mark.parametrize("name", ENDED)
def test_one_that_an_earlier_version_ended_asks_again_as_it_did_there(name: str) -> None:
    ring = opened(name)
    ring.events.clear()
    goes_on(ring)
    assert [[event.kind.value, event.device, event.why] for event in ring.events] == of_then(name)[
        "told_after"
    ]


@pytest.mark.parametrize("name", ENDED)
def test_one_that_an_earlier_version_ended_is_as_if_it_had_ended_here(name: str) -> None:
    (then,), (here,) = (ring.engine.view().resets for ring in (opened(name), ended_here(name)))
    assert (then.stage, then.outcome, then.may_ask_again) == (here.stage, here.outcome, here.may_ask_again)
    assert (in_present_terms(then.result), then.codes) == (here.result, here.codes)
    assert in_present_terms(then.hindered) == list(here.hindered)


def test_outcome_and_whether_it_may_ask_again_are_fields() -> None:
    ended = {name: ended_here(name).engine.view().resets[0] for name in ENDED}
    assert {name: (one.outcome, one.may_ask_again) for name, one in ended.items()} == {
        "in vain": (ActionState.REFUSED, True),
        "withdrawn": (ActionState.REFUSED, True),
        "refused by a person": (ActionState.REFUSED, False),
        "failed twice": (ActionState.TIMED_OUT, False),
        "verified": (ActionState.DONE, True),
    }
