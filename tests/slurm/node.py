"""One node of a real cluster: the daemon over emulated NPUs, and the bridge beside it."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nodeagent.client import Consumer
from tests.harness.configuration import ROOT
from tests.harness.daemon import COMMAND
from tests.reset_unit.acting import Acting, acting
from tests.slurm.cluster import ASKED_EACH_S, Cluster
from tests.waiting import WAIT_LIMIT_S, until

FAULT = 0x80E18005
CODE = "80E18005"


@dataclass(kw_only=True)
class Bridged:
    """``keys`` are further lines of [slurm], ``sections`` further sections. All before the start."""

    cluster: Cluster
    name: str
    node: Acting
    keys: Sequence[str] = ()
    sections: Sequence[str] = ()
    bridge: asyncio.subprocess.Process | None = None
    env: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.node.daemon.folder

    @property
    def said(self) -> str:
        """What all lives of the bridge have said."""
        file = self.folder / "bridge.log"
        return file.read_text() if file.exists() else ""

    async def start(self) -> None:
        """The daemon, and the bridge beside it."""
        await self.start_daemon()
        await self.start_bridge()

    async def start_daemon(self) -> None:
        named = (f'node_name = "{self.name}"',) if self.name else ()
        self.node.reset = ("[slurm]", *named, 'look_each = "1s"', *self.keys, *self.sections)
        await self.node.start()
        await self.node.read_again()

    async def start_bridge(self, *within: str) -> None:
        command: tuple[str | Path, ...] = (
            *within,
            *COMMAND,
            "slurm",
            "bridge",
            "--config",
            self.node.daemon.config,
        )
        with (self.folder / "bridge.log").open("ab") as log:
            self.bridge = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, env={**os.environ, **self.cluster.env, **self.env}, stdout=log, stderr=log
            )

    async def stop_bridge(self, number: int = signal.SIGTERM) -> int:
        assert self.bridge is not None
        self.bridge.send_signal(number)
        async with asyncio.timeout(WAIT_LIMIT_S):
            return await self.bridge.wait()

    async def acknowledged(self, seq: int = 0) -> int:
        """Wait until the bridge has acknowledged this event, or the last one; how far it has come then."""
        wanted = seq or (await self.node.snapshot()).position.seq

        async def found() -> bool:
            return any(each.name == "slurm" and each.seq >= wanted for each in await self.consumers())

        await self.node.daemon.comes(found, f"an acknowledgement of {wanted}\n{self.said}")
        return wanted

    async def consumers(self) -> Sequence[Consumer]:
        return await self.node.daemon.asked(lambda client: client.consumers())

    def fail(self, chip: str = "npu3") -> None:
        self.node.node.raise_code(chip, FAULT)

    def mend(self, chip: str = "npu3") -> None:
        self.node.node.clear_code(chip, FAULT)

    async def works(self) -> None:
        """Wait until it is drained no more."""
        await self.comes(lambda: self.cluster.state(self.name) == ["IDLE"], f"{self.name} works again")

    async def is_at(self, verdict: str, device: str = "npu3") -> None:
        """Wait until the device has this verdict."""

        async def found() -> bool:
            return (await self.node.verdicts())[device] == verdict

        await self.node.daemon.comes(found, f"{device} is {verdict}")

    def scontrol(self, script: str) -> None:
        """Another program in place of Slurm's; what it writes lies beside it. Before the start."""
        folder = self.folder / "programs"
        folder.mkdir()
        program = folder / "scontrol"
        program.write_text(f'#!/bin/sh\ncd "{folder}" || exit\n{script}\n')
        program.chmod(0o755)
        self.keys = (*self.keys, f'programs = "{folder}"')

    async def comes(self, found: Callable[[], object], what: str) -> None:
        """As ``until``; the failure shows what bridge and Slurm have said."""
        try:
            await until(found, what, each_s=ASKED_EACH_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said}\n{self.cluster.log()}") from None

    async def is_drained(self, name: str = "") -> str:
        """Wait until it is drained by the bridge; the reason, with the number of the event left out."""
        name = name or self.name
        await self.comes(lambda: "DRAIN" in self.cluster.state(name), f"{name} is drained")
        return re.sub(r"#\d+", "#SEQ", self.cluster.reason(name))


@asynccontextmanager
async def bridged(folder: Path, cluster: Cluster, name: str, **fields: object) -> AsyncIterator[Bridged]:
    """Neither the daemon nor the bridge is started; at the end nothing of both is left."""
    folder.mkdir()  # noqa: ASYNC240 # as all that makes the cluster
    async with acting(folder, "8x910B") as node:
        node.mode = "off"
        made = Bridged(cluster=cluster, name=name, node=node, **fields)  # type: ignore[arg-type]
        try:
            yield made
        finally:
            if made.bridge is not None and made.bridge.returncode is None:
                made.bridge.kill()
                await made.bridge.wait()
