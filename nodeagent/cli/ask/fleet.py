"""The command line of ``nodeagent fleet``: many nodes in one table or one stream. ``nodeagent.fleet`` follows
them.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nodeagent.cli.shared.event_filter import kind_option
from nodeagent.cli.shared.options import Output, output_option, with_options
from nodeagent.client import EventKind
from nodeagent.fleet.credentials import ClientCertificateFiles
from nodeagent.fleet.page.listening import ListenError, PageAddress

if TYPE_CHECKING:
    from nodeagent.cli.ask.fleet_run import FleetOptions

_FILE: Final = click.Path(path_type=Path, dir_okay=False)
_PORT: Final = click.IntRange(1, 65535)

_of_events: Final = with_options(
    kind_option("Events of this kind only; may be repeated. As for nodeagent events."),
    click.option(
        "--exec",
        "execute",
        metavar="COMMAND",
        default="",
        help="Run this for each event and each whole state, which it gets as JSON on its standard input.",
    ),
    click.option(
        "--exec-at-once",
        type=click.IntRange(1, 256),
        default=8,
        show_default=True,
        help="The number of commands that run at once, for all nodes together.",
    ),
    click.option(
        "--positions", type=_FILE, help="Keep here how far each node was followed, and continue there."
    ),
)
_of_certificates: Final = with_options(
    click.option("--ca", type=_FILE, help="The authorities that sign the nodes' certificates, PEM."),
    click.option("--cert", type=_FILE, help="Our certificate for the nodes, PEM."),
    click.option("--key", type=_FILE, help="Its key."),
)
_of_prometheus: Final = with_options(
    click.option("--file-sd", type=_FILE, help="Keep this file of targets for Prometheus."),
    click.option(
        "--file-sd-port",
        type=_PORT,
        default=9108,
        show_default=True,
        help="The port of the targets: that of the nodes' metrics.",
    ),
)
_of_page: Final = with_options(
    click.option(
        "--listen",
        metavar="HOST:PORT",
        help="Serve a page of the nodes to browsers, read only. Without certificates on loopback only.",
    ),
    click.option("--listen-cert", type=_FILE, help="The page's certificate, PEM."),
    click.option("--listen-key", type=_FILE, help="Its key."),
    click.option(
        "--listen-client-ca", type=_FILE, help="The authorities whose clients may see the page, PEM."
    ),
)


def certificates(ca: Path | None, cert: Path | None, key: Path | None) -> ClientCertificateFiles | None:
    """Raises ``UsageError`` where only some are named."""
    if ca is None and cert is None and key is None:
        return None
    if ca is None or cert is None or key is None:
        raise click.UsageError("--ca, --cert and --key go together: name all three, or none")
    return ClientCertificateFiles(authorities=ca, certificate=cert, key=key)


def page_address(
    listen: str | None, cert: Path | None, key: Path | None, client_ca: Path | None
) -> PageAddress | None:
    """Raises ``UsageError``."""
    if listen is None:
        if cert is not None or key is not None or client_ca is not None:
            raise click.UsageError("--listen-cert, --listen-key and --listen-client-ca need --listen")
        return None
    try:
        return PageAddress.of(listen, cert, key, client_ca)
    except ListenError as error:
        raise click.UsageError(str(error)) from error


def check_together(asked: "FleetOptions") -> None:
    """Raises ``UsageError``."""
    if not asked.once:
        return
    if asked.page is not None:
        raise click.UsageError(
            "--listen serves the page until it is ended: leave it out, or leave out --once"
        )
    for option, is_given in (
        ("--exec", bool(asked.command)),
        ("--kind", bool(asked.kinds)),
        ("--positions", asked.positions is not None),
    ):
        if is_given:
            raise click.UsageError(f"{option} is about events: leave it out, or leave out --once")


@click.command("fleet")
@click.option(
    "--nodes",
    required=True,
    metavar="FILE|dns:NAME",
    help="The nodes: a list, or every address that a name has. Read again every five seconds.",
)
@click.option("--once", is_flag=True, help="Show the present state of each node, and end.")
@click.option("--all", "every", is_flag=True, help="In the table also nodes that are well.")
@_of_events
@_of_certificates
@_of_prometheus
@_of_page
@output_option
def command(
    nodes: str,
    once: bool,
    every: bool,
    kinds: tuple[str, ...],
    execute: str,
    exec_at_once: int,
    positions: Path | None,
    ca: Path | None,
    cert: Path | None,
    key: Path | None,
    file_sd: Path | None,
    file_sd_port: int,
    listen: str | None,
    listen_cert: Path | None,
    listen_key: Path | None,
    listen_client_ca: Path | None,
    output: Output,
) -> None:
    """Follow the daemons of many nodes.

    On a terminal it shows a table of the nodes that are not well, otherwise a line for each event; with
    -o json an object for each. It waits for nodes that do not answer. Ctrl-C or SIGTERM ends it.
    With --listen it also serves a page of the nodes to browsers.
    """
    from nodeagent.cli.ask.fleet_run import FleetOptions, run

    asked = FleetOptions(
        nodes=nodes,
        once=once,
        every=every,
        in_json=output == Output.JSON,
        kinds=[EventKind(kind) for kind in kinds],
        command=_words(execute),
        at_once=exec_at_once,
        positions=positions,
        file_sd=file_sd,
        file_sd_port=file_sd_port,
        certificates=certificates(ca, cert, key),
        page=page_address(listen, listen_cert, listen_key, listen_client_ca),
    )
    check_together(asked)
    run(asked)


def _words(execute: str) -> list[str]:
    """Split as a shell does; nothing else of a shell is done."""
    try:
        return shlex.split(execute)
    except ValueError as error:
        raise click.BadParameter(f"{execute!r}: {error}", param_hint="--exec") from error
