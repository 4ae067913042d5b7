"""What keeps thousands of connections within bounds: how fast they begin, how many files may be open."""

import resource

from nodeagent.fleet.fleet import files_missing
from nodeagent.fleet.pace import Pace


def test_turns_that_are_asked_for_at_once_are_apart() -> None:
    pace = Pace(a_second=4.0)
    assert [pace.given_at_s(10.0) for _ in range(3)] == [10.0, 10.25, 10.5]


def test_time_in_which_nobody_asked_is_not_saved_up() -> None:
    pace = Pace(a_second=4.0)
    assert [pace.given_at_s(now_s) for now_s in (10.0, 20.0, 20.0)] == [10.0, 20.0, 20.25]


def test_the_limit_of_open_files_is_raised_and_what_is_missing_counted() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert files_missing(1) == 0
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    assert files_missing(hard) == 200
