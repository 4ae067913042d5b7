"""Resets from the fault to the verdict: the real daemon, driver, process and library, on emulated NPUs."""

import contextlib
import os
import re
import signal
from pathlib import Path

import pytest

from nodeagent.client import EventKind, Level
from tests.reset_unit.acting import ACTIONS, BROKEN, CODE, INBAND, acting

pytestmark = pytest.mark.slow

RING = [f"npu{number}" for number in range(8)]
ALLOWED = dict.fromkeys(RING, "ALLOW")
ISOLATED = dict.fromkeys(RING, "ISOLATE")


async def test_a_fault_on_one_of_a_free_ring_is_reset_away_and_all_may_be_used_again(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.reset = (f'before = [["sh", "-c", "echo $NODEAGENT_DEVICES >{tmp_path}/hook"]]',)
        await npus.start()
        npus.break_("npu3")
        proposed = await npus.event(EventKind.ACTION_PROPOSED, "reset of npu3")
        assert await npus.verdicts() == ISOLATED
        finished = await npus.event(EventKind.ACTION_FINISHED, "done")
        assert npus.node.calls(INBAND) == 1
        assert [npus.node.chip(name).resets for name in RING] == [1] * 8
        assert npus.actions == [
            ("action_proposed", f"reset of npu3, npu0, npu1, npu2, npu4, npu5, npu6, npu7 for {CODE}"),
            ("action_started", "reset of npu3, npu0, npu1, npu2, npu4, npu5, npu6, npu7"),
            ("action_finished", "done: verified by a poll of every member"),
        ]
        assert float(finished.evidence["ended_after_s"]) > float(finished.evidence["started_after_s"]) >= 5
        assert re.match(
            r"the devices have started again \(look at 0\.0 s; before: sh at \d\.\d s; evidence at \d\.\d s",
            finished.evidence["report"],
        )
        assert await npus.verdicts() == ALLOWED
        assert {event.code for event in npus.subscriber.of(EventKind.RAISED)} == {CODE}
        assert (tmp_path / "hook").read_text().split()[0] == "npu3"
        (evidence,) = (tmp_path / "state-reset/evidence").iterdir()
        assert sorted(path.name for path in evidence.iterdir()) == [
            "devices.json",
            "events.jsonl",
            "kernel.log",
            "request.json",
        ]
        assert proposed.condition_id in (evidence / "events.jsonl").read_text()
        await npus.daemon.comes(lambda: not list(npus.run_dir.glob("*.result")), "the end of its files")


async def test_story_10_a_holder_is_named_and_once_it_has_left_the_reset_is_done(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.node.hold("npu5", os.getpid())
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        waiting = await npus.event(EventKind.ACTION_PROPOSED, "it waits: npu5 is used by ")
        assert f"(pid {os.getpid()}" in waiting.why
        assert npus.node.calls(INBAND) == 0
        npus.node.let_go("npu5")
        await npus.event(EventKind.ACTION_FINISHED, "done")
        assert npus.node.calls(INBAND) == 1
        assert await npus.verdicts() == ALLOWED


async def test_a_job_that_begins_while_the_hooks_run_keeps_its_chips(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        waits = f"until test -e {tmp_path}/go-on; do sleep 0.1; done"
        npus.reset = (f'before = [["sh", "-c", "{waits}"]]', 'hook_timeout = "60s"')
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.daemon.comes(lambda: list(npus.run_dir.glob("*.begun")), "its process")
        await npus.claim("npu5")
        await npus.daemon.comes(lambda: list(npus.run_dir.glob("*.off")), "its being called off")
        (tmp_path / "go-on").touch()
        claimed = "npu5 is claimed by the job slurm:9"
        await npus.event(EventKind.ACTION_FINISHED, f"refused: it was called off: {claimed}")
        assert npus.node.calls(INBAND) == 0
        await npus.claim("npu5", "--left")
        await npus.announced(2)
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1


async def test_a_dry_run_records_the_same_and_calls_nothing(tmp_path: Path) -> None:
    records = {}
    for mode in ("dry-run", "on"):
        (tmp_path / mode).mkdir()
        async with acting(tmp_path / mode, "8x910B") as npus:
            npus.mode = mode
            await npus.start()
            npus.break_("npu3")
            await npus.announced(1)
            await npus.event(EventKind.ACTION_FINISHED, "done")
            actions = [event for event in npus.subscriber.events if event.kind in ACTIONS]
            records[mode] = [
                (event.kind, event.device, event.code, event.condition_id, event.evidence["devices"])
                for event in actions
            ]
            assert {event.evidence["mode"] for event in actions} == {mode}
            assert npus.node.calls(INBAND) == (0 if mode == "dry-run" else 1)
            assert not (npus.run_dir.exists() and mode == "dry-run")
            if mode == "dry-run":
                assert await npus.verdicts() == {**ALLOWED, "npu3": "ISOLATE"}
    assert records["dry-run"] == records["on"]


async def test_an_a3_that_refuses_in_band_is_reset_out_of_band(tmp_path: Path) -> None:
    async with acting(tmp_path, "16xA3") as npus:
        module = ["npu4", "npu5", "npu12", "npu13"]
        npus.node.answer(-8015, function=INBAND, times=4)
        for name in module:
            npus.node.set(name, "outband_state", 1)
        await npus.start()
        npus.break_("npu4")
        await npus.announced(1)
        finished = await npus.event(EventKind.ACTION_FINISHED, "done")
        assert npus.node.calls(INBAND) == 5
        assert npus.node.calls("dcmi_pre_reset_soc") == npus.node.calls("dcmi_rescan_soc") == 1
        assert [name for name in npus.node.names() if npus.node.chip(name).resets] == module
        assert finished.evidence["devices"] == ", ".join(module)
        assert set((await npus.verdicts()).values()) == {"ALLOW"}


async def test_a_910b_that_has_dropped_is_reset_with_the_others_and_all_may_be_used_again(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await npus.start()
        await npus.read_again()
        npus.node.drop("npu3")
        await npus.event(EventKind.ACTION_PROPOSED, "reset of npu3")
        assert await npus.verdicts() == ISOLATED
        npus.pass_time(5)
        finished = await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert "npu3 has dropped, and is not found" in finished.evidence["report"]
        assert [npus.node.chip(name).resets for name in RING] == [1] * 8
        assert await npus.verdicts() == ALLOWED


async def test_a_process_on_a_910b_that_has_dropped_keeps_all_from_a_reset(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await npus.start()
        npus.node.hold("npu3", os.getpid())
        await npus.read_again()
        npus.node.drop("npu3")
        await npus.event(EventKind.ACTION_PROPOSED, "reset of npu3")
        npus.pass_time(5)
        await npus.event(EventKind.ACTION_PROPOSED, "it waits: the users of npu3 are not known")
        assert not any(npus.node.chip(name).resets for name in RING)


async def test_a_reset_goes_on_through_kill_9_and_its_result_is_adopted(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.reset = ('before = [["sleep", "2"]]',)
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.daemon.comes(lambda: list(npus.run_dir.glob("*.begun")), "its process")
        await npus.kill()
        await npus.start()
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1
        assert await npus.verdicts() == ALLOWED
        await npus.kill()
        await npus.start()
        assert npus.node.calls(INBAND) == 1


async def test_a_reset_that_ends_while_the_daemon_is_down_is_adopted(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.reset = ('before = [["sleep", "1"]]',)
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.daemon.comes(lambda: list(npus.run_dir.glob("*.begun")), "its process")
        await npus.kill()
        await npus.daemon.comes(lambda: list(npus.run_dir.glob("*.result")), "its result")
        await npus.start()
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1


async def test_one_whose_result_is_lost_was_interrupted_and_is_counted(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.reset = ('before = [["sleep", "20"]]', 'hook_timeout = "30s"', "limit = 1")
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.daemon.comes(lambda: list(npus.run_dir.glob("*.begun")), "its process")
        await npus.kill()
        _kill_process_of(npus.run_dir)
        await npus.start()
        finished = await npus.event(EventKind.ACTION_FINISHED, "interrupted: it left no result")
        assert npus.node.calls(INBAND) == 0
        failed = await npus.subscriber.raised("reset_failed", "npu3")
        assert failed.verdict.value == "ISOLATE"
        assert finished.evidence["attempt"] == "1"


async def test_story_10_one_that_says_it_worked_while_the_fault_is_still_there_has_failed(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        for name in RING:
            npus.node.set(name, "reset_heals", 0)
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        for attempt in (1, 2):
            await npus.verifying(attempt)
            npus.pass_time(150)
        await npus.event(EventKind.ACTION_FINISHED, "failed: no poll showed npu3 healthy; once more")
        failed = await npus.subscriber.raised("reset_failed", "npu3")
        assert npus.node.calls(INBAND) == 2
        assert failed.condition_level is Level.SEPARATE_NPU
        assert await npus.verdicts() == {**ALLOWED, "npu3": "ISOLATE"}


async def test_story_11_a_fault_that_returns_after_each_reset_is_reset_only_so_often_also_after_kill_9(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.reset = ("limit = 2",)
        await npus.start()
        for number in (1, 2):
            npus.break_("npu3")
            await npus.announced(number)
            await npus.ended(number)
            await npus.kill()
            await npus.start()
        npus.break_("npu6")
        limited = await npus.subscriber.raised("reset_limit_reached", "npu6")
        assert limited.condition_level is Level.SEPARATE_NPU
        assert npus.node.calls(INBAND) == 2
        assert await npus.verdicts() == {**ALLOWED, "npu6": "ISOLATE"}


async def test_in_mode_ask_a_person_lets_it_go_on_or_not_and_silence_is_no(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.mode = "ask"
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.daemon.comes(lambda: npus.is_at("asking"), "the question")
        npus.pass_time(600)
        await npus.event(EventKind.ACTION_FINISHED, "refused: it was not approved in time")
        assert npus.node.calls(INBAND) == 0

        npus.node.clear_code("npu3", BROKEN)
        await npus.subscriber.cleared(CODE, "npu3")
        npus.break_("npu4")
        await npus.announced(2)
        await npus.daemon.comes(lambda: npus.is_at("asking"), "the question")
        said = await npus.order("approve", npus.subscriber.of(EventKind.ACTION_PROPOSED)[-1].condition_id)
        assert said[0] == 0, said
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1
        assert await npus.verdicts() == ALLOWED


async def test_what_forbids_resets_after_the_start_holds_too(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        await npus.start()
        npus.break_("npu3")
        await npus.event(EventKind.ACTION_PROPOSED, "reset of npu3")
        (tmp_path / "do-not-touch").touch()
        npus.pass_time(5)
        await npus.event(
            EventKind.ACTION_FINISHED, f"refused: resets are forbidden: {tmp_path}/do-not-touch is there"
        )
        assert npus.node.calls(INBAND) == 0
        assert await npus.verdicts() == {**ALLOWED, "npu3": "ISOLATE"}


async def test_hooks_that_a_reload_brings_are_run_around_the_resets_that_it_allows(tmp_path: Path) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.mode = "dry-run"
        await npus.start()
        npus.mode = "on"
        npus.reset = (f'before = [["touch", "{tmp_path}/hook"]]',)
        await npus.reload()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.event(EventKind.ACTION_FINISHED, "done: verified by a poll of every member")
        assert npus.node.calls(INBAND) == 1
        assert (tmp_path / "hook").exists()


def _kill_process_of(run_dir: Path) -> None:
    """Kill -9 of the process of the one reset there is, found by what it was started with."""
    (begun,) = run_dir.glob("*.begun")
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if begun.stem.encode() in words and str(run_dir).encode() in words:
                os.kill(int(process.name), signal.SIGKILL)


async def test_where_a_reset_can_be_asked_of_nobody_its_devices_are_polled_again_and_nobody_else_is_taken_out(
    tmp_path: Path,
) -> None:
    async with acting(tmp_path, "8x910B") as npus:
        npus.run_dir.write_text("a file where there should be a folder")
        await npus.start()
        npus.break_("npu3")
        await npus.announced(1)
        await npus.event(EventKind.ACTION_FINISHED, "refused: it could not be started: ")
        await npus.read_again()
        assert npus.node.calls(INBAND) == 0
        assert await npus.verdicts() == {**ALLOWED, "npu3": "ISOLATE"}
