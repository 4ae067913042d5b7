"""``nodeagent claim``: what a scheduler's job hooks call when a job begins and ends on this node."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import write, write_json

if TYPE_CHECKING:
    from nodeagent.client import Client


@click.command("claim")
@click.argument("devices", nargs=-1, shell_complete=completion.devices)
@click.option("--job", required=True, shell_complete=completion.jobs, help='The job, such as "slurm:1234".')
@click.option(
    "--kind", default="", help='What sort of job, such as "training"; shown where it blocks a reset.'
)
@click.option("--left", is_flag=True, help="The job has left; without DEVICES it has left all of them.")
@click.option("--all", "every", is_flag=True, help="All chips of this node.")
@control_socket_option
@output_option
def command(
    devices: tuple[str, ...],
    job: str,
    kind: str,
    left: bool,
    every: bool,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Declare that a job uses DEVICES. They are not reset until the job has left.

    Call it in job hooks. A device that no job claims and no process uses may be reset.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.cli.shared.connection import warn_not_durable
    from nodeagent.messages.pb import control_service_pb2 as pb

    if bool(devices) == every and not (left and not devices):
        raise click.UsageError("name DEVICES, or use --all")
    with connection.opened(control_socket(socket, config_path)) as daemon:
        named = devices or _chips(daemon, claimed_by=job if left and not every else "")
        claims = [pb.Claim(device=each, job=job, kind=kind, claimed=not left) for each in named]
        response = pb.SetClaimsResponse(durable=True)
        if claims:
            response = daemon.call(pb.SetClaimsRequest(claims=claims))
    if output == Output.JSON:
        write_json({"job": job, "claimed": not left, "devices": list(named), "durable": response.durable})
        return
    which = ", ".join(named) or "no device: there is none"
    write(f"{job} has left {which}" if left else f"{job} claims {which}")
    warn_not_durable(response)


def _chips(daemon: "Client", claimed_by: str) -> Sequence[str]:
    """The chips of this node; with a job, those that it claims."""
    from nodeagent.messages.pb import fault_service_pb2, types_pb2

    response: fault_service_pb2.ListDevicesResponse = daemon.call(fault_service_pb2.ListDevicesRequest())
    return [
        device.name
        for device in response.devices
        if device.kind == types_pb2.KIND_CHIP
        and (not claimed_by or any(claim.job == claimed_by for claim in device.claims))
    ]
