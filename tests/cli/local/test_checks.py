"""tables check, config check, explain and version: answers that need no daemon."""

from pathlib import Path

import pytest

from nodeagent import __version__
from tests.cli.conftest import ROOT, Nodeagent

ROW = """
kind = "chip"

[codes.XID_48]
name = "ECC"
level = "SeparateNPU"
clear_on = ["reset", "reboot"]
description = "Memory is broken."
action = "Replace the GPU."
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tables"
    folder.mkdir()
    return folder


def test_the_shipped_tables_are_sound(nodeagent: Nodeagent) -> None:
    ran = nodeagent("tables", "check", "-o", "json")

    assert (ran.status, ran.json[0]["ok"], ran.json[0]["problems"]) == (0, True, [])


def test_a_sites_table_is_checked_as_it_lies_over_the_shipped_ones(
    nodeagent: Nodeagent, folder: Path
) -> None:
    (folder / "site.toml").write_text(ROW)

    over, alone = nodeagent("tables", "check", folder), nodeagent("tables", "check", "--alone", folder)
    shipped = nodeagent("tables", "check", "-o", "json").json[0]["codes"]

    assert (over.status, alone.status) == (0, 0)
    assert over.out.startswith(f"ok: {shipped} codes from")
    assert alone.out.startswith(f"ok: 1 codes from {folder}, digest ")


def test_a_bad_table_is_reported_by_file_line_key_and_reason(nodeagent: Nodeagent, folder: Path) -> None:
    (folder / "site.toml").write_text(ROW.replace("SeparateNPU", "SeparateGPU"))

    text, form = nodeagent("tables", "check", folder), nodeagent("tables", "check", folder, "-o", "json")

    assert (text.status, form.status) == (1, 1)
    assert text.out.startswith(f'{folder}/site.toml:6: codes.XID_48.level: "SeparateGPU": ')
    (problem,) = form.json[0]["problems"]
    assert (problem["file"], problem["line"], problem["key"]) == (
        f"{folder}/site.toml",
        6,
        "codes.XID_48.level",
    )


def test_what_is_odd_is_a_warning_and_no_failure(nodeagent: Nodeagent, folder: Path) -> None:
    (folder / "a.toml").write_text(ROW)
    (folder / "b.toml").write_text(ROW.replace("SeparateNPU", "SubHealthFault"))

    ran = nodeagent("tables", "check", folder)

    assert ran.status == 0
    assert ran.out.startswith(f"warning: {folder}/b.toml:4: XID_48 is defined also at {folder}/a.toml:4")


def test_a_folder_that_is_named_must_be_there(nodeagent: Nodeagent, folder: Path) -> None:
    ran = nodeagent("tables", "check", folder / "none")

    assert (ran.status, ran.out) == (1, f"{folder}/none: no such folder\n")


def test_the_shipped_configuration_is_sound(nodeagent: Nodeagent) -> None:
    ran = nodeagent("config", "check", ROOT / "packaging/nodeagent.toml")

    assert (ran.status, ran.out) == (0, f"{ROOT}/packaging/nodeagent.toml: ok\n")


def test_a_wrong_key_of_the_configuration_is_reported_with_the_nearest(
    nodeagent: Nodeagent, configuration: Path
) -> None:
    configuration.write_text("[agent]\nsokcet = '/x'\n")

    check, run = nodeagent("config", "check"), nodeagent("run")

    assert (check.status, check.out) == (
        1,
        f'{configuration}:2: agent.sokcet: unknown key; the nearest known is "socket"\n',
    )
    assert (run.status, run.out, run.err) == (78, "", f"nodeagent: {check.out}")


def test_the_drop_ins_are_checked_and_named_as_well(nodeagent: Nodeagent, configuration: Path) -> None:
    folder = configuration.with_name("nodeagent.d")
    folder.mkdir()
    (folder / "a.toml").write_text("[store]\n")
    sound = nodeagent("config", "check")
    (folder / "b.toml").write_text("[stor]\n")
    text, form = nodeagent("config", "check"), nodeagent("config", "check", "-o", "json")

    assert (sound.status, sound.out) == (0, f"{configuration}: ok\n{folder}/a.toml: ok\n")
    assert (text.status, text.out) == (
        1,
        f'{folder}/b.toml:1: stor: unknown key; the nearest known is "store"\n',
    )
    files = [str(configuration), f"{folder}/a.toml", f"{folder}/b.toml"]
    assert (form.json[0]["file"], form.json[0]["files"]) == (files[0], files)


def test_from_which_file_each_value_comes_is_shown(nodeagent: Nodeagent, configuration: Path) -> None:
    folder = configuration.with_name("nodeagent.d")
    folder.mkdir()
    configuration.write_text('[agent]\nmode = "graceful"\nexclude_devices = ["gpu0", "gpu1"]\n')
    (folder / "a.toml").write_text('[reset.modes]\nnvidia = "ask"\n[agent]\nexclude_devices = ["gpu7"]\n')

    text, form = nodeagent("config", "show"), nodeagent("config", "show", "-o", "json")

    assert [line.split() for line in text.out.splitlines()] == [
        ["KEY", "VALUE", "FROM"],
        ["agent.mode", '"graceful"', f"{configuration}:2"],
        ["agent.exclude_devices", '["gpu7"]', f"{folder}/a.toml:4"],
        ["reset.modes.nvidia", '"ask"', f"{folder}/a.toml:2"],
    ]
    (found,) = form.json
    assert found["files"] == [str(configuration), f"{folder}/a.toml"]
    assert found["settings"][1] == {
        "key": "agent.exclude_devices",
        "value": ["gpu7"],
        "file": f"{folder}/a.toml",
        "line": 4,
    }


def test_of_a_wrong_configuration_no_value_is_shown(nodeagent: Nodeagent, configuration: Path) -> None:
    configuration.write_text("[agent]\nsokcet = 1\n")

    ran = nodeagent("config", "show")

    assert (ran.status, ran.out) == (78, "")
    assert ran.err.startswith(f"nodeagent: {configuration}:2: agent.sokcet: ")


def test_a_number_of_chips_that_no_one_counts_is_warned_of(nodeagent: Nodeagent, configuration: Path) -> None:
    configuration.write_text("[drivers.nvidia]\nenabled = false\nexpected_chips = 8\n")
    warning = "drivers.nvidia.expected_chips = 8 has no effect: drivers.nvidia.enabled is false"

    text, form = nodeagent("config", "check"), nodeagent("config", "check", "-o", "json")

    assert (text.status, text.out) == (0, f"warning: {warning}\n{configuration}: ok\n")
    (found,) = form.json
    assert (form.status, found["ok"], found["warnings"]) == (0, True, [warning])


def test_a_code_is_explained_from_the_tables_on_disk_where_no_daemon_answers(nodeagent: Nodeagent) -> None:
    ran = nodeagent("explain", "-o", "json", "xid_79", "XID_9999", "NO_SUCH")

    fallen, family, unknown = ran.json
    assert (ran.status, ran.err) == (
        1,
        "nodeagent: no daemon answers; these are the tables on disk\n",
    )
    assert list(fallen)[:11] == [
        "code",
        "kind",
        "vendor",
        "name",
        "level",
        "user_induced",
        "clear_on",
        "description",
        "action",
        "rules",
        "file",
    ]
    assert (fallen["code"], fallen["level"], fallen["clear_on"], fallen["rules"][0]) == (
        "XID_79",
        "SeparateNPU",
        ["reboot", "operator"],
        "xid-repeat",
    )
    assert fallen["file"].startswith(f"{ROOT}/fault_codes/xid.toml:")
    assert (family["known"], family["family"]) == (True, "XID_*")
    assert (unknown["code"], unknown["known"], unknown["level"]) == ("NO_SUCH", False, None)


def test_help_is_a_command_too(nodeagent: Nodeagent) -> None:
    assert nodeagent("help").out == nodeagent("--help").out
    assert nodeagent("help", "tables", "reload").out == nodeagent("tables", "reload", "--help").out
    assert "nodeagent status has no commands of its own" in nodeagent("help", "status", "x").err


@pytest.mark.parametrize(
    ("words", "suggested"),
    [
        ("statsu", "status"),
        ("tables chekc", "check"),
        ("help staus", "status"),
        ("status --sokcet x", "--socket"),
    ],
)
def test_a_word_that_is_nearly_right_is_answered_with_the_right_one(
    nodeagent: Nodeagent, words: str, suggested: str
) -> None:
    ran = nodeagent(*words.split())
    assert (ran.status, f"Did you mean '{suggested}'?" in ran.err) == (2, True)


def test_the_output_may_be_chosen_by_the_environment(
    nodeagent: Nodeagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODEAGENT_OUTPUT", "json")

    assert nodeagent("version").json[0]["version"] == __version__
