"""Who owes an answer, and since when."""

from nodeagent.daemon.lateness import Lateness


def polled(*devices: str) -> Lateness:
    lateness = Lateness(call_deadline_s=5.0)
    lateness.expect(devices)
    return lateness


def test_device_that_answers_is_never_late() -> None:
    lateness = polled("npu0")
    lateness.ask(1, ["*", "npu0"], now_s=0.0)
    assert lateness.answer(1, "npu0")
    assert lateness.answer(1, "*")
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
    assert not lateness.answer(1, "npu0")
    lateness.ask(2, ["npu0"], now_s=0.0)
    assert not lateness.answer(1, "npu0")
    assert lateness.answer(2, "npu0")
    assert not lateness.answer(2, "npu0")


def test_first_late_one_is_the_one_asked_first() -> None:
    lateness = polled("npu0", "npu1", "npu2")
    lateness.ask(1, ["npu2"], now_s=0.0)
    lateness.ask(2, ["npu0", "npu1"], now_s=1.0)
    assert lateness.newly_late(10.0) == ("npu2", "npu0", "npu1")
    assert lateness.late == ("npu2", "npu0", "npu1")


def test_all_late_means_every_device_whatever_the_source_answers() -> None:
    lateness = polled("npu0", "npu1")
    lateness.ask(1, ["*", "npu0", "npu1"], now_s=0.0)
    lateness.answer(1, "*")
    lateness.answer(1, "npu1")
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
    assert lateness.answer(1, "npu0")
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
    assert not lateness.answer(1, "npu0")
