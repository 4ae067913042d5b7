"""``nodeagent help [COMMAND]``: what ``nodeagent COMMAND --help`` says."""

import click
from click.shell_completion import CompletionItem

from nodeagent.cli.shared.output import write_lines


def _commands(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem[str]]:
    """Those of the group that the words before have named."""
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
@click.argument("names", metavar="[COMMAND]...", nargs=-1, shell_complete=_commands)
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
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
