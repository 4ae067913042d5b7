"""A bad table: the check names it, the running daemon keeps the last good ones, also over a restart."""

import asyncio
import json
import signal
from urllib.request import urlopen

import pytest

from nodeagent.client import EventKind, Level, Verdict
from tests.harness.daemon import Daemon, free_port
from tests.harness.kernel_log import FakeKernelLog
from tests.stories.conftest import Follow, Launch

BAD_TABLES = {
    "an unknown level": (
        '[codes.X1]\nkind = "host"\nname = "x"\nlevel = "SeparateFalt"\n',
        (4, "codes.X1.level", "must be one of"),
    ),
    "a level of another kind": (
        '[codes.X1]\nkind = "host"\nname = "x"\nlevel = "SeparateNPU"\n',
        (4, "codes.X1.level", "not a level of kind host"),
    ),
    "the same code twice": (
        '[codes.X1]\nkind = "host"\nname = "x"\nlevel = "SeparateFault"\n[codes.X1]\nname = "again"\n',
        (5, "codes.X1", "appears twice"),
    ),
    "a bad duration": (
        '[codes.X1]\nkind = "host"\nname = "x"\nlevel = "SeparateFault"\nclear_on = ["10 parsecs"]\n',
        (5, "codes.X1.clear_on", "10 parsecs"),
    ),
    "a number of 5,000 digits": (
        f'[codes.X1]\nkind = "host"\nname = "x"\nlevel = {"9" * 5000}\n',
        (4, "", "a whole number out of range"),
    ),
    "a bad regex": (
        '[[pattern]]\nid = "P"\ncode = "BOOT"\ndevice = "node"\nregex = "a(b"\n',
        (5, "pattern[0].regex", "not a regular expression"),
    ),
    "a regex that any user can satisfy": (
        '[[pattern]]\nid = "P"\ncode = "BOOT"\ndevice = "node"\nregex = "GPU [0-9] has failed"\n',
        (5, "pattern[0].regex", "it must begin with ^"),
    ),
    "an unknown key": (
        '[codes.X1]\nkind = "host"\nname = "x"\nlevel = "SeparateFault"\nclear_onn = ["1h"]\n',
        (5, "codes.X1.clear_onn", 'the nearest known is "clear_on"'),
    ),
    "a row that nothing can close": (
        '[codes.X1]\nkind = "host"\nname = "x"\nlevel = "SeparateFault"\nclear_on = ["reset"]\n',
        (5, "codes.X1.clear_on", "nothing could close it"),
    ),
}

WORSE = ("gone when a boot did not show it again", "PreSeparateFault", "SeparateFault")


@pytest.mark.parametrize("what", BAD_TABLES)
async def test_a_bad_table_is_refused_with_its_place_and_the_last_good_ones_stay_in_force(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, what: str
) -> None:
    text, (line, key, reason) = BAD_TABLES[what]
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    digest = (await daemon.status())["catalog_digest"]
    bad = daemon.tables / "bad.toml"
    bad.write_text(text)

    status, out = await daemon.command("tables", "check", "--config", daemon.config)
    reload(daemon)
    rejected = await subscriber.event(EventKind.TABLES_REJECTED, "")
    fake_log.say("a", "BOOT")
    raised = await subscriber.raised("BOOT")

    (problem,) = json.loads(out)["problems"]
    assert (status, problem["file"], problem["line"], problem["key"]) == (1, str(bad), line, key)
    assert reason in problem["reason"]
    assert rejected.why.startswith(f"{bad}:{line}: {key}: " if key else f"{bad}:{line}: ")
    assert (raised.condition_level, raised.unknown) == (Level.PRE_SEPARATE_FAULT, False)
    assert (await daemon.status())["catalog_digest"] == digest


