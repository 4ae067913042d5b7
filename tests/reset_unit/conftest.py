"""Emulated nodes, and requests as the daemon makes them, done by the real process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from nodeagent.emulator.node import EmulatedNode
from nodeagent.reset_unit.exchange.requests import (
    RequestedDevice,
    RequestFolder,
    ResetRequest,
    ResetResult,
    name_of,
)

ROOT = Path(__file__).parents[2]
ACTION = "die0/reset#1"
INBAND = "dcmi_set_device_reset"

Emulate = Callable[[str], EmulatedNode]


@dataclass
class ResetUnit:
    """Where requests are left, and the process that does them is started, with a configuration of its own."""

    folder: RequestFolder
    node: EmulatedNode
    request: ResetRequest
    procfs: Path = Path("/proc")
    env: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        return self.folder.path.parent

    @property
    def config(self) -> Path:
        return self.base / "nodeagent.toml"

    @property
    def record(self) -> Path:
        return self.base / "state-reset"

    @property
    def do_not_touch(self) -> Path:
        return self.base / "do-not-touch"

    @property
    def resets(self) -> int:
        """How often the library was asked for one."""
        return self.node.calls(INBAND)

    def configure(self, *lines: str, mode: str = "on") -> None:
        """With these lines of ``[reset]``."""
        library = {"ascend": self.node.dcmi, "nvidia": self.node.nvml}[self.request.vendor]
        self.config.write_text(
            f"""
[agent]
state_dir = "{self.base}/state"

[drivers.kmsg]
path = "{self.base}/kmsg"

[drivers.{self.request.vendor}]
library = "{library}"
sysfs = "{self.node.sysfs}"
procfs = "{self.procfs}"

[reset]
mode = "{mode}"
allow_volatile_store = true
verify_timeout = "60s"
cool_down = "0s"
do_not_touch = "{self.do_not_touch}"
kernel_command_line = "{self.base}/cmdline"
{chr(10).join(lines)}
"""
        )

    def ask(self, **changes: object) -> str:
        """With what is to be otherwise; the name of the attempt."""
        self.request = replace(self.request, **changes)
        return self.folder.ask(self.request)

    def start(self, name: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "nodeagent.reset_unit", name, "--folder", str(self.folder.path)]
        with (self.base / "output").open("a") as output:
            return subprocess.Popen(
                [*command, *(words or ("--config", str(self.config)))],
                cwd=ROOT,
                env={**os.environ, **self.env},
                stdout=output,
                stderr=output,
            )

    def do(self, **changes: object) -> ResetResult:
        """From the request to the result."""
        return self.result(self.ask(**changes))

    def do_as(self, content: bytes, name: str = name_of(ACTION, 1)) -> ResetResult:
        """With a file of the request's that somebody else has written."""
        (self.folder.path / f"{name}.request").write_bytes(content)
        return self.result(name)

    def forged(self, **fields: object) -> bytes:
        """The request, with these fields in it as well."""
        fields_of_request: dict[str, Any] = json.loads(msgspec.json.encode(self.request))
        return json.dumps({**fields_of_request, **fields}).encode()

    def result(self, name: str, *words: str) -> ResetResult:
        """Of a request that lies there."""
        status = self.start(name, *words).wait(60)
        said = (self.base / "output").read_text()
        assert status == 0, said
        result = self.folder.result(name)
        assert result is not None, said
        return result


def devices_of(node: EmulatedNode) -> tuple[RequestedDevice, ...]:
    return tuple(RequestedDevice(name=name) for name in node.names())


@pytest.fixture
def emulate(tmp_path: Path) -> Iterator[Emulate]:
    with ExitStack() as nodes:
        yield lambda description: nodes.enter_context(EmulatedNode.create(tmp_path / "node", description))


@pytest.fixture
def reset_unit(tmp_path: Path, emulate: Emulate) -> ResetUnit:
    """Its request is for four NPUs that are reset together, within the half of a second, and allowed."""
    node = emulate("4x910B")
    for name in node.names():
        node.set(name, "reset_ms", 300)
    return make_reset_unit(tmp_path, node, "ascend")


def make_reset_unit(folder: Path, node: EmulatedNode, vendor: str) -> ResetUnit:
    """A reset_unit for all devices of the node."""
    files = RequestFolder(folder / "reset")
    files.make()
    (folder / "cmdline").write_text("quiet\n")
    (folder / "kmsg").write_text("6,1,1,-;one line\n")
    request = ResetRequest(
        action=ACTION,
        attempt=1,
        vendor=vendor,
        devices=devices_of(node),
        reasons=("80E18005",),
        deadline_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 60 * 10**9,
    )
    reset_unit = ResetUnit(files, node, request)
    reset_unit.configure()
    return reset_unit


def fake_tool(folder: Path, name: str, script: str, env: Mapping[str, str]) -> dict[str, str]:
    """An executable of that name, first on the PATH of the environment that comes back."""
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{script}")
    tool.chmod(0o755)
    return {**env, "PATH": f"{folder}:{os.environ['PATH']}"}
