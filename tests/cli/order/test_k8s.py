"""What ``nodeagent k8s bridge`` says where it cannot begin."""

import sys
from pathlib import Path

import pytest

from nodeagent.cli.order import k8s
from nodeagent.config.schedulers import KubernetesConfig
from tests.cli.conftest import Nodeagent


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "nodeagent.toml"
    file.write_text("[kubernetes]\n")
    return file


def test_outside_of_a_pod_it_needs_a_kubeconfig(config: Path, nodeagent: Nodeagent) -> None:
    said = nodeagent("k8s", "bridge", "--config", config)
    assert said.status == 78
    assert said.err.rstrip().endswith(
        "the API server cannot be reached: no account of a pod: Service host/port is not set.;"
        " outside of a pod, name a kubeconfig in [kubernetes] of nodeagent.toml"
    )


def test_a_kubeconfig_that_is_not_there_is_named(config: Path, nodeagent: Nodeagent) -> None:
    config.write_text('[kubernetes]\nkubeconfig = "/nowhere/kubeconfig"\n')
    said = nodeagent("k8s", "bridge", "--config", config)
    assert (said.status, "/nowhere/kubeconfig" in said.err) == (78, True)


def test_without_the_client_library_it_shows_how_to_get_it(
    config: Path, nodeagent: Nodeagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("kubernetes", "kubernetes.aio"):
        monkeypatch.setitem(sys.modules, name, None)
    said = nodeagent("k8s", "bridge", "--config", config)
    assert said.status == 1
    assert said.err.rstrip().endswith("install it with pip install 'nodeagent[kubernetes]'")


def test_the_pod_knows_better_than_a_configuration_that_all_pods_share_which_node_it_is_on(
    config: Path, nodeagent: Nodeagent, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('[kubernetes]\nnode = "node-1"\n')
    monkeypatch.setenv("NODE_NAME", "node-2")
    assert node_of(config, nodeagent, monkeypatch) == "node-2"
    assert node_of(config, nodeagent, monkeypatch, "--node", "node-3") == "node-3"
    monkeypatch.delenv("NODE_NAME")
    assert node_of(config, nodeagent, monkeypatch) == "node-1"


def node_of(config: Path, nodeagent: Nodeagent, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """The node that the bridge would write to."""
    found: list[str] = []

    async def ran(_socket: Path, _section: KubernetesConfig, node: str) -> None:
        found.append(node)

    monkeypatch.setattr(k8s, "_run", ran)
    assert nodeagent("k8s", "bridge", "--config", config, *options).status == 0
    return found[0]


def test_a_name_that_no_node_can_have_is_refused(config: Path, nodeagent: Nodeagent) -> None:
    config.write_text('[kubernetes]\nnode = "Node 1"\n')
    said = nodeagent("k8s", "bridge", "--config", config)
    assert (said.status, "kubernetes.node" in said.err) == (78, True)