async def test_the_last_good_tables_outlive_a_restart_and_a_repair_changes_levels_and_raises_nothing(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog
) -> None:
    daemon = launch(fake_log)
    site = daemon.tables / "story.toml"
    good = site.read_text()
    subscriber = await follow(daemon)
    fake_log.say("a", "BOOT")
    await subscriber.raised("BOOT")
    digest = (await daemon.status())["catalog_digest"]

    site.write_text(good.replace("SubHealthFault", "SubHelthFault"))
    await daemon.restart()
    await subscriber.follow()
    rejected = await subscriber.event(EventKind.TABLES_REJECTED, "")
    fake_log.say("b", "BOOT")
    by_the_old = await subscriber.raised("BOOT", "b")
    assert str(site) in rejected.why
    assert by_the_old.condition_level == Level.PRE_SEPARATE_FAULT
    assert (await daemon.status())["catalog_digest"] == digest

    name, old, new = WORSE
    site.write_text(good.replace(f'name = "{name}"\nlevel = "{old}"', f'name = "{name}"\nlevel = "{new}"'))
    heard = len(subscriber.received)
    reload(daemon)
    await subscriber.event(EventKind.LEVEL_CHANGED, "BOOT", "b", after=heard)
    fake_log.say("c", "BOOT")
    by_the_new = await subscriber.raised("BOOT", "c")

    since = [event for event in subscriber.events if event.seq > rejected.seq and event.seq < by_the_new.seq]
    kinds = [(event.kind, event.device) for event in since if event.seq > by_the_old.seq]
    assert kinds == [
        (EventKind.TABLES_RELOADED, "node"),
        (EventKind.LEVEL_CHANGED, "a"),
        (EventKind.LEVEL_CHANGED, "b"),
        (EventKind.CLEARED, "node"),
    ]
    assert {event.condition_level for event in since[-3:-1]} == {Level.SEPARATE_FAULT}
    assert since[-1].code == "tables_rejected"
    assert by_the_new.condition_level == Level.SEPARATE_FAULT
    assert (await daemon.status())["catalog_digest"] != digest


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("trust_userspce = true", "trust_userspce: unknown key"),
        (f"call_deadline = {'9' * 5000}", "a whole number out of range"),
    ],
)
async def test_a_bad_configuration_on_reload_is_told_and_changes_nothing(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, added: str, said: str
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    with daemon.config.open("a") as config:
        config.write(f"{added}\n")
    reload(daemon)
    rejected = await subscriber.event(EventKind.TABLES_REJECTED, "")
    fake_log.say("a", "BOOT")
    await subscriber.raised("BOOT")

    assert said in rejected.why


@pytest.mark.parametrize("what", ["tables", "configuration"])
async def test_what_was_refused_stays_a_condition_of_the_node_until_a_good_reload(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, what: str
) -> None:
    daemon = launch(fake_log, metrics=f"127.0.0.1:{free_port()}")
    code = f"{what}_rejected"
    subscriber = await follow(daemon)
    file = daemon.config if what == "configuration" else daemon.tables / "story.toml"
    good = file.read_text()
    for wrong in ("first", "second"):
        file.write_text(f"{wrong} = 1\n{good}")
        heard = len(subscriber.received)
        reload(daemon)
        raised = await subscriber.event(EventKind.RAISED, code, after=heard)
        assert raised.evidence["reason"].startswith(f"{file}:1: {wrong}: unknown key")
        assert (raised.condition_level, raised.verdict) == (Level.NOT_HANDLE, Verdict.ALLOW)
    reload(daemon)
    standing = await daemon.status()
    scraped = await asyncio.to_thread(urlopen, f"http://{daemon.metrics}/metrics")
    with scraped:
        metrics = scraped.read().decode()

    file.write_text(good)
    heard = len(subscriber.received)
    reload(daemon)
    cleared = await subscriber.event(EventKind.CLEARED, code, after=heard)

    assert [(each["device"], each["code"]) for each in standing["conditions"]] == [("node", code)]
    assert f'nodeagent_conditions{{code="{code}",device="node",injected="false"' in metrics
    assert cleared.why == "recovered"
    assert (await daemon.status())["conditions"] == []


async def test_a_service_whose_configuration_is_broken_at_the_start_goes_on_with_the_last_good_one(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog
) -> None:
    """As under systemd, which gives the folder for state."""
    daemon = launch(fake_log)
    daemon.state.mkdir()
    daemon.env = {"STATE_DIRECTORY": str(daemon.state)}
    subscriber = await follow(daemon)
    await daemon.comes((daemon.state / "last-good.toml").exists, "a copy of the configuration")
    good = daemon.config.read_text()

    daemon.configuration = f"{good}\n[agnt]\n"
    await daemon.restart()
    await subscriber.follow()
    raised = await subscriber.event(EventKind.RAISED, "configuration_rejected")
    fake_log.say("a", "BOOT")
    await subscriber.raised("BOOT")
    await daemon.restart()
    standing = [each["code"] for each in (await daemon.status())["conditions"]]

    daemon.config.write_text(good)
    await subscriber.follow()
    heard = len(subscriber.received)
    reload(daemon)
    await subscriber.event(EventKind.CLEARED, "configuration_rejected", after=heard)

    line = daemon.configuration.splitlines().index("[agnt]") + 1
    assert (
        raised.evidence["reason"]
        == f'{daemon.config}:{line}: agnt: unknown key; the nearest known is "agent"'
    )
    assert "running with the last accepted configuration; correct the file, then reload" in daemon.log
    assert sorted(standing) == ["BOOT", "configuration_rejected"]


async def test_a_service_that_never_had_a_good_configuration_ends_with_the_reason(
    launch: Launch, fake_log: FakeKernelLog
) -> None:
    daemon = launch(fake_log)
    daemon.state.mkdir()
    daemon.env = {"STATE_DIRECTORY": str(daemon.state)}
    daemon.configuration = "[agnt]\n"
    await daemon.spawn()

    assert await daemon.ended() == 78
    assert 'agnt: unknown key; the nearest known is "agent"' in daemon.log


def reload(daemon: Daemon) -> None:
    daemon.running.send_signal(signal.SIGHUP)
