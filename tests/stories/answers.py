"""What each interface of a daemon says of its node, at one moment: for stories in which all have to agree."""

import asyncio
import json
import re
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.message_factory import GetMessageClass

from nodeagent.api.nvrx import SERVICE, HealthCheckResponse
from nodeagent.client import AsyncClient, Snapshot
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.schedulers.kubernetes.cluster import wording
from nodeagent.schedulers.kubernetes.facts import facts_of
from nodeagent.schedulers.slurm.verdicts import judge
from tests.harness.daemon import Daemon

_NODE: Final = re.compile(r'nodeagent_device_verdict\{device="node",kind="node",verdict="(\w+)"\} 1\.0')
_ASK: Final = SERVICE.methods_by_name["RunHealthCheck"]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """``reasons`` are those that ``scan`` gives, ``headline`` is the first line of ``status`` as people see
    it. ``up`` is what the metrics say of each source.
    """

    status: str
    headline: str
    scan: int
    reasons: tuple[str, ...]
    snapshot: str
    get_node: str
    metrics: str
    up: dict[str, bool]
    slurm: str
    kubernetes: str
    nvrx: tuple[str, ...]

    @property
    def words(self) -> dict[str, object]:
        """All that is to agree, without the texts."""
        return {
            "status": self.status,
            "headline": self.headline.partition(": ")[2].partition(":")[0],
            "scan": self.scan,
            "snapshot": self.snapshot,
            "GetNode": self.get_node,
            "metrics": self.metrics,
            "slurm": self.slurm,
            "kubernetes": self.kubernetes,
            "nvrx": [(each.split()[0], each.split()[-1]) for each in self.nvrx],
        }


UNKNOWN: Final = {
    "status": "UNKNOWN",
    "headline": "UNKNOWN",
    "scan": 2,
    "snapshot": "UNKNOWN",
    "GetNode": "UNKNOWN",
    "metrics": "UNKNOWN",
    "slurm": "unknown",
    "kubernetes": "Unknown",
    "nvrx": [("node", "UNKNOWN")],
}
"""A node of which nobody can say how it is. That alone does not fail NVRx."""


async def answers_of(daemon: Daemon, nvrx: Path) -> Answers:
    """``nvrx`` is the socket of its health service; the metrics listen where the daemon's field says."""
    shown = await daemon.status()
    headline = (await daemon.text("status", "--socket", daemon.socket)).splitlines()[0]
    scanned, scan = await daemon.command("scan", "--socket", daemon.socket)
    async with AsyncClient(daemon.socket) as client:
        node = (await client.call(pb.GetNodeRequest())).device
        taken = await anext(aiter(client.watch(snapshot="always")))
    assert isinstance(taken, Snapshot)
    metrics = await asyncio.to_thread(_scraped, daemon.metrics)
    return Answers(
        status=shown["node"]["verdict"],
        headline=headline,
        scan=scanned,
        reasons=tuple(json.loads(scan)["reasons"]),
        snapshot=next(str(each.verdict) for each in taken.devices if each.name == "node"),
        get_node=str(enums.VERDICT_OF[node.verdict]),
        metrics=" ".join(_NODE.findall(metrics)),
        up={
            source: value == "1.0"
            for source, value in re.findall(r'nodeagent_source_up\{.*source="(\w+)"\} (\S+)', metrics)
        },
        slurm=str(judge(taken.devices).standing),
        kubernetes=wording(facts_of(taken)).status,
        nvrx=await _asked_by_nvrx(nvrx),
    )


def _scraped(listening: str) -> str:
    with urllib.request.urlopen(f"http://{listening}/metrics", timeout=30) as response:
        text: str = response.read().decode()
    return text


async def _asked_by_nvrx(socket: Path) -> tuple[str, ...]:
    """What it cannot say; that fails nothing."""
    request = GetMessageClass(_ASK.input_type)
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        call = channel.unary_unary(
            f"/{SERVICE.full_name}/{_ASK.name}",
            request_serializer=request.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        answer = await call(request(), timeout=30)
    assert answer.success
    return tuple(json.loads(answer.output)["unknown_checks"])
