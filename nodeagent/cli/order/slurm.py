"""``nodeagent slurm``: the bridge to Slurm, and the program for its health check. ``nodeagent.schedulers``
decides.

Slurm gives HealthCheckProgram no PATH and no argument, and looks at nothing but its time-out of 60 s
(slurm.conf(5)): so ``slurm health`` has to drain the node itself, and a script has to call it.
"""

import asyncio
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from nodeagent.cli.ask import scan
from nodeagent.cli.shared.errors import EXIT_FAILED, CommandFailure
from nodeagent.cli.shared.foreground import begin_log, until_signalled
from nodeagent.cli.shared.options import (
    Output,
    config_option,
    output_option,
    public_socket,
    read_config,
    socket_option,
)
from nodeagent.cli.shared.output import write, write_json
from nodeagent.client import AsyncClient, ClientError, received
from nodeagent.config.schedulers import SlurmConfig
from nodeagent.schedulers.slurm import health_check
from nodeagent.schedulers.slurm.bridge import SlurmBridge, numbered
from nodeagent.schedulers.slurm.configuration import misfits, settings_of
from nodeagent.schedulers.slurm.programs import Slurm, SlurmError
from nodeagent.schedulers.slurm.verdicts import Standing, Verdicts, judge

NAME_VARIABLE: Final = "SLURMD_NODENAME"
NUMBER_LIMIT_S: Final = 5.0


@click.command("bridge")
@socket_option
def bridge_command(socket: Path | None, config_path: Path | None) -> None:
    """Drain this node in Slurm while it, or a chip of it, takes no new work; resume it once all are well.

    It runs until SIGTERM or Ctrl-C. Only a drain with a reason of its own is ever ended; a node that a person
    has drained is left alone. It has to be an administrator of Slurm. See [slurm] of the configuration.
    """
    config = read_config(config_path).slurm
    begin_log()
    try:
        asyncio.run(until_signalled(_bridge(public_socket(socket, config_path), config)))
    except ClientError as error:
        raise CommandFailure(f"the daemon refuses: {error}") from error


async def _bridge(socket: Path, config: SlurmConfig) -> None:
    async with AsyncClient(socket) as client:
        await SlurmBridge(client, Slurm(Path(config.programs)), config).run()


@click.command("health")
@click.option(
    "--stamp",
    type=click.Path(path_type=Path),
    default=health_check.STAMP,
    show_default=True,
    metavar="PATH",
    help="The file that keeps since when the node is healthy.",
)
@socket_option
@output_option
def health_command(stamp: Path, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Check once, as scan does; drain this node in Slurm if it is faulty, resume it if it is healthy again.

    Only a drain by nodeagent is ended, after the node was healthy for resume_after of [slurm]. A node whose
    state is unknown is left as it is. For HealthCheckProgram of slurm.conf.
    """
    config = read_config(config_path).slurm
    answer = scan.look(socket, config_path)
    verdicts = _verdicts(answer)
    socket_of_daemon = public_socket(socket, config_path) if answer.by == "daemon" else None
    try:
        well_s = health_check.well_for_s(stamp, verdicts, time.clock_gettime(time.CLOCK_BOOTTIME))
        done = asyncio.run(_look(config, socket_of_daemon, verdicts, well_s))
    except (SlurmError, OSError) as error:
        raise CommandFailure(str(error)) from error
    if output == Output.JSON:
        write_json({"standing": verdicts.standing, "done": done, "reasons": list(answer.reasons)})
    else:
        write(done)


def _verdicts(answer: scan.ScanResult) -> Verdicts:
    """A source that is not read may hide a fault: then the node is not known to be healthy."""
    verdicts = judge(received.device(each) for each in answer.devices)
    if verdicts.standing is Standing.WELL and answer.reasons:
        return Verdicts(standing=Standing.UNKNOWN)
    return verdicts


async def _look(config: SlurmConfig, socket: Path | None, verdicts: Verdicts, well_s: float) -> str:
    """``socket`` None: no daemon answers, and so no event has a number."""
    slurm = Slurm(Path(config.programs))
    if socket is not None and verdicts.faults:
        verdicts = await _numbered(socket, verdicts)
    name = config.node_name or os.environ.get(NAME_VARIABLE) or await slurm.name_of_this_node()
    return await health_check.look(slurm, name, verdicts, well_s, config.resume_after_ns)


async def _numbered(socket: Path, verdicts: Verdicts) -> Verdicts:
    """The number only informs: a drain does not wait for it, and a later look adds it to the reason."""
    try:
        async with asyncio.timeout(NUMBER_LIMIT_S), AsyncClient(socket) as client:
            return await numbered(client, verdicts)
    except (ClientError, TimeoutError):
        return verdicts


@click.command("check")
@config_option
@output_option
def check_command(config_path: Path | None, output: Output) -> None:
    """Look at Slurm's configuration and hooks, and report what does not fit nodeagent. Nothing is changed.

    Each line names the file, the key and its value, and what to do. The exit status is 1 where there is one.
    """
    slurm = Slurm(Path(read_config(config_path).slurm.programs))
    try:
        settings = settings_of(asyncio.run(slurm.configuration()))
    except SlurmError as error:
        raise CommandFailure(str(error)) from error
    found = misfits(settings)
    if output == Output.JSON:
        write_json({"misfits": [asdict(each) for each in found]})
    else:
        for each in found:
            write(f"{each.file}: {each.key}={each.value}: {each.text}")
        if not found:
            write("Slurm's configuration fits")
    if found:
        raise SystemExit(EXIT_FAILED)
