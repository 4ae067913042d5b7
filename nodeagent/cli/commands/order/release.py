"""``nodeagent release``: end your own hold, and what only a person may end."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.orders.owners import owner_option
from nodeagent.cli.shared.output import write, write_json


@click.command("release")
@click.argument("device", shell_complete=completion.devices)
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@click.option(
    "--id",
    "only",
    default="",
    shell_complete=completion.holds,
    help="End only this hold, promotion or condition, whoever owns it.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Also others' holds, and a device that is faulty or not observed.",
)
@owner_option
@control_socket_option
@output_option
def command(
    device: str,
    reason: str,
    only: str,
    force: bool,
    owner: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """End your holds on DEVICE, its promotions, and the faults that only a person may clear.

    The hold of another owner stays, and is named. To end it, use --id or --force. To release a device that is
    still faulty or is not observed, use --force.
    """
    from nodeagent.cli.shared import connection, json_forms
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ReleaseDeviceRequest(device=device, reason=reason, id=only, force=force, owner=owner)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.ReleaseDeviceResponse = daemon.call(request)
    if output == Output.JSON:
        others = [json_forms.form(each) for each in response.others]
        form = {"device": device, "released": list(response.released), "others": others}
        write_json({**form, "durable": response.durable})
        return
    for each in response.released:
        write(f"released {each}")
    for hold in response.others:
        write(f"still isolated by {hold.owner}: {hold.reason} (id {hold.id})")
    durability.warn(response)
