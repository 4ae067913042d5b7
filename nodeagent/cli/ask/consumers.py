"""``nodeagent consumers``: the names under which programs follow this node; list, delete or rewind them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.reading import read, timeout_option
from nodeagent.cli.shared import completion, connection, json_forms
from nodeagent.cli.shared.connection import Reader, warn_not_durable
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option, time_option
from nodeagent.cli.shared.output import write, write_json, write_table
from nodeagent.cli.shared.texts import for_people
from nodeagent.messages.pb import fault_service_pb2 as pb


@click.group("consumers", invoke_without_command=True)
@timeout_option
@socket_option
@output_option
@click.pass_context
def command(
    context: click.Context,
    timeout_s: float | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """List the named consumers: whose they are, and how far each has come.

    If no daemon answers, its store is read.
    """
    if context.invoked_subcommand is not None:
        _refuse_options(context)
        return

    def ask(daemon: Reader) -> Sequence[pb.Consumer]:
        listed: Sequence[pb.Consumer] = daemon.call(pb.ListConsumersRequest()).consumers
        return listed

    read(socket, config_path, timeout_s, ask, partial(_write_list, output=output))


def _write_list(listed: Sequence[pb.Consumer], *, output: Output) -> None:
    if output == Output.JSON:
        for consumer in listed:
            write_json(json_forms.form(consumer))
        return
    rows = [
        [each.name, each.owner, str(each.seq), str(each.lag), for_people(each.acked_at)] for each in listed
    ]
    write_table(["CONSUMER", "OWNER", "SEQ", "LAG", "LAST ACK"], rows)


@command.command("delete")
@click.argument("name", shell_complete=completion.consumers)
@socket_option
@output_option
def delete(name: str, socket: Path | None, config_path: Path | None, output: Output) -> None:
    """Forget a consumer: one of your own, or, as an operator, any."""
    with connection.opened(query_socket(socket, config_path)) as daemon:
        daemon.delete_consumer(name)
    if output == Output.JSON:
        write_json({"consumer": name, "deleted": True})
    else:
        write(f"deleted {name}")


@command.command("rewind")
@click.argument("name", shell_complete=completion.consumers)
@click.option(
    "--to", "seq", metavar="N", type=click.IntRange(min=0), help="The last event that it still has; 0: none."
)
@time_option("--since", "It has no event of this time or later")
@socket_option
@output_option
def rewind(
    name: str,
    seq: int | None,
    since: Timestamp | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Set a consumer back, so that it gets events again: one of your own, or, as an operator, any.

    For one that has lost what it had stored. End it first, and start it afterwards.
    """
    if (seq is None) == (since is None):
        raise click.UsageError("one of --to and --since is needed, and not both")
    with connection.opened(query_socket(socket, config_path)) as daemon:
        found = daemon.call(pb.ListEventsRequest(limit=1, since=since))
        request = pb.RewindConsumerRequest(consumer=name, store_id=found.store_id)
        request.seq = _before(found) if seq is None else seq
        answer = daemon.call(request)
    if output == Output.JSON:
        done = {
            "consumer": name,
            "seq": answer.seq,
            "seq_before": answer.seq_before,
            "durable": answer.durable,
        }
        write_json(done)
    else:
        write(f"set {name} back from {answer.seq_before} to {answer.seq}")
    warn_not_durable(answer)


def _before(found: pb.ListEventsResponse) -> int:
    """The number before the first event found; where there is none, the last one."""
    return found.events[0].seq - 1 if found.events else int(found.last_seq)


def _refuse_options(context: click.Context) -> None:
    """Refuse the options of the listing before a subcommand: it would not get them."""
    given = [
        each for each in context.params if context.get_parameter_source(each) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"options go behind {context.invoked_subcommand!r}, not before it")
