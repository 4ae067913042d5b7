"""What hangs again and again, for hours of a played clock: what is reported, and which workers there are."""

import asyncio
from itertools import pairwise

from nodeagent.core.model import ActiveSet, Input, Loss, Signal, SourceBack, SourceLost
from nodeagent.daemon.workers.worker import WorkerSpec
from tests.daemon.sources.played import OPENING, Node, Watched, play, watched

EIGHT = [f"chip{number}" for number in range(8)]
SPEC = WorkerSpec(source="fake", boot_id="boot")
REPETITIONS = 20
HOUR_S = 3600.0


def course(watch: Watched) -> list[tuple[str, str]]:
    """What is reported of devices that do not answer, but for recoveries of what never was."""
    delivered: list[tuple[str, str]] = []
    for given in watch.inputs:
        if not isinstance(given, Signal) or given.code != "driver_unresponsive":
            continue
        if given.assertion == "occur" or (given.device, "occur") in delivered:
            delivered.append((given.device, given.assertion.value))
    return delivered


def whole(inputs: list[Input]) -> list[SourceLost | SourceBack]:
    return [given for given in inputs if isinstance(given, SourceLost | SourceBack) and not given.device]


def longest_pause_s(watch: Watched, device: str) -> float:
    """Between two answers of the device."""
    at_s = [
        at_s for at_s, given in watch.delivered if isinstance(given, ActiveSet) and given.device == device
    ]
    return max(after - before for before, after in pairwise(at_s))


async def observed(watch: Watched, within_s: float = 60.0) -> None:
    await watch.until(lambda: watch.supervisor.health().observing, within_s)


async def left_behind(watch: Watched, workers: int) -> None:
    await watch.until(lambda: len(watch.supervisor.health().abandoned_pids) == workers, 60.0)


async def reported_devices(watch: Watched, times: int) -> None:
    await watch.until(lambda: len(course(watch)) == times, SPEC.call_deadline_s + 2 * SPEC.poll_interval_s)


async def begun(watch: Watched, node: Node, workers: int) -> None:
    within_s = SPEC.hello_deadline_s + SPEC.backoff_limit_s
    await watch.until(lambda: len(node.began) == workers, within_s)


def test_one_of_eight_hangs_again_and_again_and_the_others_keep_their_period() -> None:
    node = Node(EIGHT)

    async def story(watch: Watched) -> None:
        await observed(watch)
        for number in range(REPETITIONS):
            node.hang("chip5")
            await reported_devices(watch, 2 * number + 1)
            node.release("chip5")
            await reported_devices(watch, 2 * number + 2)

    watch = play(watched(SPEC, node, story))

    assert course(watch) == [("chip5", "occur"), ("chip5", "recover")] * REPETITIONS
    others = [device for device in EIGHT if device != "chip5"]
    assert max(longest_pause_s(watch, device) for device in others) < 1.1 * SPEC.poll_interval_s
    assert whole(watch.inputs) == [SourceBack(source="fake")]
    assert len(node.began) == 1


def test_a_driver_that_wedges_again_and_again_is_left_replaced_and_restored() -> None:
    node = Node(["chip0", "chip1"])

    async def story(watch: Watched) -> None:
        for number in range(1, REPETITIONS + 1):
            await observed(watch)
            node.hang("chip0")
            node.hang("chip1", in_the_kernel=True)
            await left_behind(watch, 1)
            abandoned = node.began[-1]
            node.release("chip0")
            await observed(watch)
            assert len(node.alive) == 2
            node.release("chip1")
            await begun(watch, node, 1 + 2 * number)
            assert (abandoned.signals, abandoned.has_ended.is_set()) == ([], True)
            assert watch.supervisor.health().abandoned_pids == ()

    watch = play(watched(SPEC, node, story))

    reasons = [given.reason for given in whole(watch.inputs) if isinstance(given, SourceLost)]
    assert reasons == ["no device answered within 5 s; chip1 hangs in the kernel"] * REPETITIONS
    assert node.alive == []


def test_a_replacement_that_wedges_too_is_the_last_for_hours() -> None:
    node = Node(EIGHT)

    async def story(watch: Watched) -> None:
        await observed(watch)
        node.hang(*EIGHT, in_the_kernel=True)
        await left_behind(watch, 2)
        before = len(watch.inputs)
        await asyncio.sleep(3 * HOUR_S)
        assert (len(node.began), watch.inputs[before:]) == (2, [])
        node.release(*EIGHT)
        await observed(watch)

    watch = play(watched(SPEC, node, story))

    assert [type(given) for given in whole(watch.inputs)] == [SourceBack, SourceLost, SourceBack]


def test_one_that_is_taken_up_again_has_no_third_worker_beside_two_that_were_left_behind() -> None:
    node = Node(EIGHT)

    async def story(watch: Watched) -> None:
        node.hang(*EIGHT, in_the_kernel=True)
        await left_behind(watch, 2)
        assert not await watch.supervisor.let_go("it is reset")
        watch.supervisor.take_up()
        await asyncio.sleep(HOUR_S)
        assert (watch.supervisor.health().state, len(node.began)) == ("abandoned", 2)
        node.release(*EIGHT)
        await observed(watch)

    play(watched(SPEC, node, story))

    assert len(node.began) == 3


def test_a_lock_of_the_whole_driver_is_told_once_and_its_worker_replaced_all_the_while() -> None:
    node = Node(EIGHT)

    async def story(watch: Watched) -> None:
        node.hang(*EIGHT)
        await asyncio.sleep(HOUR_S)
        node.release(*EIGHT)
        await observed(watch)

    watch = play(watched(SPEC, node, story))

    reason = "no device answered within 5 s; chip0 has waited longest"
    assert whole(watch.inputs) == [SourceLost(source="fake", reason=reason), SourceBack(source="fake")]
    both = [(device, assertion) for device in EIGHT for assertion in ("occur", "recover")]
    assert sorted(course(watch)) == both
    each_s = SPEC.call_deadline_s + SPEC.backoff_limit_s
    assert HOUR_S / each_s - 2 < len(node.began) < HOUR_S / each_s + 10


def test_a_worker_that_is_not_ready_in_time_is_replaced_and_the_source_is_lost_until_one_is() -> None:
    node = Node(EIGHT, hangs={OPENING})

    async def story(watch: Watched) -> None:
        await begun(watch, node, 2)
        node.release(OPENING)
        await observed(watch)

    watch = play(watched(SPEC, node, story))

    reason = "its worker was not ready within 60 s"
    assert whole(watch.inputs) == [
        SourceLost(source="fake", reason=reason, how=Loss.NOT_RUNNING),
        SourceBack(source="fake"),
    ]
    faults = [(given.code, given.assertion) for given in watch.inputs if isinstance(given, Signal)]
    assert [delivered for delivered in faults if delivered[0] == "driver_unresponsive.fake"] == [
        ("driver_unresponsive.fake", "occur"),
        ("driver_unresponsive.fake", "recover"),
    ]
