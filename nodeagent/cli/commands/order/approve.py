"""``nodeagent approve``: decide on an action that is proposed."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import write, write_json


@click.command("approve")
@click.argument("action", shell_complete=completion.actions)
@click.option("--refuse", is_flag=True, help="Refuse the action. Possible in every mode until it begins.")
@click.option("--reason", default="", help="Why; for the audit log and the events.")
@control_socket_option
@output_option
def command(
    action: str, refuse: bool, reason: str, socket: Path | None, config_path: Path | None, output: Output
) -> None:
    """Approve ACTION, which waits for an approval in mode ask.

    It is named by its id, as "nodeagent status" shows it, or by a device of it.
    """
    from nodeagent.cli.shared import connection, json_forms
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ApproveActionRequest(action_id=action, approved=not refuse, reason=reason)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.ApproveActionResponse = daemon.call(request)
    if output == Output.JSON:
        form = json_forms.form(response.reset) if response.HasField("reset") else None
        answer = {"action_id": response.reset.id or action, "approved": not refuse, "action": form}
        write_json({**answer, "durable": response.durable})
        return
    write(f"{'refused' if refuse else 'approved'} {response.reset.id or action}")
    durability.warn(response)
