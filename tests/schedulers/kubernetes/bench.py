"""A real daemon over emulated NPUs, the API double, and the bridge as a process of its own between them."""

import asyncio
import json
import os
import shutil
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.harness.configuration import ROOT
from tests.harness.daemon import COMMAND
from tests.schedulers.kubernetes import admission, manifest
from tests.schedulers.kubernetes.api_double import TOKEN, ApiDouble
from tests.schedulers.kubernetes.api_requests import Object
from tests.stories.npus import Npus, eight_npus
from tests.waiting import WAIT_LIMIT_S

NODE: Final = "node-1"
NODE_KEY: Final = ("nodes", "", NODE)
DEVICE_INFO_KEY: Final = ("configmaps", "kube-system", f"mindx-dl-deviceinfo-{NODE}")
NODE_INFO_KEY: Final = ("configmaps", "mindx-dl", f"mindx-dl-nodeinfo-{NODE}")
HBM: Final = 0x80E18005
HBM_CODE: Final = "80E18005"
TAINT_OF_ANOTHER: Final = {"key": "maintenance", "value": "disk", "effect": "NoSchedule"}
OURS: Final = f"nodeagent/no-new-work={HBM_CODE}:NoSchedule"
OF_ANOTHER: Final = "maintenance=disk:NoSchedule"
"""Taints as ``Bench.taints`` has them."""

READY: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady"}


@dataclass(kw_only=True)
class Bench:
    """``keys`` are lines of ``[kubernetes]``, for the bridge's next start."""

    npus: Npus
    api: ApiDouble
    folder: Path
    keys: Sequence[str] = ('resume_after = "0s"',)
    process: asyncio.subprocess.Process | None = None
    _lines: list[str] = field(default_factory=list)

    async def start(self) -> None:
        """The bridge, with a kubeconfig."""
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(self.api.port)))
        await self.spawn(*self._bridge(f'kubeconfig = "{kubeconfig}"'))

    async def start_with_a_healthy_node(self) -> None:
        """And wait until the node is said to be well."""
        await self.start()
        await self.comes(self.says("True"), "a healthy node")

    async def start_as_in_a_pod(self, authority: Path) -> None:
        """With what a kubelet puts into a pod: the account's token, and the authority of the server."""
        account = self.account(authority)
        into = "/run/secrets/kubernetes.io/serviceaccount"
        put = f'mount -t tmpfs none /run && mkdir -p {into} && cp "$0"/* {into} && exec "$@"'
        await self.spawn(
            *("unshare", "--mount", "sh", "-c", put, account, *self._bridge()),
            **self.service_variables,
        )

    def account(self, authority: Path) -> Path:
        """A new folder with what a kubelet lets a pod know of its account."""
        account = self.folder / "serviceaccount"
        account.mkdir()
        (account / "token").write_text(TOKEN)
        shutil.copyfile(authority, account / "ca.crt")
        return account

    @property
    def service_variables(self) -> dict[str, str]:
        """By which a pod finds the API server."""
        return {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(self.api.port)}

    def _bridge(self, *keys: str) -> Sequence[str | Path]:
        config = self.folder / "bridge.toml"
        config.write_text("\n".join(("[kubernetes]", *keys, *self.keys, "")))
        return (*COMMAND, "k8s", "bridge", "--config", config, "--socket", self.npus.daemon.socket)

    async def spawn(self, *command: str | Path, **variables: str) -> None:
        """This command is the bridge."""
        with (self.folder / "bridge.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                stderr=log,
                env={**os.environ, "no_proxy": "127.0.0.1", "NODE_NAME": NODE, **variables},
            )

    async def kill(self) -> None:
        """Kill -9."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self.process.wait()

    @property
    def log(self) -> str:
        return (self.folder / "bridge.log").read_text()

    async def comes(self, found: Callable[[], object], what: str) -> None:
        """Wait for it. Fails with the log."""
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                while not found():  # the double announces nothing
                    assert self.process is None or self.process.returncode is None, self.log
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"never came: {what}\n{self.api.wrong}\n{self.log[-3000:]}") from None

    # --- how the cluster stands ---

    @property
    def node(self) -> Object:
        return self.api.objects[NODE_KEY]

    @property
    def taints(self) -> list[str]:
        """As ``kubectl describe node`` has them."""
        return [
            f"{each['key']}={each.get('value', '')}:{each['effect']}"
            for each in self.node["spec"].get("taints", ())
        ]

    @property
    def condition(self) -> Object:
        """Ours, {} where there is none."""
        found = [each for each in self.node["status"]["conditions"] if each["type"] == "AcceleratorsHealthy"]
        return found[0] if found else {}

    def mentions(self, words: str) -> bool:
        return words in self.condition.get("message", "")

    def says(self, status: str) -> Callable[[], bool]:
        return lambda: self.condition.get("status") == status

    @property
    def device_list(self) -> dict[str, str]:
        """Of the device-info ConfigMap."""
        if DEVICE_INFO_KEY not in self.api.objects:
            return {}
        info: Any = json.loads(self.api.objects[DEVICE_INFO_KEY]["data"]["DeviceInfoCfg"])
        found: dict[str, str] = info["DeviceInfo"]["DeviceList"]
        return found

    def asked(self, *verbs: str) -> list[str]:
        """The requests with these verbs, as the double logged them."""
        return [str(each) for each in self.api.requests if each.verb in verbs]

    async def acknowledged_all(self) -> None:
        """Wait until the daemon knows that the cluster has all of it."""

        async def has_all() -> bool:
            snapshot = await self.npus.snapshot()
            return await self.acknowledged() == snapshot.position.seq

        await self.npus.daemon.comes(has_all, f"the last event acknowledged\n{self.log[-2000:]}")

    async def acknowledged(self) -> int:
        """How far the daemon knows the cluster to be, 0 where it knows nothing."""
        consumers = await self.npus.daemon.asked(lambda client: client.consumers())
        return next((each.seq for each in consumers if each.name == "kubernetes"), 0)


@asynccontextmanager
async def between(
    folder: Path, *, more: Sequence[str] = (), tls: ssl.SSLContext | None = None
) -> AsyncIterator[Bench]:
    """The daemon runs and has read every chip; the node is there; the bridge is not started.

    ``more`` are sections of the daemon's configuration.
    """
    api = ApiDouble(granted=manifest.granted, refused=admission.refused, pod_node=NODE, tls=tls)
    await api.put(NODE_KEY, new_node())
    await api.start()
    async with eight_npus(folder) as npus:
        npus.sections = more
        bench = Bench(npus=npus, api=api, folder=folder)
        try:
            await npus.start()
            for name in npus.node.names():
                await npus.polled(name, 2)
            yield bench
            assert api.wrong == []
        finally:
            if bench.process is not None:
                await bench.kill()
            await api.stop()


def new_node() -> Object:
    """As a kubelet registers it, with a taint of an administrator."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"nodeagent": "installed"}},
        "spec": {"podCIDR": "10.0.1.0/24", "taints": [dict(TAINT_OF_ANOTHER)]},
        "status": {"capacity": {"huawei.com/Ascend910": "8"}, "conditions": [dict(READY)]},
    }


def _kubeconfig(port: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "double",
        "contexts": [{"name": "double", "context": {"cluster": "double", "user": "bridge"}}],
        "clusters": [{"name": "double", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bridge", "user": {"token": TOKEN}}],
    }
