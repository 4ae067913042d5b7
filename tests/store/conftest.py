"""Ledgers in this process and in processes of their own that can be killed."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

ROOT = Path(__file__).parents[2]


class Process:
    """A child with a ledger: orders go in, and what it says comes out in order."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._changes: list[dict[str, Any]] = []

    async def ask(self, do: str, **what: Any) -> dict[str, Any]:
        """Give an order and wait for its answer; changes of durability reported meanwhile are kept."""
        self.order(do, **what)
        while "changed" in (said := await self.hear()):
            self._changes.append(said)
        return said

    def order(self, do: str, **what: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **what}).encode() + b"\n")

    async def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise EOFError("the child ended")
        said: dict[str, Any] = json.loads(line)
        return said

    async def change(self) -> dict[str, Any]:
        """Wait for the next change of durability."""
        return self._changes.pop(0) if self._changes else await self.hear()

    async def ended(self) -> int:
        """Wait for it to end by itself; its exit code."""
        return await self._process.wait()

    async def kill(self) -> list[dict[str, Any]]:
        """Kill -9; give all it had still said."""
        self._process.kill()
        assert self._process.stdout is not None
        rest = await self._process.stdout.read()
        await self._process.wait()
        return [json.loads(line) for line in rest.splitlines() if line.endswith(b"}")]


class StartChild(Protocol):
    async def __call__(
        self, directory: Path, env: Mapping[str, str] | None = None, **limits: float
    ) -> Process: ...


@pytest.fixture
async def start_child() -> AsyncIterator[StartChild]:
    """Starts a process that opens a ledger in a directory; what is left of them is killed at the end."""
    started: list[asyncio.subprocess.Process] = []

    async def start(directory: Path, env: Mapping[str, str] | None = None, **limits: float) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.store.child",
            str(directory),
            json.dumps(limits),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        started.append(process)
        return Process(process)

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()
