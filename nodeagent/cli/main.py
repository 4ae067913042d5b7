"""The commands by name. A command's module is imported when it is called, so that ``status`` starts fast.

It holds no command of its own, and turns nothing but a reader that went away into an exit status.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from nodeagent.cli.shared.command_group import command_of, offered
from nodeagent.cli.shared.errors import Failure, made_printable


class Section(NamedTuple):
    """Commands that a user looks for in one place. ``commands``: name -> one line of help."""

    heading: str
    commands: Mapping[str, str]


SECTIONS: Final[Mapping[str, Section]] = {
    "ask": Section(
        "Ask how the node is",
        {
            "status": "Show verdicts, open conditions, holds and actions.",
            "scan": "Answer with the exit status whether this node is good.",
            "events": "Show events, or follow them.",
            "devices": "List the devices with verdict and handling.",
            "why": "Say why a device has its verdict.",
            "explain": "Say what fault codes mean.",
            "fleet": "Follow the daemons of many nodes.",
            "consumers": "List the named consumers, or delete one.",
            "audit": "Show who asked for what, and what came of it.",
        },
    ),
    "order": Section(
        "Order",
        {
            "isolate": "Take a device out of service.",
            "release": "End your hold on a device, and faults that only a person may end.",
            "reset": "Reset a device, or say what that would do.",
            "approve": "Approve or refuse an action that is proposed.",
            "quiesce": "Let no action begin on this node, and close the drivers.",
            "resume": "Allow actions again.",
            "forget": "Forget a part that was taken out for good.",
            "rebaseline": "Take a device as it is now for well.",
            "claim": "Say which job uses which devices; for job hooks.",
            "report": "Report faults that another system found.",
        },
    ),
    "job": Section(
        "Supervise jobs",
        {
            "job": "Work with jobs whose command is supervised.",
        },
    ),
    "schedulers": Section(
        "Act for a scheduler",
        {
            "slurm": "Drain and resume this node in Slurm by its verdicts.",
            "k8s": "Bring this node's faults to Kubernetes.",
        },
    ),
    "files": Section(
        "Work on tables, configuration and logs",
        {
            "tables": "Check, import, compare or reload the fault tables.",
            "config": "Check the configuration, or show where each value comes from.",
            "replay": "Run a kernel log or a file of signals through the tables.",
        },
    ),
    "rehearse": Section(
        "Try out",
        {
            "probe": "Run one source by hand.",
            "inject": "Make a fault for a rehearsal.",
            "emulator": "Emulate a node with accelerators.",
        },
    ),
    "general": Section(
        "General",
        {
            "run": "Start the daemon in the foreground.",
            "version": "Show the version, the commit and the build.",
            "help": "Show the help of a command.",
        },
    ),
}
"""By folder. ``nodeagent.cli.commands.FOLDER.NAME`` has the command, and is imported when it is called."""

MODULES: Final[Mapping[str, str]] = {
    name: f"nodeagent.cli.commands.{folder}.{name}"
    for folder, section in SECTIONS.items()
    for name in section.commands
}
"""The module of each command, by its name."""

TEXTS: Final[Mapping[str, str]] = {
    name: text for section in SECTIONS.values() for name, text in section.commands.items()
}
"""One line of help of each command, by its name."""

PACKAGES: Final[Mapping[str, str]] = {"emulator": "nodeagent-emulator"}
"""Name of a command -> the package that it needs beside the daemon's; it holds ``nodeagent.NAME``."""


class LazyGroup(click.Group):
    """Knows its commands by ``SECTIONS`` and imports only the one that is called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        try:
            return command_of(MODULES[cmd_name])
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, which knows nothing of commands that are not loaded and so can suggest none."""
        if args[0] not in MODULES and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=list(MODULES), ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        return [*offered(TEXTS, incomplete), *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, MODULES))
        for heading, commands in SECTIONS.values():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from nodeagent.cli.commands.general.version import show

        show()
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
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

    Every command but run and the bridges has "-o json": one JSON object, or one a line for lists and streams.
    """
