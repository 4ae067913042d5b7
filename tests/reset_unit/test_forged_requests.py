"""Whoever controls the daemon writes the request: it gets the reset of one allowed group, nothing else."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeagent.emulator.node import EmulatedNode
from nodeagent.reset_unit.exchange.requests import MAX_BYTES, RequestedDevice, decoded, name_of
from nodeagent.reset_unit.plan import plan_of
from tests.reset_unit.conftest import ACTION, ROOT, ResetUnit, devices_of, make_reset_unit

NAME = name_of(ACTION, 1)
NOTHING_BUT = "the request cannot be used: "


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("before", [["touch", "{folder}/pwned"]]),
        ("after", [["touch", "{folder}/pwned"]]),
        ("library", "{folder}/evil.so"),
        ("evidence_dir", "{folder}/elsewhere"),
        ("config", "{folder}/other.toml"),
        ("do_not_touch", "/nonexistent"),
        ("limit", 100),
    ],
)
def test_a_request_that_says_how_is_refused(
    reset_unit: ResetUnit, tmp_path: Path, field: str, value: object
) -> None:
    forged = json.loads(json.dumps(value).replace("{folder}", str(tmp_path)))
    before = set(tmp_path.iterdir())
    result = reset_unit.do_as(reset_unit.forged(**{field: forged}))
    assert (result.state, result.reason) == (
        "refused",
        f"{NOTHING_BUT}Object contains unknown field `{field}`",
    )
    assert reset_unit.resets == 0
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"output"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action", "die0/reset#1; reboot"),
        ("action", "die0/reset#1\n"),
        ("vendor", "../ascend"),
        ("attempt", 0),
        ("devices", []),
        ("devices", [{"name": "npu0 npu1"}]),
        ("devices", [{"name": "npu0", "identity": "$(reboot)"}]),
        ("devices", [{"name": "npu0", "pci": "0000:1b:00.0,0000:3b:00.0"}]),
        ("devices", [{"name": "npu0", "minor": "0"}]),
        ("ended_first", [{"pid": 1, "start_time": 1}]),
        ("deadline_ns", 2**63),
        ("reasons", ["a\nb"]),
        ("readings", 1),
    ],
)
def test_a_value_that_is_none_of_its_kind_is_refused(field: str, value: object) -> None:
    sound = {
        "action": ACTION,
        "attempt": 1,
        "vendor": "ascend",
        "devices": [{"name": "npu0"}],
        "deadline_ns": 1,
    }
    assert decoded(json.dumps(sound).encode(), NAME).action == ACTION
    with pytest.raises(ValueError, match=rf" - at `\$\.{field}"):
        decoded(json.dumps({**sound, field: value}).encode(), NAME)


def test_a_request_under_another_ones_name_is_refused(reset_unit: ResetUnit) -> None:
    result = reset_unit.do_as(reset_unit.forged(action="die7/reset#2"))
    assert (result.state, result.reason) == (
        "refused",
        f"{NOTHING_BUT}it is for die7/reset#2, attempt 1, which has another name",
    )
    assert reset_unit.resets == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Input data was truncated"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b" " * (MAX_BYTES + 1), f"{NAME}.begun has more than {MAX_BYTES} bytes"),
        (b'{"action": "\xff"}', "'utf-8' codec can't decode byte 0xff"),
    ],
    ids=["empty", "nested", "endless", "bytes"],
)
def test_what_is_no_request_is_refused(reset_unit: ResetUnit, content: bytes, why: str) -> None:
    result = reset_unit.do_as(content)
    assert (result.state, result.reason[: len(NOTHING_BUT + why)]) == ("refused", NOTHING_BUT + why)


def test_a_link_is_not_followed(reset_unit: ResetUnit, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(reset_unit.forged())
    (reset_unit.folder.path / f"{NAME}.request").symlink_to(tmp_path / "elsewhere")
    result = reset_unit.result(NAME)
    assert (result.state, result.reason) == ("refused", f"{NOTHING_BUT}{NAME}.begun is a symbolic link")
    assert reset_unit.resets == 0


def test_a_pipe_is_not_waited_for(reset_unit: ResetUnit) -> None:
    os.mkfifo(reset_unit.folder.path / f"{NAME}.request")
    result = reset_unit.result(NAME)
    assert (result.state, result.reason) == ("refused", f"{NOTHING_BUT}{NAME}.begun is no plain file")


def test_where_the_result_is_a_link_what_it_leads_to_stays(reset_unit: ResetUnit, tmp_path: Path) -> None:
    for name in (f"{NAME}.result", f".{NAME}.result"):
        (tmp_path / f"precious-{name}").write_text("precious")
        (reset_unit.folder.path / name).symlink_to(tmp_path / f"precious-{name}")
    assert reset_unit.do().state == "done"
    assert {path.read_text() for path in tmp_path.glob("precious-*")} == {"precious"}


def test_a_lock_that_is_a_link_makes_nothing_elsewhere(reset_unit: ResetUnit, tmp_path: Path) -> None:
    (reset_unit.folder.path / f"{NAME}.lock").symlink_to(tmp_path / "made")
    assert reset_unit.start(reset_unit.ask()).wait(60) != 0
    assert not (tmp_path / "made").exists()
    assert reset_unit.resets == 0


def test_a_lock_that_somebody_holds_is_not_waited_for_for_ever(reset_unit: ResetUnit) -> None:
    with reset_unit.folder.locked(NAME):
        assert reset_unit.start(reset_unit.ask()).wait(60) == 0
    assert reset_unit.resets == 0


@pytest.mark.parametrize("name", ["../die0", "/etc/passwd", ".hidden", "", "a b", "x" * 201, "a\n"])
def test_the_name_of_a_request_is_no_path(reset_unit: ResetUnit, name: str) -> None:
    asked = subprocess.run(
        [
            sys.executable,
            "-m",
            "nodeagent.reset_unit",
            "--folder",
            reset_unit.folder.path,
            "--config",
            reset_unit.config,
            "--",
            name,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert asked.returncode == 2
    assert "is the name of no request" in asked.stdout
    assert list(reset_unit.folder.path.iterdir()) == []


def test_a_name_that_comes_on_its_input_is_one_line_and_is_not_waited_for(reset_unit: ResetUnit) -> None:
    reset_unit.ask()
    where = ("--folder", str(reset_unit.folder.path), "--config", str(reset_unit.config))
    command = (sys.executable, "-m", "nodeagent.reset_unit", *where)
    done = subprocess.run(
        command, cwd=ROOT, input=f"{NAME}\nmore".encode(), stdout=subprocess.DEVNULL, timeout=60, check=False
    )
    assert (done.returncode, reset_unit.resets) == (0, 1)
    silent, held = os.pipe()
    try:
        waiting = subprocess.run(
            command, cwd=ROOT, stdin=silent, capture_output=True, timeout=60, check=False
        )
    finally:
        os.close(silent)
        os.close(held)
    assert waiting.returncode == 2


def test_a_folder_that_others_may_write_asks_for_nothing(reset_unit: ResetUnit) -> None:
    reset_unit.ask()
    reset_unit.folder.path.chmod(0o777)
    assert reset_unit.start(NAME).wait(60) != 0
    assert "can be written by others: chmod go-w" in (reset_unit.base / "output").read_text()
    assert reset_unit.resets == 0


# ---------------------------------------------------------------------- which devices


def test_a_part_of_a_group_is_not_reset(reset_unit: ResetUnit) -> None:
    result = reset_unit.do(devices=(RequestedDevice(name="npu0"),))
    assert (result.state, result.reason) == (
        "refused",
        "npu0, npu1, npu2, npu3 are reset together; asked for was npu0",
    )
    assert reset_unit.resets == 0


def test_another_part_than_the_one_that_was_meant_is_not_reset(reset_unit: ResetUnit) -> None:
    meant = "00000001-00000002-00000003-00000004-00000005"
    _, *others = devices_of(reset_unit.node)
    result = reset_unit.do(devices=(RequestedDevice(name="npu0", identity=meant), *others))
    assert result.state == "refused"
    assert result.reason.startswith("another part sits in the place of npu0: ")
    assert reset_unit.resets == 0


def test_hooks_are_not_run_for_what_is_not_done(reset_unit: ResetUnit, tmp_path: Path) -> None:
    reset_unit.configure(
        f'before = [["touch", "{tmp_path}/hook"]]', f'after = [["touch", "{tmp_path}/hook"]]'
    )
    assert reset_unit.do(devices=(RequestedDevice(name="npu9"),)).reason == "the library does not list npu9"
    assert not (tmp_path / "hook").exists()


def test_hooks_are_not_run_while_somebody_uses_the_devices(reset_unit: ResetUnit, tmp_path: Path) -> None:
    reset_unit.configure(f'before = [["touch", "{tmp_path}/hook"]]')
    reset_unit.node.hold("npu2", os.getpid())
    result = reset_unit.do()
    assert result.state == "refused"
    assert re.fullmatch(rf"npu2 is used by \S+ \(pid {os.getpid()}\)", result.reason)
    assert not (tmp_path / "hook").exists()


def test_a_deadline_is_no_later_than_the_configuration_allows(reset_unit: ResetUnit) -> None:
    far = replace(reset_unit.request, deadline_ns=2**62)
    before_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    plan = plan_of(far, reset_unit.config)
    after_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before_ns <= plan.deadline_ns - plan.config.reset.run_ns <= after_ns


def test_more_gpus_than_one_are_not_reset_in_the_name_of_one(tmp_path: Path) -> None:
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        reset_unit = make_reset_unit(tmp_path, node, "nvidia")
        result = reset_unit.do()
    assert (result.state, result.reason) == (
        "refused",
        "gpu0 is reset alone; asked for was gpu0, gpu1",
    )
