"""NVRx' node health service, asked by NVRx' own client; off unless it is configured.

What verdicts say to NVRx, as a table.
"""

import asyncio
import json
import os
import platform
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodeagent.api.nvrx import SERVICE, HealthCheckResponse, NodeHealth, health
from nodeagent.config.sections import NvrxConfig
from nodeagent.core.model import DeviceView, Kind, Level, Reason, Verdict
from nodeagent.messages.pb import fault_service_pb2
from tests.api.peer import NOBODY, as_user
from tests.api.samples import NODE_DEVICE, device, event
from tests.api.stage import Stage
from tests.documents import ROOT
from tests.harness.node import Node, xid_line

ASKING: Final = Path(__file__).with_name("asking.py")
LIMIT_S: Final = 60.0
METHOD: Final = SERVICE.methods_by_name["RunHealthCheck"]


@pytest.fixture(scope="module")
def nvrx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with NVRx as NVIDIA publishes it. Its machine code, for a newer system, is not used."""
    folder = tmp_path_factory.mktemp("nvrx")
    install = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    wheels = ("--only-binary", ":all:", "--python-version", "3.12")
    made_for = ("--platform", f"manylinux_2_39_{platform.machine()}")
    pinned = ("--require-hashes", "--no-deps", "-r", ROOT / "packaging/nvrx.lock")
    subprocess.run([*install, *wheels, *made_for, *pinned, "--target", folder], check=True, timeout=240)
    return folder


@pytest.fixture
async def stage(place: Path) -> AsyncIterator[Stage]:
    opened = Stage(place, nvrx=NvrxConfig(socket=str(place / "nvhcd.sock")))
    await opened.open()
    yield opened
    await opened.close()


async def test_a_node_that_is_well_passes(nvrx: Path, stage: Stage, place: Path) -> None:
    await stage.commit(event(level=Level.SUB_HEALTH))

    assert await asked(nvrx, place) == (True, "Node health check: success (fail_count=0)")


@pytest.mark.parametrize("level", [Level.PRE_SEPARATE_NPU, Level.SEPARATE_NPU])
async def test_a_chip_that_takes_no_new_work_fails_the_node(
    nvrx: Path, stage: Stage, place: Path, level: Level
) -> None:
    await stage.commit(event(level=level))
    passes, said = await asked(nvrx, place)

    assert not passes
    assert "Node health check failed (exit_code=1)" in said
    assert "gpu0 XID_79" in said


async def test_what_is_not_known_passes(nvrx: Path, stage: Stage, place: Path) -> None:
    stage.unknown("gpu0")

    assert await asked(nvrx, place) == (True, "Node health check: success (fail_count=0)")
    assert (await answer(place))["unknown_checks"] == ["gpu0 UNKNOWN"]


async def test_each_part_that_fails_is_counted_and_named_with_its_code(stage: Stage, place: Path) -> None:
    await stage.commit(event("gpu0"), event("gpu1", code="XID_95"), event("gpu2", level=Level.NOT_HANDLE))

    assert await answer(place) == {
        "fail_count": 2,
        "failed_checks": ["gpu0 XID_79 ISOLATE", "gpu1 XID_95 ISOLATE"],
        "unknown_checks": [],
    }


async def test_every_user_may_ask_that_and_nothing_else(stage: Stage, place: Path) -> None:
    socket = place / "nvhcd.sock"
    (refused,) = await as_user(stage, NOBODY, fault_service_pb2.ListDevicesRequest(), socket=socket)

    assert stat.S_IMODE(socket.stat().st_mode) == 0o666
    assert refused[0] == "UNIMPLEMENTED"


async def test_it_is_there_only_where_it_is_configured(place: Path) -> None:
    stage = Stage(place)
    await stage.open()
    opened = sockets(place)
    await stage.close()

    assert opened == {"control.sock", "nodeagent.sock"}


async def test_a_fault_that_the_daemon_finds_fails_the_node(nvrx: Path, place: Path) -> None:
    node = Node.within(place, f'[nvrx]\nsocket = "{place}/nvhcd.sock"')
    with node.daemon() as events:
        before, _ = await asked(nvrx, place)
        node.write(xid_line(79))
        events.until("XID_79")
        after, said = await asked(nvrx, place)
    gone, _ = await asked(nvrx, place)

    assert (before, after, gone) == (True, False, True)
    assert "0000:3b:00.0 XID_79 ISOLATE" in said


def sockets(place: Path) -> set[str]:
    return {path.name for path in place.iterdir() if path.is_socket()}


async def asked(nvrx: Path, place: Path) -> tuple[bool, str]:
    """(whether the node passes, the last line of its log)"""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", str(ASKING), str(place / "nvhcd.sock")),
        env={**os.environ, "PYTHONPATH": str(nvrx)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT_S):
        printed, log = await child.communicate()
    assert child.returncode == 0, log.decode()
    return printed.decode().strip() == "True", log.decode().strip().splitlines()[-1].split(":", 2)[2]


async def answer(place: Path) -> dict[str, Any]:
    """What is in ``output``."""
    request = GetMessageClass(METHOD.input_type)
    async with grpc.aio.insecure_channel(f"unix:{place}/nvhcd.sock") as channel:
        ask = channel.unary_unary(
            f"/{SERVICE.full_name}/{METHOD.name}",
            request_serializer=request.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        said: Message = await ask(request(args=["--no-slurm"]), timeout=LIMIT_S)
    found: dict[str, Any] = json.loads(said.output)  # type: ignore[attr-defined]
    return found


CHIP = replace(device(event()), reasons=())
HOLD = Reason(kind="hold", id="hold-1", text="isolated by alice: fan swap")
FAULT = Reason(kind="condition", id="c-1", code="XID_79")
AGAIN = Reason(kind="promotion", id="p-1", code="XID_79")
SOURCE = Reason(kind="source", id="nvidia", text="no answer within 5 s")


def chip(verdict: Verdict, *reasons: Reason, kind: Kind = Kind.CHIP) -> DeviceView:
    return replace(CHIP, verdict=verdict, reasons=reasons, kind=kind)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ((), NodeHealth((), ())),
        ((NODE_DEVICE, chip(Verdict.ALLOW, FAULT)), NodeHealth((), ())),
        ((chip(Verdict.ISOLATE, FAULT),), NodeHealth(("gpu0 XID_79 ISOLATE",), ())),
        ((chip(Verdict.NO_NEW_JOBS, FAULT),), NodeHealth(("gpu0 XID_79 NO_NEW_JOBS",), ())),
        ((chip(Verdict.ISOLATE, FAULT, AGAIN, HOLD),), NodeHealth(("gpu0 XID_79 ISOLATE",), ())),
        ((chip(Verdict.ISOLATE, HOLD),), NodeHealth(("gpu0 hold ISOLATE",), ())),
        ((chip(Verdict.ISOLATE),), NodeHealth(("gpu0 ISOLATE",), ())),
        ((chip(Verdict.UNKNOWN, SOURCE),), NodeHealth((), ("gpu0 source UNKNOWN",))),
        ((chip(Verdict.ISOLATE, FAULT, kind=Kind.INSTANCE),), NodeHealth(("gpu0 XID_79 ISOLATE",), ())),
        ((chip(Verdict.ISOLATE, FAULT, kind=Kind.LINK),), NodeHealth((), ())),
        ((chip(Verdict.ISOLATE, FAULT, kind=Kind.UNIFIEDBUS),), NodeHealth((), ())),
        ((replace(NODE_DEVICE, verdict=Verdict.ISOLATE),), NodeHealth(("node ISOLATE",), ())),
    ],
    ids=[
        *("before the first state", "well", "isolated", "no new jobs", "one code, several reasons"),
        *("held by a person", "without a reason", "unknown", "a part of a chip", "a port", "a switch"),
        "the node",
    ],
)
def test_health(devices: tuple[DeviceView, ...], expected: NodeHealth) -> None:
    assert health(devices) == expected
