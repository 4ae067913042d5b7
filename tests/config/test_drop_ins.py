"""Files in nodeagent.d: they set single keys over nodeagent.toml, in the order of their names."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.config.last import FILE_NAME, choose, keep
from nodeagent.config.layers import MOST_FILES, drop_in_folder
from nodeagent.config.load import ConfigError, load_config, read_config, where_set
from nodeagent.core.model import ResetMode


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "nodeagent.d").mkdir()
    file = tmp_path / "nodeagent.toml"
    file.write_text(
        '[agent]\nmode = "graceful"\nstale_after = "20s"\nexclude_devices = ["gpu0", "gpu1"]\n'
        '[reset]\nmodes = { ascend = "ask" }\n'
    )
    return file


def drop_in(file: Path, name: str, text: str) -> Path:
    path = file.parent / "nodeagent.d" / name
    path.write_text(text)
    return path


def refused(file: Path) -> str:
    with pytest.raises(ConfigError) as error:
        load_config(file, {})
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("nodeagent.toml", "nodeagent.d"), ("site.conf", "site.conf.d"), ("site", "site.d"), ("x.d", "x.d.d")],
)
def test_the_folder_is_named_after_the_file_and_lies_beside_it(name: str, folder: str) -> None:
    assert drop_in_folder(Path("/etc/site", name)) == Path("/etc/site", folder)


def test_a_drop_in_sets_its_keys_and_leaves_all_others(file: Path) -> None:
    drop_in(file, "50-site.toml", '[agent]\nstale_after = "40s"\n')
    agent = load_config(file, {}).agent
    assert (agent.mode, agent.stale_after_ns, agent.exclude_devices) == (
        "graceful",
        40_000_000_000,
        ("gpu0", "gpu1"),
    )


def test_tables_merge_key_by_key_and_lists_are_replaced(file: Path) -> None:
    drop_in(
        file,
        "50-site.toml",
        '[agent]\nexclude_devices = ["gpu7"]\n[reset.modes]\nnvidia = "on"\nascend = "off"\n',
    )
    drop_in(file, "60-site.toml", 'reset = { modes = { ascend = "ask" }, allow_volatile_store = true }\n')
    config = load_config(file, {})
    assert config.agent.exclude_devices == ("gpu7",)
    assert config.reset.modes == {"ascend": ResetMode.ASK, "nvidia": ResetMode.ON}


def test_they_are_read_in_the_order_of_their_names(file: Path) -> None:
    drop_in(file, "90-last.toml", "[grpc]\n[agent]\nmax_isolated_chips = 9\n")
    drop_in(file, "10-first.toml", "[agent]\nmax_isolated_chips = 1\n")
    assert load_config(file, {}).agent.max_isolated_chips == 9


def test_what_is_no_toml_file_or_is_hidden_is_left_alone(file: Path) -> None:
    for name in ("a.toml~", ".b.toml", "c.toml.rpmsave", "README"):
        drop_in(file, name, "[agent]\nmax_isolated_chips = 7\n")
    assert load_config(file, {}).agent.max_isolated_chips == 0


def test_drop_ins_alone_are_a_configuration(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop_in(file, "a.toml", "[agent]\nmax_isolated_chips = 3\n")
    file.unlink()
    monkeypatch.setattr("nodeagent.config.load.DEFAULT_PATH", file)
    assert load_config(None, {}).agent.max_isolated_chips == 3


STORIES = [
    ("an unknown key", "[agent]\nmod = 1\n", 'a.toml:2: agent.mod: unknown key; the nearest known is "mode"'),
    (
        "a wrong value",
        '\n[agent]\nmode = "gracefull"\n',
        (
            'a.toml:3: agent.mode: "gracefull": must be one of rescheduling, graceful;'
            ' the nearest is "graceful"'
        ),
    ),
    (
        "a table where a value is needed",
        "[agent.mode]\nx = 1\n",
        "a.toml:1: agent.mode: { x = 1 }: must be one of rescheduling, graceful",
    ),
    ("a value where a table is needed", "reset = 1\n", "a.toml:1: reset: 1 is given where a table is needed"),
    ("no TOML", "[agent\n", "a.toml:1: not valid TOML: "),
]


@pytest.mark.parametrize(
    ("text", "reason"), [story[1:] for story in STORIES], ids=[story[0] for story in STORIES]
)
def test_what_is_wrong_with_one_is_told_by_its_file_line_and_key(file: Path, text: str, reason: str) -> None:
    drop_in(file, "a.toml", text)
    assert refused(file).startswith(f"{file.parent}/nodeagent.d/{reason}")


def test_what_only_both_files_make_wrong_is_told_of_the_file_with_the_key(file: Path) -> None:
    path = drop_in(file, "a.toml", '[agent]\ncontrol_socket = "/run/nodeagent/nodeagent.sock"\n')
    assert refused(file).startswith(f"{path}:2: agent.control_socket: ")


def test_a_wrong_value_is_told_though_another_file_overrides_it(file: Path) -> None:
    file.write_text("[agent]\nmax_isolated_chips = -1\n")
    drop_in(file, "a.toml", "[agent]\nmax_isolated_chips = 1\n")
    assert refused(file).startswith(f"{file}:2: agent.max_isolated_chips: -1: ")


def test_what_is_wrong_with_each_file_is_told_at_once(file: Path) -> None:
    paths = [drop_in(file, name, "[agent]\nx = 1\n") for name in ("a.toml", "b.toml")]
    assert [line.split(": ")[0] for line in refused(file).splitlines()] == [f"{path}:2" for path in paths]


def test_a_folder_that_is_none_is_refused(file: Path) -> None:
    (file.parent / "nodeagent.d").rmdir()
    (file.parent / "nodeagent.d").touch()
    assert refused(file) == (
        f"{file.parent}/nodeagent.d: cannot be read as a folder of configuration files: Not a directory"
    )


def test_a_link_that_leads_nowhere_is_refused(file: Path) -> None:
    (file.parent / "nodeagent.d").rmdir()
    (file.parent / "nodeagent.d").symlink_to("none")
    assert refused(file).endswith(
        "nodeagent.d: cannot be read as a folder of configuration files: No such file or directory"
    )


def test_a_drop_in_that_is_a_pipe_is_refused_and_not_waited_for(file: Path) -> None:
    os.mkfifo(file.parent / "nodeagent.d/a.toml")
    assert refused(file) == f"{file.parent}/nodeagent.d/a.toml: not a file"


def test_a_name_that_a_terminal_would_obey_is_refused(file: Path) -> None:
    drop_in(file, "a\x1b[31m.toml", "")
    assert "its name holds what cannot be shown" in refused(file)
    assert refused(file).isprintable()


def test_more_files_than_can_be_meant_are_refused(file: Path) -> None:
    for number in range(MOST_FILES + 1):
        drop_in(file, f"{number}.toml", "")
    assert refused(file).endswith(
        f"nodeagent.d: holds {MOST_FILES + 1} configuration files; at most {MOST_FILES} are read"
    )


def test_each_setting_has_the_place_that_its_value_comes_from(file: Path) -> None:
    path = drop_in(file, "a.toml", '[reset.modes]\nnvidia = "ask"\n[agent]\nstale_after = "40s"\n')
    settings = read_config(file, {}).layers.settings()
    assert [(each.key, each.value, each.file, each.line) for each in settings] == [
        ("agent.mode", "graceful", str(file), 2),
        ("agent.stale_after", "40s", str(path), 4),
        ("agent.exclude_devices", ["gpu0", "gpu1"], str(file), 4),
        ("reset.modes.ascend", "ask", str(file), 6),
        ("reset.modes.nvidia", "ask", str(path), 2),
    ]


def test_the_file_that_sets_a_key_is_told_and_else_the_first(file: Path) -> None:
    path = drop_in(file, "a.toml", '[reset]\nmode = "off"\n')
    assert where_set("reset.mode", file, {}) == str(path)
    assert where_set("reset.modes.ascend", file, {}) == str(file)
    assert where_set("reset.limit", file, {}) == str(file)


@pytest.fixture
def service(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "state").mkdir()
    return {"STATE_DIRECTORY": str(tmp_path / "state")}


def test_the_copy_for_a_start_at_which_a_drop_in_is_broken_holds_all_of_them(
    file: Path, service: Mapping[str, str]
) -> None:
    path = drop_in(
        file, "a.toml", '[public.senders."a.b"]\nexpire_after = "5m"\n[agent]\nstale_after = "40s"\n'
    )
    config = load_config(file, service)
    keep(file, service, config)
    path.write_text("x\n")
    chosen = choose(file, service)
    assert chosen.config == config
    assert chosen.refused.startswith(f"{path}:1: ")


def test_drop_ins_beside_the_copy_change_nothing_of_it(file: Path, service: Mapping[str, str]) -> None:
    config = load_config(file, service)
    keep(file, service, config)
    beside = Path(service["STATE_DIRECTORY"], FILE_NAME).with_suffix(".d")
    beside.mkdir()
    (beside / "a.toml").write_text("[agent]\nmax_isolated_chips = 7\n")
    file.write_text("x\n")
    assert choose(file, service).config == config
