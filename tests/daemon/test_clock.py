"""The rule clock goes on over restarts, reboots and steps of the wall clock, and never back."""

import pytest

from nodeagent.daemon.clock import MAX_OFF_NS, Clock, carry_on
from nodeagent.store.records import ClockAnchor

S = 1_000_000_000
HOUR = 3600 * S
WALL = 1_800_000_000 * S


class Times:
    """Both kernel clocks, moved by the test."""

    def __init__(self, boottime_ns: int, wall_ns: int) -> None:
        self.boottime_ns = boottime_ns
        self.wall_ns = wall_ns

    def carry_on(self, anchor: ClockAnchor | None, boot_id: str) -> Clock:
        return carry_on(anchor, boot_id, lambda: self.boottime_ns, lambda: self.wall_ns)


def test_the_first_start_begins_at_the_wall_time() -> None:
    assert Times(5 * S, WALL).carry_on(None, "a").rule_ns() == WALL


def test_within_a_boot_the_rule_clock_is_exact_whatever_the_wall_clock_did() -> None:
    times = Times(100 * S, WALL)
    anchor = times.carry_on(None, "a").anchor()
    times.boottime_ns += 7 * S
    times.wall_ns -= 10 * HOUR
    assert times.carry_on(anchor, "a").rule_ns() == anchor.rule_ns + 7 * S


@pytest.mark.parametrize("step_ns", [10 * HOUR, -10 * HOUR])
def test_a_step_of_the_wall_clock_does_not_move_a_running_rule_clock(step_ns: int) -> None:
    times = Times(100 * S, WALL)
    clock = times.carry_on(None, "a")
    before_ns = clock.rule_ns()
    times.wall_ns += step_ns
    assert clock.rule_ns() == before_ns
    assert before_ns + clock.wall_offset_ns() == WALL + step_ns


def test_across_a_reboot_the_time_off_is_the_wall_clocks() -> None:
    anchor = Times(100 * S, WALL).carry_on(None, "a").anchor()
    assert Times(20 * S, WALL + HOUR).carry_on(anchor, "b").rule_ns() == anchor.rule_ns + HOUR


def test_a_wall_clock_that_went_back_across_a_reboot_counts_as_no_time() -> None:
    anchor = Times(100 * S, WALL).carry_on(None, "a").anchor()
    assert Times(20 * S, WALL - HOUR).carry_on(anchor, "b").rule_ns() == anchor.rule_ns


def test_a_boot_in_a_far_future_counts_as_ten_days(caplog: pytest.LogCaptureFixture) -> None:
    anchor = Times(100 * S, WALL).carry_on(None, "a").anchor()
    far = Times(20 * S, WALL + 10 * 365 * 24 * HOUR).carry_on(anchor, "b")
    assert far.rule_ns() == anchor.rule_ns + MAX_OFF_NS
    assert "windows take it as 864000 s" in caplog.text
    assert far.doubt in caplog.text


def test_a_time_off_that_can_be_is_not_doubted() -> None:
    anchor = Times(100 * S, WALL).carry_on(None, "a").anchor()
    assert Times(20 * S, WALL + 9 * 24 * HOUR).carry_on(anchor, "b").doubt == ""


def test_a_line_logged_before_the_daemon_began_lies_before_its_time() -> None:
    clock = Times(100 * S, WALL).carry_on(None, "a")
    assert clock.rule_of_boottime(40 * S) == clock.rule_ns() - 60 * S
