"""What root's configuration allows, at the time when a reset is done; and which file that is."""

import os
from pathlib import Path

import pytest

from nodeagent.reset_unit.exchange import files
from nodeagent.reset_unit.exchange.files import Untrusted
from tests.reset_unit.conftest import ResetUnit

NOBODY = 65534


@pytest.mark.parametrize("mode", ["off", "dry-run"])
def test_a_mode_that_resets_nothing_allows_none(reset_unit: ResetUnit, mode: str) -> None:
    reset_unit.configure(mode=mode)
    result = reset_unit.do()
    assert (result.state, result.reason) == (
        "refused",
        f"reset.mode is {mode} for ascend in {reset_unit.config}",
    )
    assert reset_unit.resets == 0


@pytest.mark.parametrize("mode", ["off", "dry-run"])
def test_an_operators_order_is_done_though_the_mode_resets_nothing(reset_unit: ResetUnit, mode: str) -> None:
    reset_unit.configure(mode=mode)
    assert reset_unit.do(once=True).state == "done"
    assert reset_unit.resets == 1


def test_an_operators_order_is_not_done_where_resets_are_forbidden(reset_unit: ResetUnit) -> None:
    reset_unit.configure(mode="dry-run")
    reset_unit.do_not_touch.touch()
    result = reset_unit.do(once=True)
    assert (result.state, result.reason) == (
        "refused",
        f"resets are forbidden: {reset_unit.do_not_touch} is there",
    )
    assert reset_unit.resets == 0


def test_the_mode_of_the_vendor_counts(reset_unit: ResetUnit) -> None:
    reset_unit.configure('modes = { ascend = "off", nvidia = "on" }')
    assert reset_unit.do().state == "refused"
    reset_unit.configure('modes = { ascend = "ask" }', mode="off")
    assert reset_unit.do(attempt=2).state == "done"


def test_what_forbids_resets_does_so_before_any_hook(reset_unit: ResetUnit, tmp_path: Path) -> None:
    reset_unit.configure(f'before = [["touch", "{tmp_path}/hook"]]')
    reset_unit.do_not_touch.touch()
    result = reset_unit.do()
    assert (result.state, result.reason) == (
        "refused",
        f"resets are forbidden: {reset_unit.do_not_touch} is there",
    )
    assert not (tmp_path / "hook").exists()


def test_a_mode_that_is_switched_off_while_hooks_run_counts(reset_unit: ResetUnit) -> None:
    reset_unit.configure(f"""before = [["sed", "-i", "s/^mode = .*/mode = 'off'/", "{reset_unit.config}"]]""")
    result = reset_unit.do()
    assert (result.state, result.reason) == (
        "refused",
        f"reset.mode is off for ascend in {reset_unit.config}",
    )
    assert reset_unit.resets == 0


def test_without_a_word_of_the_command_line_the_usual_configuration_is_read(
    reset_unit: ResetUnit, tmp_path: Path
) -> None:
    reset_unit.env = {"NODEAGENT_CONFIG": str(tmp_path / "none.toml")}
    result = reset_unit.result(reset_unit.ask(), "--folder", str(reset_unit.folder.path))
    assert (result.state, result.reason) == (
        "refused",
        f"the configuration cannot be read: {tmp_path}/none.toml: No such file or directory",
    )


def test_a_configuration_with_an_error_allows_nothing(reset_unit: ResetUnit) -> None:
    reset_unit.configure("limit = 0")
    result = reset_unit.do()
    assert result.state == "refused"
    assert result.reason.startswith(f"the configuration cannot be used: {reset_unit.config}:")
    assert "reset.limit: 0: must be a whole number" in result.reason


@pytest.mark.root
def test_a_configuration_that_others_may_write_allows_nothing(reset_unit: ResetUnit) -> None:
    reset_unit.config.chmod(0o666)
    result = reset_unit.do()
    why = f"{reset_unit.config} can be written by others: chmod go-w {reset_unit.config}"
    assert (result.state, result.reason) == ("refused", f"the configuration is not root's alone: {why}")
    assert reset_unit.resets == 0


@pytest.mark.root
def test_a_configuration_of_another_user_allows_nothing(reset_unit: ResetUnit) -> None:
    os.chown(reset_unit.config, NOBODY, NOBODY)
    result = reset_unit.do()
    why = f"{reset_unit.config} belongs to uid {NOBODY}: chown root {reset_unit.config}"
    assert (result.state, result.reason) == ("refused", f"the configuration is not root's alone: {why}")


