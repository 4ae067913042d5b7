"""``nodeagent quiesce``: hold off all actions, for instance while the driver is upgraded."""

from datetime import timedelta
from pathlib import Path

import click

from nodeagent.cli.lengths import length_option
from nodeagent.cli.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.output import write, write_json


@click.command("quiesce")
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@length_option("How long, such as 2h; else until you resume.")
@control_socket_option
@output_option
def command(
    reason: str,
    length: timedelta | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Hold off all actions on this node until you resume, or for a while.

    It outlives the daemon and the boot, and is yours: nobody else's resume ends it.
    """
    from nodeagent.cli import door, forms
    from nodeagent.cli.times import for_people
    from nodeagent.outlets.pb import control_service_pb2 as pb

    request = pb.QuiesceRequest(reason=reason)
    if length is not None:
        request.duration.FromTimedelta(length)
    with door.opened(control_socket(socket, config_path)) as daemon:
        hold = daemon.call(request, pb.QuiesceResponse).hold
    if output == Output.JSON:
        write_json(forms.hold(hold))
    else:
        end = f"until {for_people(hold.until)}" if hold.HasField("until") else "until resumed"
        write(f"quiesced for {hold.owner}, {end}: {hold.reason}")
