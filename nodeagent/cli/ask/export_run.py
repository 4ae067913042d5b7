"""Runs ``nodeagent export``: the stream, the delivery and the report of its lag, until a signal ends it.

A signal ends it at once: what was sent and not acknowledged is sent again by the next process.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # or its library writes to our standard error

from systemd import daemon as service_manager

from nodeagent.cli.shared.errors import EXIT_INTERRUPTED, EXIT_NOT_ALLOWED, EXIT_UNAVAILABLE, CommandFailure
from nodeagent.cli.shared.foreground import begin_log
from nodeagent.cli.shared.json_forms import form
from nodeagent.cli.shared.options import public_socket
from nodeagent.client import Client, ClientError, EventKind, Level
from nodeagent.export.connection import TlsFiles
from nodeagent.export.delivery import Destination, RecordDelivery
from nodeagent.export.exporter import EventExporter
from nodeagent.export.lag import LagReporter
from nodeagent.export.rejected import RejectedRecords


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What all forms have in common; its fields are the parameters of the common options."""

    consumer: str
    start: str
    devices: Sequence[str]
    codes: Sequence[str]
    kinds: Sequence[str]
    min_level: str | None
    rejected: Path | None
    timeout_s: float
    ca: Path | None
    cert: Path | None
    key: Path | None
    socket: Path | None
    config_path: Path | None

    @property
    def tls(self) -> TlsFiles:
        return TlsFiles(self.ca, self.cert, self.key)


def run(options: ExportOptions, destination: Destination) -> None:
    """Until a signal. Raises ``CommandFailure`` where the daemon refuses."""
    socket = public_socket(options.socket, options.config_path)
    begin_log()
    signal.signal(signal.SIGTERM, _end)
    delivery = RecordDelivery(destination, RejectedRecords(options.rejected) if options.rejected else None)
    with ExitStack() as stack:
        stack.callback(destination.close)
        client = stack.enter_context(Client(socket))
        exporter = EventExporter(
            client,
            delivery,
            consumer=options.consumer,
            form=form,
            from_beginning=options.start == "beginning",
            kinds=[EventKind(kind) for kind in options.kinds],
            devices=options.devices,
            minimum_level=Level(options.min_level) if options.min_level else None,
            codes=options.codes,
        )
        reporter = LagReporter(
            client, delivery, options.consumer, service_manager.notify, lambda: exporter.acknowledging
        )
        reporter.start()
        stack.callback(reporter.stop)
        service_manager.notify("READY=1")
        try:
            exporter.run()
        except ClientError as error:
            refused = error.status == "PERMISSION_DENIED"
            raise CommandFailure(
                f"the daemon at {socket} refuses {options.consumer!r}: {error}",
                EXIT_NOT_ALLOWED if refused else EXIT_UNAVAILABLE,
            ) from error
        except KeyboardInterrupt:
            raise SystemExit(EXIT_INTERRUPTED) from None


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)
