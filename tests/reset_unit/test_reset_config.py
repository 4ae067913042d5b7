"""``[reset]`` of nodeagent.toml: what it decides, what is refused, and what forbids resets from outside."""

import os
from pathlib import Path

import pytest

from nodeagent.config.config import Config
from nodeagent.config.load import ConfigError, load_config
from nodeagent.config.reset import ResetConfig, file_system_of
from nodeagent.core.catalog.settings import SECOND_NS, ResetSettings
from nodeagent.core.model import ResetMode


def read(folder: Path, reset: str, state_dir: str = "/proc") -> Config:
    (folder / "c.toml").write_text(f'[agent]\nstate_dir = "{state_dir}"\n[reset]\n{reset}\n')
    return load_config(folder / "c.toml", {})


def test_shipped_it_proposes_and_records_only() -> None:
    shipped = ResetConfig().settings()
    assert (shipped.mode, dict(shipped.modes), shipped.is_on) == (ResetMode.DRY_RUN, {}, True)
    assert (shipped.announce_ns, shipped.verify_ns, shipped.approval_ns, shipped.validity_ns) == (
        30 * SECOND_NS,
        150 * SECOND_NS,
        600 * SECOND_NS,
        3600 * SECOND_NS,
    )
    assert (shipped.limit, shipped.node_limit, shipped.limit_window_ns) == (3, 12, 6 * 3600 * SECOND_NS)


def test_every_key_reaches_the_core(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        'mode = "ask"\nmodes = { ascend = "on" }\nannounce = "5s"\nverify_timeout = "60s"\napproval = "1m"\n'
        'validity = "2m"\ncool_down = "0s"\nlimit = 1\nnode_limit = 2\nlimit_window = "1h"\n'
        'trust_process_list = true\nbefore = [["true"]]\nafter = [["true"], ["false"]]\nhook_timeout = "20s"',
    )
    assert config.settings().reset == ResetSettings(
        mode=ResetMode.ASK,
        modes={"ascend": ResetMode.ON},
        announce_ns=5 * SECOND_NS,
        verify_ns=60 * SECOND_NS,
        approval_ns=60 * SECOND_NS,
        validity_ns=120 * SECOND_NS,
        run_ns=(3 * 20 + 2 * 60 + 120) * SECOND_NS,
        cool_down_ns=0,
        limit=1,
        node_limit=2,
        limit_window_ns=3600 * SECOND_NS,
        trust_process_list=True,
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('mode = "yes"', 'reset.mode: "yes": must be one of off, dry-run, ask, on'),
        ('announce = "4s"', 'reset.announce: "4s": must be a duration from "5s" to "90s"'),
        ('announce = "91s"', 'reset.announce: "91s": must be a duration from "5s" to "90s"'),
        ('verify_timeout = "181s"', 'reset.verify_timeout: "181s": must be a duration from "60s" to "180s"'),
        ("limit = 0", "reset.limit: 0: must be a whole number from 1 to 100"),
        ('hook_timeout = "0s"', 'reset.hook_timeout: "0s": must be a duration from "1s" to "60s"'),
        (
            'bug_report_timeout = "1h"',
            'reset.bug_report_timeout: "1h": must be a duration from "0s" to "15m"',
        ),
        (
            'modes = { amd = "on" }',
            'reset.modes: { amd = "on" }: must be a table that gives "ascend" or "nvidia" one of off,',
        ),
        (
            'before = "logger"',
            'reset.before: "logger": must be a list of at most 8 commands, each a list of arguments, such as',
        ),
        ("trust_process_lists = true", "reset.trust_process_lists: unknown key; the nearest known is"),
    ],
)
def test_a_wrong_key_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, line)
    assert str(refused.value).startswith(f"{tmp_path}/c.toml:4: {said}")


def test_a_file_forbids_resets(tmp_path: Path) -> None:
    config = ResetConfig(
        mode=ResetMode.ON, modes={"ascend": ResetMode.ON}, do_not_touch=str(tmp_path / "hands-off")
    )
    assert config.settings().is_on
    (tmp_path / "hands-off").touch()
    assert not config.settings().is_on
    assert config.forbidden() == f"{tmp_path}/hands-off is there"


def test_a_word_for_the_kernel_forbids_resets(tmp_path: Path) -> None:
    (tmp_path / "cmdline").write_bytes(b"ro label=\xff nodeagent.reset_unit=off\n")
    config = ResetConfig(mode=ResetMode.ON, kernel_command_line=str(tmp_path / "cmdline"))
    assert (config.settings().mode, config.forbidden()) == (
        ResetMode.OFF,
        "the kernel was started with nodeagent.reset_unit=off",
    )


def test_where_that_cannot_be_looked_up_nothing_is_reset(tmp_path: Path) -> None:
    config = ResetConfig(mode=ResetMode.ON, kernel_command_line=str(tmp_path / "none"))
    assert (config.settings().mode, config.forbidden()) == (
        ResetMode.OFF,
        f"{tmp_path}/none: No such file or directory",
    )


def test_on_needs_a_store_that_outlives_a_reboot(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, 'modes = { nvidia = "on" }', state_dir="/dev/shm/state")
    assert str(refused.value) == (
        f'{tmp_path}/c.toml:4: reset.modes.nvidia: "on" needs a store that outlives a reboot, and'
        " agent.state_dir /dev/shm/state lies on tmpfs; reset.allow_volatile_store = true allows it"
    )
    allowed = read(tmp_path, 'mode = "on"\nallow_volatile_store = true', state_dir="/dev/shm/state")
    assert allowed.reset.mode is ResetMode.ON
    assert read(tmp_path, 'mode = "ask"', state_dir="/dev/shm/state").reset.mode is ResetMode.ASK


def test_the_file_system_is_that_of_the_mount_point_nearest_to_the_path(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw - ext4 /dev/root rw\n"
        "23 22 0:5 / /var/lib/with\\040space rw shared:1 - tmpfs tmpfs rw\n"
        "24 22 8:2 / /var rw - xfs /dev/sdb rw\n"
    )
    found = [file_system_of(Path(path), mounts) for path in ("/srv/a", "/var/lib/x", "/var/lib/with space/x")]
    assert found == ["ext4", "xfs", "tmpfs"]


@pytest.mark.parametrize(
    "name", [b"a\xe2\x80\xa8b", b"a\rb", b"a\xffb", b"a\xe3\x80\x80b", b"a\xc3\xa9b"], ids=ascii
)
def test_a_user_s_mount_may_have_any_name(tmp_path: Path, name: bytes) -> None:
    """The kernel escapes blanks, tabs, line feeds and backslashes alone (``show_mountinfo`` of
    fs/proc_namespace.c).
    """
    mounts = tmp_path / "mountinfo"
    line = b"30 1 0:30 / %s rw - %s x rw\n"
    mounts.write_bytes(
        line % (b"/", b"ext4") + line % (b"/home/" + name, b"fuse") + line % (b"/run", b"tmpfs")
    )
    assert [file_system_of(Path(path), mounts) for path in ("/srv", "/run/x")] == ["ext4", "tmpfs"]
    assert file_system_of(Path(os.fsdecode(b"/home/" + name + b"/x")), mounts) == "fuse"
