"""nodeagent.toml: what is said of each thing that can be wrong, with file, line and key."""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.config.load import ConfigError, load_config
from nodeagent.toml.source import TOO_LARGE
from tests.config.given import SHIPPED, read

STORIES = [
    (
        "a sender whose name no report could have",
        '[public.senders."a b"]\n',
        'c.toml:1: public.senders.a b: a sender\'s name has 1 to 64 letters, digits, ".", "_" and "-"',
    ),
    (
        "an unknown key of a sender",
        '[public.senders.CCAE]\nexpires = "1h"\n',
        'c.toml:2: public.senders.CCAE.expires: unknown key; the nearest known is "expire_after"',
    ),
    (
        "an expiry without a unit",
        "[public]\nexpire_after = 60\n",
        (
            "c.toml:2: public.expire_after: 60: a duration is a whole number and one of ms, s, m, h, d,"
            ' in quotes, such as "20s"'
        ),
    ),
    (
        "an unknown key, and the nearest known one",
        '[agent]\nstate_directory = "/x"\n',
        'c.toml:2: agent.state_directory: unknown key; the nearest known is "state_dir"',
    ),
    (
        "an unknown key that is near to none",
        "[store]\nxyz = 1\n",
        "c.toml:2: store.xyz: unknown key; known here: retention, max_size",
    ),
    (
        "an unknown section",
        "[metric]\n",
        'c.toml:1: metric: unknown key; the nearest known is "metrics"',
    ),
    (
        "what is no service in a list of services",
        '[drivers.host]\nservices = ["slurmd"]\n',
        (
            "c.toml:2: drivers.host.services: ['slurmd']:"
            ' must be a list of systemd services, such as ["slurmd.service"]'
        ),
    ),
    (
        "a service where a list of services is needed",
        '[drivers.host]\nignored_services = "slurmd.service"\n',
        (
            'c.toml:2: drivers.host.ignored_services: "slurmd.service":'
            ' must be a list of systemd services, such as ["slurmd.service"]'
        ),
    ),
    (
        "the word for all nodes of Slurm where one is needed",
        '[slurm]\nnode_name = "ALL"\n',
        'c.toml:2: slurm.node_name: "ALL": must be the name of one node of Slurm, such as "n12", or ""',
    ),
    (
        "an unknown driver",
        "[drivers.nvidea]\nenabled = true\n",
        'c.toml:1: drivers.nvidea: no such driver; the nearest known is "nvidia"',
    ),
    (
        "a key that only another driver has",
        "[drivers.nvidia]\ntrust_userspace = true\n",
        (
            "c.toml:2: drivers.nvidia.trust_userspace: unknown key;"
            " known here: enabled, required, poll_interval, call_deadline, library, sysfs, procfs,"
            " expected_chips, driver_root, stall_deadline"
        ),
    ),
    (
        "a word that is not among the choices",
        '[agent]\nmode = "gracefull"\n',
        'c.toml:2: agent.mode: "gracefull": must be one of rescheduling, graceful; the nearest is "graceful"',
    ),
    (
        "a duration without a unit",
        "[drivers.kmsg]\ncall_deadline = 5\n",
        (
            "c.toml:2: drivers.kmsg.call_deadline: 5: a duration is a whole number and one of"
            ' ms, s, m, h, d, in quotes, such as "20s"'
        ),
    ),
    (
        "a duration out of range",
        '[drivers.kmsg]\npoll_interval = "0s"\n',
        'c.toml:2: drivers.kmsg.poll_interval: "0s": must be a duration from "10ms" to "1h"',
    ),
    (
        "a size in decimal units",
        '[store]\nmax_size = "1GB"\n',
        (
            'c.toml:2: store.max_size: "1GB": a size is a whole number and one of'
            ' B, KiB, MiB, GiB, TiB, in quotes, such as "1GiB"'
        ),
    ),
    (
        "a rate without its unit",
        '[drivers.link]\nexpected_rate = "400"\n',
        'c.toml:2: drivers.link.expected_rate: "400": must be a rate such as "400G", or "" for any',
    ),
    (
        "an interface that no kernel allows",
        '[drivers.link]\nwatch = ["a b"]\n',
        (
            "c.toml:2: drivers.link.watch: ['a b']: must be a list of names of network interfaces, such as"
            ' ["bond0"]'
        ),
    ),
    (
        "a device that is no list",
        '[agent]\nexclude_devices = "gpu7"\n',
        (
            'c.toml:2: agent.exclude_devices: "gpu7": must be a list of names of devices,'
            ' such as ["gpu7", "eth*"]'
        ),
    ),
    (
        "fewer chips than none",
        "[drivers.ascend]\nexpected_chips = -1\n",
        "c.toml:2: drivers.ascend.expected_chips: -1: must be a whole number up to 256, 0 for any number",
    ),
    (
        "a number of chips in words",
        '[drivers.nvidia]\nexpected_chips = "8"\n',
        'c.toml:2: drivers.nvidia.expected_chips: "8": must be a whole number up to 256, 0 for any number',
    ),
    (
        "chips of a driver that has none",
        "[drivers.unifiedbus]\nexpected_chips = 7\n",
        (
            "c.toml:2: drivers.unifiedbus.expected_chips: unknown key;"
            " known here: enabled, required, poll_interval, call_deadline, library, sysfs, procfs"
        ),
    ),
    (
        "text where a truth value is needed",
        '[drivers.kmsg]\nrequired = "no"\n',
        'c.toml:2: drivers.kmsg.required: "no": must be true or false',
    ),
    (
        "one folder where a list is needed",
        '[agent]\ntables = "/etc/tables"\n',
        'c.toml:2: agent.tables: "/etc/tables": must be a list of one or more folders, later ones winning',
    ),
    (
        "a level that no unknown chip code may have",
        '[agent]\nunknown_level = "SeparateFault"\n',
        (
            'c.toml:2: agent.unknown_level: "SeparateFault": must be one of NotHandleFault, SubHealthFault,'
            " RestartRequest, RestartBusiness, FreeRestartNPU, RestartNPU, PreSeparateNPU, SeparateNPU"
        ),
    ),
    (
        "an address without a port",
        '[metrics]\nlisten = "localhost"\n',
        'c.toml:2: metrics.listen: "localhost": must be "HOST:PORT", such as "127.0.0.1:9108", or ""',
    ),
    (
        "a source that ends as what must always be observed",
        "[drivers.previous_boot]\nrequired = true\n",
        (
            "c.toml:2: drivers.previous_boot.required: true: must be false, for once it is read nothing is"
            " observed any more"
        ),
    ),
    (
        "a socket path that no socket can have",
        f'[agent]\nsocket = "/{"s" * 107}"\n',
        f"c.toml:2: agent.socket: \"/{'s' * 74}...: a socket's path has at most 107 bytes",
    ),
    (
        "both sockets in one place",
        '[agent]\nsocket = "/run/x"\ncontrol_socket = "/run/x"\n',
        'c.toml:3: agent.control_socket: "/run/x": must differ from agent.socket',
    ),
    (
        "a TCP door without a client authority",
        '[grpc]\nlisten = ":9109"\ntls_cert = "/c"\ntls_key = "/k"\n',
        "c.toml:1: grpc.tls_client_ca: missing; grpc.listen is by mutual TLS only and needs this file's path",
    ),
    (
        "a role that does not exist",
        '[grpc]\nroles = { "a.example.org" = "root" }\n',
        (
            'c.toml:2: grpc.roles: { a.example.org = "root" }: must be a table that gives each certificate'
            ' name "none", "reader", "reporter" or "operator"'
        ),
    ),
    (
        "a value where a section is needed",
        "agent = 1\n",
        "c.toml:1: agent: 1 is given where a table is needed",
    ),
    (
        "a value where the drivers' sections are needed",
        "drivers = 1\n",
        "c.toml:1: drivers: 1 is given where tables such as [drivers.kmsg] are needed",
    ),
    (
        "a path with an end mark in it",
        '[agent]\nstate_dir = "/var/lib/no\\u0000de"\n',
        (
            'c.toml:2: agent.state_dir: "/var/lib/no\\u0000de":'
            " must be a path in quotes, without control characters"
        ),
    ),
    (
        "an address with an end mark in it",
        '[metrics]\nlisten = "\\u0000:9108"\n',
        'c.toml:2: metrics.listen: "\\u0000:9108": must be "HOST:PORT", such as "127.0.0.1:9108", or ""',
    ),
    (
        "a number of 5,000 digits",
        f"[agent]\n\nmax_isolated_chips = {'9' * 5000}\n",
        f"c.toml:3: not valid TOML: {TOO_LARGE}",
    ),
    (
        "a hexadecimal number of 5,000 digits",
        f"[agent]\nstate_dir = 0x{'f' * 5000}\n",
        f"c.toml:2: agent.state_dir: {TOO_LARGE}",
    ),
    (
        "a file that is not TOML",
        "[agent\n",
        "c.toml:1: not valid TOML: Expected ']' at the end of a table declaration",
    ),
]


