"""``nodeagent job list``: the jobs that use this node."""

from pathlib import Path

import click

from nodeagent.cli.shared import connection, json_forms
from nodeagent.cli.shared.job_lines import devices_of, recommended, stage_of
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import write_json, write_table
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


@click.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that have ended, for 30 days.")
@socket_option
@output_option
def command(every: bool, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """List the jobs that use this node: where each is, and what a scheduler does best with it.

    A job in the stage "claimed" is not supervised: a hook has claimed its devices.
    """
    with connection.opened(query_socket(socket, config_path)) as daemon:
        listed: pb.ListJobsResponse = daemon.call(pb.ListJobsRequest())
    jobs = [job for job in listed.jobs if every or job.stage != types_pb2.JOB_STAGE_ENDED]
    if output == Output.JSON:
        for job in jobs:
            write_json(json_forms.form(job))
        return
    rows = [
        [job.name, stage_of(job), str(job.run) if job.run else "-", recommended(job), devices_of(job)]
        for job in jobs
    ]
    write_table(["JOB", "STAGE", "RUN", "RECOMMENDED", "DEVICES"], rows)
