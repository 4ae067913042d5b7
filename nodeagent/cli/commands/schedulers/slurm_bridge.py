"""``nodeagent slurm bridge``, the program of nodeagent-slurm.service. ``nodeagent.schedulers`` does all."""

import asyncio
import signal
from pathlib import Path

import click

from nodeagent.cli.shared import logs
from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.options import public_socket, read_config, socket_option
from nodeagent.client import AsyncClient, ClientError
from nodeagent.config.slurm import SlurmConfig
from nodeagent.schedulers.slurm.bridge import Bridge
from nodeagent.schedulers.slurm.programs import Slurm


@click.command("bridge")
@socket_option
def command(socket: Path | None, config_path: Path | None) -> None:
    """Drain this node in Slurm while it, or a chip of it, takes no new work; resume it once all are well.

    It runs until SIGTERM or Ctrl-C. Only a drain with a reason of its own is ever ended; a node that a person
    has drained is left alone. Needs to be an administrator of Slurm. [slurm] of the configuration says more.
    """
    config = read_config(config_path).slurm
    logs.begin()
    try:
        asyncio.run(_bridge(public_socket(socket, config_path), config))
    except* ClientError as errors:
        error = errors.exceptions[0]
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise Failure(f"the daemon refuses: {error}") from error


async def _bridge(socket: Path, config: SlurmConfig) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with AsyncClient(socket) as client:
        running = asyncio.create_task(Bridge(client, Slurm(Path(config.programs)), config).run())
        ending = asyncio.create_task(ended.wait())
        await asyncio.wait((running, ending), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        ending.cancel()
        running.cancel()
        await asyncio.gather(running, ending, return_exceptions=True)
