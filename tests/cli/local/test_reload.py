"""``tables reload``, for real and as a rehearsal, against a real daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Nodeagent
from tests.harness.node import Node, wait_for

SITE = """
[codes.BOOT]
kind = "host"
vendor = "linux"
name = "a boot"
level = "{level}"
clear_on = ["operator"]

[[pattern]]
id = "BOOT"
code = "BOOT"
regex = "^alarm$"
device = "node"
"""


class Site(Node):
    """A node whose site has a table of its own."""

    def say(self, text: str) -> None:
        (self.site / "site.toml").write_text(text)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Site]:
    """With one fault open, by a row at PreSeparateFault."""
    site = Site.within(tmp_path)
    site.lay_over(SITE.format(level="PreSeparateFault"))
    with site.daemon() as stream:
        site.write("alarm")
        stream.until("BOOT")
        yield site


def test_a_dry_run_shows_what_would_change_and_changes_nothing(node: Site, nodeagent: Nodeagent) -> None:
    node.say(SITE.format(level="SeparateFault"))
    before = nodeagent("status", "-o", "json").json[0]["catalog_digest"]
    rehearsed = nodeagent("tables", "reload", "--dry-run", "-o", "json")
    text = nodeagent("tables", "reload", "--dry-run")
    after = nodeagent("status", "-o", "json").json[0]

    form = rehearsed.json[0]
    assert (rehearsed.status, form["ok"], form["dry_run"], form["problems"]) == (0, True, True, [])
    assert [(each["code"], each["before"], each["after"]) for each in form["levels"]] == [
        ("BOOT", "PreSeparateFault", "SeparateFault")
    ]
    assert form["devices"] == [
        {
            "device": "node",
            "verdict_before": "NO_NEW_JOBS",
            "handling_before": "NONE",
            "verdict": "ISOLATE",
            "handling": "RESCHEDULE",
        }
    ]
    assert text.out.splitlines()[1:] == [
        "",
        "DEVICE  CODE  LEVEL NOW         THEN",
        "node    BOOT  PreSeparateFault  SeparateFault",
        "",
        "DEVICE  NOW                THEN",
        "node    NO_NEW_JOBS, NONE  ISOLATE, RESCHEDULE",
    ]
    assert form["digest"] != before
    assert after["catalog_digest"] == before
    assert [each["level"] for each in after["conditions"]] == ["PreSeparateFault"]


def test_a_reload_is_in_force_when_it_returns(node: Site, nodeagent: Nodeagent) -> None:
    node.say(SITE.format(level="SeparateFault"))
    reloaded = nodeagent("tables", "reload", "-o", "json").json[0]
    status = nodeagent("status", "-o", "json").json[0]

    assert status["catalog_digest"] == reloaded["digest"]
    assert [each["level"] for each in status["conditions"]] == ["SeparateFault"]
    again = nodeagent("tables", "reload")
    assert again.out.splitlines()[-1] == "nothing that is open changed"


def test_bad_tables_are_refused_with_every_line_and_only_a_real_reload_is_reported(
    node: Site, nodeagent: Nodeagent
) -> None:
    node.say(SITE.format(level="VeryBad").replace("^alarm$", "a("))
    before = nodeagent("status", "-o", "json").json[0]["catalog_digest"]
    rehearsed = nodeagent("tables", "reload", "--dry-run", "-o", "json")
    rejections_before = nodeagent("events", "--kind", "tables_rejected", "--after", "0", "-o", "json").json
    refused = nodeagent("tables", "reload")
    rejections = nodeagent("events", "--kind", "tables_rejected", "--after", "0", "-o", "json").json
    after = nodeagent("status", "-o", "json").json[0]["catalog_digest"]

    form = rehearsed.json[0]
    assert (rehearsed.status, form["ok"], len(form["problems"])) == (1, False, 2)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.splitlines() == [f"nodeagent: {line}" for line in form["problems"]]
    assert "site.toml:6: codes.BOOT.level" in form["problems"][0]
    assert (rejections_before, len(rejections)) == ([], 1)
    assert after == before


def test_keys_that_only_a_start_takes_are_reported(node: Site, nodeagent: Nodeagent) -> None:
    text = node.configuration.read_text()
    text = text.replace("[drivers.kmsg]\n", '[drivers.kmsg]\npoll_interval = "2s"\n')
    text = text.replace("[drivers.nvidia]\nenabled = false\n", "[drivers.nvidia]\nenabled = true\n")
    taken = '[reset]\nlimit = 2\n[jobs]\naccept = "claimed"\nheal_timeout = "5m"\n'
    left = 'enabled = false\n[nvrx]\nsocket = "/run/nvhcd.sock"\n'
    node.configuration.write_text(f"{text}\n{taken}{left}")

    reloaded = nodeagent("tables", "reload")

    why = "changed: restart nodeagent to apply it"
    keys = ("jobs.enabled", "nvrx.socket", "drivers.kmsg.poll_interval", "drivers.nvidia.enabled")
    assert (reloaded.status, reloaded.err) == (0, "".join(f"warning: {key} {why}\n" for key in keys))


def test_with_a_broken_configuration_commands_find_the_daemon_by_the_one_that_is_in_force(
    tmp_path: Path, nodeagent: Nodeagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systemd's ExecReload does, which has the unit's environment."""
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    node = Node.within(tmp_path)
    with node.daemon() as stream:
        wait_for(tmp_path / "state/last-good.toml")
        with node.configuration.open("a") as file:
            file.write("[agnt]\n")
        line = len(node.configuration.read_text().splitlines())
        reloaded = nodeagent("tables", "reload")
        stream.until("configuration_rejected")
        shown = nodeagent("status")
        checked = nodeagent("config", "check")

    reason = f'{node.configuration}:{line}: agnt: unknown key; the nearest known is "agent"'
    where = (
        f"nodeagent: using the last good configuration, {tmp_path}/state/last-good.toml, to find the daemon"
    )
    assert (reloaded.status, reloaded.out) == (1, "")
    assert reloaded.err.splitlines() == [f"nodeagent: {reason}", where, f"nodeagent: {reason}"]
    assert (shown.status, shown.err.splitlines()) == (0, [f"nodeagent: {reason}", where])
    assert f"configuration_rejected: {reason}\n" in shown.out
    assert (checked.status, checked.out) == (1, f"{reason}\n")


