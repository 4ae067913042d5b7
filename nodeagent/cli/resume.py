"""``nodeagent resume``: end your own quiesce."""

from pathlib import Path

import click

from nodeagent.cli.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.output import write, write_json


@click.command("resume")
@click.option("--reason", default="", help="Why; for the audit log and the events.")
@control_socket_option
@output_option
def command(reason: str, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Allow actions again, as far as your quiesce held them off. Others' quiesces go on, and are named."""
    from nodeagent.cli import door, forms
    from nodeagent.outlets.pb import control_service_pb2 as pb

    with door.opened(control_socket(socket, config_path)) as daemon:
        told = daemon.call(pb.ResumeRequest(reason=reason), pb.ResumeResponse)
    if output == Output.JSON:
        write_json({"resumed": True, "others": [forms.hold(each) for each in told.others]})
        return
    write("resumed")
    for hold in told.others:
        write(f"still quiesced by {hold.owner}: {hold.reason}")
