"""``nodeagent forget``: a part was taken out for good."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.orders.owners import owner_option
from nodeagent.cli.shared.output import write, write_json


@click.command("forget")
@click.argument("device", shell_complete=completion.devices)
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@click.option("--force", is_flag=True, help="Also one that a job claims or another owner holds.")
@owner_option
@control_socket_option
@output_option
def command(
    device: str,
    reason: str,
    force: bool,
    owner: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Forget DEVICE, a part that was taken out for good.

    Until then it stays in the list, UNKNOWN, also after a reboot. All that is open on it ends. A part that
    its driver or PCI still shows is not forgotten. If it comes back, it is a new device.
    """
    from nodeagent.cli.shared import connection
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ForgetDeviceRequest(device=device, reason=reason, force=force, owner=owner)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.ForgetDeviceResponse = daemon.call(request)
    if output == Output.JSON:
        write_json({"device": device, "device_id": response.device_id, "durable": response.durable})
        return
    write(f"forgot {device} ({response.device_id})")
    durability.warn(response)
