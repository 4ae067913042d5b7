"""Workers that babble, lie or flood: counted, ended past a bound, and never the daemon's end."""

import pytest

from nodeagent.core.model import ActiveSet
from nodeagent.daemon.sources.supervisor import MAX_GARBLED
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.staged import ROOT, command, staged, worker_spec

LYING_WORKER = ROOT / "tests" / "daemon" / "lying_worker.py"


def lying(way: str, **given: object) -> WorkerSpec:
    return worker_spec("", command=command(str(LYING_WORKER), way), **given)


@pytest.mark.parametrize(
    ("way", "complaint"),
    [
        ("garbage", "JSON is malformed"),
        ("oversized", "a line of more than 4194304 bytes"),
        ("unasked", "an answer of chip0 to poll 1099511627776, which was not asked"),
        ("early", "Batch before hello"),
        ("again", "hello a second time"),
    ],
)
async def test_babbling_worker_is_ended_past_a_bound(way: str, complaint: str) -> None:
    patient = lying(way, call_deadline_s=600.0, backoff_first_s=60.0, backoff_limit_s=60.0)
    async with staged(patient) as stage:
        reported = await stage.signal("worker_crashed.fake", "node", "occur")
        await stage.until(lambda: stage.health.state == "waiting", "its end")
        assert reported.evidence["reason"].startswith(
            f"was stopped after {MAX_GARBLED} invalid messages, the last: "
        )
        assert complaint in reported.evidence["reason"] or way == "garbage"
        assert stage.health.garbled == MAX_GARBLED
        assert stage.faults("worker_crashed.fake") == [("node", "occur")]
        assert not [given for given in stage.inputs if isinstance(given, ActiveSet)]


async def test_line_without_an_end_is_not_kept_and_the_silence_is_noticed() -> None:
    async with staged(lying("endless", call_deadline_s=0.5)) as stage:
        reported = await stage.signal("driver_unresponsive.fake", "node", "occur")
        assert reported.evidence["reason"] == "no answer within 0.5 s"


async def test_worker_that_ends_at_once_is_a_crash_with_back_off() -> None:
    async with staged(lying("hasty")) as stage:
        await stage.until(lambda: stage.health.restarts >= 3, "three more tries")
        reported = await stage.signal("worker_crashed.fake", "node", "occur")
        assert reported.evidence["reason"] == "ended by itself: exit status 0"


async def test_worker_that_says_nothing_is_ended() -> None:
    async with staged(lying("silent", hello_deadline_s=0.3)) as stage:
        await stage.signal("driver_unresponsive.fake", "node", "occur")
        await stage.until(lambda: stage.health.restarts >= 1, "its replacement")
