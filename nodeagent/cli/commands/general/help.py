"""``nodeagent help [COMMAND]``: what ``nodeagent COMMAND --help`` says."""

import click

from nodeagent.cli.shared.output import write_lines


@click.command("help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1)
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
