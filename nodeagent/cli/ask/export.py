"""The command line of ``nodeagent export``: events to another system. ``nodeagent.export`` sends them.

No option takes a secret: every user of the node can read a command line. Secrets are read from files.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from nodeagent.cli.shared.errors import EXIT_CONFIG, CommandFailure
from nodeagent.cli.shared.event_filter import event_filter_options
from nodeagent.cli.shared.options import socket_option, with_options
from nodeagent.export import syslog

if TYPE_CHECKING:
    from nodeagent.cli.ask.export_run import ExportOptions
    from nodeagent.export.delivery import Destination

OTLP_MODULES: Final = Path("/usr/local/lib/nodeagent-otlp")
"""Where the packages of the extra are looked for that this Python does not have: next to the package of a
distribution, which brings a Python of its own.
"""


class _CredentialPath(click.Path):
    """A file; a name without a slash is a credential of the service where there is one of that name."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "str | bytes | os.PathLike[str]":
        folder = os.environ.get("CREDENTIALS_DIRECTORY")
        if folder and "/" not in str(value) and (Path(folder) / value).exists():
            value = Path(folder) / value
        return super().convert(value, param, ctx)


_FILE: Final = _CredentialPath(path_type=Path, dir_okay=False)
_MOST_SECRETS: Final = 4

_export_options: Final = with_options(
    click.option(
        "--consumer",
        metavar="NAME",
        help="The name under which the daemon keeps the position, one for each receiver. Default: export- and"
        " the form.",
    ),
    click.option(
        "--start",
        type=click.Choice(["end", "beginning"]),
        default="end",
        show_default=True,
        help="Where a new name begins: with the next event, or with the oldest that is kept.",
    ),
    event_filter_options,
    click.option(
        "--rejected",
        type=_FILE,
        metavar="FILE",
        help="Put events aside here that the receiver rejects. Default: wait until it takes them.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.1, max=600.0),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the receiver in one attempt.",
    ),
    click.option("--ca", type=_FILE, help="The authorities that sign the receiver's certificate, PEM."),
    click.option("--cert", type=_FILE, help="Our certificate for the receiver, PEM."),
    click.option("--key", type=_FILE, help="Its key."),
    socket_option,
)

_headers_option: Final = click.option(
    "--headers",
    type=_FILE,
    metavar="FILE",
    help="Send these headers, such as credentials: 'Name: value' a line.",
)


@click.group("export")
def command() -> None:
    """Send the events of this node to another system, each at least once and in order.

    The daemon keeps how far the receiver has come, also while this command is not running. It runs until
    SIGTERM or Ctrl-C, and waits for a receiver or a daemon that does not answer.
    """


@command.command("otlp")
@click.argument("destination", metavar="URL")
@_headers_option
@click.option("--gzip", is_flag=True, help="Compress what is sent.")
@_export_options
def otlp_command(destination: str, headers: Path | None, gzip: bool, **common: Any) -> None:
    """Send events as OpenTelemetry logs, by OTLP over HTTP: to a collector, or a store that takes OTLP.

    Without a path in the URL, it is /v1/logs. It needs the packages of the extra otlp.
    """

    def destined(options: "ExportOptions") -> "Destination":
        from nodeagent.export.connection import http_url, read_headers

        sys.path.append(str(OTLP_MODULES))
        try:
            from nodeagent.export.otlp import OtlpDestination
        except ImportError as error:
            raise CommandFailure(
                f"the OpenTelemetry exporter cannot be imported ({error}): install it with"
                " pip install 'nodeagent[otlp]'; docs/export.md has the way for the package",
            ) from error
        return OtlpDestination(
            http_url(destination, options.tls),
            tls=options.tls,
            headers=read_headers(headers),
            timeout_s=options.timeout_s,
            gzip=gzip,
        )

    _export("otlp", destined, common)


@command.command("cloudevents")
@click.argument("destination", metavar="URL")
@click.option(
    "--secret",
    "secrets",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="Sign with the secret in this file; twice while the receiver changes to a new one.",
)
@_headers_option
@click.option(
    "--batch",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="The most events in one request; above 1 in the form of a batch.",
)
@_export_options
def cloudevents_command(
    destination: str, secrets: tuple[Path, ...], headers: Path | None, batch: int, **common: Any
) -> None:
    """Send events as CloudEvents 1.0 over HTTP, in JSON: to a webhook or an event broker.

    With a secret each request is signed as the Standard Webhooks specification has it.
    """
    if len(secrets) > _MOST_SECRETS:
        raise click.UsageError(f"--secret: {_MOST_SECRETS} at most")

    def destined(options: "ExportOptions") -> "Destination":
        from nodeagent.export.cloudevents import CloudEventsDestination
        from nodeagent.export.connection import http_url, read_headers
        from nodeagent.export.signatures import read_secret

        return CloudEventsDestination(
            http_url(destination, options.tls),
            tls=options.tls,
            headers=read_headers(headers),
            secrets=[read_secret(path) for path in secrets],
            timeout_s=options.timeout_s,
            most=batch,
        )

    _export("cloudevents", destined, common)


@command.command("syslog")
@click.argument("destination", metavar="URL")
@click.option(
    "--facility",
    type=click.Choice(list(syslog.FACILITIES)),
    default="daemon",
    show_default=True,
    metavar="NAME",
    help="The facility of each message, such as local0.",
)
@click.option(
    "--data-id",
    metavar="NAME@NUMBER",
    default=syslog.OWN_ID,
    show_default=True,
    callback=lambda _context, _parameter, text: _data_id(text),
    help="The name of the structured data, for a site with a private enterprise number.",
)
@_export_options
def syslog_command(destination: str, facility: str, data_id: str, **common: Any) -> None:
    """Send events as syslog of RFC 5424, to tcp://HOST[:601] or tls://HOST[:6514], counted by octets."""

    def destined(options: "ExportOptions") -> "Destination":
        from nodeagent.export.syslog_connection import SyslogDestination, syslog_url

        return SyslogDestination(
            syslog_url(destination, options.tls),
            tls=options.tls,
            facility=syslog.FACILITIES[facility],
            data_id=data_id,
            timeout_s=options.timeout_s,
        )

    _export("syslog", destined, common)


def _data_id(text: str) -> str:
    if not syslog.is_data_id(text):
        raise click.BadParameter(f"{text!r} is none: NAME@NUMBER, 32 characters at most, such as ops@32473.1")
    return text


def _export(form: str, destined: "Callable[[ExportOptions], Destination]", common: dict[str, Any]) -> None:
    """Raises ``CommandFailure`` before anything is sent where an option or a file cannot be used."""
    from nodeagent.cli.ask.export_run import ExportOptions, run
    from nodeagent.export.connection import SetupError

    options = ExportOptions(**common | {"consumer": common["consumer"] or f"export-{form}"})
    try:
        destination = destined(options)
    except SetupError as error:
        raise CommandFailure(str(error), EXIT_CONFIG) from error
    run(options, destination)
