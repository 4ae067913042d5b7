"""``nodeagent job stop``: have a supervised job stop its command."""

from pathlib import Path

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import write, write_json


@click.command("stop")
@click.argument("job", shell_complete=completion.jobs)
@click.option("--reason", required=True, help="Why; for the audit log and the events.")
@control_socket_option
@output_option
def command(job: str, reason: str, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Have JOB stop its command, and not run it again until "nodeagent job rerun".

    A job that may not be run again in place is not stopped: end it by its scheduler.
    """
    from nodeagent.cli.shared import connection, json_forms
    from nodeagent.cli.shared.job_lines import in_a_line
    from nodeagent.cli.shared.orders import durability
    from nodeagent.messages.pb import control_service_pb2 as pb

    with connection.opened(control_socket(socket, config_path)) as daemon:
        response: pb.StopJobResponse = daemon.call(pb.StopJobRequest(job=job, reason=reason))
    if output == Output.JSON:
        write_json({**json_forms.form(response.job), "durable": response.durable})
        return
    write(f"{job} is asked to stop")
    write(in_a_line(response.job))
    durability.warn(response)
