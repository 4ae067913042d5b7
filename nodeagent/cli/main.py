"""The commands by name. A command's module is imported when it is called, so that ``status`` starts fast.

It holds no command of its own, and turns nothing but a reader that went away into an exit status.
"""

import importlib
from collections.abc import Mapping
from typing import Final

import click

from nodeagent import __version__
from nodeagent.cli.shared.errors import Failure

COMMANDS: Final[Mapping[str, str]] = {
    "run": "Start the daemon in the foreground.",
    "status": "Show verdicts, open conditions, holds and actions.",
    "scan": "Answer with the exit status whether this node is good.",
    "events": "Show events, or follow them.",
    "devices": "List the devices with verdict and handling.",
    "why": "Say why a device has its verdict.",
    "explain": "Say what fault codes mean.",
    "tables": "Check, import, compare or reload the fault tables.",
    "config": "Check the configuration.",
    "replay": "Run a kernel log or a file of signals through the tables.",
    "isolate": "Take a device out of service.",
    "release": "End your hold on a device, and faults that only a person may end.",
    "reset": "Reset a device, or say what that would do.",
    "approve": "Approve or refuse an action that is proposed.",
    "quiesce": "Let no action begin on this node, and close the drivers.",
    "resume": "Allow actions again.",
    "claim": "Say which job uses which devices; for job hooks.",
    "consumers": "List the named consumers, or delete one.",
    "audit": "Show who asked for what, and what came of it.",
    "inject": "Make a fault for a rehearsal.",
    "emulator": "Emulate a node with accelerators.",
    "probe": "Run one source by hand.",
    "version": "Show the version.",
    "help": "Show the help of a command.",
}
"""Name -> one line of help; ``nodeagent.cli.commands.NAME`` has the command and is imported when called."""


PACKAGES: Final[Mapping[str, str]] = {"emulator": "nodeagent-emulator"}
"""Name of a command -> the package that it needs beside the daemon's; it holds ``nodeagent.NAME``."""


class LazyGroup(click.Group):
    """Knows its commands by ``COMMANDS`` and imports only the one that is called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            module = importlib.import_module(f"nodeagent.cli.commands.{cmd_name}")
        except ModuleNotFoundError as error:
            package = PACKAGES.get(cmd_name)
            if package is None or (error.name or "").split(".")[:2] != ["nodeagent", cmd_name]:
                raise
            raise Failure(f"{cmd_name}: not installed here; install the package {package}") from None
        command = module.command
        if not isinstance(command, click.Command):
            raise TypeError(f"nodeagent.cli.commands.{cmd_name}.command is no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, which knows nothing of commands that are not loaded and so can suggest none."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=list(COMMANDS), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="nodeagent %(version)s")
def main() -> None:
    """Find out which chip, link or host part of this node is faulty, and report it.

    Every command but run has "-o json": one JSON object, or one a line for lists and streams.
    """
