"""``nodeagent release``: end your own hold, and what only a person may end."""

from pathlib import Path

import click

from nodeagent.cli.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.output import write, write_json


@click.command("release")
@click.argument("device")
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@click.option("--id", "only", default="", help="End only this hold, promotion or condition.")
@click.option("--force", is_flag=True, help="Although it is not fit: faulty still, or not observed.")
@control_socket_option
@output_option
def command(
    device: str,
    reason: str,
    only: str,
    force: bool,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """End your hold on DEVICE, its promotions, and the faults that only a person may clear.

    Another owner's hold stays. A device that is still faulty, or is not observed, is not released without
    --force.
    """
    from nodeagent.cli import door
    from nodeagent.outlets.pb import control_service_pb2 as pb

    request = pb.ReleaseDeviceRequest(device=device, reason=reason, id=only, force=force)
    with door.opened(control_socket(socket, config_path)) as daemon:
        told = daemon.call(request, pb.ReleaseDeviceResponse)
    if output == Output.JSON:
        write_json({"device": device, "released": list(told.released)})
    else:
        for each in told.released:
            write(f"released {each}")
