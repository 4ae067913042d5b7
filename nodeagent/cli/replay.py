"""``nodeagent replay FILE``: the events that would have been told. The work is ``nodeagent.replay``'s."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec

from nodeagent.cli import forms
from nodeagent.cli.failure import Failure
from nodeagent.cli.folders import configured, shipped
from nodeagent.cli.lines import write_event
from nodeagent.cli.options import Output, config_option, output_option, read_config
from nodeagent.cli.output import coloured, write, write_json
from nodeagent.config import Config
from nodeagent.core.catalog import Catalog
from nodeagent.outlets import messages
from nodeagent.outlets.pb import types_pb2
from nodeagent.replay import formats, run
from nodeagent.replay.reading import ReplayError
from nodeagent.replay.stamps import rfc3339_ns
from nodeagent.tables.load import TablesError, load_catalog


class Time(click.ParamType[int]):
    """An RFC 3339 time as nanoseconds of wall time."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return rfc3339_ns(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


@click.command("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--tables",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Tables laid over the shipped ones in place of the site's.",
)
@click.option(
    "--compare",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Show only what would be told differently with these tables over the shipped ones.",
)
@click.option(
    "--boot-time",
    type=Time(),
    default=0,
    metavar="TIME",
    help="When seconds since boot began, for logs without a date; else 1970-01-01T00:00:00Z.",
)
@click.option(
    "--trust-userspace", is_flag=True, help="Take lines that user space wrote for faults, not for notices."
)
@config_option
@output_option
def command(
    file: Path,
    tables: Path | None,
    compare: Path | None,
    boot_time: int,
    trust_userspace: bool,
    config_path: Path | None,
    output: Output,
) -> None:
    """Show the events that a log or a signal file would have caused, in its own time.

    FILE is a kernel log (dmesg in its forms, syslog, journalctl, /dev/kmsg; plain or gzip) or JSON lines of
    signals. Times without a zone are taken as UTC.
    """
    config = read_config(config_path)
    trusted = trust_userspace or config.kmsg.trust_userspace
    ours = (shipped(config), tables) if tables else configured(config)
    try:
        events = _told(file, boot_time, _catalog(ours, config), trusted)
        if compare is not None:
            others = _told(file, boot_time, _catalog((shipped(config), compare), config), trusted)
            _show_differences(events, others, output)
            return
    except (ReplayError, TablesError) as error:
        raise Failure(str(error)) from error
    for event in events:
        _show(event, output)


def _catalog(folders: Sequence[Path], config: Config) -> Catalog:
    return load_catalog(folders, config.settings()).catalog


def _told(file: Path, boot_ns: int, catalog: Catalog, trust_userspace: bool) -> list[types_pb2.Event]:
    """All of them, so that nothing is shown of a file whose end is wrong."""
    moments = run.moments(formats.read(file, boot_ns), catalog, trust_userspace=trust_userspace)
    return [messages.event(stored) for stored in run.replay(moments, catalog)]


def _show(event: types_pb2.Event, output: Output) -> None:
    if output == Output.JSON:
        write_json(forms.event(event))
    else:
        write_event(event)


def _show_differences(
    ours: Iterable[types_pb2.Event], theirs: Iterable[types_pb2.Event], output: Output
) -> None:
    """What only one of them told, in order of time: "-" now, "+" with the other tables."""
    only_ours, only_theirs = _only(ours, theirs), _only(theirs, ours)
    marked = [("-", event) for event in only_ours] + [("+", event) for event in only_theirs]
    for mark, event in sorted(marked, key=lambda pair: pair[1]["at"]):
        if output == Output.JSON:
            write_json({"only_in": "tables" if mark == "-" else "compare", "event": event})
        else:
            level = event["condition_level"] or event["level"]
            words = (event["at"], event["kind"], event["device"], event["code"], level)
            write(
                coloured(mark) + " " + " ".join(filter(None, (*words, event["verdict"], event["handling"])))
            )
    if not marked and output == Output.TEXT:
        write("no difference")


def _only(these: Iterable[types_pb2.Event], those: Iterable[types_pb2.Event]) -> list[forms.Form]:
    there = Counter(msgspec.json.encode(forms.event(each)) for each in those)
    left = []
    for form in map(forms.event, these):
        key = msgspec.json.encode(form)
        if there[key]:
            there[key] -= 1
        else:
            left.append(form)
    return left
