"""A chip whose clock is far below that of the others of its job: what the daemon sees by itself."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nodeagent.api.jobs.slow_chips import CODE, SlowChips
from nodeagent.core.model import (
    AGENT,
    Backing,
    Condition,
    Grade,
    JobStage,
    JobView,
    Kind,
    Level,
    Presence,
    Recommendation,
    View,
)
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoreId, Taken
from tests.api.samples import device, event

NAMES = ("npu0", "npu1", "npu2", "npu3")
CHIPS = tuple(
    replace(device(event()), id=f"{name}-id", name=name, kind=Kind.CHIP, vendor="ascend", holders=())
    for name in NAMES
)
WORKS = {"utilization_ratio.aicore": 0.9, "frequency_hertz.aicore": 1500e6, "power_watts": 280.0}
THROTTLED = {**WORKS, "frequency_hertz.aicore": 800e6, "power_watts": 150.0, "temperature_celsius": 93.0}
IDLES = {**WORKS, "utilization_ratio.aicore": 0.0, "frequency_hertz.aicore": 800e6}
JOB = JobView(
    name="slurm:7.0",
    kind="training",
    devices=tuple(each.id for each in CHIPS),
    recommended=Recommendation.NONE,
    stage=JobStage.RUNNING,
    run=1,
)


class Watch:
    """A look each ten seconds; what was found is in the view from then on."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.feed = EventFeed()
        self.readings: Mapping[str, Mapping[str, float]] = dict.fromkeys(NAMES, WORKS)
        self.view = View(devices=CHIPS, jobs=(JOB,))
        self.begin()

    def begin(self) -> None:
        """The daemon starts."""
        self.watcher = SlowChips(self.feed, self._ask, lambda: self.readings, lambda: self.now_s)

    async def _ask(self, *_: object) -> Taken:
        raise AssertionError("it only looks")

    def look(self, minutes: float) -> list[tuple[str, str]]:
        found = []
        for _ in range(round(6 * minutes)):
            self.now_s += 10
            self.feed.publish(
                Publication(
                    view=self.view,
                    store_id=StoreId(uuid="a", epoch=1),
                    seq=1,
                    durable=True,
                    wall_offset_ns=0,
                )
            )
            for each in self.watcher.look():
                assert each.code == CODE
                found.append((each.device, each.assertion.value))
                is_there = each.assertion.value == "occur"
                self.view = replace(self.view, conditions=(fault(each.device),) if is_there else ())
        return found


def fault(name: str) -> Condition:
    return Condition(
        id=f"{name}-id/{CODE}#1",
        device_id=f"{name}-id",
        code=CODE,
        name="Clock far below",
        source=AGENT,
        presence=Presence(opened_ns=0, last_ns=0),
        grade=Grade(base_level=Level.SUB_HEALTH, level=Level.SUB_HEALTH),
        backing=Backing(evidence={}),
    )


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_a_chip_far_below_its_peers_for_ten_minutes_is_found_and_goes_when_it_works_as_they_do(
    watch: Watch,
) -> None:
    watch.readings = {**watch.readings, "npu2": THROTTLED}
    assert watch.look(9) == []
    assert watch.look(3) == [("npu2", "occur")]
    watch.readings = dict.fromkeys(NAMES, IDLES)
    assert watch.look(15) == []
    watch.readings = dict.fromkeys(NAMES, WORKS)
    assert watch.look(3) == [("npu2", "recover")]


def test_the_end_of_the_job_repairs_nothing_and_a_start_of_the_daemon_forgets_nothing(watch: Watch) -> None:
    watch.readings = {**watch.readings, "npu2": THROTTLED}
    watch.look(12)
    watch.view = replace(watch.view, jobs=())
    watch.begin()
    assert watch.look(30) == []
    watch.view = replace(watch.view, jobs=(replace(JOB, run=2),))
    watch.readings = dict.fromkeys(NAMES, WORKS)
    assert watch.look(3) == [("npu2", "recover")]


@pytest.mark.parametrize(
    "job", [replace(JOB, kind="inference"), replace(JOB, stage=None), replace(JOB, stage=JobStage.HOLDING)]
)
def test_only_chips_of_supervised_training_that_runs_are_compared(watch: Watch, job: JobView) -> None:
    watch.view = replace(watch.view, jobs=(job,))
    watch.readings = {**watch.readings, "npu2": THROTTLED}
    assert watch.look(30) == []


def test_a_healthy_hour_finds_nothing(watch: Watch) -> None:
    assert watch.look(60) == []
