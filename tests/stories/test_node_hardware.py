"""The node beside its chips: memory modules, PCI Express, services, storage clients, by a real daemon."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import EventKind, Verdict
from tests.drivers.host.node_tree import NodeTree, aer
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import MANAGER_DOWN, GpuDaemon, events_of, name_process

UE_LINE = "EDAC MC0: 1 UE memory read error on A2 (channel:1 slot:0 page:0x1a2b3 offset:0x0 grain:32)"
FATAL = "PCIe Bus Error: severity=Uncorrectable (Fatal), type=Data Link Layer, (Receiver ID)"
CE_LINE = "EDAC MC0: 1 CE memory read error on A1 (channel:0 slot:0 page:0x1a2b3 offset:0x0 grain:32)"


@pytest.fixture
def node(tmp_path: Path) -> NodeTree:
    return NodeTree(tmp_path / "tree")


@pytest.fixture
def daemon(launch_gpus: LaunchGpus, node: NodeTree) -> GpuDaemon:
    """With eight GPUs, whose PCI functions are those of the node."""
    made = launch_gpus("8xH100")
    node.sysfs = made.node.sysfs
    keys = (f'{key} = "{path}"' for key, path in node.config.items())
    made.nvidia = ("[drivers.host]", 'poll_interval = "200ms"', *keys)
    return made


async def has_read(daemon: GpuDaemon, device: str) -> None:
    async def is_observed() -> bool:
        _, out = await daemon.command("devices", device, "--socket", daemon.socket)
        return bool(out) and all(json.loads(line)["observed"] for line in out.splitlines())

    await daemon.comes(is_observed, f"{device} is observed")


async def count_of(daemon: GpuDaemon, code: str) -> int:
    """How often the only condition of the code was reported."""
    conditions = (await daemon.status())["conditions"]
    (count,) = [each["count"] for each in conditions if each["code"] == code]
    return int(count)


async def stands(daemon: GpuDaemon, *conditions: tuple[str, str, str]) -> None:
    """Device, code and level of each; they may stand since before anybody followed."""

    async def all_stand() -> bool:
        return set(conditions) <= set(await open_conditions(daemon))

    await daemon.comes(all_stand, str(conditions))


async def has_looked(daemon: GpuDaemon) -> None:
    """What was before the first look is not known to be new. DPC was made to fail for that."""
    await stands(daemon, ("node", "110001020", "SubHealthFault"))


async def open_conditions(daemon: GpuDaemon) -> list[tuple[str, str, str]]:
    conditions: list[dict[str, Any]] = (await daemon.status())["conditions"]
    return [(each["device"], each["code"], each["level"]) for each in conditions]


async def test_a_memory_error_is_one_fault_of_the_right_module_that_keeps_new_jobs_away(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    node.module("mc0/dimm0", "A1")
    node.module("mc0/dimm1", "A2")
    subscriber = await follow(daemon)
    await has_read(daemon, "dimm:A2")

    daemon.say(UE_LINE)
    await subscriber.raised("EDAC_UE", "node")
    node.module("mc0/dimm1", uncorrected=1)
    raised = await subscriber.raised("DIMM_UE", "dimm:A2")
    await subscriber.cleared("EDAC_UE", "node")

    assert (raised.condition_level, raised.verdict) == ("PreSeparateFault", Verdict.NO_NEW_JOBS)
    assert (raised.evidence["label"], raised.evidence["location"]) == ("A2", "channel 1 slot 0")
    assert await open_conditions(daemon) == [("dimm:A2", "DIMM_UE", "PreSeparateFault")]
    assert (await daemon.status())["node"]["verdict"] == "NO_NEW_JOBS"


async def test_a_storm_of_corrected_errors_is_a_fault_of_its_module(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    node.module("mc0/dimm0", "A1", corrected=1000)
    subscriber = await follow(daemon)
    await has_read(daemon, "dimm:A1")
    daemon.say(CE_LINE)
    await subscriber.raised("EDAC_CE", "node")

    node.module("mc0/dimm0", corrected=1001)
    few = await subscriber.raised("DIMM_CE", "dimm:A1")
    await subscriber.cleared("EDAC_CE", "node")
    node.module("mc0/dimm0", corrected=1010)
    many = await subscriber.raised("DIMM_CE_RATE", "dimm:A1")

    assert (few.condition_level, few.verdict) == ("SubHealthFault", Verdict.ALLOW)
    assert (many.condition_level, many.verdict) == ("PreSeparateFault", Verdict.NO_NEW_JOBS)


async def test_a_pci_express_error_is_one_fault_of_the_gpu_by_line_and_by_counter(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    node.dpc({1: (0, -1)})
    address = f"{daemon.gpus.pci('gpu3')}.0"
    function = node.sysfs / "bus/pci/devices" / address
    for severity in ("correctable", "nonfatal", "fatal"):
        aer(function, severity)
    subscriber = await follow(daemon)
    await has_looked(daemon)

    daemon.say(f"nvidia {address}: {FATAL}")
    await subscriber.raised("AER_FATAL", "gpu3")
    aer(function, "fatal", DLP=1)

    async def is_confirmed() -> bool:
        return await count_of(daemon, "AER_FATAL") == 2

    await daemon.comes(is_confirmed, "the counter beside the line")
    assert ("gpu3", "AER_FATAL", "PreSeparateFault") in await open_conditions(daemon)
    assert events_of(subscriber, "gpu3", "AER_FATAL") == [EventKind.RAISED]


async def test_a_service_that_accelerators_need_is_missed_and_flaps_are_counted(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    node.systemd()
    node.enable("containerd.service")
    node.run("containerd.service", "1")
    node.dpc({1: (0, -1)})
    subscriber = await follow(daemon)
    await has_looked(daemon)

    node.run("containerd.service", "")
    raised = await subscriber.raised("SERVICE_DOWN.containerd", "node")
    assert raised.condition_level == "SubHealthFault"

    node.run("containerd.service", "2")
    await subscriber.cleared("SERVICE_DOWN.containerd", "node")
    for run in ("3", "4"):
        before = len(subscriber.received)
        node.run("containerd.service", "")
        await subscriber.event(EventKind.RAISED, "SERVICE_DOWN.containerd", after=before)
        node.run("containerd.service", run)
        await subscriber.event(EventKind.CLEARED, "SERVICE_DOWN.containerd", after=before)
    promoted = await subscriber.event(EventKind.PROMOTED, "SERVICE_RESTARTED.containerd")

    assert (promoted.rule, promoted.condition_level) == ("service-flaps", "SubHealthFault")


async def test_a_fabric_manager_that_two_sources_miss_is_one_fault(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    """NVIDIA's driver looks for its process, the host source for its service."""
    daemon.procfs = node.procfs
    name_process(node.procfs, 2, "kthreadd")
    name_process(node.procfs, 4711, "nv-fabricmanage")
    node.switch()
    node.systemd()
    node.enable("nvidia-fabricmanager.service")
    node.run("nvidia-fabricmanager.service", "1")
    node.dpc({1: (0, -1)})
    subscriber = await follow(daemon)
    await has_looked(daemon)

    node.run("nvidia-fabricmanager.service", "")
    await subscriber.raised(MANAGER_DOWN, "node")
    name_process(node.procfs, 4711, "sleep")

    async def both_have_said_so() -> bool:
        return await count_of(daemon, MANAGER_DOWN) == 2

    await daemon.comes(both_have_said_so, "NVIDIA's driver misses it too")
    name_process(node.procfs, 4711, "nv-fabricmanage")
    node.run("nvidia-fabricmanager.service", "2")
    await subscriber.cleared(MANAGER_DOWN, "node")
    await subscriber.raised("SERVICE_RESTARTED.nvidia-fabricmanager", "node")

    assert events_of(subscriber, "node", MANAGER_DOWN) == [EventKind.RAISED, EventKind.CLEARED]


async def test_clients_of_shared_storage_raise_and_clear_the_codes_of_mindcluster(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    node.dpc({1: (0, -1)})
    node.dtfs(process=-1, link=-1)
    subscriber = await follow(daemon)
    await stands(
        daemon,
        ("node", "110001020", "SubHealthFault"),
        ("node", "110001022", "PreSeparateNPU"),
        ("node", "110001023", "PreSeparateNPU"),
    )

    node.dpc({1: (0, 0)})
    node.dtfs(process=0, link=0)

    for code in ("110001020", "110001022", "110001023"):
        await subscriber.cleared(code, "node")
    assert await open_conditions(daemon) == []
    assert (await daemon.status())["node"]["verdict"] == "ALLOW"


async def test_what_was_mended_while_no_daemon_ran_is_over_at_the_next_start(
    daemon: GpuDaemon, node: NodeTree, follow: Follow
) -> None:
    node.dpc({1: (0, -1)})
    subscriber = await follow(daemon)
    await has_looked(daemon)
    await daemon.kill()
    node.dpc({1: (0, 0)})

    await daemon.start()
    await subscriber.follow()

    await subscriber.cleared("110001020", "node")
