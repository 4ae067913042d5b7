"""``nodeagent probe NAME``: a source's worker run by hand, as the daemon runs it, its reports shown."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import click

from nodeagent import wire
from nodeagent.cli.shared.errors import EXIT_INTERRUPTED, EXIT_UNAVAILABLE, CommandFailure
from nodeagent.cli.shared.options import Output, config_option, configured_folders, output_option, read_config
from nodeagent.cli.shared.output import note, write, write_json
from nodeagent.daemon import systemd
from nodeagent.tables.load import TablesError, load_catalog
from nodeagent.vendors import DRIVERS
from nodeagent.wire import SOURCE

DEADLINE_S: Final = 15.0
_REMARKS_S: Final = 1.0
"""A process that the worker has left behind may hold its standard error open."""

_POLL_ID: Final = 1


@click.command("probe")
@click.argument("name", type=click.Choice(list(DRIVERS)))
@click.option("--follow", is_flag=True, help="Show further reports as they come, until interrupted.")
@config_option
@output_option
def command(name: str, follow: bool, config_path: Path | None, output: Output) -> None:
    """Run the worker of source NAME once and show what it reports. The daemon is neither needed nor asked."""
    config = read_config(config_path)
    try:
        patterns = load_catalog(configured_folders(config), config.settings()).catalog.patterns
    except TablesError as refused:
        raise CommandFailure(str(refused)) from refused
    configure = wire.Configure(
        driver=name,
        boot_id=systemd.boot_id(),
        config=config.drivers[name].for_driver(),
        patterns=wire.as_patterns(patterns),
    )
    try:
        for report in _converse(name, configure, follow):
            if output == Output.JSON:
                write_json(report)
            else:
                _write(report)
            if isinstance(report, wire.Unavailable):
                raise SystemExit(EXIT_UNAVAILABLE)
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None


def _converse(name: str, configure: wire.Configure, follow: bool) -> Iterator[wire.Report]:
    """Every report until each has come once. Raises ``CommandFailure`` where that does not come to an end."""
    begun_s = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "nodeagent.worker", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as worker:
        if worker.stdin is None or worker.stdout is None or worker.stderr is None:
            raise TypeError("the worker has no pipes")
        remarks = threading.Thread(target=_show_remarks, args=(worker.stderr,), daemon=True)
        remarks.start()
        deadline = threading.Timer(DEADLINE_S, worker.kill)
        if not follow:
            deadline.start()
        try:
            worker.stdin.write(wire.encode(configure))
            worker.stdin.flush()
            awaited = {SOURCE}
            for line in worker.stdout:
                report = wire.decode_report(line)
                yield report
                awaited = _still_awaited(awaited, report)
                if isinstance(report, wire.Hello):
                    names = tuple(device.device for device in report.devices)
                    worker.stdin.write(wire.encode(wire.Poll(id=_POLL_ID, devices=(SOURCE, *names))))
                    worker.stdin.flush()
                if not awaited and not follow:
                    return
        finally:
            deadline.cancel()
            worker.terminate()
            remarks.join(_REMARKS_S)
    late = time.monotonic() - begun_s >= DEADLINE_S
    waiting = f"{', '.join(sorted(awaited))} did not answer within {DEADLINE_S:g} s"
    raise CommandFailure(waiting if late else f"the worker ended by itself, status {worker.returncode}")


def _show_remarks(lines: IO[bytes]) -> None:
    """The standard error of the worker, and of the vendor's library in it."""
    for line in lines:
        note(line.decode("utf-8", "backslashreplace").rstrip("\n"))


def _still_awaited(awaited: set[str], report: wire.Report) -> set[str]:
    """A following source is read when it has caught up, every device when it has replied."""
    match report:
        case wire.Hello():
            devices = {device.device for device in report.devices}
            return {SOURCE, *devices, *(["history"] if report.follows else [])}
        case wire.Reply():
            return awaited - {report.device}
        case wire.CaughtUp():
            return awaited - {"history"}
        case wire.Unavailable():
            return set()
        case _:
            return awaited


def _write(report: wire.Report) -> None:
    match report:
        case wire.Hello() | wire.Devices():
            write(f"open: {len(report.devices)} devices")
            for device in report.devices:
                write(
                    f"  {device.device} {device.kind} {device.vendor} {device.identity or 'without identity'}"
                )
            for missing in report.missing:
                write(f"  missing: {missing.device}: {missing.reason}")
        case wire.Unavailable():
            write(f"unavailable: {report.reason}")
        case wire.Batch():
            for signal in report.signals:
                line = signal.evidence.get("line", "")
                write(f"signal: {signal.device} {signal.code} {signal.assertion} {line}".rstrip())
            if report.lost:
                write(f"lost: {report.lost} records")
        case wire.Reply():
            _write_reply(report)
        case wire.CaughtUp():
            write("caught up: the history is read")
            for active in report.active or ():
                write(f"  active: {active.code}")
        case wire.Lost():
            write(f"lost: {report.reason}")


def _write_reply(reply: wire.Reply) -> None:
    name = "source" if reply.device == SOURCE else reply.device
    write(f"{name}: {reply.error or 'answered'} in {reply.took_ns / 1e6:.1f} ms")
    for active in reply.active or ():
        write(f"  active: {active.code}")
    for metric, value in sorted(reply.readings.items()):
        write(f"  {metric}: {value:g}")