def test_with_a_broken_configuration_and_none_that_was_in_force_a_command_shows_only_what_is_wrong(
    tmp_path: Path, nodeagent: Nodeagent
) -> None:
    node = Node.within(tmp_path)
    node.configuration.write_text("[agnt]\n")

    ran = nodeagent("status")

    assert (ran.status, ran.out) == (78, "")
    assert ran.err == f'nodeagent: {node.configuration}:1: agnt: unknown key; the nearest known is "agent"\n'


def test_a_reload_takes_the_drop_ins_and_a_broken_one_changes_nothing(
    node: Site, nodeagent: Nodeagent
) -> None:
    folder = node.configuration.with_name("nodeagent.d")
    folder.mkdir()
    (folder / "50-site.toml").write_text(f'[agent]\ntables = ["{node.configuration.parent}/base"]\n')
    taken = nodeagent("tables", "reload")
    gone = nodeagent("explain", "BOOT")
    (folder / "60-broken.toml").write_text("[agent]\n# the site's own\ntabels = []\n")
    refused = nodeagent("tables", "reload", "--socket", node.socket.with_name("c.sock"))
    standing = nodeagent("status", "--socket", node.socket, "-o", "json").json[0]["conditions"]

    assert taken.status == 0
    assert gone.status == 1
    wrong = f'{folder}/60-broken.toml:3: agent.tabels: unknown key; the nearest known is "tables"'
    assert refused.status == 1
    assert wrong in refused.out + refused.err
    assert [each["evidence"]["reason"] for each in standing if each["code"] == "configuration_rejected"] == [
        wrong
    ]
