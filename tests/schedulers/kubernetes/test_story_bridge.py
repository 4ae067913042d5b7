"""The bridge between a real daemon over emulated NPUs and an API double that checks by the published schema.

Every request is also one that the manifest's roles grant: the double refuses the others, and remembers it.
"""

import asyncio
import json
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from nodeagent.job.model import RunEvent
from nodeagent.schedulers.kubernetes.cluster import MARK, WRITER
from tests.api.certificates import Authority
from tests.api.jobs.supervisor import connected
from tests.harness.configuration import ROOT
from tests.schedulers.kubernetes import manifest
from tests.schedulers.kubernetes.api_requests import Object
from tests.schedulers.kubernetes.bench import (
    DEVICE_INFO_KEY,
    HBM,
    HBM_CODE,
    NODE,
    NODE_INFO_KEY,
    NODE_KEY,
    OF_ANOTHER,
    OURS,
    Bench,
    between,
    new_node,
)

pytestmark = pytest.mark.slow

LOST, LOST_CODE = 0x80818C05, "80818C05"
"""SeparateNPU: no reset helps."""

UNHEALTHY = "huawei.com/Ascend910-Unhealthy"

# Another user, yet with root's way into the folders of the test.
ANOTHER_USER = (
    "setpriv",
    "--reuid=65534",
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
)
ACKNOWLEDGE = """
import sys
from nodeagent.client import Client
with Client(sys.argv[1]) as client:
    client.ack("kubernetes", next(client.watch(snapshot="always")).position)
"""


