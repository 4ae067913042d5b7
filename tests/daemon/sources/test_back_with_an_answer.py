"""The order in which an answer's parts are taken: what runs on or begins with it must know the rest."""

from nodeagent import wire
from nodeagent.core.model import ActiveSet, Kind, ProcessesListed, SourceBack
from nodeagent.daemon.sources.observation import Observation
from nodeagent.daemon.sources.translate import StampClock

CLOCK = StampClock(boottime_ns=lambda: 1_000, to_rule_ns=lambda stamp_ns: stamp_ns)


def answer(*pids: int) -> wire.Reply:
    held = tuple(wire.DeviceUser(pid=pid, start_time=1, command="python") for pid in pids)
    return wire.Reply(id=1, device="npu0", begun_ns=1, took_ns=1, active=(), holders=held)


def test_a_device_that_answers_again_shows_what_has_gone_meanwhile_before_it_is_back() -> None:
    observation = Observation("ascend", True, CLOCK)
    npu = wire.Device(device="npu0", kind=Kind.CHIP, vendor="ascend")
    observation.hello(wire.Hello(devices=(npu,)), ())
    observation.reply(answer())
    observation.late(["npu0"], "a call has not come back")

    inputs = observation.reply(answer())

    shown = ActiveSet(source="ascend", device="npu0", codes=(), begun_ns=1, complete=True)
    assert inputs[-2:] == [shown, SourceBack(source="ascend", device="npu0")]


def test_a_device_that_answers_for_the_first_time_shows_it_before_its_source_is_back() -> None:
    observation = Observation("ascend", True, CLOCK)
    npu = wire.Device(device="npu0", kind=Kind.CHIP, vendor="ascend")
    observation.hello(wire.Hello(devices=(npu,)), ())

    kinds = [type(given) for given in observation.reply(answer())]

    assert kinds.index(ActiveSet) < kinds.index(SourceBack)


def test_a_process_that_has_come_is_told_before_what_is_active_and_one_that_has_left_after() -> None:
    observation = Observation("ascend", True, CLOCK)
    npu = wire.Device(device="npu0", kind=Kind.CHIP, vendor="ascend")
    observation.hello(wire.Hello(devices=(npu,)), ())
    observation.reply(answer())

    came = [type(given) for given in observation.reply(answer(7))]
    changed = [type(given) for given in observation.reply(answer(8))]
    left = [type(given) for given in observation.reply(answer())]

    assert came == changed == [ProcessesListed, ActiveSet]
    assert left == [ActiveSet, ProcessesListed]


def test_processes_that_cannot_be_read_any_more_are_told_once_and_before_what_is_active() -> None:
    observation = Observation("ascend", True, CLOCK)
    npu = wire.Device(device="npu0", kind=Kind.CHIP, vendor="ascend")
    observation.hello(wire.Hello(devices=(npu,)), ())
    observation.reply(answer())
    unread = wire.Reply(id=2, device="npu0", begun_ns=1, took_ns=1, active=(), holders=None)

    lost, again = observation.reply(unread), observation.reply(unread)

    assert lost[0] == ProcessesListed(device="npu0", holders=(), known=False)
    assert [type(given) for given in (*lost, *again)] == [ProcessesListed, ActiveSet, ActiveSet]