PATHS = [
    *(("agent", key) for key in ("state_dir", "socket", "control_socket", "node_name")),
    *(("grpc", key) for key in ("tls_cert", "tls_key", "tls_client_ca")),
    *(("reset", key) for key in ("run_dir", "do_not_touch", "kernel_command_line")),
    *(("drivers.kmsg", key) for key in ("path", "library")),
    *(("drivers.nvidia", key) for key in ("library", "sysfs", "procfs")),
]


@pytest.mark.parametrize(("section", "key"), PATHS)
@pytest.mark.parametrize("character", ["\\u0000", "\\n", "\\u001b", "\\u007f", "\\u0085"])
def test_no_path_may_hold_what_cannot_be_seen(tmp_path: Path, section: str, key: str, character: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, f'[{section}]\n{key} = "/x{character}"\n')
    (problem,) = refused.value.problems
    assert (problem.line, problem.key) == (2, f"{section}.{key}")
    assert "without control characters" in problem.reason
    assert problem.reason.isprintable()


def test_no_folder_of_tables_may_hold_what_cannot_be_seen(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, '[agent]\ntables = ["/usr", "/x\\u0000"]\n')
    assert [problem.key for problem in refused.value.problems] == ["agent.tables"]


def test_no_word_of_a_command_may_hold_an_end_mark(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, '[reset]\nbefore = [["logger", "one\\ntwo"], ["logger", "\\u0000"]]\n')
    assert [problem.key for problem in refused.value.problems] == ["reset.before"]


