"""Services that accelerators need, by the files in which systemd keeps their state."""

from collections.abc import Callable
from typing import Any

import pytest

from nodeagent.drivers.host.check import Hardware
from nodeagent.drivers.host.services import LOOK_S, START_S, Services, Units
from tests.drivers.host.node_tree import NodeTree

FABRIC_MANAGER = "nvidia-fabricmanager.service"
DOWN = ("node", "NV_FABRIC_MANAGER_DOWN")
CONTAINERD_DOWN = ("node", "SERVICE_DOWN.containerd")

Make = Callable[..., Services]


class Time:
    now_s = 1_000.0


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def make(node: NodeTree, clock: Time) -> Make:
    node.systemd()

    def services(**given: Any) -> Services:
        usual: dict[str, Any] = {"now_s": lambda: clock.now_s, "uptime_s": lambda: clock.now_s}
        return Services(Units(node.root), Hardware(node.sysfs, lambda: clock.now_s), **{**usual, **given})

    return services


def test_a_fabric_manager_that_is_down_is_missed_where_there_are_nvswitches(
    node: NodeTree, make: Make
) -> None:
    node.switch()
    node.enable(FABRIC_MANAGER)
    services = make()

    assert services.look().active == {DOWN: {"service": FABRIC_MANAGER}}
    node.run(FABRIC_MANAGER, "a")
    assert services.look().active == {}
    node.run(FABRIC_MANAGER, "")
    assert list(services.look().active) == [DOWN]


def test_a_node_without_nvswitches_needs_no_fabric_manager(node: NodeTree, make: Make) -> None:
    node.gpu()
    node.enable(FABRIC_MANAGER)

    assert (make().is_here(), make().look().active) == (False, {})


@pytest.mark.parametrize(
    "folder", ["", "etc/systemd/system/gpu.target.requires", "usr/lib/systemd/system/a.wants"]
)
def test_what_is_not_enabled_is_not_expected(node: NodeTree, make: Make, folder: str) -> None:
    node.switch()
    if folder:
        node.enable(FABRIC_MANAGER, folder)

    assert list(make().look().active) == ([DOWN] if folder else [])


def test_what_is_masked_is_not_expected(node: NodeTree, make: Make) -> None:
    node.switch()
    node.enable(FABRIC_MANAGER)
    (node.root / "etc/systemd/system" / FABRIC_MANAGER).symlink_to("/dev/null")

    assert make().look().active == {}


def test_a_container_engine_is_expected_beside_accelerators_only(
    node: NodeTree, make: Make, clock: Time
) -> None:
    node.enable("containerd.service")
    services = make()
    assert services.look().active == {}

    node.npu()
    clock.now_s += LOOK_S

    assert list(services.look().active) == [CONTAINERD_DOWN]


def test_the_configuration_adds_services_and_leaves_some_out(node: NodeTree, make: Make) -> None:
    node.gpu()
    node.enable("containerd.service")

    look = make(named=["slurmd.service"], ignored=["containerd.service"]).look()

    assert look.active == {("node", "SERVICE_DOWN.slurmd"): {"service": "slurmd.service"}}


def test_a_service_that_is_no_longer_enabled_is_missed_no_longer(
    node: NodeTree, make: Make, clock: Time
) -> None:
    node.gpu()
    node.enable("containerd.service")
    services = make()
    assert list(services.look().active) == [CONTAINERD_DOWN]

    (node.root / "etc/systemd/system/multi-user.target.wants/containerd.service").unlink()
    clock.now_s += LOOK_S

    assert services.look().active == {}


def test_a_service_may_take_its_time_after_the_boot_but_not_once_it_was_seen(
    node: NodeTree, make: Make, clock: Time
) -> None:
    node.gpu()
    node.enable("containerd.service")
    clock.now_s = START_S / 2
    services = make()
    assert services.look().active == {}
    node.run("containerd.service", "a")
    assert services.look().active == {}

    node.run("containerd.service", "")
    assert list(services.look().active) == [CONTAINERD_DOWN]
    clock.now_s = START_S
    assert list(make().look().active) == [CONTAINERD_DOWN]


def test_each_restart_is_reported_also_one_between_two_looks(node: NodeTree, make: Make) -> None:
    node.gpu()
    node.enable("containerd.service")
    services = make()
    restarts = []
    for run in ("a", "a", "b", "", "c", "c"):
        node.run("containerd.service", run)
        restarts.append([(each.device, each.code, each.assertion.value) for each in services.look().occurred])

    restarted = [("node", "SERVICE_RESTARTED.containerd", "once")]
    assert restarts == [[], [], restarted, [], restarted, []]
    readings = services.look().readings
    assert readings == {"service_up.containerd": 1, "service_restarts_total.containerd": 2}


def test_a_node_without_systemd_is_silent(node: NodeTree, make: Make) -> None:
    node.switch()
    node.enable(FABRIC_MANAGER)
    (node.root / "run/systemd/units").rmdir()

    assert (make().is_here(), make().look().active) == (False, {})
