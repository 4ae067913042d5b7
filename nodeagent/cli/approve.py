"""``nodeagent approve``: decide on an action that is proposed."""

from pathlib import Path

import click

from nodeagent.cli.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.output import write, write_json


@click.command("approve")
@click.argument("action")
@click.option("--refuse", is_flag=True, help="Refuse it instead; possible in every mode until it begins.")
@click.option("--reason", default="", help="Why; for the audit log and the events.")
@control_socket_option
@output_option
def command(
    action: str, refuse: bool, reason: str, socket: Path | None, config_path: Path | None, output: Output
) -> None:
    """Approve ACTION (its id, as "nodeagent status" shows it), which waits for that in mode ask."""
    from nodeagent.cli import door, forms
    from nodeagent.outlets.pb import control_service_pb2 as pb

    request = pb.ApproveActionRequest(action_id=action, approved=not refuse, reason=reason)
    with door.opened(control_socket(socket, config_path)) as daemon:
        told = daemon.call(request, pb.ApproveActionResponse)
    if output == Output.JSON:
        form = forms.action(told.reset) if told.HasField("reset") else None
        write_json({"action_id": action, "approved": not refuse, "action": form})
    else:
        write(f"{'refused' if refuse else 'approved'} {action}")
