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
from tests.reset_unit.conftest import ACTION, ROOT, Desk, devices_of, furnished

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
def test_a_request_that_says_how_is_refused(desk: Desk, tmp_path: Path, field: str, value: object) -> None:
    forged = json.loads(json.dumps(value).replace("{folder}", str(tmp_path)))
    before = set(tmp_path.iterdir())
    result = desk.do_as(desk.forged(**{field: forged}))
    assert (result.state, result.reason) == (
        "refused",
        f"{NOTHING_BUT}Object contains unknown field `{field}`",
    )
    assert desk.resets == 0
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


def test_a_request_under_another_ones_name_is_refused(desk: Desk) -> None:
    result = desk.do_as(desk.forged(action="die7/reset#2"))
    assert (result.state, result.reason) == (
        "refused",
        f"{NOTHING_BUT}it is for die7/reset#2, attempt 1, which has another name",
    )
    assert desk.resets == 0


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
def test_what_is_no_request_is_refused(desk: Desk, content: bytes, why: str) -> None:
    result = desk.do_as(content)
    assert (result.state, result.reason[: len(NOTHING_BUT + why)]) == ("refused", NOTHING_BUT + why)


def test_a_link_is_not_followed(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(desk.forged())
    (desk.folder.path / f"{NAME}.request").symlink_to(tmp_path / "elsewhere")
    result = desk.result(NAME)
    assert (result.state, result.reason) == ("refused", f"{NOTHING_BUT}{NAME}.begun is a symbolic link")
    assert desk.resets == 0


def test_a_pipe_is_not_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.folder.path / f"{NAME}.request")
    result = desk.result(NAME)
    assert (result.state, result.reason) == ("refused", f"{NOTHING_BUT}{NAME}.begun is no plain file")


def test_where_the_result_is_a_link_what_it_leads_to_stays(desk: Desk, tmp_path: Path) -> None:
    for name in (f"{NAME}.result", f".{NAME}.result"):
        (tmp_path / f"precious-{name}").write_text("precious")
        (desk.folder.path / name).symlink_to(tmp_path / f"precious-{name}")
    assert desk.do().state == "done"
    assert {path.read_text() for path in tmp_path.glob("precious-*")} == {"precious"}


def test_a_lock_that_is_a_link_makes_nothing_elsewhere(desk: Desk, tmp_path: Path) -> None:
    (desk.folder.path / f"{NAME}.lock").symlink_to(tmp_path / "made")
    assert desk.start(desk.ask()).wait(60) != 0
    assert not (tmp_path / "made").exists()
    assert desk.resets == 0


def test_a_lock_that_somebody_holds_is_not_waited_for_for_ever(desk: Desk) -> None:
    with desk.folder.locked(NAME):
        assert desk.start(desk.ask()).wait(60) == 0
    assert desk.resets == 0


@pytest.mark.parametrize("name", ["../die0", "/etc/passwd", ".hidden", "", "a b", "x" * 201, "a\n"])
def test_the_name_of_a_request_is_no_path(desk: Desk, name: str) -> None:
    asked = subprocess.run(
        [
            sys.executable,
            "-m",
            "nodeagent.reset_unit",
            "--folder",
            desk.folder.path,
            "--config",
            desk.config,
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
    assert list(desk.folder.path.iterdir()) == []


def test_a_name_that_comes_on_its_input_is_one_line_and_is_not_waited_for(desk: Desk) -> None:
    desk.ask()
    where = ("--folder", str(desk.folder.path), "--config", str(desk.config))
    command = (sys.executable, "-m", "nodeagent.reset_unit", *where)
    done = subprocess.run(
        command, cwd=ROOT, input=f"{NAME}\nmore".encode(), stdout=subprocess.DEVNULL, timeout=60, check=False
    )
    assert (done.returncode, desk.resets) == (0, 1)
    silent, held = os.pipe()
    try:
        waiting = subprocess.run(
            command, cwd=ROOT, stdin=silent, capture_output=True, timeout=60, check=False
        )
    finally:
        os.close(silent)
        os.close(held)
    assert waiting.returncode == 2


def test_a_folder_that_others_may_write_asks_for_nothing(desk: Desk) -> None:
    desk.ask()
    desk.folder.path.chmod(0o777)
    assert desk.start(NAME).wait(60) != 0
    assert "can be written by others: chmod go-w" in (desk.base / "output").read_text()
    assert desk.resets == 0


# ---------------------------------------------------------------------- which devices


def test_a_part_of_a_group_is_not_reset(desk: Desk) -> None:
    result = desk.do(devices=(RequestedDevice(name="npu0"),))
    assert (result.state, result.reason) == (
        "refused",
        "npu0, npu1, npu2, npu3 are reset together; asked for was npu0",
    )
    assert desk.resets == 0


def test_another_part_than_the_one_that_was_meant_is_not_reset(desk: Desk) -> None:
    meant = "00000001-00000002-00000003-00000004-00000005"
    _, *others = devices_of(desk.node)
    result = desk.do(devices=(RequestedDevice(name="npu0", identity=meant), *others))
    assert result.state == "refused"
    assert result.reason.startswith("another part sits in the place of npu0: ")
    assert desk.resets == 0


def test_hooks_are_not_run_for_what_is_not_done(desk: Desk, tmp_path: Path) -> None:
    desk.configure(f'before = [["touch", "{tmp_path}/hook"]]', f'after = [["touch", "{tmp_path}/hook"]]')
    assert desk.do(devices=(RequestedDevice(name="npu9"),)).reason == "the library does not list npu9"
    assert not (tmp_path / "hook").exists()


def test_hooks_are_not_run_while_somebody_uses_the_devices(desk: Desk, tmp_path: Path) -> None:
    desk.configure(f'before = [["touch", "{tmp_path}/hook"]]')
    desk.node.hold("npu2", os.getpid())
    result = desk.do()
    assert result.state == "refused"
    assert re.fullmatch(rf"npu2 is held by \S+ \(pid {os.getpid()}\)", result.reason)
    assert not (tmp_path / "hook").exists()


def test_a_deadline_is_no_later_than_the_configuration_allows(desk: Desk) -> None:
    far = replace(desk.request, deadline_ns=2**62)
    before_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    plan = plan_of(far, desk.config)
    after_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert before_ns <= plan.deadline_ns - plan.config.reset.run_ns <= after_ns


def test_more_gpus_than_one_are_not_reset_in_the_name_of_one(tmp_path: Path) -> None:
    with EmulatedNode.create(tmp_path / "node", "2xH100") as node:
        desk = furnished(tmp_path, node, "nvidia")
        result = desk.do()
    assert (result.state, result.reason) == (
        "refused",
        "gpu0 is reset alone; asked for was gpu0, gpu1",
    )
