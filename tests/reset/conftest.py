"""Emulated nodes, and requests as the daemon makes them, done by the real process."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeagent.emulator.node import EmulatedNode
from nodeagent.reset.folder import Device, Folder, Request, Result

ROOT = Path(__file__).parents[2]

Emulate = Callable[[str], EmulatedNode]


@dataclass
class Desk:
    """Where requests are left, and the process that does them is started."""

    folder: Folder
    request: Request
    env: dict[str, str] = field(default_factory=dict)

    def ask(self, **changes: object) -> str:
        """With what is to be otherwise; the name of the attempt."""
        self.request = replace(self.request, **changes)
        return self.folder.ask(self.request)

    def start(self, name: str) -> "subprocess.Popen[bytes]":
        with (self.folder.path / "output").open("a") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "nodeagent.reset", name, "--folder", str(self.folder.path)],
                cwd=ROOT,
                env={**os.environ, **self.env},
                stdout=output,
                stderr=output,
            )

    def do(self, **changes: object) -> Result:
        """From the request to the result."""
        name = self.ask(**changes)
        status = self.start(name).wait(60)
        said = (self.folder.path / "output").read_text()
        assert status == 0, said
        result = self.folder.result(name)
        assert result is not None, said
        return result


def device(name: str, identity: str = "", **attributes: str) -> Device:
    return Device(name=name, identity=identity, attributes=attributes)


@pytest.fixture
def emulate(tmp_path: Path) -> Iterator[Emulate]:
    with ExitStack() as nodes:
        yield lambda description: nodes.enter_context(EmulatedNode.create(tmp_path / "node", description))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Its request is for no device of a vendor that nobody knows."""
    folder = Folder(tmp_path / "reset")
    folder.make()
    (tmp_path / "cmdline").write_text("quiet\n")
    (tmp_path / "kmsg").write_text("6,1,1,-;one line\n")
    return Desk(
        folder,
        Request(
            action="die0/reset#1",
            attempt=1,
            vendor="nobody",
            group="nobody",
            devices=(),
            reasons=("80E18005",),
            deadline_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 60 * 10**9,
            start_limit_s=10,
            library="",
            procfs="/proc",
            before=(),
            after=(),
            hook_timeout_s=5,
            do_not_touch=str(tmp_path / "do-not-touch"),
            kernel_command_line=str(tmp_path / "cmdline"),
            evidence_dir=str(tmp_path / "evidence"),
            kernel_log=str(tmp_path / "kmsg"),
        ),
    )


def fake_tool(folder: Path, name: str, script: str, env: Mapping[str, str]) -> dict[str, str]:
    """An executable of that name, first on the PATH of the environment that comes back."""
    folder.mkdir(exist_ok=True)
    tool = folder / name
    tool.write_text(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n{script}")
    tool.chmod(0o755)
    return {**env, "PATH": f"{folder}:{os.environ['PATH']}"}
