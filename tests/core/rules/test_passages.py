"""With a duration rule one occurrence is one passage to timed out, and a ``once`` is none."""

import pytest

from nodeagent.core.catalog.catalog import Catalog, FrequencyRule
from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, Event, Input, Level
from tests.core.build import (
    LINK_DOWN,
    active,
    begin,
    catalog,
    condition,
    emitted,
    lasting,
    ns,
    open_codes,
    order,
    repeat,
    row,
    run,
    signal,
    wait,
)

NAMED = repeat(LINK_DOWN, 2, release_ns=ns(1000))
EVERY = repeat("*", 2, release_ns=ns(1000), at_least=Level.RESTART_REQUEST)


def tables(rule: FrequencyRule = NAMED) -> Catalog:
    """Down for 20 s is too long, up for 60 s is well again; twice too long promotes for 1,000 s of quiet."""
    return catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 20, 60)], frequency=[rule])


def down(engine: Engine, *spans: tuple[float, float]) -> list[Event]:
    """From and to, each in seconds."""
    said: list[tuple[float, Input]] = []
    for since, until in spans:
        said += [(since, signal(LINK_DOWN)), (until, signal(LINK_DOWN, "recover"))]
    return run(engine, said)


both_kinds = pytest.mark.parametrize("rule", [NAMED, EVERY], ids=["named", "every code"])


@both_kinds
def test_a_presence_while_the_level_of_the_rule_is_in_force_counts_nothing(rule: FrequencyRule) -> None:
    engine = begin(tables(rule))
    down(engine, (1, 30), (80, 110), (170, 200))
    assert engine.view().promotions == ()


@both_kinds
def test_gone_for_longer_than_the_recovery_time_the_next_passage_counts(rule: FrequencyRule) -> None:
    engine = begin(tables(rule))
    events = down(engine, (1, 30), (91, 120))
    assert emitted(events)[-1] == ("promoted", "npu0", LINK_DOWN)


def test_a_short_presence_within_the_recovery_time_makes_the_passage_last() -> None:
    engine = begin(tables())
    down(engine, (1, 30), (80, 90), (140, 170))
    assert engine.view().promotions == ()


def promoted() -> Engine:
    """Promoted by the passages at 21 s and 221 s, and quiet from 230 s on."""
    engine = begin(tables())
    assert emitted(down(engine, (1, 30), (201, 230)))[-1] == ("promoted", "npu0", LINK_DOWN)
    return engine


def test_a_presence_that_ended_before_its_time_out_does_not_end_the_quiet() -> None:
    engine = promoted()
    down(engine, (700, 715))
    wait(engine, 1230)
    assert len(engine.view().promotions) == 1
    wait(engine, 1230, extra_ns=1)
    assert engine.view().promotions == ()


def test_a_presence_that_lasts_within_the_recovery_time_keeps_the_promotion_alive() -> None:
    engine = promoted()
    down(engine, (280, 310))
    wait(engine, 1310)
    assert len(engine.view().promotions) == 1
    wait(engine, 1310, extra_ns=1)
    assert engine.view().promotions == ()


def test_what_is_released_by_a_person_counts_anew_with_the_next_passage_only() -> None:
    engine = promoted()
    run(engine, [(240, order("release"))])
    down(engine, (250, 280), (330, 360))
    assert engine.view().promotions == ()
    down(engine, (501, 530), (701, 730))
    assert len(engine.view().promotions) == 1


# --------------------------------------------------------------------------- a once


def test_a_once_does_not_prolong_the_recovery_time() -> None:
    engine = begin(tables())
    down(engine, (1, 30))
    run(engine, [(50, signal(LINK_DOWN, "once"))])
    assert wait(engine, 90) == []
    (changed,) = wait(engine, 90, extra_ns=1)
    assert (changed.kind.value, changed.condition_level) == ("level_changed", Level.NOT_HANDLE)
    assert wait(engine, 110) == []
    assert emitted(wait(engine, 110, extra_ns=1)) == [("cleared", "npu0", LINK_DOWN)]


def test_a_once_whose_hold_ends_first_changes_nothing() -> None:
    engine = begin(tables())
    run(engine, [(1, signal(LINK_DOWN)), (25, signal(LINK_DOWN, "once")), (30, signal(LINK_DOWN, "recover"))])
    assert wait(engine, 90) == []
    assert emitted(wait(engine, 90, extra_ns=1)) == [("cleared", "npu0", LINK_DOWN)]


