"""The commands by name, in the sections of the help. It holds no command of its own.

A module of commands is imported only when one of them is called. So ``nodeagent status`` starts fast, and a
list of commands or a completion imports none of them.
"""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from nodeagent.cli.shared.errors import CommandFailure, made_printable

_PACKAGE: Final = "nodeagent.cli."
"""The package of the modules in which commands are."""


class CommandPart(NamedTuple):
    """A command of a group. ``place`` is ``FOLDER.MODULE:NAME``: a command, or a mapping that has it by its
    name.
    ``text`` is its line of help.
    """

    place: str
    text: str

    @property
    def module(self) -> str:
        return _PACKAGE + self.place.partition(":")[0]

    def load(self, name: str) -> click.Command:
        """Raises ``ImportError``."""
        found = getattr(importlib.import_module(self.module), self.place.partition(":")[2])
        command = found[name] if isinstance(found, Mapping) else found
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.place} is not a command")
        return command


class LazyGroup(click.Group):
    """``parts``: the commands by their names."""

    def __init__(self, *arguments: Any, parts: Mapping[str, CommandPart], **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.parts = parts

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.parts)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.parts[cmd_name].load(cmd_name) if cmd_name in self.parts else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but with suggestions: click can suggest only commands that are loaded."""
        if args[0] not in self.parts and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=list(self.parts), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, part.text) for name, part in self.parts.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        offered = [
            CompletionItem(name, help=part.text)
            for name, part in self.parts.items()
            if name.startswith(incomplete)
        ]
        return [*offered, *click.Command.shell_complete(self, ctx, incomplete)]


class Section(NamedTuple):
    """Commands that a user looks for in one place, by their names."""

    heading: str
    commands: Mapping[str, CommandPart]


SECTIONS: Final[Sequence[Section]] = (
    Section(
        "Ask how the node is",
        {
            "status": CommandPart("ask.status:command", "Show verdicts, open conditions, holds and actions."),
            "scan": CommandPart("ask.scan:command", "Report by the exit status whether this node is good."),
            "events": CommandPart("ask.events:command", "Show events, or follow them."),
            "devices": CommandPart("ask.devices:command", "Show what is measured of each device."),
            "top": CommandPart("top.command:command", "Watch the devices and their faults live."),
            "why": CommandPart("ask.why:command", "Explain why a device has its verdict."),
            "explain": CommandPart("ask.explain:command", "Explain what fault codes mean."),
            "fleet": CommandPart("ask.fleet:command", "Follow the daemons of many nodes."),
            "export": CommandPart("ask.export:command", "Send events to another system."),
            "consumers": CommandPart("ask.consumers:command", "List the named consumers, or delete one."),
            "audit": CommandPart("ask.audit:command", "Show the calls of operators and their results."),
            "bundle": CommandPart("bundle.command:command", "Collect what support needs in one archive."),
        },
    ),
    Section(
        "Order",
        {
            "isolate": CommandPart("order.orders:COMMANDS", "Take a device out of service."),
            "release": CommandPart(
                "order.orders:COMMANDS", "End your hold on a device, and faults that only a person may end."
            ),
            "reset": CommandPart("order.orders:COMMANDS", "Reset a device, or show what that would do."),
            "approve": CommandPart("order.orders:COMMANDS", "Approve or refuse an action that is proposed."),
            "quiesce": CommandPart(
                "order.orders:COMMANDS", "Let no action begin on this node, and close the drivers."
            ),
            "resume": CommandPart("order.orders:COMMANDS", "Allow actions again."),
            "forget": CommandPart("order.orders:COMMANDS", "Forget a part that was taken out for good."),
            "rebaseline": CommandPart(
                "order.orders:COMMANDS", "Accept the present state of a device as healthy."
            ),
            "claim": CommandPart(
                "order.claim:command", "Declare which job uses which devices; for job hooks."
            ),
            "report": CommandPart("order.report:command", "Report faults that another system found."),
        },
    ),
    Section(
        "Supervise jobs",
        {"job": CommandPart("main:JOB", "Work with jobs whose command is supervised.")},
    ),
    Section(
        "Act for a scheduler",
        {
            "slurm": CommandPart("main:SLURM", "Drain and resume this node in Slurm by its verdicts."),
            "k8s": CommandPart("order.k8s:command", "Bring this node's faults to Kubernetes."),
        },
    ),
    Section(
        "Work on tables, configuration and logs",
        {
            "tables": CommandPart(
                "local.tables:command", "Check, import, compare or reload the fault tables."
            ),
            "config": CommandPart(
                "local.config:command", "Check the configuration, or show where each value comes from."
            ),
            "replay": CommandPart(
                "local.replay:command", "Run a kernel log or a file of signals through the tables."
            ),
        },
    ),
    Section(
        "Try out",
        {
            "probe": CommandPart("local.probe:command", "Run one source by hand."),
            "inject": CommandPart("order.orders:COMMANDS", "Make a fault for a rehearsal."),
            "emulator": CommandPart("local.emulator:command", "Emulate a node with accelerators."),
        },
    ),
    Section(
        "General",
        {
            "run": CommandPart("local.general:run_command", "Start the daemon in the foreground."),
            "version": CommandPart(
                "local.general:version_command", "Show the version, the commit and the build."
            ),
            "help": CommandPart("local.general:help_command", "Show the help of a command."),
        },
    ),
)

PARTS: Final[Mapping[str, CommandPart]] = {
    name: part for section in SECTIONS for name, part in section.commands.items()
}

JOB: Final = LazyGroup(
    "job",
    help="Work with jobs whose command is supervised.",
    parts={
        "run": CommandPart(
            "order.jobs:run_command",
            "Run a command, watch it, and run it again in place where that is wanted.",
        ),
        "step": CommandPart(
            "order.jobs:step_command",
            "Run a command on the nodes of a Slurm job, and run it again on all of them together.",
        ),
        "list": CommandPart("order.jobs:list_command", "List the jobs that use this node."),
        "show": CommandPart("order.jobs:show_command", "Show one job, and what happened to it."),
        "stop": CommandPart("order.orders:COMMANDS", "Have a supervised job stop its command."),
        "rerun": CommandPart("order.orders:COMMANDS", "Have a supervised job run its command again."),
        "replay": CommandPart(
            "local.job_replay:command", "Show which hangs would be found in a recorded run."
        ),
    },
)

SLURM: Final = LazyGroup(
    "slurm",
    help="Drain this node in Slurm while it may take no new work, and resume it when it is healthy again.",
    parts={
        "bridge": CommandPart(
            "order.slurm:bridge_command", "Follow the daemon; drain and resume this node in Slurm."
        ),
        "health": CommandPart(
            "order.slurm:health_command", "Check once; drain or resume this node in Slurm."
        ),
        "check": CommandPart(
            "order.slurm:check_command", "Report what of Slurm's configuration does not fit."
        ),
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
            raise CommandFailure(f"{cmd_name}: not installed here; install the package {package}") from None

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

    Every command except run, top, export and the bridges has "-o json": one JSON object, or one a line for
    lists and streams.
    """
