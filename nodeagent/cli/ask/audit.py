"""``nodeagent audit``: the calls of operators to the daemon, and their results."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.ask.reading import read, timeout_option
from nodeagent.cli.shared.connection import Reader
from nodeagent.cli.shared.options import Output, control_socket, control_socket_option, output_option
from nodeagent.cli.shared.output import write_continued, write_json

if TYPE_CHECKING:
    from nodeagent.messages.pb import control_service_pb2 as pb

NEWEST_SHOWN: Final = 20
_PAGE: Final = 1000


@click.command("audit")
@click.option("--after", metavar="N", type=click.IntRange(min=0), help="All kept entries after number N.")
@click.option(
    "-n",
    "--newest",
    metavar="COUNT",
    type=click.IntRange(min=1, max=_PAGE),
    help=f"The newest COUNT entries; {NEWEST_SHOWN}.",
)
@timeout_option
@control_socket_option
@output_option
def command(
    after: int | None,
    newest: int | None,
    timeout_s: float | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Show the newest calls of operators, oldest first, also refused ones. Each call of audit is an entry,
    too.

    If no daemon answers, its store is read.
    """
    if after is not None and newest is not None:
        raise click.UsageError("--after and --newest exclude each other")

    def ask(daemon: Reader) -> list["pb.AuditEntry"]:
        return list(_newest(daemon, newest or NEWEST_SHOWN) if after is None else _all(daemon, after))

    def show(entries: list["pb.AuditEntry"]) -> None:
        from nodeagent.cli.shared import json_forms

        for entry in entries:
            if output == Output.JSON:
                write_json(json_forms.form(entry))
            else:
                _write(entry)

    read(control_socket(socket, config_path), config_path, timeout_s, ask, show)


def _newest(daemon: Reader, count: int) -> Iterator["pb.AuditEntry"]:
    from nodeagent.messages.pb import control_service_pb2 as pb

    request = pb.ListAuditRequest(newest=True, limit=count)
    yield from daemon.call(request).entries


def _all(daemon: Reader, after: int) -> Iterator["pb.AuditEntry"]:
    """Every entry there was when it began: looking adds one for each page."""
    from nodeagent.messages.pb import control_service_pb2 as pb

    last = next((entry.number for entry in _newest(daemon, 1)), 0)
    while after < last:
        response: pb.ListAuditResponse = daemon.call(pb.ListAuditRequest(after_number=after, limit=_PAGE))
        yield from (entry for entry in response.entries if entry.number <= last)
        if not response.entries:
            return
        after = response.entries[-1].number


def _write(entry: "pb.AuditEntry") -> None:
    from nodeagent.cli.shared.texts import for_people

    head = " ".join(filter(None, (for_people(entry.at), entry.what, entry.target)))
    write_continued(head, f"by {entry.who}: {entry.result}")