def test_a_once_holds_the_condition_of_a_presence_that_ended_before_its_time_out() -> None:
    engine = begin(tables())
    run(engine, [(1, signal(LINK_DOWN)), (5, signal(LINK_DOWN, "once")), (10, signal(LINK_DOWN, "recover"))])
    assert wait(engine, 65) == []
    assert condition(engine, LINK_DOWN).level is Level.NOT_HANDLE
    assert emitted(wait(engine, 65, extra_ns=1)) == [("cleared", "npu0", LINK_DOWN)]


def test_a_recovery_without_a_presence_ends_a_once() -> None:
    engine = begin(tables())
    run(engine, [(1, signal(LINK_DOWN, "once")), (10, signal(LINK_DOWN, "recover"))])
    assert open_codes(engine) == []


def test_a_once_does_not_interrupt_a_presence() -> None:
    engine = begin(tables())
    run(engine, [(1, signal(LINK_DOWN)), (15, signal(LINK_DOWN, "once"))])
    assert emitted(wait(engine, 21, extra_ns=1)) == [("level_changed", "npu0", LINK_DOWN)]


def test_a_poll_that_began_before_a_once_still_ends_the_presence() -> None:
    engine = begin(tables())
    run(engine, [(1, signal(LINK_DOWN)), (20, signal(LINK_DOWN, "once")), (21, active(begun_s=19))])
    assert condition(engine, LINK_DOWN).presence.present_ns is None
    assert emitted(wait(engine, 80, extra_ns=1)) == [("cleared", "npu0", LINK_DOWN)]


def test_a_poll_that_began_before_a_once_still_ends_the_recovery() -> None:
    engine = begin(tables())
    down(engine, (1, 30))
    run(engine, [(50, signal(LINK_DOWN, "once")), (51, active(LINK_DOWN, begun_s=49))])
    assert condition(engine, LINK_DOWN).presence.present_ns == ns(51)


def test_a_poll_from_before_the_recovery_begins_no_presence_in_the_hold_of_a_once() -> None:
    engine = begin(tables())
    down(engine, (1, 10))
    run(engine, [(11, signal(LINK_DOWN, "once")), (12, active(LINK_DOWN, begun_s=9))])
    assert condition(engine, LINK_DOWN).presence.present_ns is None


def test_a_passage_in_the_hold_of_a_once_is_another_occurrence() -> None:
    engine = begin(tables())
    down(engine, (1, 30))
    run(engine, [(80, signal(LINK_DOWN, "once")), (95, signal(LINK_DOWN))])
    assert emitted(wait(engine, 115, extra_ns=1))[-1] == ("promoted", "npu0", LINK_DOWN)


def test_a_poll_from_before_a_recovery_that_closes_at_once_raises_nothing() -> None:
    engine = begin(catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 20, 0)]))
    events = down(engine, (1, 30)) + run(engine, [(31, active(LINK_DOWN, begun_s=29))])
    assert emitted(events)[-1] == ("cleared", "npu0", LINK_DOWN)
    assert open_codes(engine) == []


# --------------------------------------------------------------------------- other tables meanwhile


def reloaded(engine: Engine, at_s: float, digest: str) -> None:
    run(engine, [(at_s, CatalogChanged(digest=digest))])


def test_without_its_duration_rule_a_presence_that_goes_on_keeps_the_promotion_alive() -> None:
    engine = begin(tables(), catalog(row(LINK_DOWN), frequency=[NAMED], digest="without"))
    down(engine, (1, 30), (201, 230))
    run(engine, [(700, signal(LINK_DOWN))])
    reloaded(engine, 710, "without")
    wait(engine, 2000)
    assert len(engine.view().promotions) == 1


def test_a_rule_that_comes_back_with_a_longer_time_out_waits_for_it() -> None:
    longer = catalog(row(LINK_DOWN), duration=[lasting(LINK_DOWN, 100, 60)], digest="longer")
    engine = begin(tables(), catalog(row(LINK_DOWN), digest="without"), longer)
    run(engine, [(1, signal(LINK_DOWN))])
    reloaded(engine, 30, "without")
    reloaded(engine, 40, "longer")
    assert condition(engine, LINK_DOWN).level is Level.NOT_HANDLE
    assert emitted(wait(engine, 101, extra_ns=1)) == [("level_changed", "npu0", LINK_DOWN)]
