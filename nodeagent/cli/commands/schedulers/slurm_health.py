"""``nodeagent slurm health``: what Slurm's HealthCheckProgram runs, by a script that has the argument.

Slurm gives that program no PATH and no argument, and looks at nothing but its time-out (slurm.conf(5)): it
has to drain the node itself. It gets 60 s.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Final
import click
from nodeagent.cli.commands.ask import scan
from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.options import Output
from nodeagent.cli.shared.options import output_option
from nodeagent.cli.shared.options import read_config
from nodeagent.cli.shared.options import socket_option
from nodeagent.cli.shared.output import write
from nodeagent.cli.shared.output import write_json
from nodeagent.client import received
from nodeagent.config.schedulers import SlurmConfig
from nodeagent.schedulers.slurm.programs import Slurm
from nodeagent.schedulers.slurm.programs import SlurmError
from nodeagent.schedulers.slurm.verdicts import Standing
from nodeagent.schedulers.slurm.verdicts import Verdicts
from nodeagent.schedulers.slurm.verdicts import judge
from nodeagent.schedulers.slurm import health_check

NAME_VARIABLE: Final = "SLURMD_NODENAME"

@click.command("health")
@click.option(
    "--stamp",
    type=click.Path(path_type=Path),
    default=health_check.STAMP,
    show_default=True,
    metavar="PATH",
    help="Where it notes since when the node is well.",
)
@socket_option
@output_option
def command(stamp: Path, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Look once, as scan does; drain this node in Slurm if it is faulty, resume it if it is well again.

    Only a drain of nodeagent's own is ended, after the node was well for resume_after of [slurm]. A node of
    which it cannot be told is left as it is. For HealthCheckProgram of slurm.conf.
    """
    config = read_config(config_path).slurm
    answer = scan.look(socket, config_path)
    verdicts = _verdicts(answer)
    try:
        well_s = health_check.well_for_s(stamp, verdicts, time.clock_gettime(time.CLOCK_BOOTTIME))
        done = asyncio.run(_look(config, verdicts, well_s))
    except (SlurmError, OSError) as error:
        raise Failure(str(error)) from error
    if output == Output.JSON:
        write_json({"standing": verdicts.standing, "done": done, "reasons": list(answer.reasons)})
    else:
        write(done)


def _verdicts(answer: scan.Answer) -> Verdicts:
    """A source that is not read may hide what is wrong: then nothing is known to be well."""
    verdicts = judge(received.device(each) for each in answer.devices)
    if verdicts.standing is Standing.WELL and answer.reasons:
        return Verdicts(standing=Standing.UNKNOWN)
    return verdicts


async def _look(config: SlurmConfig, verdicts: Verdicts, well_s: float) -> str:
    slurm = Slurm(Path(config.programs))
    name = config.node_name or os.environ.get(NAME_VARIABLE) or await slurm.name_of_this_node()
    return await health_check.look(slurm, name, verdicts, well_s, config.resume_after_ns)
