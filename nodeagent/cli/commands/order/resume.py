"""``nodeagent resume``: end your own quiesces."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.orders.owners import owner_option
from nodeagent.cli.shared.output import write, write_json


@click.command("resume")
@click.option("--reason", default="", help="Why; for the audit log and the events.")
@click.option(
    "--id",
    "only",
    default="",
    shell_complete=completion.holds,
    help="End only this quiesce, whoever owns it.",
)
@click.option("--force", is_flag=True, help="End others' quiesces too.")
@owner_option
@control_socket_option
@output_option
def command(
    reason: str,
    only: str,
    force: bool,
    owner: str,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Allow actions again, as far as your quiesces held them off. Others' quiesces stay and are listed."""
    from nodeagent.cli.shared import connection, json_forms
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    with connection.opened(control_socket(socket, config_path)) as daemon:
        request = pb.ResumeRequest(reason=reason, owner=owner, id=only, force=force)
        response: pb.ResumeResponse = daemon.call(request)
    if output == Output.JSON:
        others = [json_forms.form(each) for each in response.others]
        form = {"resumed": True, "ids": list(response.resumed), "others": others}
        write_json({**form, "durable": response.durable})
        return
    write("resumed")
    for hold in response.others:
        write(f"still quiesced by {hold.owner}: {hold.reason} (id {hold.id})")
    durability.warn(response)
