"""``nodeagent replay FILE``: the events that would have been emitted. The work is ``nodeagent.replay``'s."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from nodeagent.api import messages
from nodeagent.cli.shared import json_forms
from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.folders import configured, shipped
from nodeagent.cli.shared.options import Output, config_option, output_option, read_config
from nodeagent.cli.shared.output import note, write, write_json
from nodeagent.cli.shared.text_lines import write_event
from nodeagent.config.config import Config
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import ResetSettings, Settings
from nodeagent.messages.pb import types_pb2
from nodeagent.replay import formats, past, run, store_file
from nodeagent.replay.reading import ReplayError
from nodeagent.replay.signal_line import Moment
from nodeagent.replay.stamps import rfc3339_ns
from nodeagent.store.records import StoredEvent
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
    help="Show only the events that would differ with these tables over the shipped ones.",
)
@click.option(
    "--boot-time",
    type=Time(),
    default=0,
    metavar="TIME",
    help="When the node booted, for logs without a date. Default: 1970-01-01T00:00:00Z.",
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

    FILE is a kernel log (dmesg in its forms, syslog, journalctl and its exports, /dev/kmsg; plain or gzip),
    JSON lines of signals, or a daemon's store: its state folder, also while it runs. Times without a zone
    are taken as UTC. A store is judged by the tables of its time, unless others are given.
    Exit status: 0, also if no event would be shown; 1 if FILE cannot be read or is none of these.
    """
    config = read_config(config_path)
    trusted = trust_userspace or config.kmsg.trust_userspace
    try:
        with _uncollected():
            if (database := store_file.database_of(file)) is not None:
                events, others = _events_of_store(database, tables, compare, config)
            else:
                events, others = _events_of_log(file, boot_time, trusted, tables, compare, config)
    except (ReplayError, TablesError) as error:
        raise Failure(str(error)) from error
    if others is not None:
        _show_differences(events, others, output)
        return
    for event in events:
        _show(event, output)


Events = tuple[list[types_pb2.Event], list[types_pb2.Event] | None]
"""All of them, so that nothing is shown of a file whose end is wrong; by the compared tables if asked for."""


def _events_of_log(
    file: Path, boot_ns: int, trust_userspace: bool, tables: Path | None, compare: Path | None, config: Config
) -> Events:
    is_log = False

    def events_of(catalog: Catalog) -> list[types_pb2.Event]:
        nonlocal is_log
        parsed = formats.read(file, boot_ns)
        moments = run.moments(parsed, catalog, trust_userspace=trust_userspace)
        is_log |= _is_log(parsed, moments)
        return _messages(run.replay(moments, catalog))

    ours = (
        load_catalog(configured(config), _without_resets(config)).catalog
        if tables is None
        else _over(tables, config)
    )
    events, others = events_of(ours), events_of(_over(compare, config)) if compare else None
    if not is_log:
        raise Failure(
            f"{file}: not a kernel log: no line bears a time or a priority, and no pattern takes one"
        )
    return events, others


def _is_log(parsed: formats.Log | formats.Signals, moments: Iterable[Moment]) -> bool:
    """Lines without a time are one too where a pattern takes one of them."""
    recognised = isinstance(parsed, formats.Signals) or parsed.recognised()
    return recognised or any(moment.signal is not None for moment in moments)


def _events_of_store(database: Path, tables: Path | None, compare: Path | None, config: Config) -> Events:
    with store_file.opened(database) as connection:
        kept = past.read(connection)
        ours = _messages(past.replay(kept, _over(tables, config) if tables else None))
        others = _messages(past.replay(kept, _over(compare, config))) if compare else None
    if kept.missing:
        note(f"{database}: {kept.missing}")
    return ours, others


def _over(own: Path, config: Config) -> Catalog:
    """The shipped tables with a folder's laid over them."""
    return load_catalog((shipped(config), own), _without_resets(config)).catalog


def _without_resets(config: Config) -> Settings:
    """What rules make of the past: nobody can act on it any more."""
    return replace(config.settings(), reset=ResetSettings())


def _messages(events: Iterable[StoredEvent]) -> list[types_pb2.Event]:
    return [messages.event(stored) for stored in events]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Millions of small values in no cycle: looking for garbage would be a tenth of the work."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _show(event: types_pb2.Event, output: Output) -> None:
    if output == Output.JSON:
        write_json(json_forms.form(event))
    else:
        write_event(event)


def _show_differences(
    ours: Iterable[types_pb2.Event], theirs: Iterable[types_pb2.Event], output: Output
) -> None:
    """What only one of them emitted, in order of time: "-" now, "+" with the other tables.

    That a store's tables changed is no difference: the others were in force all the time.
    """
    ours = [event for event in ours if event.kind != types_pb2.EVENT_KIND_TABLES_RELOADED]
    only_ours, only_theirs = _only(ours, theirs), _only(theirs, ours)
    marked = [("-", event) for event in only_ours] + [("+", event) for event in only_theirs]
    for mark, event in sorted(marked, key=lambda pair: pair[1]["at"]):
        if output == Output.JSON:
            write_json({"only_in": "tables" if mark == "-" else "compare", "event": event})
        else:
            level = event["condition_level"] or event["level"]
            words = (event["at"], event["kind"], event["device"], event["code"], level)
            write(mark, *filter(None, (*words, event["verdict"], event["handling"])))
    if not marked and output == Output.TEXT:
        write("no difference")


def _only(these: Iterable[types_pb2.Event], those: Iterable[types_pb2.Event]) -> list[json_forms.Form]:
    there = Counter(msgspec.json.encode(json_forms.form(each)) for each in those)
    left = []
    for form in map(json_forms.form, these):
        key = msgspec.json.encode(form)
        if there[key]:
            there[key] -= 1
        else:
            left.append(form)
    return left
