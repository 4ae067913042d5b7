"""An upgrade from version 0.1.0, which ran on Debian's Python: nothing that its daemon had decided or counted
is lost, neither by the upgrade nor by going back to it for a while.

Its packages are built from this repository's history. The node has 16 emulated NPUs and mode "ask".
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.former import packages_of
from tests.e2e.machine import KMSG, Machine, booted, until, write
from tests.e2e.tree import laid_over

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(1200)]

COMMIT: Final = "a126d7f7"
UNIT: Final = "nodeagent.service"
CONFIGURATION: Final = "/etc/nodeagent/nodeagent.toml"
SITES: Final = {
    "[drivers.kmsg]": f'path = "{KMSG}"',
    "[drivers.ascend]": 'library = "/var/lib/nodeagent/emulator/libdcmi.so"\n'
    'sysfs = "/var/lib/nodeagent/emulator/sys"',
    "[reset]": 'mode = "ask"\nannounce = "5s"\ntrust_process_list = true\nallow_volatile_store = true',
}
"""What the site has written below these sections of the shipped configuration."""
NOBODY: Final = ("--uid=65534", "--gid=65534")
FAILS_ONCE: Final = "test -e /var/tmp/ran || { touch /var/tmp/ran; exit 3; }; exec sleep 3600"
REPEATED: Final = "80E01801"
"""A code that a rule promotes the second time within a day."""
PARTS: Final = ("conditions", "promotions", "holds", "actions", "jobs")
"""Of ``nodeagent status``."""

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT")

State = Mapping[str, Sequence[Any]]


@pytest.fixture(scope="module")
def node(
    package: Path, emulator_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """With version 0.1.0 and its emulator, and all that a node may have to keep."""
    former = packages_of(COMMIT)
    with laid_over(tmp_path_factory.mktemp("node"), also=("python3",)) as root:
        write(root, f"/etc/systemd/system/{UNIT}.d/test.conf", f"[Service]\nDeviceAllow={KMSG} r\n")
        for name, file in {
            "former": next(former.glob("nodeagent_*.deb")),
            "former-emulator": next(former.glob("nodeagent-emulator_*.deb")),
            "new": package,
            "new-emulator": emulator_package,
        }.items():
            write(root, f"/root/{name}.deb", file.read_bytes())
        with booted(root) as machine:
            install(machine, "former")
            configuration = (root / CONFIGURATION.lstrip("/")).read_text()
            for section, lines in SITES.items():
                configuration = configuration.replace(section, f"{section}\n{lines}", 1)
            machine.write(CONFIGURATION, configuration)
            machine.run("systemd-run", "--unit=emulator", "nodeagent", "emulator", "start", "16xA3")
            until(lambda: machine.run("nodeagent", "emulator", "show", check=False).returncode == 0, bool)
            machine.run("systemctl", "restart", UNIT)
            until(lambda: seen(machine), lambda number: number == 16)
            fill(machine)
            yield machine


@pytest.fixture(scope="module")
def before(node: Machine) -> State:
    return state(node)


def install(node: Machine, which: str) -> str:
    """As an unattended upgrade does it where conffiles are kept; what it said."""
    words = ("dpkg", "--force-confdef", "--force-confold", "--install")
    done = node.run(*words, f"/root/{which}.deb", f"/root/{which}-emulator.deb")
    until(lambda: node.run("nodeagent", "status", check=False).returncode == 0, bool)
    return done.stdout + done.stderr


def fill(node: Machine) -> None:
    """Holds with and without an end, open faults, a promotion and one half way to it, jobs, a consumer, and a
    reset that waits for its approval.
    """
    node.run("nodeagent", "isolate", "npu5", "--reason", "RMA 4711", "--owner", "rack-team")
    node.run("nodeagent", "isolate", "npu13", "--reason", "until it is cooled", "--for", "30d")
    for device in ("npu4", "npu4", "npu7"):
        comes_and_goes(node, device)
    node.run("nodeagent", "claim", "npu15", "--job", "slurm:17")
    run = ("nodeagent", "job", "run", "--state", "/var/tmp/job", "--in-place", "--in-place-retries", "3")
    node.run("systemd-run", "--unit=job", *NOBODY, *run, "--", "sh", "-c", FAILS_ONCE)
    with node.client() as client:
        (snapshot,) = itertools.islice(client.watch(consumer="scheduler"), 1)
        client.ack("scheduler", snapshot.position)
    node.run("nodeagent", "emulator", "raise", "npu11", "81078603")
    node.run("nodeagent", "emulator", "raise", "npu0", "80E18005")
    comes(node, "actions", lambda actions: [each["stage"] for each in actions] == ["asking"])
    comes(node, "promotions", lambda promotions: [each["effective"] for each in promotions] == [True])
    comes(node, "jobs", lambda jobs: {each["run"] for each in jobs if each["pid"]} == {2})
    comes(node, "conditions", lambda found: "PreSeparateNPU" in {each["level"] for each in found})


def comes_and_goes(node: Machine, device: str) -> None:
    node.run("nodeagent", "emulator", "raise", device, REPEATED)
    comes(node, "conditions", lambda found: REPEATED in {each["code"] for each in found})
    node.run("nodeagent", "emulator", "clear", device, REPEATED)
    comes(node, "conditions", lambda found: REPEATED not in {each["code"] for each in found})


def comes(node: Machine, part: str, right: Callable[[Any], bool]) -> None:
    until(lambda: status(node)[part], right)


def status(node: Machine) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(node.read("nodeagent", "status", "-o", "json"))
    return shown


def seen(node: Machine) -> int:
    """How many NPUs are observed."""
    done = node.run("nodeagent", "devices", "-o", "json", check=False)
    devices = map(json.loads, done.stdout.splitlines())
    return sum(each["observed"] and each["name"].startswith("npu") for each in devices)


def lines(node: Machine, *words: str) -> list[Any]:
    return [json.loads(line) for line in node.read("nodeagent", *words, "-o", "json").splitlines()]


def state(node: Machine) -> State:
    """What has to be kept, in the words of the commands."""
    shown = status(node)
    return {
        **{part: shown[part] for part in PARTS},
        "verdicts": [(each["id"], each["verdict"]) for each in shown["devices"] if each["kind"] == "chip"],
        "events": lines(node, "events", "--after", "0"),
        "consumers": [(each["name"], each["owner"], each["seq"]) for each in lines(node, "consumers")],
        "audit": lines(node, "audit"),
        "claims": [each for each in lines(node, "job", "list", "--all") if each["name"] == "slurm:17"],
    }


def differences(before: State, after: State) -> list[str]:
    """Where what was there before is not as it was; a later version may say more, and more may be there."""
    found = []
    for part, kept in before.items():
        now = {key_of(each): each for each in after[part]}
        for each in kept:
            there = now.get(key_of(each))
            if there is None:
                found.append(f"{part}: {key_of(each)} is gone")
            elif isinstance(each, dict):
                changed = {
                    key: (was, there.get(key)) for key, was in each.items() if not same(was, there.get(key))
                }
                found += [f"{part}: {key_of(each)}: {changed}"] if changed else []
    return found


def same(was: Any, now: Any) -> bool:
    """Times of the rules are shown by the clock on the wall, as each start of a daemon compares the two."""
    if was == now or not (isinstance(was, str) and TIME.match(was) and isinstance(now, str)):
        return bool(was == now)
    return abs(datetime.fromisoformat(now) - datetime.fromisoformat(was)) < timedelta(seconds=1)


def key_of(each: Any) -> Any:
    """What names an entry for ever; one without such a name is its own."""
    if not isinstance(each, dict):
        return each
    return next(each[key] for key in ("id", "seq", "number", "name") if key in each)


def test_the_node_has_what_is_to_be_kept(before: State) -> None:
    assert {"rack-team", "root", "nodeagent"} <= {hold["owner"] for hold in before["holds"]}
    assert [each["rule"] for each in before["promotions"]] == ["ascend-hardware-repeat"]
    assert {"80E18005", "81078603"} <= {each["code"] for each in before["conditions"]}
    assert [each["stage"] for each in before["actions"]] == ["asking"]
    assert [each[0] for each in before["consumers"]] == ["scheduler"]
    assert before["claims"]


def test_an_upgrade_keeps_all_of_it(node: Machine, before: State) -> None:
    sites = node.read("cat", CONFIGURATION)
    process = node.property_of(UNIT, "MainPID")

    install(node, "new")
    until(lambda: seen(node), lambda number: number == 16)

    assert node.property_of(UNIT, "MainPID") != process
    assert node.read("readlink", f"/proc/{node.property_of(UNIT, 'MainPID')}/exe").startswith(
        "/usr/lib/nodeagent/python"
    )
    assert differences(before, state(node)) == []
    assert node.read("cat", CONFIGURATION) == sites
    assert node.run("test", "-e", f"{CONFIGURATION}.dpkg-dist").returncode == 0
    assert node.property_of("job.service", "ActiveState") == "active"


def test_going_back_loses_nothing_and_says_what_to_do(node: Machine, before: State) -> None:
    """The scripts of that version know nothing of schemas: its daemon leaves the store as it is."""
    install(node, "former")
    until(
        lambda: node.read("journalctl", "--unit", UNIT), lambda said: "written by a newer nodeagent" in said
    )
    meanwhile = status(node)

    install(node, "new")
    until(lambda: seen(node), lambda number: number == 16)

    assert not meanwhile["durable"]
    assert "store_damaged.incomplete" in {each["code"] for each in meanwhile["conditions"]}
    assert {"rack-team", "root"} <= {hold["owner"] for hold in meanwhile["holds"]}
    assert differences(before, state(node)) == []


def test_what_was_counted_half_way_is_counted_on(node: Machine) -> None:
    names = {each["id"]: each["name"] for each in status(node)["devices"]}

    comes_and_goes(node, "npu7")

    promoted = {names[each["device_id"]] for each in status(node)["promotions"]}
    assert promoted == {"npu4", "npu7"}


def test_the_reset_that_waited_is_done_once_it_is_approved(node: Machine) -> None:
    node.run("nodeagent", "approve", "npu0")

    words = ("events", "--after", "0", "--kind", "action_finished", "--device", "npu0")
    (ended,) = until(lambda: lines(node, *words), bool)
    assert "done: verified by a poll of every member" in ended["why"]
    comes(node, "conditions", lambda found: "80E18005" not in {each["code"] for each in found})
