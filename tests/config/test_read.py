"""nodeagent.toml: defaults, where it is looked for, and how its keys are read."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.config import load as config_module
from nodeagent.config.config import Config
from nodeagent.config.load import ConfigError, load_config
from nodeagent.core.catalog.settings import SECOND_NS, JobSettings, Mode, ResetSettings, Settings
from nodeagent.core.model import Level, ResetMode
from nodeagent.vendors import ChipsConfig, KmsgConfig, NvidiaConfig, VendorConfig
from nodeagent.wire import Configure, decode_request, encode
from tests.config.given import SHIPPED, read


@pytest.fixture
def defaults(tmp_path: Path) -> Config:
    empty = tmp_path / "empty.toml"
    empty.touch()
    return load_config(empty, {})


def test_the_shipped_file_says_what_the_defaults_are(defaults: Config) -> None:
    assert load_config(SHIPPED, {}) == defaults


def test_every_key_the_shipped_file_shows_is_one_and_shows_its_default(
    defaults: Config, tmp_path: Path
) -> None:
    shown = re.sub(r"^# (?=[a-z_]+ = )", "", SHIPPED.read_text(), flags=re.MULTILINE)
    shown = re.sub(r"^(roles|tls_\w+|unknown_level|modes) = .*$", "", shown, flags=re.MULTILINE)
    assert read(tmp_path, shown) == defaults


def test_the_examples_of_the_shipped_file_are_valid(tmp_path: Path) -> None:
    examples = re.findall(
        r"^# ((?:modes|roles|unknown_level) = .*)$", SHIPPED.read_text(), flags=re.MULTILINE
    )
    modes, roles, level = sorted(examples)
    config = read(tmp_path, f"[agent]\n{level}\n[grpc]\n{roles}\n[reset]\n{modes}\n")
    assert (config.agent.unknown_level, config.grpc.roles, config.reset.modes) == (
        Level.PRE_SEPARATE_NPU,
        {"scheduler.example.org": "reader"},
        {"ascend": ResetMode.ON, "nvidia": ResetMode.ASK},
    )


def test_senders_are_those_of_mindcluster_and_those_that_are_named(tmp_path: Path) -> None:
    public = read(
        tmp_path,
        """
[public]
expire_after = "2h"
[public.senders.my-checker]
expire_after = "1m"
[public.senders.CCAE]
enabled = false
[public.senders.pingmesh]
expire_after = "0s"
""",
    ).public
    assert public.allowed == (
        *("fd-online", "pingmesh", "Netmind", "dpcStorage", "dtfsStorage"),
        "my-checker",
    )
    of_senders = [public.settings().expiry_ns(name) // SECOND_NS for name in (*public.allowed, "CCAE")]
    assert of_senders == [7200, 0, 7200, 7200, 7200, 60, 7200]


def test_the_kernel_log_alone_is_required_by_default(defaults: Config) -> None:
    assert [name for name, driver in defaults.drivers.items() if driver.required] == ["kmsg"]


def test_keys_are_read_in_their_units(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        '[agent]\nmode = "graceful"\nrequest_tolerance = "0s"\nstale_after = "500ms"\nonce_hold = "2m"\n'
        'self_healing = "5s"\nmax_isolated_chips = 2\n'
        '[drivers.kmsg]\npath = "/tmp/kmsg"\ntrust_userspace = true\npoll_interval = "250ms"\n'
        '[drivers.nvidia]\nenabled = false\nlibrary = "/opt/libnvidia-ml.so.1"\n'
        '[store]\nretention = "7d"\nmax_size = "64MiB"\n',
    )
    assert config.settings() == Settings(
        mode=Mode.GRACEFUL,
        request_tolerance_ns=0,
        self_healing_ns=5 * SECOND_NS,
        max_isolated_chips=2,
        stale_after_ns=SECOND_NS // 2,
        once_hold_ns=120 * SECOND_NS,
        reset=config.reset.settings(),
    )
    assert config.kmsg == KmsgConfig(path="/tmp/kmsg", trust_userspace=True, poll_interval_ns=SECOND_NS // 4)
    assert (config.drivers["nvidia"].enabled, config.drivers["nvidia"].library) == (
        False,
        "/opt/libnvidia-ml.so.1",
    )
    assert (config.store.retention_ns, config.store.max_size_bytes) == (7 * 86_400 * SECOND_NS, 64 << 20)


@pytest.mark.parametrize("name", ["ascend", "nvidia", "unifiedbus"])
def test_a_vendors_library_is_read_beside_the_trees_of_the_kernel(name: str, tmp_path: Path) -> None:
    config = read(tmp_path, f'[drivers.{name}]\nsysfs = "/tmp/sys"\n')
    form = {"ascend": ChipsConfig, "nvidia": NvidiaConfig, "unifiedbus": VendorConfig}[name]
    assert config.drivers[name] == form(sysfs="/tmp/sys", procfs="/proc", library="")


def test_lists_and_tables_of_a_driver_reach_it_as_they_are(tmp_path: Path) -> None:
    config = read(
        tmp_path, '[drivers.link]\nwatch = ["vlan*"]\n[drivers.link.chips]\neth2 = ["npu0", "npu1"]\n'
    )
    given = config.drivers["link"].for_driver()
    assert (given["watch"], given["chips"]) == (("vlan*",), {"eth2": ("npu0", "npu1")})
    sent = encode(Configure(driver="link", boot_id="b", config=given))
    assert decode_request(sent) == Configure(driver="link", boot_id="b", config=given)


def test_the_defaults_decide_as_the_core_does_by_itself(defaults: Config) -> None:
    assert replace(defaults.settings(), reset=ResetSettings()) == Settings()


def test_the_option_wins_over_the_environment(tmp_path: Path) -> None:
    (tmp_path / "option.toml").write_text('[agent]\nnode_name = "by-option"\n')
    environ = {"NODEAGENT_CONFIG": str(tmp_path / "none.toml")}
    assert load_config(tmp_path / "option.toml", environ).agent.name() == "by-option"


def test_the_environment_wins_over_the_default_place(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[agent]\nnode_name = "by-environment"\n')
    assert load_config(None, {"NODEAGENT_CONFIG": str(tmp_path / "c.toml")}).agent.name() == "by-environment"


def test_without_any_file_all_is_default(
    defaults: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_module, "DEFAULT_PATH", tmp_path / "none.toml")
    assert load_config(None, {}) == defaults


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(ConfigError) as refused:
        load_config(None, {"NODEAGENT_CONFIG": str(missing)})
    assert str(refused.value) == f"{missing}: cannot be read: No such file or directory"


def test_jobs_have_defaults_limits_and_times_that_decide(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
[agent]
socket = "/run/elsewhere/n.sock"
[jobs]
in_place = "registered"
stop_timeout = "30s"
heal_timeout = "5m"
[jobs.defaults]
hang = "restart"
[jobs.limits]
in-place-retries = "3"
""",
    )
    assert config.jobs_socket == "/run/elsewhere/jobs.sock"
    assert config.settings().jobs == JobSettings(
        stop_timeout_ns=30 * SECOND_NS, heal_timeout_ns=300 * SECOND_NS, in_place_registered=True
    )
    assert (config.jobs.defaults, config.jobs.limits) == ({"hang": "restart"}, {"in-place-retries": "3"})
