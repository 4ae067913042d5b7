"""Slurm by its own commands: scontrol and squeue, each with a time limit, none found by ``PATH``.

Their text is read, and not ``--json``: the fields that are read have had one form from 22.05 to 26.05, while
the JSON has its fields by the version of a plug-in (data_parser/v0.0.42 to v0.0.45 in 26.05), and is there
only where Slurm was built with libjson-c.

It decides nothing. A command that fails, or takes too long, is a ``SlurmError`` with Slurm's own message;
what it was to do may have been done all the same.
"""

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.schedulers.slurm.decide import Node

COMMAND_LIMIT_S: Final = 30.0
"""A slurmctld that is busy answers late; scontrol itself gives up after some tries."""

_ENVIRONMENT: Final = ("SLURM_CONF", "SLURM_CONF_SERVER", "TZ")
"""The variables that Slurm's commands get of ours: where its configuration is."""

_FIXED: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C",
    "SLURM_TIME_FORMAT": "%s",  # squeue(1): times by strftime(3)
}

_STATE: Final = re.compile(r"^\s*State=(\S+)", re.MULTILINE)
_REASON: Final = re.compile(r"^\s*Reason=(.*?)(?: \[[^\[\]]*@[^\[\]]*\])?$", re.MULTILINE)
"""scontrol appends the user that set it, and the time."""

_COMMENT: Final = re.compile(r"^\s*Comment=(.*)$", re.MULTILINE)
_FLAG: Final = re.compile(r"[A-Z_]+")
_CLOSED: Final = frozenset({"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR"})
_DRAINED: Final = frozenset({"DRAIN", "DRAINED", "DRAINING"})
"""Each in a form of scontrol(1), NODE STATES."""

_RUNNING: Final = re.compile(r"(?P<job>\d+) (?P<uid>\d+) (?P<since_s>\d+) (?P<name>[\d_+]+)")
_NO_JOB: Final = "Invalid job id"


class SlurmError(Exception):
    """Slurm did not answer, or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """``name`` is the one by which Slurm requeues it; ``since_s`` when it began, in seconds since 1970."""

    name: str
    uid: int
    since_s: int


class NoSuchNode(SlurmError):
    """Slurm knows no node of this name: it may have another one now."""


class Slurm:
    """``folder`` holds its commands."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str] = os.environ, limit_s: float = COMMAND_LIMIT_S
    ) -> None:
        self._folder = folder
        self._limit_s = limit_s
        kept = {name: environ[name] for name in _ENVIRONMENT if name in environ}
        self._environ = {**_FIXED, **kept}

    async def name_of_this_node(self) -> str:
        """The name in Slurm's configuration: the node whose NodeHostname is this machine's whole name, else
        the first part of it, as slurmd looks for it (``slurm_conf_get_aliased_nodename`` of
        src/common/read_config.c).

        Raises SlurmError, also where there are several.
        """
        host = socket.gethostname()
        names: list[str] = []
        for each in dict.fromkeys((host, host.partition(".")[0])):
            names = names or (await self._run("scontrol", "show", "aliases", each)).split()
        if len(names) != 1:
            has = f"has the nodes {', '.join(names)}" if names else "has no node"
            raise SlurmError(f"Slurm {has} of the host name {host}: set node_name in [slurm]")
        return names[0]

    async def node(self, name: str) -> Node:
        """Raises SlurmError, NoSuchNode among them."""
        try:
            text = await self._run("scontrol", "show", "node", name)
        except SlurmError as error:
            if "not found" in str(error):
                raise NoSuchNode(str(error)) from error
            raise
        return node_of(text)

    async def configuration(self) -> str:
        """What ``scontrol show config`` prints."""
        return await self._run("scontrol", "show", "config")

    async def drain(self, name: str, reason: str) -> None:
        await self._run("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}")

    async def annotate(self, name: str, comment: str) -> None:
        await self._run("scontrol", "update", f"NodeName={name}", f"Comment={comment}")

    async def resume(self, name: str) -> None:
        """A node that is also down stays down."""
        await self._run("scontrol", "update", f"NodeName={name}", "State=UNDRAIN")

    async def running(self, job: int, node: str) -> RunningJob | None:
        """None where it does not run on the node any more."""
        among = (f"--jobs={job}", f"--nodelist={node}", "--states=RUNNING,SUSPENDED")
        try:
            listed = await self._run("squeue", "--noheader", *among, "--format=%A %U %S %i")
        except SlurmError as error:
            if _NO_JOB in str(error):
                return None
            raise
        return running_of(job, listed)

    async def requeue(self, name: str) -> None:
        """Of an array one task alone; of a heterogeneous job all, for Slurm does it no other way."""
        await self._run("scontrol", "requeue", name)

    async def _run(self, program: str, *arguments: str) -> str:
        path = self._folder / program
        try:
            process = await asyncio.create_subprocess_exec(
                path,
                *arguments,
                env=self._environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise SlurmError(f"{path}: {error.strerror}; programs in [slurm] names its folder") from error
        try:
            async with asyncio.timeout(self._limit_s):
                out, err = await process.communicate()
        except TimeoutError:
            raise SlurmError(f"{program} {arguments[0]}: no answer for {self._limit_s:g} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            said = " ".join((err or out).decode(errors="replace").split())
            raise SlurmError(f"{program} {arguments[0]}: {said or f'status {process.returncode}'}")
        return out.decode(errors="replace")


def running_of(job: int, listed: str) -> RunningJob | None:
    """``listed`` is of squeue(1): %A, %U, %S, %i. Raises SlurmError.

    The number of one task of an array is that of the whole array as well: the task has to be named "41_3".
    A part of a heterogeneous job, "41+1", goes by the number of its leader.
    """
    for line in listed.splitlines():
        found = _RUNNING.fullmatch(line.strip())
        if found is None:
            raise SlurmError(f"squeue: a line is a number, a uid, a time in s, a name, not {line[:200]!r}")
        if int(found["job"]) == job:
            name = found["name"].partition("+")[0]
            return RunningJob(name=name, uid=int(found["uid"]), since_s=int(found["since_s"]))
    return None


def node_of(text: str) -> Node:
    """From what ``scontrol show node`` prints. Raises SlurmError."""
    state = _STATE.search(text)
    if state is None:
        raise SlurmError("scontrol show: the state of the node is missing")
    flags = frozenset(_FLAG.findall(state[1]))
    reason, comment = _REASON.search(text), _COMMENT.search(text)
    return Node(
        takes_work=not flags & _CLOSED,
        is_drained=bool(flags & _DRAINED),
        reason="" if reason is None else reason[1],
        comment="" if comment is None else comment[1].strip(),
    )
