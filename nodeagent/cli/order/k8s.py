"""``nodeagent k8s``: a group; its one command brings this node's faults to the API server of Kubernetes."""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.shared.errors import EXIT_CONFIG, EXIT_FAILED, EXIT_UNAVAILABLE, CommandFailure
from nodeagent.cli.shared.foreground import begin_log, until_signalled
from nodeagent.cli.shared.options import public_socket, read_config, socket_option

if TYPE_CHECKING:
    from nodeagent.config.schedulers import KubernetesConfig
    from nodeagent.schedulers.kubernetes.state import ClusterSettings

NODE_VARIABLE: Final = "NODE_NAME"


@click.group("k8s")
def command() -> None:
    """Work with Kubernetes."""


@command.command("bridge")
@socket_option
@click.option(
    "--node",
    default="",
    envvar=NODE_VARIABLE,
    show_envvar=True,
    metavar="NAME",
    help="This node's name in Kubernetes. Default: as configured, else the host name.",
)
def bridge(socket: Path | None, config_path: Path | None, node: str) -> None:
    """Write this node's faults to Kubernetes: a condition, a taint, and MindCluster's ConfigMaps.

    [kubernetes] of nodeagent.toml selects what it writes. It runs until it is ended; what it wrote remains.
    """
    config = read_config(config_path)
    path = public_socket(socket, config_path)
    name = node or config.kubernetes.node or config.agent.name().lower()
    begin_log()
    logging.getLogger("kubernetes").setLevel(logging.WARNING)
    asyncio.run(until_signalled(_run(path, config.kubernetes, name)))


async def _run(socket: Path, section: "KubernetesConfig", node: str) -> None:
    try:
        from kubernetes.aio import client, config
        from kubernetes.aio.config import ConfigException
    except ImportError as error:
        raise CommandFailure(
            f"the Python client of Kubernetes cannot be imported ({error}):"
            " install it with pip install 'nodeagent[kubernetes]'",
            EXIT_FAILED,
        ) from error
    from nodeagent.client import AsyncClient, ClientError
    from nodeagent.schedulers.kubernetes.bridge import KubernetesBridge

    settings = client.Configuration()
    try:
        if section.kubeconfig:
            await config.load_kube_config(section.kubeconfig, client_configuration=settings)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(settings)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError) as error:
        where = f"kubeconfig {section.kubeconfig}" if section.kubeconfig else "no account of a pod"
        todo = "outside of a pod, name a kubeconfig in [kubernetes] of nodeagent.toml"
        raise CommandFailure(
            f"the API server cannot be reached: {where}: {error}; {todo}", EXIT_CONFIG
        ) from error
    # Python 3.13 wants fields of certificates that RFC 5280 names and the authorities of many clusters lack,
    # such as those of older EKS clusters (kubernetes-client/python, issue 2394). kubectl does without them.
    settings.disable_strict_ssl_verification = True
    async with client.ApiClient(settings) as cluster, AsyncClient(socket) as daemon:
        cluster.user_agent = "nodeagent"
        try:
            await KubernetesBridge(daemon, cluster, _settings(section, node)).run()
        except ClientError as error:
            raise CommandFailure(
                f"the daemon at {socket} cannot be followed: {error}", EXIT_UNAVAILABLE
            ) from error


def _settings(section: "KubernetesConfig", node: str) -> "ClusterSettings":
    from nodeagent.schedulers.kubernetes.state import ClusterSettings

    return ClusterSettings(
        node=node,
        scope=section.taint,
        resume_after_ns=section.resume_after_ns,
        device_info=section.device_info,
        node_info=section.node_info,
        super_pod_id=section.super_pod_id,
        server_index=section.server_index,
    )
