"""``nodeagent inject``: a fault for a rehearsal, made by the daemon on the control socket."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion, connection
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import note, write, write_json
from nodeagent.cli.shared.unknown_names import unknown_codes
from nodeagent.messages.pb import control_service_pb2 as pb


@click.command("inject")
@click.option("--device", required=True, shell_complete=completion.devices, help="Name or id of the device.")
@click.option("--code", required=True, shell_complete=completion.codes, help="The fault code.")
@click.option("--affect-verdict", is_flag=True, help="Let it change the verdict. Otherwise it is only shown.")
@control_socket_option
@output_option
def command(
    device: str,
    code: str,
    affect_verdict: bool,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Make a fault for a rehearsal. It ends by itself and never causes an action."""
    request = pb.InjectRequest(device=device, code=code, affect_verdict=affect_verdict)
    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.InjectResponse = daemon.call(request)
        unknown = unknown_codes(daemon, (code,))
    if output == Output.JSON:
        write_json({"device": device, "code": code, "condition_id": response.condition_id})
    else:
        write(f"injected {code} on {device}: {response.condition_id or 'it opened no condition'}")
    for each in unknown:
        note(f"warning: {each}: it was handled as an unknown code")