def drop_in(reset_unit: ResetUnit, text: str) -> Path:
    folder = reset_unit.base / "nodeagent.d"
    folder.mkdir(exist_ok=True)
    (folder / "50-site.toml").write_text(text)
    return folder / "50-site.toml"


def test_a_drop_in_that_switches_resets_off_is_named(reset_unit: ResetUnit) -> None:
    path = drop_in(reset_unit, '[reset]\nmode = "off"\n')
    result = reset_unit.do()
    assert (result.state, result.reason) == ("refused", f"reset.mode is off for ascend in {path}")
    assert reset_unit.resets == 0


def test_a_drop_in_that_switches_resets_on_counts(reset_unit: ResetUnit) -> None:
    reset_unit.configure(mode="off")
    drop_in(reset_unit, '[reset]\nmodes = { ascend = "on" }\n')
    assert reset_unit.do().state == "done"
    assert reset_unit.resets == 1


def test_a_drop_in_with_an_error_allows_nothing(reset_unit: ResetUnit) -> None:
    path = drop_in(reset_unit, "[reset]\nlimit = 0\n")
    result = reset_unit.do()
    assert result.state == "refused"
    assert result.reason.startswith(f"the configuration cannot be used: {path}:2: reset.limit: 0: ")


@pytest.mark.root
@pytest.mark.parametrize("whole_folder", [False, True])
def test_drop_ins_that_others_may_write_allow_nothing(reset_unit: ResetUnit, whole_folder: bool) -> None:
    path = drop_in(reset_unit, '[reset]\nmode = "on"\n')
    written = path.parent if whole_folder else path
    written.chmod(0o777)
    result = reset_unit.do()
    why = f"{written} can be written by others: chmod go-w {written}"
    assert (result.state, result.reason) == ("refused", f"the configuration is not root's alone: {why}")
    assert reset_unit.resets == 0


@pytest.mark.root
def test_an_empty_folder_for_drop_ins_that_others_may_write_allows_nothing(reset_unit: ResetUnit) -> None:
    path = drop_in(reset_unit, "")
    path.unlink()
    os.chown(path.parent, NOBODY, NOBODY)
    result = reset_unit.do()
    assert result.state == "refused"
    assert f"{path.parent} belongs to uid {NOBODY}: chown root {path.parent}" in result.reason


@pytest.mark.root
def test_a_record_that_others_may_write_counts_nothing_and_nothing_is_reset(reset_unit: ResetUnit) -> None:
    reset_unit.record.mkdir()
    reset_unit.record.chmod(0o777)
    result = reset_unit.do()
    assert result.state == "refused"
    assert result.reason.startswith("the record of resets cannot be used: ")
    assert reset_unit.resets == 0


# ---------------------------------------------------------------------- whose a file is


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "etc/site").mkdir(parents=True)
    (tmp_path / "etc/site/c.toml").touch()
    return tmp_path / "etc/site/c.toml"


@pytest.mark.root
def test_a_file_in_folders_that_are_roots_alone_is_trusted(file: Path) -> None:
    files.check_trusted(file)


@pytest.mark.root
def test_a_folder_above_that_others_may_write_is_named(file: Path) -> None:
    above = file.parents[1]
    above.chmod(0o775)
    with pytest.raises(Untrusted, match=rf"^{above} can be written by others: chmod go-w {above}$"):
        files.check_trusted(file)
    above.chmod(0o1777)
    files.check_trusted(file)


@pytest.mark.root
def test_a_folder_above_of_another_user_is_named(file: Path) -> None:
    os.chown(file.parent, NOBODY, -1)
    with pytest.raises(
        Untrusted, match=rf"^{file.parent} belongs to uid {NOBODY}: chown root {file.parent}$"
    ):
        files.check_trusted(file)


@pytest.mark.root
def test_all_that_a_link_leads_through_counts(file: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", NOBODY, -1)
    (tmp_path / "home/middle").symlink_to(file.parent)
    (tmp_path / "link").symlink_to("home/middle/c.toml")
    with pytest.raises(Untrusted, match=f"^{tmp_path}/home belongs to uid"):
        files.check_trusted(tmp_path / "link")
    os.chown(tmp_path / "home", 0, -1)
    files.check_trusted(tmp_path / "link")
    os.chown(tmp_path / "link", NOBODY, -1, follow_symlinks=False)
    with pytest.raises(Untrusted, match=f"^{tmp_path}/link belongs to uid"):
        files.check_trusted(tmp_path / "link")


@pytest.mark.root
def test_links_that_lead_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(Untrusted, match="too many symbolic links"):
        files.check_trusted(tmp_path / "a")
