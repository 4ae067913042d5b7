"""The container image, started by runc without a container daemon: as the manifest of the bridge has it."""

import os
import platform
import ssl
from pathlib import Path
from typing import Any

import pytest

import nodeagent
from nodeagent.client import Client, Kind
from nodeagent.emulator.node import EmulatedNode
from tests.api.certificates import Authority
from tests.e2e.conftest import DEBIAN
from tests.e2e.image import Configure, as_kubelet, bind, container, output, running, unpacked
from tests.e2e.machine import until
from tests.e2e.other_processor import emulated
from tests.schedulers.kubernetes import manifest
from tests.schedulers.kubernetes.bench import HBM, HBM_CODE, NODE, OF_ANOTHER, OURS, between

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture(scope="module")
def bundle(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(image, DEBIAN[platform.machine()], tmp_path_factory.mktemp("image") / "bundle")


def test_it_is_nodeagent(bundle: Path, tmp_path: Path) -> None:
    assert output(bundle, tmp_path, "--version").split()[:2] == ["nodeagent", nodeagent.__version__]


def test_it_has_what_the_bridge_needs(bundle: Path, tmp_path: Path) -> None:
    assert "Usage: nodeagent k8s bridge" in output(bundle, tmp_path, "k8s", "bridge", "--help")


def test_that_for_arm64_has_it_too(image: Path, tmp_path: Path) -> None:
    """On a processor that QEMU plays. Its client of Kubernetes has compiled modules, which are loaded."""
    tree = unpacked(image, "arm64", tmp_path / "arm64") / "rootfs"
    load = "import platform; from kubernetes.aio import client; print(platform.machine(), client.ApiClient)"
    with emulated(tree) as processor:
        version = processor.run("/usr/lib/nodeagent/bin/nodeagent", "--version").stdout
        loaded = processor.run("/usr/lib/nodeagent/bin/python", "-I", "-c", load).stdout

    assert version.split()[:2] == ["nodeagent", nodeagent.__version__]
    assert loaded == "aarch64 <class 'kubernetes.aio.client.api_client.ApiClient'>\n"


async def test_the_pod_of_the_manifest_brings_a_fault_to_the_cluster(bundle: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)  # as many clusters have it, without the use of its key and its identifier
    issued = authority.issue("kubernetes", alternative="IP:127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(issued.certificate, issued.key)
    pod = manifest.pod()
    async with between(tmp_path, tls=tls) as bench:
        daemon = bench.npus.daemon
        as_on_a_node(daemon.folder, daemon.socket, pod["securityContext"]["supplementalGroups"][0])
        mounted = {
            "daemon": daemon.folder,
            "configuration": configuration_of(tmp_path),
            ACCOUNT: bench.account(authority.certificate),
        }
        start = as_kubelet(pod, mounted, {"NODE_NAME": NODE, **bench.service_variables})
        with container(bundle, start, tmp_path) as command:
            await bench.spawn(*command)
            await bench.comes(bench.says("True"), "a healthy node")

            bench.npus.node.raise_code("npu3", HBM)
            await bench.comes(bench.says("False"), "an unhealthy node")
            await bench.comes(lambda: OURS in bench.taints, "the taint")
            assert bench.condition["message"].startswith(f"nodeagent: npu3 {HBM_CODE} #")
            await bench.acknowledged_all()

            bench.npus.node.clear_code("npu3", HBM)
            await bench.comes(bench.says("True"), "a healthy node again")
            assert bench.taints == [OF_ANOTHER, OURS]  # for a minute yet
            assert await bench.stop() == 0


def test_the_daemon_observes_chips_in_it(bundle: Path, tmp_path: Path) -> None:
    """As root and with the node's devices, as docs/installing.md has it."""
    state, run = tmp_path / "state", tmp_path / "run"
    for folder in (state, run):
        folder.mkdir()
    with EmulatedNode.create(tmp_path / "npus", "8x910B") as chips:
        configuration = tmp_path / "nodeagent.toml"
        configuration.write_text(of_the_daemon(chips))
        mounts = (
            bind(tmp_path / "npus", str(tmp_path / "npus")),
            bind(configuration, "/etc/nodeagent/nodeagent.toml", "ro"),
            bind(state, "/var/lib/nodeagent"),
            bind(run, "/run/nodeagent"),
        )
        start = as_root_of_the_node("run", *mounts)
        with container(bundle, start, tmp_path) as command, running(command) as daemon:
            socket = run / "nodeagent.sock"
            until(socket.exists, bool)
            observed = until(lambda: observed_chips(socket), lambda found: len(found) == 8)
            daemon.terminate()
            assert daemon.wait(timeout=60) == 0
    assert observed == [f"npu{number}" for number in range(8)]


def of_the_daemon(chips: EmulatedNode) -> str:
    return f"""
[drivers.ascend]
library = "{chips.dcmi}"
sysfs = "{chips.sysfs}"

[drivers.kmsg]
enabled = false

[metrics]
listen = ""
"""


def as_root_of_the_node(order: str, *mounts: dict[str, object]) -> Configure:
    """Privileged, and in no namespace but that of its mounts."""

    def configure(configuration: Any) -> None:
        configuration["process"]["args"].append(order)
        configuration["process"]["user"] = {"uid": 0, "gid": 0}
        configuration["mounts"] = [
            {"type": "proc", "source": "proc", "destination": "/proc"},
            *(bind(Path(host), host) for host in ("/dev", "/sys")),
            *mounts,
        ]
        configuration["linux"] = {"namespaces": [{"type": "mount"}]}
        del configuration["hostname"]

    return configure


def observed_chips(socket: Path) -> list[str]:
    with Client(socket) as client:
        return sorted(each.name for each in client.devices() if each.observed and each.kind is Kind.CHIP)


def as_on_a_node(folder: Path, socket: Path, group: int) -> None:
    """The folder of the daemon's socket, and the group that may read it."""
    folder.chmod(0o755)
    (folder / "nodeagent.sock").symlink_to(socket.name)
    os.chown(socket, -1, group)


def configuration_of(folder: Path) -> Path:
    """The manifest's ConfigMap, as a volume has it."""
    (text,) = (each["data"]["nodeagent.toml"] for each in manifest.objects() if each["kind"] == "ConfigMap")
    volume = folder / "configuration"
    volume.mkdir()
    (volume / "nodeagent.toml").write_text(text)
    return volume
