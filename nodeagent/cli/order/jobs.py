"""``nodeagent job``: list the jobs of this node, show one of them, and start a supervisor.

``job run`` and ``job step`` read their own command lines. Called as programs they do not come here at all:
``nodeagent.cli.entry`` starts them. The orders about jobs are in ``orders``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from nodeagent.cli.ask.reading import read, timeout_option
from nodeagent.cli.order import own_jobs
from nodeagent.cli.shared import completion, json_forms
from nodeagent.cli.shared.connection import Reader, Unreachable
from nodeagent.cli.shared.errors import EXIT_FAILED, EXIT_NOT_ALLOWED, CommandFailure
from nodeagent.cli.shared.options import Output, jobs_socket, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import note, write, write_field, write_json, write_table
from nodeagent.cli.shared.texts import devices_of, enum_text, for_people, recommended, stage_of
from nodeagent.core.model import EventKind
from nodeagent.core.state.names import NO_CGROUP
from nodeagent.job.main import main
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

LOOKED_AT: Final = 1000
SHOWN: Final = 50

_KINDS: Final = [enums.EVENT_KINDS[kind] for kind in EventKind if kind.value.startswith("job_")]


@click.command("list")
@click.option("--all", "every", is_flag=True, help="Also those that have ended, for 30 days.")
@timeout_option
@socket_option
@output_option
def list_command(
    every: bool, timeout_s: float | None, socket: Path | None, config_path: Path | None, output: Output
) -> None:
    """List the jobs that use this node: the stage of each, and what a scheduler should do with it.

    A job in the stage "claimed" is not supervised: a hook has claimed its devices. A user that may not read
    the daemon's socket sees the jobs that this user supervises. If no daemon answers, its store is read.
    """

    def show(listed: own_jobs.OwnJobs) -> None:
        jobs = [job for job in listed.jobs if every or job.stage != types_pb2.JOB_STAGE_ENDED]
        if output == Output.JSON:
            for job in jobs:
                write_json(json_forms.form(job))
        else:
            _write_list(jobs)

    _read_jobs(socket, config_path, timeout_s, show)


def _write_list(jobs: Sequence[types_pb2.Job]) -> None:
    rows = [
        [job.name, stage_of(job), str(job.run) if job.run else "-", recommended(job), devices_of(job)]
        for job in jobs
    ]
    write_table(["JOB", "STAGE", "RUN", "RECOMMENDED", "DEVICES"], rows)
    for job in jobs:
        if job.slow:
            write(f"{job.name}: {', '.join(job.slow)} holds up the others; see nodeagent job show {job.name}")
    unnamed = [job.name for job in jobs if job.name.startswith(NO_CGROUP)]
    if unnamed and any(not job.stage for job in jobs):
        write(f"{', '.join(unnamed)}: it is not known of which job; no claim of a hook is matched with it")


@click.command("show")
@click.argument("job", shell_complete=completion.jobs)
@timeout_option
@socket_option
@output_option
def show_command(
    job: str, timeout_s: float | None, socket: Path | None, config_path: Path | None, output: Output
) -> None:
    """Show JOB, as "nodeagent job list --all" names it, and its latest events.

    A user that may not read the daemon's socket can show the jobs that this user supervises.
    """

    def show(listed: own_jobs.OwnJobs) -> None:
        found = next((each for each in listed.jobs if each.name == job), None)
        if found is None:
            raise CommandFailure(f"there is no job {job}; {_known(listed)}", EXIT_FAILED)
        if output == Output.JSON:
            events = [json_forms.form(each) for each in listed.events]
            write_json({**json_forms.form(found), "events": events})
            return
        _write(found)
        for event in listed.events:
            kind = enum_text(enums.EVENT_KIND_OF, event.kind)
            write_field(f"{for_people(event.at)} {kind}:", f"run {event.job.run}: {event.why}")

    _read_jobs(socket, config_path, timeout_s, show, job)


def _read_jobs(
    socket: Path | None,
    config_path: Path | None,
    timeout_s: float | None,
    show: Callable[[own_jobs.OwnJobs], None],
    job: str = "",
) -> None:
    """Show all jobs of the node, and the events of ``job``; to a user that may not read the daemon's socket
    the user's own.
    """

    def ask(daemon: Reader) -> own_jobs.OwnJobs:
        answer: pb.ListJobsResponse = daemon.call(pb.ListJobsRequest())
        return own_jobs.OwnJobs(list(answer.jobs), _events(daemon, job) if job else [])

    try:
        read(socket, config_path, timeout_s, ask, show)
    except Unreachable as error:
        if socket is not None or error.exit_code != EXIT_NOT_ALLOWED:
            raise
        path = query_socket(socket, config_path)
        note(f"nodeagent: {path} is not open to you: these are the jobs that processes of yours supervise")
        show(own_jobs.ask(jobs_socket(config_path), job))


def _events(daemon: Reader, job: str) -> list[types_pb2.Event]:
    """The latest of those that the daemon keeps, oldest first."""
    request = pb.ListEventsRequest(limit=LOOKED_AT, newest=True, filter=pb.EventFilter(kinds=_KINDS))
    answer: pb.ListEventsResponse = daemon.call(request)
    return [event for event in answer.events if event.job.name == job][-SHOWN:]


def _known(listed: own_jobs.OwnJobs) -> str:
    names = [job.name for job in listed.jobs]
    return f"there are {', '.join(names)}" if names else "no job uses this node"


def _write(job: types_pb2.Job) -> None:
    write(f"job {job.name}")
    run = f", run {job.run}" if job.run else ""
    since = f" since {for_people(job.since)}" if job.HasField("since") else ""
    until = f", until {for_people(job.due_at)} at the latest" if job.HasField("due_at") else ""
    write_field("is:", f"{stage_of(job)}{since}{run}{until}")
    if job.wanted:
        write_field("wanted:", enum_text(enums.WANTED_OF, job.wanted))
    write_field("uses:", devices_of(job))
    if job.why:
        write_field("why:", job.why)
    write_field("may:", _allowed(job))
    if limits := _limits(job):
        write_field("hangs after:", limits)
    write_field("recommended:", recommended(job))
    if job.slow:
        write_field("slow:", ", ".join(job.slow))
    if job.HasField("status"):
        write_field("left with:", f"status {job.status}")
    if job.pid:
        write_field("supervisor:", f"process {job.pid} of user {job.uid}")


def _limits(job: types_pb2.Job) -> str:
    """Learnt from its own runs."""
    learnt = (
        ("step_limit_seconds", job.step_limit_seconds, "without a step"),
        ("start_limit_seconds", job.start_limit_seconds, "from its start to its second step"),
    )
    return ", ".join(f"{value:.0f} s {what}" for name, value, what in learnt if job.HasField(name))


def _allowed(job: types_pb2.Job) -> str:
    policy = job.policy
    allowed = [
        text
        for given, text in (
            (policy.in_place, "be stopped and run again here"),
            (policy.yields, "be stopped for another job's chip"),
            (policy.reschedules, "be run elsewhere for a fault"),
        )
        if given
    ]
    return ", ".join(allowed) or "only be watched"


def _supervisor(name: str, help_text: str) -> click.Command:
    """The arguments are read by ``nodeagent.job``."""

    @click.command(
        name,
        help=help_text,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=completion.files)
    def command(arguments: tuple[str, ...]) -> None:
        raise SystemExit(main([name, *arguments]))

    return command


run_command: Final = _supervisor(
    "run", "Run a command, watch it, and run it again in place where that is wanted."
)
step_command: Final = _supervisor(
    "step", "Run a command on the nodes of a Slurm job, and run it again on all of them together."
)
