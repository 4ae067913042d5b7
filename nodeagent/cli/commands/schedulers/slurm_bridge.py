"""``nodeagent slurm bridge``, the program of nodeagent-slurm.service. ``nodeagent.schedulers`` does all."""

import asyncio
from pathlib import Path
import click
from nodeagent.cli.shared import logs
from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.options import public_socket
from nodeagent.cli.shared.options import read_config
from nodeagent.cli.shared.options import socket_option
from nodeagent.cli.shared.until_signalled import until_signalled
from nodeagent.client import AsyncClient
from nodeagent.client import ClientError
from nodeagent.config.schedulers import SlurmConfig
from nodeagent.schedulers.slurm.programs import Slurm
from nodeagent.schedulers.slurm.bridge import SlurmBridge

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
        asyncio.run(until_signalled(_bridge(public_socket(socket, config_path), config)))
    except ClientError as error:
        raise Failure(f"the daemon refuses: {error}") from error


async def _bridge(socket: Path, config: SlurmConfig) -> None:
    async with AsyncClient(socket) as client:
        await SlurmBridge(client, Slurm(Path(config.programs)), config).run()
