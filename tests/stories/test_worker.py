"""The kernel log's worker dies, hangs, or loses its source: reported once, cleared, no line lost or twice."""

import os
import signal
from pathlib import Path

import pytest

from nodeagent.client import EventKind, Verdict
from tests.harness.daemon import NOT_SERVING, SERVING
from tests.harness.kernel_log import FakeKernelLog, RealKernelLog, VanishingKernelLog
from tests.harness.subscriber import Subscriber, without_gap
from tests.stories.conftest import Follow, Launch


def kinds_of(subscriber: Subscriber, code: str) -> list[EventKind]:
    return [event.kind for event in subscriber.events if event.code == code]


@pytest.mark.root
async def test_a_killed_worker_is_told_once_and_replaced_and_no_line_is_lost_or_doubled(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    subscriber = await follow(daemon)
    written = []
    async with daemon.health() as health:
        await health.until(SERVING)
        for number in range(60):
            written.append(f"LASTING_{number}")
            real_log.say("a", written[-1])
            if number == 30:
                os.kill(daemon.worker(), signal.SIGKILL)
        lost = await subscriber.event(EventKind.SOURCE_LOST, "")
        await health.until(NOT_SERVING)
        await subscriber.cleared("worker_crashed.kmsg")
        await health.until(SERVING)
    await subscriber.raised(written[-1])

    assert "killed by SIGKILL" in lost.why
    assert kinds_of(subscriber, "worker_crashed.kmsg") == [EventKind.RAISED, EventKind.CLEARED]
    assert len(subscriber.of(EventKind.SOURCE_LOST)) == len(subscriber.of(EventKind.SOURCE_BACK)) == 1
    raised = [event.code for event in subscriber.of(EventKind.RAISED) if event.code != "worker_crashed.kmsg"]
    assert raised == written
    assert without_gap(subscriber.events)


@pytest.mark.root
@pytest.mark.slow
async def test_story_01_a_stopped_worker_is_unresponsive_once_and_replaced_and_no_line_is_lost(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    """It does not act on SIGTERM, so it takes the ten seconds of grace."""
    daemon = launch(real_log, kmsg_keys=('call_deadline = "2s"', 'poll_interval = "100ms"'))
    subscriber = await follow(daemon)
    real_log.say("a", "LASTING_1")
    await subscriber.raised("LASTING_1")
    first = daemon.worker()
    os.kill(first, signal.SIGSTOP)
    real_log.say("a", "LASTING_2")
    lost = await subscriber.event(EventKind.SOURCE_LOST, "")
    await subscriber.cleared("driver_unresponsive.kmsg")
    real_log.say("a", "LASTING_3")
    await subscriber.raised("LASTING_3")
    back = await subscriber.event(EventKind.SOURCE_BACK, "")

    assert lost.verdict == Verdict.UNKNOWN
    assert daemon.worker() != first
    assert kinds_of(subscriber, "driver_unresponsive.kmsg") == [EventKind.RAISED, EventKind.CLEARED]
    assert kinds_of(subscriber, "worker_crashed.kmsg") == []
    raised = [event.code for event in subscriber.of(EventKind.RAISED) if event.source == "kmsg"]
    assert raised == ["LASTING_1", "LASTING_2", "LASTING_3"]
    assert back.verdict == Verdict.ALLOW
    assert without_gap(subscriber.events)


@pytest.mark.root
async def test_killed_with_its_worker_gone_the_fault_is_cleared_by_the_next_life_and_told_once(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    subscriber = await follow(daemon)
    os.kill(daemon.worker(), signal.SIGKILL)
    await subscriber.raised("worker_crashed.kmsg")
    await daemon.kill()
    await subscriber.leave()

    await daemon.start()
    await subscriber.follow()
    await subscriber.cleared("worker_crashed.kmsg")

    assert kinds_of(subscriber, "worker_crashed.kmsg") == [EventKind.RAISED, EventKind.CLEARED]


async def test_story_03_readiness_is_gone_while_the_log_is_and_the_reader_recovers_alone(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, tmp_path: Path
) -> None:
    folder = tmp_path / "vanishing"
    folder.mkdir()
    log = VanishingKernelLog(folder)
    daemon = launch(fake_log)
    daemon.kernel_log = log.path
    subscriber = await follow(daemon)
    worker = daemon.worker()
    log.write(1, fake_log.line("a", "LASTING_1"))
    await subscriber.raised("LASTING_1")
    async with daemon.health() as health:
        await health.until(SERVING)
        log.vanish()
        await health.until(NOT_SERVING)
        lost = await subscriber.event(EventKind.SOURCE_LOST, "")
        log.appear()
        await health.until(SERVING)
        statuses = list(health.statuses)
    log.write(2, fake_log.line("a", "LASTING_2"))
    await subscriber.raised("LASTING_2")

    assert statuses == [SERVING, NOT_SERVING, SERVING]
    assert lost.verdict == Verdict.UNKNOWN
    assert daemon.worker() == worker
    assert [event.code for event in subscriber.of(EventKind.RAISED)] == ["LASTING_1", "LASTING_2"]
    log.close()


async def test_a_thousand_different_faults_at_once_are_all_told(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    os.kill(daemon.worker(), signal.SIGSTOP)
    written = [(f"device{number % 8}", f"LASTING_{number}") for number in range(1000)]
    for device, code in written:
        fake_log.say(device, code)
    os.kill(daemon.worker(), signal.SIGCONT)
    await subscriber.raised("LASTING_999")

    assert [(event.device, event.code) for event in subscriber.of(EventKind.RAISED)] == written
