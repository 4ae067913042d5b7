"""After how long the next worker of a source starts, and how long a worker may take to be ready."""

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.daemon.clock import carry_on
from nodeagent.daemon.sources.configured import spec_of
from nodeagent.daemon.workers import worker_set
from nodeagent.daemon.workers.worker import WorkerSpec
from nodeagent.daemon.workers.worker_set import WorkerSet
from nodeagent.vendors import DriverConfig
from tests.daemon.staged import worker_spec


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_set, "loop_time_s", lambda: 1000.0)


async def never(*_: object) -> None:
    raise AssertionError("nothing is started here")


def pauses(spec: WorkerSpec, looks: int) -> list[float | None]:
    workers = WorkerSet(spec, never)  # type: ignore[arg-type]
    found = []
    for _ in range(looks):
        workers.spawn_after_an_absence()
        found.append(None if workers.spawn_at_s is None else workers.spawn_at_s - 1000.0)
    return found


def test_what_is_absent_is_looked_for_ever_more_seldom() -> None:
    assert pauses(worker_spec("m"), 5) == [300.0, 600.0, 1200.0, 1800.0, 1800.0]


def test_what_is_read_once_is_not_looked_for_again() -> None:
    assert pauses(worker_spec("m", absent_retry_s=None), 2) == [None, None]


SLEEP_IN_THE_KERNEL_S = 150.0
SILENT_MCUS_S = 8 * 2.0


@pytest.mark.parametrize("source", ["ascend"])
def test_a_driver_that_sleeps_until_all_chips_are_up_is_waited_for(source: str) -> None:
    assert hello_deadline_s(source) > SLEEP_IN_THE_KERNEL_S + SILENT_MCUS_S


def test_others_are_not_waited_for_as_long() -> None:
    assert hello_deadline_s("kmsg") == 60.0


def hello_deadline_s(source: str) -> float:
    clock = carry_on(None, "boot")
    return spec_of(source, DriverConfig(), Catalog(digest=""), clock, None, ()).hello_deadline_s
