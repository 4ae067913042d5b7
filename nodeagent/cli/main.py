"""The commands by name, in the sections of the help. It holds no command of its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click

from nodeagent.cli.shared.errors import Failure, made_printable
from nodeagent.cli.shared.lazy_group import LazyGroup, Part


class Section(NamedTuple):
    """Commands that a user looks for in one place, by their names."""

    heading: str
    commands: Mapping[str, Part]


SECTIONS: Final[Sequence[Section]] = (
    Section(
        "Ask how the node is",
        {
            "status": Part("ask.status:command", "Show verdicts, open conditions, holds and actions."),
            "scan": Part("ask.scan:command", "Report by the exit status whether this node is healthy."),
            "events": Part("ask.events:command", "Show events, or follow them."),
            "devices": Part("ask.devices:devices_command", "List the devices with verdict and handling."),
            "why": Part("ask.devices:why_command", "Explain why a device has its verdict."),
            "explain": Part("ask.explain:command", "Explain what fault codes mean."),
            "fleet": Part("ask.fleet:command", "Follow the daemons of many nodes."),
            "consumers": Part("ask.consumers:command", "List the named consumers, or delete one."),
            "audit": Part("ask.audit:command", "Show the calls of operators and their results."),
        },
    ),
    Section(
        "Order",
        {
            "isolate": Part("order.orders:COMMANDS", "Take a device out of service."),
            "release": Part(
                "order.orders:COMMANDS", "End your hold on a device, and faults that only a person may end."
            ),
            "reset": Part("order.orders:COMMANDS", "Reset a device, or show what that would do."),
            "approve": Part("order.orders:COMMANDS", "Approve or refuse an action that is proposed."),
            "quiesce": Part(
                "order.orders:COMMANDS", "Let no action begin on this node, and close the drivers."
            ),
            "resume": Part("order.orders:COMMANDS", "Allow actions again."),
            "forget": Part("order.orders:COMMANDS", "Forget a part that was taken out for good."),
            "rebaseline": Part("order.orders:COMMANDS", "Accept the present state of a device as healthy."),
            "claim": Part("order.claim:command", "Declare which job uses which devices; for job hooks."),
            "report": Part("order.report:command", "Report faults that another system found."),
        },
    ),
    Section(
        "Supervise jobs",
        {"job": Part("main:JOB", "Work with jobs whose command is supervised.")},
    ),
    Section(
        "Act for a scheduler",
        {
            "slurm": Part("main:SLURM", "Drain and resume this node in Slurm by its verdicts."),
            "k8s": Part("order.k8s:command", "Bring this node's faults to Kubernetes."),
        },
    ),
    Section(
        "Work on tables, configuration and logs",
        {
            "tables": Part("local.tables:command", "Check, import, compare or reload the fault tables."),
            "config": Part(
                "local.config:command", "Check the configuration, or show where each value comes from."
            ),
            "replay": Part(
                "local.replay:command", "Run a kernel log or a file of signals through the tables."
            ),
        },
    ),
    Section(
        "Try out",
        {
            "probe": Part("local.probe:command", "Run one source by hand."),
            "inject": Part("order.orders:COMMANDS", "Make a fault for a rehearsal."),
            "emulator": Part("local.emulator:command", "Emulate a node with accelerators."),
        },
    ),
    Section(
        "General",
        {
            "run": Part("local.general:run_command", "Start the daemon in the foreground."),
            "version": Part("local.general:version_command", "Show the version, the commit and the build."),
            "help": Part("local.general:help_command", "Show the help of a command."),
        },
    ),
)

PARTS: Final[Mapping[str, Part]] = {
    name: part for section in SECTIONS for name, part in section.commands.items()
}

JOB: Final = LazyGroup(
    "job",
    help="Work with jobs whose command is supervised.",
    parts={
        "run": Part(
            "order.jobs:run_command",
            "Run a command, watch it, and run it again in place where that is wanted.",
        ),
        "step": Part(
            "order.jobs:step_command",
            "Run a command on the nodes of a Slurm job, and run it again on all of them together.",
        ),
        "list": Part("order.jobs:list_command", "List the jobs that use this node."),
        "show": Part("order.jobs:show_command", "Show one job, and what happened to it."),
        "stop": Part("order.orders:COMMANDS", "Have a supervised job stop its command."),
        "rerun": Part("order.orders:COMMANDS", "Have a supervised job run its command again."),
        "replay": Part("local.job_replay:command", "Show which hangs would be found in a recorded run."),
    },
)

SLURM: Final = LazyGroup(
    "slurm",
    help="Drain this node in Slurm while it may take no new work, and resume it when it is healthy again.",
    parts={
        "bridge": Part(
            "order.slurm:bridge_command", "Follow the daemon; drain and resume this node in Slurm."
        ),
        "health": Part("order.slurm:health_command", "Check once; drain or resume this node in Slurm."),
    },
)

PACKAGES: Final[Mapping[str, str]] = {"emulator": "nodeagent-emulator"}
"""Name of a command -> the package that it needs in addition to the daemon's; it holds ``nodeagent.NAME``."""


class Commands(LazyGroup):
    """All commands. Nothing that an error quotes can begin a line of its own."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            return super().get_command(ctx, cmd_name)
        except ModuleNotFoundError as error:
            if ctx.resilient_parsing:  # a shell completes a word
                return None
            package = PACKAGES.get(cmd_name)
            if package is None or (error.name or "").split(".")[:2] != ["nodeagent", cmd_name]:
                raise
            raise Failure(f"{cmd_name}: not installed here; install the package {package}") from None

    def make_context(self, *arguments: Any, **others: Any) -> click.Context:
        with made_printable():
            return super().make_context(*arguments, **others)

    def invoke(self, ctx: click.Context) -> Any:
        with made_printable():
            return super().invoke(ctx)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, PARTS))
        for heading, commands in SECTIONS:
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), part.text) for name, part in commands.items()])


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from nodeagent.cli.local.general import show_version

        show_version()
        context.exit()


@click.group(cls=Commands, parts=PARTS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show version, commit and build, and exit.",
)
def main() -> None:
    """Find out which chip, link or host part of this node is faulty, and report it.

    Every command except run and the bridges has "-o json": one JSON object, or one a line for lists and
    streams.
    """
