"""The process of a reset: it does what is asked once, in order and in time, and says how it went."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from nodeagent.daemon.resets.actuator import LOOK_EACH_S
from nodeagent.daemon.resets.detach import BACK_LIMIT_S
from nodeagent.drivers.ascend.reset_groups import NODE_GROUP
from nodeagent.reset_unit import evidence
from nodeagent.reset_unit.attempt import MARGIN_S, ResetAttempt
from nodeagent.reset_unit.evidence import CommandFailed, run_command
from nodeagent.reset_unit.exchange.record import ResetRecord
from nodeagent.reset_unit.exchange.requests import ResetResult, ResetStep, name_of
from tests.reset_unit.conftest import ACTION, ResetUnit, fake_tool
from tests.waiting import wait_until

NAME = name_of(ACTION, 1)


def test_hooks_evidence_and_reset_come_in_this_order(reset_unit: ResetUnit, tmp_path: Path) -> None:
    note = f"echo $0 $NODEAGENT_ACTION $NODEAGENT_DEVICES $NODEAGENT_RESULT >>{tmp_path}/notes"
    reset_unit.configure(
        f'before = [["sh", "-c", "{note}", "before"]]', f'after = [["sh", "-c", "{note}", "after"]]'
    )
    result = reset_unit.do()
    assert (result.state, result.reason) == ("done", "the devices have started again")
    assert [step.what for step in result.steps] == [
        "look",
        "before: sh",
        "evidence",
        "reset in-band",
        "wait for the chips to start",
        "after: sh",
        "end",
    ]
    assert (tmp_path / "notes").read_text().splitlines() == [
        "before die0/reset#1 npu0 npu1 npu2 npu3",
        "after die0/reset#1 npu0 npu1 npu2 npu3 done",
    ]


def test_it_is_done_once_however_often_it_is_started(reset_unit: ResetUnit) -> None:
    name = reset_unit.ask()
    together = [reset_unit.start(name) for _ in range(3)]
    assert [process.wait(60) for process in together] == [0, 0, 0]
    assert reset_unit.start(name).wait(60) == 0
    assert reset_unit.resets == 1


def test_a_hook_that_fails_calls_it_off_and_those_after_it_are_run(
    reset_unit: ResetUnit, tmp_path: Path
) -> None:
    reset_unit.configure(
        'before = [["sh", "-c", "echo busy; exit 3"]]',
        f'after = [["sh", "-c", "echo $NODEAGENT_RESULT >{tmp_path}/after"], ["false"]]',
    )
    result = reset_unit.do()
    assert (result.state, result.reason) == ("refused", "hook before it: sh: exit status 3: busy")
    assert (tmp_path / "after").read_text() == "refused\n"
    assert "hook after it: false: exit status 1" in [step.what for step in result.steps]
    assert reset_unit.resets == 0


def test_whatever_goes_wrong_is_told_and_the_hooks_after_it_are_run(
    reset_unit: ResetUnit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[str]:
        raise RuntimeError("a bug\n<0>panic")

    monkeypatch.setattr(evidence, "collect_evidence", broken)
    reset_unit.configure(f'after = [["touch", "{tmp_path}/after"]]')
    tried = ResetAttempt(reset_unit.request, NAME, reset_unit.folder, reset_unit.config)
    with ExitStack() as locks:
        tried.run(locks)
    result = tried.result()
    assert (result.state, result.reason) == ("failed", "RuntimeError: a bug\N{REPLACEMENT CHARACTER}<0>panic")
    assert (tmp_path / "after").exists()


def test_a_hook_whose_output_cannot_be_kept_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    with pytest.raises(CommandFailed, match=r"^true: No such file or directory$"):
        run_command(("true",), 5)


def test_a_command_that_is_killed_has_nothing_open_any_more(tmp_path: Path) -> None:
    (tmp_path / "device").touch()
    with pytest.raises(CommandFailed, match="killed after"):
        run_command(("sh", "-c", f"exec 3<{tmp_path}/device; echo $$ >{tmp_path}/pid; exec sleep 600"), 2)
    assert not (Path("/proc") / (tmp_path / "pid").read_text().strip()).exists()


def test_a_hook_that_does_not_end_is_killed_with_its_children(reset_unit: ResetUnit) -> None:
    reset_unit.configure('before = [["sh", "-c", "sleep 600 & wait"]]', 'hook_timeout = "1s"')
    result = reset_unit.do()
    assert (result.state, result.reason) == ("refused", "hook before it: sh: killed after 1 s")


def test_one_that_was_forbidden_meanwhile_is_not_done(reset_unit: ResetUnit) -> None:
    reset_unit.configure(f'before = [["touch", "{reset_unit.do_not_touch}"]]')
    result = reset_unit.do()
    assert (result.state, result.reason) == (
        "refused",
        f"resets are forbidden: {reset_unit.do_not_touch} is there",
    )
    assert reset_unit.resets == 0


def test_one_that_was_called_off_meanwhile_is_not_done(reset_unit: ResetUnit) -> None:
    off = reset_unit.folder.path / f"{NAME}.off"
    reset_unit.configure(f"""before = [["sh", "-c", "printf 'npu1 is claimed' >'{off}'"]]""")
    result = reset_unit.do()
    assert (result.state, result.reason) == ("refused", "it was called off: npu1 is claimed")
    assert reset_unit.resets == 0


def test_a_call_that_never_returns_is_told_in_time(reset_unit: ResetUnit) -> None:
    reset_unit.node.hang("npu0", "dcmi_set_device_reset")
    soon_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + int((MARGIN_S + 8) * 10**9)
    result = reset_unit.do(deadline_ns=soon_ns)
    assert (result.state, result.reason) == ("timed_out", "a call of the vendor's has not come back")


def test_a_result_of_the_last_moment_reaches_the_core_before_its_deadline() -> None:
    assert MARGIN_S > BACK_LIMIT_S + LOOK_EACH_S


def test_one_for_which_no_time_is_left_is_not_begun(reset_unit: ResetUnit) -> None:
    result = reset_unit.do(deadline_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    assert (result.state, result.reason) == ("refused", "no time is left for it before its deadline")
    assert reset_unit.resets == 0


def test_while_an_earlier_reset_of_the_devices_lives_nothing_is_done(reset_unit: ResetUnit) -> None:
    record = ResetRecord(reset_unit.record)
    record.make()
    with record.group_locked(f"ascend {NODE_GROUP}", 0):
        result = reset_unit.do()
    assert (result.state, result.reason) == ("failed", "an earlier reset of the same devices has not ended")


def test_a_device_of_an_unknown_vendor_is_refused(reset_unit: ResetUnit) -> None:
    result = reset_unit.do(vendor="nobody")
    assert (result.state, result.reason) == ("refused", "nodeagent cannot reset a device of nobody")


def test_the_evidence_of_the_last_twenty_is_kept(reset_unit: ResetUnit) -> None:
    for number in range(25):
        (reset_unit.record / "evidence" / f"old{number:02}").mkdir(parents=True)
    result = reset_unit.do(events=('{"seq": 1}',), readings={"npu0": {"temperature_celsius": 41.0}})
    assert not any(step.what.startswith("no ") for step in result.steps)
    kept = reset_unit.record / "evidence" / NAME
    assert sorted(path.name for path in kept.iterdir()) == [
        "devices.json",
        "events.jsonl",
        "kernel.log",
        "request.json",
    ]
    assert (kept / "kernel.log").read_text() == "6,1,1,-;one line\n"
    assert len(list((reset_unit.record / "evidence").iterdir())) == 20


def test_what_evidence_cannot_be_had_is_said_and_stops_nothing(reset_unit: ResetUnit, tmp_path: Path) -> None:
    (tmp_path / "kmsg").unlink()
    said = [step.what for step in reset_unit.do().steps]
    assert f"no kernel lines: [Errno 2] No such file or directory: '{tmp_path}/kmsg'" in said


def test_a_result_tells_the_times_of_its_steps() -> None:
    result = ResetResult(state="done", reason="well", steps=(ResetStep(what="reset", after_s=1.25),))
    assert result.summary() == "well (reset at 1.2 s)"


@pytest.mark.parametrize("code", ["XID_62", "XID_109", "XID_119.79", "XID_120"])
def test_no_tool_is_run_where_it_would_hang_and_hold_the_gpu(
    reset_unit: ResetUnit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    script = f"open({str(tmp_path / 'called')!r}, 'w')"
    monkeypatch.setenv("PATH", fake_tool(tmp_path / "bin", "nvidia-smi", script, {})["PATH"])
    request = msgspec.structs.replace(reset_unit.request, vendor="nvidia", reasons=(code,))
    missing = evidence.collect_evidence(tmp_path / "evidence", request, (), tmp_path / "kmsg")
    assert missing == [f"no report: nvidia-smi -q may hang with {code.partition('.')[0]}"]
    assert not (tmp_path / "called").exists()
    other = msgspec.structs.replace(request, reasons=("XID_79",))
    assert evidence.collect_evidence(tmp_path / "evidence", other, (), tmp_path / "kmsg") == []
    assert (tmp_path / "called").exists()


def shut_down_in_the_hook(reset_unit: ResetUnit, folder: Path) -> ResetResult:
    """What came of a reset that was asked to end while its hook ran, which went on then."""
    process = reset_unit.start(name := reset_unit.ask())
    wait_until((folder / "begun").exists, "the hook")
    process.terminate()
    (folder / "go").touch()
    assert process.wait(60) == 0
    result = reset_unit.folder.result(name)
    assert result is not None
    return result


def test_a_shutdown_before_the_devices_are_reached_calls_it_off(
    reset_unit: ResetUnit, tmp_path: Path
) -> None:
    reset_unit.configure(
        f'before = [["sh", "-c", "touch {tmp_path}/begun; until test -e {tmp_path}/go; do sleep 0.1; done"]]',
        f'after = [["touch", "{tmp_path}/after"]]',
    )

    result = shut_down_in_the_hook(reset_unit, tmp_path)

    assert (result.state, result.reason) == (
        "refused",
        "it was asked to end (SIGTERM) before it began; does the machine shut down?",
    )
    assert (tmp_path / "after").exists()
    assert reset_unit.resets == 0


def test_a_shutdown_does_not_interrupt_one_that_has_begun(reset_unit: ResetUnit, tmp_path: Path) -> None:
    reset_unit.configure(
        f'after = [["sh", "-c", "touch {tmp_path}/begun; until test -e {tmp_path}/go; do sleep 0.1; done"]]'
    )

    result = shut_down_in_the_hook(reset_unit, tmp_path)

    assert result.state == "done"
    assert "after: sh" in [step.what for step in result.steps]
    assert not [step for step in result.steps if "hook after it" in step.what]
