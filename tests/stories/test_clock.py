"""The wall clock steps: windows, deadlines and the order of events do not notice."""

from datetime import timedelta
from pathlib import Path

import pytest

from nodeagent.client import EventKind
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.subscriber import as_stored, stored_events, without_gap
from tests.stories.clocks import SteppedClock
from tests.stories.conftest import Follow, Launch

STEP = timedelta(hours=10)

RULES = """
kind = "host"

[[frequency]]
id = "three-in-an-hour"
codes = ["BOOT"]
times = 3
time_window = "1h"
level = "SeparateFault"
release_time_window = "1h"
burst = "0s"
correlation = "0s"
"""


@pytest.fixture
def wall_clock(tmp_path: Path) -> SteppedClock:
    return SteppedClock(tmp_path, "WALL")


async def test_story_14_a_window_spans_steps_of_the_wall_clock_and_a_restart_between_them(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, wall_clock: SteppedClock
) -> None:
    """Three within the hour, though the wall clock says ten hours lie between each."""
    daemon = launch(fake_log, env=wall_clock.env)
    (daemon.tables / "rules.toml").write_text(RULES)
    subscriber = await follow(daemon)
    fake_log.say("a", "BOOT")
    first = await subscriber.raised("BOOT")
    wall_clock.step(STEP)
    fake_log.say("a", "BOOT")
    fake_log.say("b", "LASTING_1")
    second = await subscriber.raised("LASTING_1")
    assert await daemon.stop() == 0
    wall_clock.step(-STEP)
    await daemon.start()
    await subscriber.follow()
    fake_log.say("a", "BOOT")
    promoted = await subscriber.event(EventKind.PROMOTED, "BOOT")

    slack = timedelta(minutes=1)
    assert abs(second.at - first.at - STEP) < slack
    assert abs(promoted.at - first.at + STEP) < slack
    assert promoted.rule == "three-in-an-hour"
    assert without_gap(subscriber.events)
    assert as_stored(subscriber.events) == (await stored_events(daemon))[-len(subscriber.events) :]


@pytest.mark.parametrize("step", [STEP, -STEP])
async def test_story_14_a_deadline_neither_jumps_forward_nor_waits_for_a_stepped_wall_clock(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, wall_clock: SteppedClock, step: timedelta
) -> None:
    """STORM ends after ten quiet minutes, BRIEF after a second; the clock steps ten hours under both."""
    daemon = launch(fake_log, env=wall_clock.env)
    subscriber = await follow(daemon)
    fake_log.say("a", "STORM")
    fake_log.say("a", "BRIEF")
    raised = await subscriber.raised("BRIEF")
    wall_clock.step(step)
    cleared = await subscriber.cleared("BRIEF")
    fake_log.say("b", "LASTING_1")
    await subscriber.raised("LASTING_1")

    assert abs(cleared.at - raised.at - step) < timedelta(minutes=1)
    assert [event.code for event in subscriber.of(EventKind.CLEARED)] == ["BRIEF"]
    assert {each["code"] for each in (await daemon.status())["conditions"]} == {"STORM", "LASTING_1"}
    assert without_gap(subscriber.events)
