"""``nodeagent isolate``: take a device, or the whole node, out of service."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from nodeagent.cli.lengths import length_option
from nodeagent.cli.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.output import write, write_json


@click.command("isolate")
@click.argument("device")
@click.option("--reason", required=True, help="Why; everybody who is told of the verdict is told this.")
@length_option("How long, such as 2h; else until released.")
@control_socket_option
@output_option
def command(
    device: str,
    reason: str,
    length: timedelta | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Isolate DEVICE ("node": the whole node) until you release it, or for a while.

    The hold is yours: nobody else's release lifts it. Isolating again changes its reason and its end.
    """
    from nodeagent.cli import door, forms
    from nodeagent.cli.times import for_people
    from nodeagent.outlets.pb import control_service_pb2 as pb

    request = pb.IsolateDeviceRequest(device=device, reason=reason)
    if length is not None:
        request.until.FromDatetime(datetime.now(UTC) + length)
    with door.opened(control_socket(socket, config_path)) as daemon:
        hold = daemon.call(request, pb.IsolateDeviceResponse).hold
    if output == Output.JSON:
        write_json(forms.hold(hold))
    else:
        end = f"until {for_people(hold.until)}" if hold.HasField("until") else "until it is released"
        write(f"isolated {hold.device} for {hold.owner}, {end}: {hold.reason}")