async def test_one_fault_from_raise_to_clear(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        bench.keys = (*bench.keys, "device_info = true")
        await bench.start_with_a_healthy_node()
        await bench.comes(lambda: bench.device_list, "the device info")

        bench.npus.node.raise_code("npu3", HBM)
        await bench.comes(lambda: OURS in bench.taints, "the taint")
        await bench.comes(bench.says("False"), "an unhealthy node")
        assert bench.condition["message"].startswith(f"nodeagent: npu3 {HBM_CODE} #")
        await bench.comes(lambda: bench.device_list[UNHEALTHY] == "Ascend910-3", "the chip in the list")
        await bench.acknowledged_all()

        bench.npus.node.clear_code("npu3", HBM)
        await bench.comes(lambda: bench.taints == [OF_ANOTHER], "no taint of ours")
        await bench.comes(bench.says("True"), "a healthy node again")
        await bench.comes(lambda: bench.device_list[UNHEALTHY] == "", "no chip in the list")
        await bench.acknowledged_all()
        assert await bench.stop() == 0

        assert [each["type"] for each in bench.node["status"]["conditions"]] == [
            "Ready",
            "AcceleratorsHealthy",
        ]
        assert bench.asked("patch", "create", "update", "delete") == [
            "patch nodes/status node-1: 200",
            "create configmaps kube-system: 201",
            "patch nodes node-1: 200",
            "patch nodes/status node-1: 200",
            "update configmaps kube-system/mindx-dl-deviceinfo-node-1: 200",
            "patch nodes node-1: 200",
            "patch nodes/status node-1: 200",
            "update configmaps kube-system/mindx-dl-deviceinfo-node-1: 200",
        ]


async def test_a_bridge_that_dies_between_the_taint_and_the_acknowledgement_taints_no_second_time(
    tmp_path: Path,
) -> None:
    async with between(tmp_path) as bench:
        await bench.start_with_a_healthy_node()
        await bench.acknowledged_all()
        before = await bench.acknowledged()
        bench.api.refuse(500, times=1000, verbs="patch", resource="nodes/status")
        bench.npus.node.raise_code("npu3", HBM)
        await bench.comes(lambda: OURS in bench.taints, "the taint")
        await bench.kill()
        assert await bench.acknowledged() == before

        bench.api.refuse_no_more()
        await bench.start()
        await bench.comes(bench.says("False"), "an unhealthy node")
        await bench.acknowledged_all()
        assert [each for each in bench.asked("patch") if " nodes " in each] == ["patch nodes node-1: 200"]


async def test_a_node_that_is_registered_anew_gets_all_again(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        bench.npus.node.raise_code("npu3", HBM)
        await bench.start()
        await bench.comes(bench.says("False"), "an unhealthy node")
        await bench.api.remove(NODE_KEY)
        await bench.comes(lambda: "there is no Node of this name" in bench.log, "that it is gone")
        await bench.api.put(NODE_KEY, new_node())
        await bench.comes(bench.says("False"), "an unhealthy node again")
        assert bench.taints == [OF_ANOTHER, OURS]


async def test_the_bridge_goes_on_when_the_daemon_was_killed(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        await bench.start_with_a_healthy_node()
        await bench.npus.kill()
        bench.npus.node.raise_code("npu3", HBM)
        await bench.npus.start()
        await bench.comes(lambda: OURS in bench.taints, "the taint")
        await bench.acknowledged_all()


async def test_a_job_is_told_to_leave_only_once_the_node_is_tainted(tmp_path: Path) -> None:
    async with between(tmp_path, more=("[jobs]", 'leave_after = "kubernetes"')) as bench:
        await bench.start_with_a_healthy_node()
        async with connected(bench.folder / "jobs.sock") as supervisor:
            bench.npus.node.hold("npu3", supervisor.pid)
            await bench.npus.polled("npu3", 3)
            await supervisor.begin()
            await supervisor.say(RunEvent.STARTED)
            bench.api.refuse(503, times=4, verbs="patch", resource="nodes")
            bench.npus.node.raise_code("npu3", LOST)
            await supervisor.wanted("leave")
            assert bench.taints == [OF_ANOTHER, f"nodeagent/no-new-work={LOST_CODE}:NoSchedule"]
            refused = [each for each in bench.asked("patch") if each == "patch nodes node-1: 503"]
            assert len(refused) == 4


async def test_what_mindclusters_own_plug_in_writes_is_left_alone(tmp_path: Path) -> None:
    async with between(tmp_path) as bench:
        theirs = config_map(DEVICE_INFO_KEY, {"DeviceInfoCfg": "{}"})
        await bench.api.put(DEVICE_INFO_KEY, theirs)
        bench.keys = (*bench.keys, "device_info = true")
        bench.npus.node.raise_code("npu3", HBM)
        await bench.start()
        await bench.comes(bench.says("False"), "an unhealthy node")
        await bench.acknowledged_all()
        assert bench.asked("create", "update", "delete") == []
        assert "mindx-dl-deviceinfo is another's" in bench.log


async def test_with_the_token_of_another_nodes_pod_nothing_is_written_and_the_log_says_why(
    tmp_path: Path,
) -> None:
    async with between(tmp_path) as bench:
        bench.api.pod_node = "node-2"
        bench.keys = (*bench.keys, "device_info = true")
        bench.npus.node.raise_code("npu3", HBM)
        await bench.start()
        await bench.comes(lambda: "the token is of another node" in bench.log, "why the Node stays")
        await bench.comes(lambda: "writes no ConfigMap but" in bench.log, "why there is no ConfigMap")
        assert {each.status for each in bench.api.requests if each.verb in ("patch", "create")} == {403}
        bench.api.pod_node = NODE
        await bench.comes(lambda: OURS in bench.taints and bench.device_list, "taint and ConfigMap")
        bench.api.wrong.clear()


async def test_each_right_that_the_manifest_grants_is_needed(tmp_path: Path) -> None:
    """A node that a person isolates, with all that is written, and a conflict."""
    async with between(tmp_path) as bench:
        ours = config_map(NODE_INFO_KEY, {"NodeInfo": "{}", "updateTime": "2020-01-01T00:00:00Z"})
        ours["metadata"]["annotations"] = {MARK: WRITER}
        bench.keys = (*bench.keys, "device_info = true", "node_info = true")
        await bench.api.put(NODE_INFO_KEY, ours)
        await isolate(bench, "node")
        bench.api.refuse(409, verbs="patch")
        await bench.start()
        await bench.comes(lambda: node_status(bench) == "UnHealthy", "the node info")
        await bench.comes(
            lambda: bench.taints == [OF_ANOTHER, "nodeagent/no-new-work=:NoSchedule"], "a taint"
        )
        await order(bench, "release", "node", "--reason", "mended")
        await bench.comes(lambda: NODE_INFO_KEY not in bench.api.objects, "no node info")
        await isolate(bench, "node")
        await bench.comes(lambda: node_status(bench) == "UnHealthy", "the node info again")
        bench.npus.node.raise_code("npu3", HBM)
        await bench.comes(lambda: bench.device_list.get(UNHEALTHY) == "Ascend910-3", "the device info")
        await bench.acknowledged_all()
        used = {(each.verb, each.resource, each.namespace) for each in bench.api.requests}
        assert used == set(manifest.rights())


@pytest.mark.root
async def test_where_another_user_has_the_name_of_the_bridge_each_fault_gets_there_all_the_same(
    tmp_path: Path,
) -> None:
    async with between(tmp_path) as bench:
        acknowledged = await asyncio.create_subprocess_exec(
            *ANOTHER_USER, sys.executable, "-c", ACKNOWLEDGE, bench.npus.daemon.socket, cwd=ROOT
        )
        assert await acknowledged.wait() == 0
        await bench.start()
        bench.npus.node.raise_code("npu3", HBM)
        await bench.comes(lambda: OURS in bench.taints, "the taint")
        await bench.comes(lambda: "consumer 'kubernetes' belongs to uid:65534" in bench.log, "who has it")


@pytest.mark.root
async def test_in_a_pod_the_account_of_the_pod_is_used(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("kubernetes", alternative="IP:127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(issued.certificate, issued.key)
    async with between(tmp_path, tls=tls) as bench:
        bench.npus.node.raise_code("npu3", HBM)
        await bench.start_as_in_a_pod(authority.certificate)
        await bench.comes(bench.says("False"), "an unhealthy node")
        assert bench.taints == [OF_ANOTHER, OURS]


async def isolate(bench: Bench, device: str) -> None:
    await order(bench, "isolate", device, "--reason", "a cable")


async def order(bench: Bench, *words: str) -> None:
    status, said = await bench.npus.daemon.command(*words, "--socket", bench.npus.daemon.folder / "c.sock")
    assert status == 0, said


def node_status(bench: Bench) -> Any:
    """Of the node-info ConfigMap, "" where there is none that can be read."""
    found = bench.api.objects.get(NODE_INFO_KEY, {"data": {"NodeInfo": "{}"}})
    return json.loads(found["data"]["NodeInfo"]).get("NodeInfo", {}).get("NodeStatus", "")


def config_map(key: tuple[str, str, str], data: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": key[2], "namespace": key[1], "labels": {"mx-consumer-cim": "true"}},
        "data": data,
    }
