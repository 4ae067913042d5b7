"""How many bytes an identity may leave: at once, for long, and all together."""

import pytest

from nodeagent.api.access.limits import RateLimit, a_day
from nodeagent.api.access.quota import Rate

DAY_S = 86_400.0
LIMIT = RateLimit(each=a_day(8640, at_once=1000), total=a_day(17280, at_once=2500))
"""A tenth of a byte in a second for each, a fifth for all."""


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> Rate:
    return Rate(LIMIT, clock)


def test_each_has_so_much_at_once_and_gets_it_back_with_time(budget: Rate, clock: Clock) -> None:
    assert [budget.affords("a", 400) for _ in range(3)] == [True, True, False]
    assert budget.affords("a", 200)
    clock.now_s = 1000.0
    assert [budget.affords("a", 100), budget.affords("a", 100)] == [True, False]


def test_who_does_nothing_for_long_has_no_more_than_that(budget: Rate, clock: Clock) -> None:
    clock.now_s = 100 * DAY_S
    assert [budget.affords("a", 1000), budget.affords("a", 1)] == [True, False]


def test_all_together_have_so_much(budget: Rate) -> None:
    assert [budget.affords(name, 1000) for name in "abcd"] == [True, True, False, False]
    assert budget.affords("c", 500)


def test_a_day_s_worth_is_all_that_a_day_of_trying_gives(budget: Rate, clock: Clock) -> None:
    given = 0
    while clock.now_s < DAY_S:
        given += 100 * budget.affords("a", 100)
        clock.now_s += 10.0
    assert given == 1000 + 8600


def test_what_must_be_spent_is_owed(budget: Rate, clock: Clock) -> None:
    assert budget.spend("a", 400) == 0.0
    assert budget.spend("a", 700) == pytest.approx(1000.0)
    assert not budget.affords("a", 1)
    clock.now_s = 1000.0
    assert budget.spend("a", 10) == pytest.approx(100.0)


def test_nobody_owes_more_than_he_may_have_at_once(budget: Rate) -> None:
    owed_s = [budget.spend("a", 1000) for _ in range(10)]
    assert owed_s[-1] == pytest.approx(12_500.0)
    assert budget.spend("b", 0) == pytest.approx(12_500.0)


def test_of_very_many_those_are_forgotten_that_did_nothing_of_late(budget: Rate, clock: Clock) -> None:
    budget.affords("a", 0)
    for number in range(2000):
        budget.affords(str(number), 0)
    assert len(budget._each) == 1024
