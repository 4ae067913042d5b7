"""``nodeagent rebaseline``: a device is right as it is now."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.orders.owners import owner_option
from nodeagent.cli.shared.output import write, write_json


@click.command("rebaseline")
@click.argument("device", shell_complete=completion.devices)
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@owner_option
@control_socket_option
@output_option
def command(
    device: str,
    reason: str,
    owner: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Take DEVICE as it is now for well.

    After a change on purpose: an NVLink bridge was taken out, links were switched off. A link that is down
    now is missed no more, nor is a question that the driver does not answer any more. It ends no other fault.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.RebaselineDeviceRequest(device=device, reason=reason, owner=owner)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.RebaselineDeviceResponse = daemon.call(request)
    if output == Output.JSON:
        write_json({"device": device, "device_id": response.device_id, "durable": response.durable})
        return
    write(f"{device} ({response.device_id}) is taken for well as it is")
    durability.warn(response)
