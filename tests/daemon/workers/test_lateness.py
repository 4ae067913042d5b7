"""Who owes an answer, and since when."""

from nodeagent.daemon.workers.lateness import Lateness


def polled(*devices: str) -> Lateness:
    lateness = Lateness(call_deadline_s=5.0)
    lateness.expect(devices)
    return lateness


def test_device_that_answers_is_never_late() -> None:
    lateness = polled("npu0")
    lateness.ask(1, ["*", "npu0"], now_s=0.0)
    assert lateness.answer(1, "npu0", now_s=0.0)
    assert lateness.answer(1, "*", now_s=0.0)
    assert lateness.newly_late(100.0) == ()
    assert lateness.due_s() is None


def test_late_device_is_told_once() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["npu0"], now_s=0.0)
    assert lateness.due_s() == 5.0
    assert lateness.newly_late(4.9) == ()
    assert lateness.newly_late(5.0) == ("npu0",)
    assert lateness.newly_late(6.0) == ()
    assert lateness.late == ("npu0",)


def test_device_that_owes_an_answer_is_not_asked_again() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["npu0"], now_s=0.0)
    assert lateness.free() == ("*", "npu1")


def test_answer_nobody_asked_for_is_refused() -> None:
    lateness = polled("npu0")
    assert not lateness.answer(1, "npu0", now_s=0.0)
    lateness.ask(2, ["npu0"], now_s=0.0)
    assert not lateness.answer(1, "npu0", now_s=0.0)
    assert lateness.answer(2, "npu0", now_s=0.0)
    assert not lateness.answer(2, "npu0", now_s=0.0)


def test_first_late_one_is_the_one_asked_first() -> None:
    lateness = polled("npu0", "npu1", "npu2")
    lateness.ask(1, ["npu2"], now_s=0.0)
    lateness.ask(2, ["npu0", "npu1"], now_s=1.0)
    assert lateness.newly_late(10.0) == ("npu2", "npu0", "npu1")
    assert lateness.late == ("npu2", "npu0", "npu1")


def test_all_late_means_every_device_whatever_the_source_answers() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["*", "npu0", "npu1"], now_s=0.0)
    lateness.answer(1, "*", now_s=0.0)
    lateness.answer(1, "npu1", now_s=0.0)
    lateness.newly_late(5.0)
    assert not lateness.all_late
    lateness.ask(2, ["npu1"], now_s=6.0)
    lateness.newly_late(11.0)
    assert lateness.all_late


def test_source_without_devices_answers_for_itself() -> None:
    lateness = polled()
    lateness.ask(1, ["*"], now_s=0.0)
    lateness.newly_late(5.0)
    assert lateness.all_late


def test_time_the_daemon_did_not_listen_is_excused() -> None:
    lateness = polled("npu0")
    lateness.ask(1, ["npu0"], now_s=0.0)
    lateness.excuse(60.0)
    assert lateness.newly_late(64.9) == ()
    assert lateness.newly_late(65.0) == ("npu0",)


def test_device_that_is_no_longer_expected_is_not_late_but_may_still_answer() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["npu0", "npu1"], now_s=0.0)
    lateness.expect(["npu1"])
    assert lateness.newly_late(5.0) == ("npu1",)
    assert lateness.due_s() is None
    assert lateness.answer(1, "npu0", now_s=0.0)
    assert not lateness.expects("npu0")


def test_device_that_comes_back_owes_what_it_owed_and_is_late_once_more() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["npu0"], now_s=0.0)
    assert lateness.newly_late(5.0) == ("npu0",)
    lateness.expect(["npu1"])
    assert lateness.late == ()
    lateness.expect(["npu0", "npu1"])
    assert lateness.free() == ("*", "npu1")
    assert lateness.newly_late(6.0) == ("npu0",)


def test_what_gone_devices_owe_is_kept_for_one_change_only() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["npu0"], now_s=0.0)
    lateness.expect(["npu1"])
    lateness.expect(["npu2"])
    assert not lateness.answer(1, "npu0", now_s=0.0)


def held_up(*devices: str) -> Lateness:
    """Of a driver that may hold up all devices for one."""
    lateness = Lateness(call_deadline_s=5.0, stall_deadline_s=60.0)
    lateness.expect(devices)
    return lateness


def test_while_no_device_answers_a_later_poll_none_is_late_before_the_stall_deadline() -> None:
    lateness = held_up("gpu0", "gpu1", "gpu2")
    lateness.ask(1, ["*", "gpu0", "gpu1", "gpu2"], now_s=0.0)
    lateness.answer(1, "gpu0", now_s=0.1)
    lateness.answer(1, "*", now_s=0.1)
    lateness.ask(2, ["*", "gpu0"], now_s=1.0)
    lateness.answer(2, "*", now_s=1.1)
    assert lateness.newly_late(59.9) == ()
    assert lateness.due_s() == 60.0
    assert lateness.newly_late(61.0) == ("gpu1", "gpu2", "gpu0")
    assert lateness.all_late


def test_one_that_others_were_not_held_up_by_is_late_alone() -> None:
    lateness = held_up("gpu0", "gpu1")
    lateness.ask(1, ["gpu0", "gpu1"], now_s=0.0)
    lateness.answer(1, "gpu0", now_s=0.1)
    lateness.ask(2, ["gpu0"], now_s=1.0)
    lateness.answer(2, "gpu0", now_s=1.5)
    assert lateness.due_s() == 6.5
    assert lateness.newly_late(6.5) == ("gpu1",)
    lateness.ask(3, ["gpu0"], now_s=7.0)
    assert lateness.newly_late(66.9) == ()
    assert not lateness.all_late


def test_those_that_were_held_up_longer_have_as_long_as_a_call_once_others_go_on() -> None:
    lateness = held_up("gpu0", "gpu1")
    lateness.ask(1, ["gpu0", "gpu1"], now_s=0.0)
    lateness.answer(1, "gpu0", now_s=0.1)
    lateness.ask(2, ["gpu0"], now_s=1.0)
    lateness.answer(2, "gpu0", now_s=45.0)
    assert lateness.newly_late(49.9) == ()
    assert lateness.answer(1, "gpu1", now_s=49.9)
