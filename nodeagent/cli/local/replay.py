"""``nodeagent replay FILE``: the events that would have been emitted. The work is ``nodeagent.replay``'s."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import msgspec

from nodeagent.api import messages
from nodeagent.cli.shared import json_forms
from nodeagent.cli.shared.errors import EXIT_NOT_UNDERSTOOD, CommandFailure
from nodeagent.cli.shared.options import (
    Output,
    config_option,
    configured_folders,
    output_option,
    read_config,
    shipped_folder,
)
from nodeagent.cli.shared.output import note, write, write_json
from nodeagent.cli.shared.texts import counted, in_utc, write_event
from nodeagent.config.config import Config
from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import ResetSettings, Settings
from nodeagent.messages.pb import types_pb2
from nodeagent.replay import formats, past, readers, run, store_file
from nodeagent.replay.log import Log, ReadTally, rfc3339_ns
from nodeagent.replay.reading import ReplayError
from nodeagent.replay.text_prefixes import PREFIXES
from nodeagent.store.records import StoredEvent
from nodeagent.tables.load import TablesError, load_catalog

_FAULTS: Final = (types_pb2.EVENT_KIND_RAISED, types_pb2.EVENT_KIND_NOTICE)


def _forms() -> str:
    """The forms that can be named, each with an example, and the prefixes that a line may have."""
    width = max(map(len, readers.EXAMPLES)) + 2
    forms = "\n".join(f"  {name:{width}}{example}" for name, example in readers.EXAMPLES.items())
    prefixes = ", ".join(f"`{prefix.example}`" for prefix in PREFIXES if prefix.example.strip())
    return f"""\b
Forms, for --format:
{forms}

A line may have a prefix that a tool or a person added: {prefixes}, blanks and colours."""


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


@click.command("replay", epilog=_forms())
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
    help="When the node booted, for lines without a date. Default: as the dated lines of FILE imply, else"
    " 1970-01-01T00:00:00Z.",
)
@click.option(
    "--format",
    "form",
    metavar="NAME",
    type=click.Choice(list(readers.EXAMPLES)),
    help="Take FILE for a log in this one form, of those listed below. Default: each line's own.",
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
    form: str | None,
    trust_userspace: bool,
    config_path: Path | None,
    output: Output,
) -> None:
    """Show the events that a log or a signal file would have caused, in its own time.

    FILE is a kernel log in any of the forms below, packed or not; a folder or an archive with such logs in
    it, as a sosreport, or a bug report of NVIDIA; JSON lines of signals; or a daemon's store: its state
    folder, also while it runs. A time without a zone has the zone of the file's other lines, else UTC. A
    store is judged by the tables of its time, unless others are given.

    The last line on standard error counts the lines that were read and understood. Exit status: 0, also if
    no event would be shown; 3 if more than half of the lines were not understood; 1 if FILE cannot be read.
    """
    config = read_config(config_path)
    trusted = trust_userspace or config.kmsg.trust_userspace
    tally = None
    try:
        with _uncollected():
            if (database := _database_of(file)) is not None:
                events, others = _events_of_store(database, tables, compare, config)
            else:
                (events, others), tally = _events_of_log(
                    file, boot_time, form, trusted, tables, compare, config
                )
    except (ReplayError, TablesError) as error:
        raise CommandFailure(str(error)) from error
    if others is not None:
        _show_differences(events, others, output)
    else:
        for event in events:
            _show(event, output)
    if tally is not None:
        _show_tally(file, tally, events)


Events = tuple[list[types_pb2.Event], list[types_pb2.Event] | None]
"""All of them, so that nothing is shown of a file whose end is wrong; by the compared tables if asked for."""


def _events_of_log(
    file: Path,
    boot_ns: int,
    form: str | None,
    trust_userspace: bool,
    tables: Path | None,
    compare: Path | None,
    config: Config,
) -> tuple[Events, ReadTally | None]:
    def events_of(catalog: Catalog) -> tuple[list[types_pb2.Event], ReadTally | None]:
        parsed = formats.read(file, boot_ns, form)
        moments = run.moments(parsed, catalog, trust_userspace=trust_userspace)
        events = _messages(run.replay(moments, catalog))
        return events, parsed.tally if isinstance(parsed, Log) else None

    ours = (
        load_catalog(configured_folders(config), _without_resets(config)).catalog
        if tables is None
        else _over(tables, config)
    )
    events, tally = events_of(ours)
    others = events_of(_over(compare, config))[0] if compare else None
    return (events, others), tally


def _show_tally(file: Path, tally: ReadTally, events: Iterable[types_pb2.Event]) -> None:
    """What was guessed, and one line that counts. Ends with a status of its own where most is unknown."""
    faults = {(event.device, event.code) for event in events if event.kind in _FAULTS}
    if tally.parts:
        note(f"note: taken from it: {', '.join(tally.parts)}; a line that several of them hold is one line")
    for remark in tally.remarks:
        note(f"note: {remark}")
    if tally.kernel and not tally.has_times:
        note("note: no line bears a time: they are taken in their order, one a second")
    if tally.is_mostly_unread:
        note("note: most lines are in no form that is known; --help lists the forms, --format names one")
    first = ""
    if tally.first_unread is not None:
        name, number = tally.first_unread
        first = f" (first: line {number}{f' of {name}' if name else ''})"
    counts = (
        f"{counted(tally.lines, 'line')} read",
        f"{counted(tally.kernel, 'kernel message')} understood",
        f"{tally.others} of others",
        f"{tally.unread} not understood{first}",
        f"{counted(len(faults), 'fault')} found",
    )
    note(f"{file}: {', '.join(counts)}")
    if tally.is_mostly_unread:
        raise click.exceptions.Exit(EXIT_NOT_UNDERSTOOD)


def _events_of_store(database: Path, tables: Path | None, compare: Path | None, config: Config) -> Events:
    with store_file.opened(database) as connection:
        kept = past.read(connection)
        ours = _messages(past.replay(kept, _over(tables, config) if tables else None))
        others = _messages(past.replay(kept, _over(compare, config))) if compare else None
    if kept.missing:
        note(f"{database}: {kept.missing}")
    return ours, others


def _database_of(file: Path) -> Path | None:
    """A folder without one may hold logs."""
    database = store_file.database_of(file)
    return None if database is not None and file.is_dir() and not database.exists() else database


def _over(own: Path, config: Config) -> Catalog:
    """The shipped tables with a folder's laid over them."""
    return load_catalog((shipped_folder(config), own), _without_resets(config)).catalog


def _without_resets(config: Config) -> Settings:
    """Rules are applied to the past, on which no action is possible."""
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
        write_event(event, time_text=in_utc)


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
            fields = (event["at"], event["kind"], event["device"], event["code"], level)
            write(mark, *filter(None, (*fields, event["verdict"], event["handling"])))
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