@pytest.mark.parametrize(("text", "said"), [pytest.param(*story[1:], id=story[0]) for story in STORIES])
def test_it_is_refused_with_file_line_key_and_what_would_be_right(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert str(refused.value) == f"{tmp_path}/{said}"


DAMAGE = [
    "",
    "\0",
    "\ufeff",
    '"',
    "[",
    "]" * 40,
    "=",
    ".a" * 40,
    "9" * 5000,
    "0x" + "f" * 5000,
    "nan",
    "true",
]


@given(
    st.lists(
        st.tuples(st.integers(0, 5000), st.integers(0, 12), st.sampled_from(DAMAGE)), min_size=1, max_size=4
    )
)
def test_a_damaged_file_is_a_configuration_or_problems_with_the_file_in_each(
    damages: list[tuple[int, int, str]],
) -> None:
    text = re.sub(r"^# (?=[a-z_]+ = )", "", SHIPPED.read_text(), flags=re.MULTILINE)
    for begin, length, piece in damages:
        text = text[:begin] + piece + text[begin + length :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.toml"
        path.write_text(text)
        said = []
        try:
            load_config(path, {})
        except ConfigError as refused:
            said = str(refused).splitlines()
        assert all(line.startswith(str(path)) for line in said)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, '[agent]\nmode = 1\nnode = "x"\n[store]\nretention = "0s"\n[drivers.gpu]\n')
    assert [problem.key for problem in refused.value.problems] == [
        "agent.node",
        "agent.mode",
        "store.retention",
        "drivers.gpu",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[jobs]\naccept = "root"', 'jobs.accept: "root": must be one of everybody, claimed'),
        ('[jobs]\nstop_timeout = "1s"', 'jobs.stop_timeout: "1s": must be a duration from "5s" to "10m"'),
        ('[jobs]\nsocket = "/a"\n[agent]\nsocket = "/a"', 'jobs.socket: "/a": must differ from agent.socket'),
        ('[jobs.defaults]\nin-place-retries = "many"', "a whole number from 0 to 128, not 'many'"),
        (
            '[jobs.defaults]\nretries = "3"',
            "jobs.defaults.retries: no such key; the keys are kind, in-place,",
        ),
        (
            '[jobs.defaults]\nunconditional = "true"',
            "jobs.defaults.unconditional: needs placements too",
        ),
        ('[jobs.limits]\nkind = "training"', "jobs.limits.kind: this key has no limit"),
        (
            "[jobs.limits]\ngrace = 20",
            "jobs.limits: { grace = 20 }: must be a table of policy keys, each with",
        ),
    ],
)
def test_what_is_wrong_about_jobs_is_said(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    assert problem in str(refused.value)
