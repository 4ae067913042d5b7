"""``nodeagent consumers``: the named consumers, and ``delete`` for one that is not used any more."""

from pathlib import Path

import click
from click.core import ParameterSource

from nodeagent.cli.shared import connection, json_forms
from nodeagent.cli.shared.options import Output, asking_socket, output_option, socket_option
from nodeagent.cli.shared.output import write, write_json, write_table
from nodeagent.cli.shared.times import for_people
from nodeagent.messages.pb import fault_service_pb2 as pb


@click.group("consumers", invoke_without_command=True)
@socket_option
@output_option
@click.pass_context
def command(context: click.Context, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """List the named consumers: whose they are, and how far each has come."""
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return
    with connection.opened(asking_socket(socket, config_path)) as daemon:
        listed = daemon.call(pb.ListConsumersRequest()).consumers
    if output == Output.JSON:
        for consumer in listed:
            write_json(json_forms.form(consumer))
        return
    rows = [
        [each.name, each.owner, str(each.seq), str(each.lag), for_people(each.acked_at)] for each in listed
    ]
    write_table(["CONSUMER", "OWNER", "SEQ", "LAG", "LAST ACK"], rows)


@command.command("delete")
@click.argument("name")
@socket_option
@output_option
def delete(name: str, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Forget a consumer: one of your own, or, as an operator, any."""
    with connection.opened(asking_socket(socket, config_path)) as daemon:
        daemon.delete_consumer(name)
    if output == Output.JSON:
        write_json({"consumer": name, "deleted": True})
    else:
        write(f"deleted {name}")


def _refuse_options(context: click.Context) -> None:
    """Of the listing, where a command of its own follows: it would not get them."""
    given = [
        each for each in context.params if context.get_parameter_source(each) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"options go behind {context.invoked_subcommand!r}, not before it")
