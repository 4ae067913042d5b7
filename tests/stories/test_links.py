"""A port of the node that goes down, comes back and flaps: real interfaces, in a network namespace."""

import asyncio
import signal
from collections.abc import Iterator

import pytest

from nodeagent.client import Event, EventKind, Verdict
from tests.drivers.link.namespace import Namespace, namespace
from tests.drivers.link.tree import Tree
from tests.harness.subscriber import Subscriber, stored_events
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon

IMPATIENT = """
[[threshold]]
id = "port-dropped"
code = "PORT_DROPPED"
metric = "link_down.needed"
above = 0.5
clear_below = 0.5
for = "1s"

[[duration]]
id = "port-dropped-ends"
codes = ["PORT_DROPPED"]
fault_timeout = "0s"
recover_timeout = "1s"
level = "PreSeparateFault"
"""


@pytest.fixture
def network() -> Iterator[Namespace]:
    with namespace() as made:
        yield made


@pytest.fixture
def daemon(network: Namespace, launch_gpus: LaunchGpus) -> GpuDaemon:
    """Its port job0 shares a bridge with gpu0; gpu1 is elsewhere."""
    daemon = launch_gpus("2xH100", within=network.within)
    tree = Tree(daemon.folder / "links")
    tree.interface("job0", "0000:00:01.0", "0000:10:00.0", "0000:11:00.0")
    tree.chip("0000:00:01.0", "0000:10:00.0", f"{daemon.gpus.pci('gpu0')}.0")
    tree.chip("0000:00:02.0", f"{daemon.gpus.pci('gpu1')}.0")
    daemon.sections = (
        "[drivers.link]",
        f'sysfs = "{tree.root}"',
        'expected_ports = ["job0"]',
        'poll_interval = "200ms"',
    )
    network.add("job0")
    return daemon


async def watching(daemon: GpuDaemon, follow: Follow) -> Subscriber:
    """A subscriber of the daemon that runs, once the port was read."""
    subscriber = await follow(daemon)

    async def is_read() -> bool:
        devices = (await daemon.status())["devices"]
        return any(each["name"] == "job0" and each["verdict"] == "ALLOW" for each in devices)

    await daemon.comes(is_read, "the port is read")
    return subscriber


def changes(events: list[Event]) -> list[tuple[str, str]]:
    kinds = (EventKind.RAISED, EventKind.CLEARED)
    return [
        (event.kind.name, event.code) for event in events if event.device == "job0" and event.kind in kinds
    ]


async def test_a_port_that_stays_down_drains_the_node_and_names_the_chips_behind_it(
    daemon: GpuDaemon, network: Namespace, follow: Follow
) -> None:
    daemon.tables.mkdir(exist_ok=True)
    (daemon.tables / "impatient.toml").write_text(IMPATIENT)
    subscriber = await watching(daemon, follow)
    network.unplug("job0")
    down = await subscriber.raised("PORT_DOWN", "job0")
    dropped = await subscriber.raised("PORT_DROPPED", "job0")
    assert down.evidence == {"state": "no carrier", "chips_behind": "gpu0"}
    assert dropped.evidence["chips_behind"] == "gpu0"

    async def node_verdict() -> str:
        return str((await daemon.status())["node"]["verdict"])

    assert await node_verdict() == "NO_NEW_JOBS"
    network.plug("job0")
    await subscriber.cleared("PORT_DOWN", "job0")
    back = await subscriber.cleared("PORT_DROPPED", "job0")
    assert (back.verdict, await node_verdict()) == (Verdict.ALLOW, "ALLOW")
    assert changes(subscriber.events) == [
        ("RAISED", "PORT_DOWN"),
        ("RAISED", "PORT_DROPPED"),
        ("CLEARED", "PORT_DOWN"),
        ("CLEARED", "PORT_DROPPED"),
    ]


async def test_a_thousand_flaps_are_one_fault_that_a_person_clears(
    daemon: GpuDaemon, network: Namespace, follow: Follow
) -> None:
    subscriber = await watching(daemon, follow)
    for _ in range(10):
        network.batch("link set dev job0x down\nlink set dev job0x up\n" * 100)
        await asyncio.sleep(0.8)
    flapping = await subscriber.raised("PORT_FLAPPING", "job0")
    assert flapping.evidence["chips_behind"] == "gpu0"

    async def is_up() -> bool:
        open_now = {
            each["code"] for each in (await daemon.status())["conditions"] if each["device"] == "job0"
        }
        return open_now == {"PORT_FLAPPING"}

    await daemon.comes(is_up, "the port up again, and flapping")
    flaps = [event for event in subscriber.events if event.code == "PORT_FLAPPING"]
    assert [event.kind for event in flaps] == [EventKind.RAISED]
    assert len(await stored_events(daemon)) < 200
    status, _ = await daemon.command(
        "release", "job0", "--reason", "cable replaced", "--socket", daemon.folder / "c.sock"
    )
    assert status == 0
    await subscriber.cleared("PORT_FLAPPING", "job0")


async def test_what_happens_to_a_port_while_the_daemon_is_down_is_seen_when_it_is_back(
    daemon: GpuDaemon, network: Namespace, follow: Follow
) -> None:
    subscriber = await watching(daemon, follow)
    network.unplug("job0")
    await subscriber.raised("PORT_DOWN", "job0")
    daemon.running.send_signal(signal.SIGKILL)
    await daemon.running.wait()
    network.plug("job0")
    await daemon.start()
    await subscriber.cleared("PORT_DOWN", "job0")
