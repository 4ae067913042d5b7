"""A bad table: the check names it, the running daemon keeps the last good ones, also over a restart."""

import json
import signal

import pytest

from nodeagent.client import EventKind, Level
from tests.stories.conftest import Follow, Launch
from tests.stories.daemon import Daemon
from tests.stories.kernel_log import FakeKernelLog

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
        (5, "codes.X1", "stands twice"),
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
    heard = len(subscriber.told)
    reload(daemon)
    await subscriber.event(EventKind.LEVEL_CHANGED, "BOOT", "b", after=heard)
    fake_log.say("c", "BOOT")
    by_the_new = await subscriber.raised("BOOT", "c")

    since = [told for told in subscriber.events if told.seq > rejected.seq and told.seq < by_the_new.seq]
    kinds = [(event.kind, event.device) for event in since if event.seq > by_the_old.seq]
    assert kinds == [
        (EventKind.TABLES_RELOADED, "node"),
        (EventKind.LEVEL_CHANGED, "a"),
        (EventKind.LEVEL_CHANGED, "b"),
    ]
    assert {event.condition_level for event in since[-2:]} == {Level.SEPARATE_FAULT}
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


def reload(daemon: Daemon) -> None:
    daemon.running.send_signal(signal.SIGHUP)
