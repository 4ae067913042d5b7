"""``nodeagent run``, ``version`` and ``help``. The work of the daemon is in ``nodeagent.daemon``."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from nodeagent import __version__
from nodeagent.build import Build, BuildDamaged, read
from nodeagent.cli.shared.errors import EXIT_CONFIG, CommandFailure
from nodeagent.cli.shared.options import Output, config_option, output_option
from nodeagent.cli.shared.output import write, write_json, write_lines
from nodeagent.system.streams import runs_under_journal


@click.command("run")
@config_option
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Print events as readable lines. Default: only if systemd's journal does not take them.",
)
def run_command(config_path: Path | None, stream: bool | None) -> None:
    """Start the daemon in the foreground; Ctrl-C or SIGTERM stops it.

    If the configuration is wrong, a service ($STATE_DIRECTORY is set) continues with the one that it last ran
    with, and reports this as a condition of the node. Otherwise it ends with status 78.
    """
    from nodeagent.config.last import choose
    from nodeagent.config.load import ConfigError

    try:
        chosen = choose(config_path, os.environ)
    except ConfigError as error:
        raise CommandFailure(str(error), EXIT_CONFIG) from error
    from nodeagent.cli.shared.foreground import begin_log
    from nodeagent.daemon import app

    begin_log()
    if stream is None:
        stream = not runs_under_journal(os.environ)
    raise SystemExit(app.run(chosen, config_path, stream))


@click.command("version")
@output_option
def version_command(output: Output) -> None:
    """Show the version, the commit and the build.

    No daemon is asked: status shows the version that runs.
    """
    if output == Output.JSON:
        write_json(_fields(_build()))
    else:
        show_version()


def show_version() -> None:
    """Raises ``CommandFailure``."""
    for line in _lines(_build()):
        write(line)


def _build() -> Build | None:
    try:
        return read()
    except BuildDamaged as error:
        raise CommandFailure(str(error)) from error


def _lines(build: Build | None) -> Iterator[str]:
    yield f"nodeagent {__version__}"
    if build is None:
        yield "commit: unknown"
        yield f"build: none, not installed from a package; Python {platform.python_version()}"
        return
    if build.commit is None:
        yield "commit: unknown; built outside of a repository"
    else:
        changed = "" if build.clean else ", with changes that are not in it"
        yield f"commit: {build.commit} of {build.committed_at}{changed}"
    yield f"build: {build.architecture}, Python {build.interpreter}"


def _fields(build: Build | None) -> dict[str, Any]:
    return {
        "version": __version__,
        "python": platform.python_version(),
        "package": build is not None,
        "commit": build and build.commit,
        "clean": build and build.clean,
        "committed_at": build and build.committed_at,
        "architecture": build and build.architecture,
        "interpreter": build and build.interpreter,
    }


def _commands_offered(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
    """The commands of the group that the arguments before it name."""
    asked = context.find_root()
    for name in context.params.get("names") or ():
        group = asked.command
        found = group.get_command(asked, name) if isinstance(group, click.Group) else None
        if found is None:
            return []
        asked = click.Context(found, info_name=name, parent=asked)
    is_group = isinstance(asked.command, click.Group)
    return asked.command.shell_complete(asked, begun) if is_group else []


@click.command("help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1, shell_complete=_commands_offered)
@click.pass_context
def help_command(context: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of COMMAND, or of all of them."""
    asked = context.find_root()
    for name in names:
        group = asked.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{asked.command_path} has no commands of its own", context)
        _, found, _ = group.resolve_command(asked, [name])
        if found is not None:
            asked = click.Context(found, info_name=name, parent=asked)
    write_lines(asked.get_help())
