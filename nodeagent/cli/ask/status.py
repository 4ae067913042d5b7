"""``nodeagent status``: everything that is open, and what it means for placing work."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from nodeagent.cli.ask.overview import JOB, Overview, job_counts, overview, reset_lines, rest_line, texts_of
from nodeagent.cli.ask.reading import asked, patience_s, read, timeout_option
from nodeagent.cli.shared import json_forms
from nodeagent.cli.shared.connection import Reader, Unreachable, opened, take_snapshot
from nodeagent.cli.shared.errors import EXIT_NOT_ALLOWED
from nodeagent.cli.shared.options import Output, output_option, query_socket, socket_option
from nodeagent.cli.shared.output import (
    captured,
    draw,
    on_one_screen,
    on_terminal,
    shortened,
    width,
    write,
    write_continued,
    write_field,
    write_json,
    write_table,
    write_wrapped,
)
from nodeagent.cli.shared.printable import printable
from nodeagent.cli.shared.texts import counted, for_people, headline, job_line, named, present, rfc3339
from nodeagent.core.model import NODE
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

_HELD: Final[dict[int, str]] = {
    types_pb2.HOLD_KIND_ISOLATION: "isolated: {devices}",
    types_pb2.HOLD_KIND_QUIESCE: "quiesced",
}
"""Holds that a person has set. Those of a reset are shown with the reset."""

_REFUSALS: Final = ("configuration_rejected", "tables_rejected")
_DAMAGED: Final = "store_damaged"
_DAMAGES: Final = {"lost": "lost:", "restored": "put back:", "doubtful": "doubtful:", "kept_as": "kept as:"}
"""Evidence of a damaged store, and its label."""


WATCHED_EACH_S: Final = 2.0
_MOST_JOB: Final = 16
_LEAST_FAULT: Final = 12


@click.command("status")
@click.option("--all", "every", is_flag=True, help="Each device and each open condition, also harmless ones.")
@click.option("--wide", is_flag=True, help="On a terminal, cut no text: long ones are wrapped.")
@click.option("--watch", is_flag=True, help="Draw it again every two seconds, until Ctrl-C.")
@timeout_option
@socket_option
@output_option
def command(
    every: bool,
    wide: bool,
    watch: bool,
    timeout_s: float | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Show which devices take work and which do not, why, and what happens next.

    If no daemon answers, its store is read, and standard error shows of when it is.
    """
    if watch and output == Output.JSON:
        raise click.UsageError('--watch is for people; programs read "nodeagent events --follow -o json"')
    if watch:
        _watch(query_socket(socket, config_path), patience_s(timeout_s), every=every, wide=wide)

    def show(asked: tuple[pb.WatchResponse, pb.GetNodeResponse]) -> None:
        state, node = asked
        if output == Output.JSON:
            write_json(_form(state, node))
        else:
            with on_one_screen():
                _write(state, node, every=every, wide=wide)

    read(socket, config_path, timeout_s, _asked, show)


def _asked(daemon: Reader) -> tuple[pb.WatchResponse, pb.GetNodeResponse]:
    node: pb.GetNodeResponse = daemon.call(pb.GetNodeRequest())
    return take_snapshot(daemon), node


def _watch(path: Path, limit_s: float, *, every: bool, wide: bool) -> NoReturn:
    """Until Ctrl-C. What is no longer true keeps its time on the screen: the daemon may come back."""
    lines: list[str] = []
    at = present()
    while True:
        heading: list[str] = []
        try:
            # A remark on standard error would push what is drawn off the screen.
            with opened(path, limit_s) if lines else asked(path, limit_s) as daemon:
                state, node = _asked(daemon)
        except Unreachable as error:
            if not lines or error.exit_code == EXIT_NOT_ALLOWED:
                raise
            with captured() as heading:
                write(f"NO ANSWER, this is of {for_people(at)}: {error.message}")
        else:
            with captured() as lines:
                _write(state, node, every=every, wide=wide)
            at = present()
        draw([*heading, *lines])
        time.sleep(WATCHED_EACH_S)


def _form(state: pb.WatchResponse, node: pb.GetNodeResponse) -> json_forms.Form:
    current = state.snapshot
    return {
        "node": {
            "name": state.node.node_name,
            "id": state.node.node_id,
            "boot_id": state.node.boot_id,
            **{
                key: value
                for key, value in json_forms.form(_node_device(current)).items()
                if key not in ("name", "id", "attributes")
            },
        },
        **json_forms.standing(current),
        "sources": [json_forms.form(each) for each in current.sources],
        "at": rfc3339(current.at),
        "seq": current.seq,
        "store_id": {"uuid": state.store_id.uuid, "epoch": state.store_id.epoch},
        "durable": state.durable,
        "catalog_digest": current.catalog_digest,
        "version": node.version,
        "started_at": rfc3339(node.started_at),
    }


def _node_device(current: pb.Snapshot) -> types_pb2.Device:
    return next((each for each in current.devices if each.name == NODE), types_pb2.Device(name=NODE))


def _write(state: pb.WatchResponse, node: pb.GetNodeResponse, *, every: bool, wide: bool) -> None:
    """The verdict of the node first, then what is wrong, the worst before the others."""
    current = state.snapshot
    write_wrapped(f"{state.node.node_name}: {headline(_node_device(current), current.devices)}")
    if not state.durable:
        write("not durable: the store's disk fails; events and orders are kept in memory only")
    _write_refusals(current)
    _write_damages(current)
    _write_sources(current)
    shown = overview(current, every=every)
    _write_devices(shown, wide=wide)
    write()
    _write_holds(current, shown.explained)
    for _, line in reset_lines(current):
        write_wrapped(line)
    _write_jobs(current, every=every)
    by = (
        f"nodeagent {node.version} since {for_people(node.started_at, current.at)}"
        if node.version
        else "from the store"
    )
    write(f"{by}, {current.seq} events, tables {current.catalog_digest[:8]}")


def _write_devices(shown: Overview, *, wide: bool) -> None:
    if shown.rows:
        write()
        columns, cells = texts_of(shown.rows)
        write_table(columns, cells if wide or not on_terminal() else _fitting(columns, cells))
    for asker, devices in shown.held.items():
        write_wrapped(f"{named(devices)}: isolated until the reset of {asker} is over")
    if rest := rest_line(shown):
        write(rest)


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows of one line each: long names of jobs and faults are cut."""
    cut = [
        [
            shortened(printable(cell), _MOST_JOB) if name == JOB else printable(cell)
            for name, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    lead = sum(max(map(len, column)) + 2 for column in list(zip(columns, *cut, strict=True))[:-1])
    room = max(_LEAST_FAULT, width() - lead)
    return [[*row[:-1], shortened(row[-1], room)] for row in cut]


def _write_jobs(current: pb.Snapshot, *, every: bool) -> None:
    """Those that are moved, each in a line, and how many run. Claims are shown with the devices."""
    moved, running = job_counts(current, every=every)
    for job in moved:
        write_wrapped(job_line(job))
    if running:
        write(f"{counted(running, 'supervised job')} {'runs' if running == 1 else 'run'}")


def _write_refusals(current: pb.Snapshot) -> None:
    """What the agent itself could not take, with file, line and key."""
    for condition in current.conditions:
        if condition.code in _REFUSALS and condition.source == "agent":
            write_continued(f"{condition.code}:", condition.evidence.get("reason", ""))


def _write_damages(current: pb.Snapshot) -> None:
    """What became of a damaged store. It may leave every verdict alone, and yet waits for a person."""
    for condition in current.conditions:
        if condition.code.partition(".")[0] == _DAMAGED and condition.source == "agent":
            write_continued(f"{condition.code}:", condition.evidence.get("reason", ""))
            for key, label in _DAMAGES.items():
                if text := condition.evidence.get(key):
                    write_field(f" {label}", text)
            write_field(" resets:", "none begins until a person has acknowledged this")
            write_field(" do:", 'nodeagent release node --reason "..."')


def _write_sources(current: pb.Snapshot) -> None:
    """Those that do not observe; the devices of one that are not observed for one reason together."""
    names = {device.id: device.name for device in current.devices}
    unobserved: dict[tuple[str, str], list[str]] = {}
    for source in current.sources:
        if not source.observing:
            device = names.get(source.device_id, source.device_id)
            unobserved.setdefault((source.name, source.reason), []).append(device)
    for (name, reason), devices in unobserved.items():
        which = "" if "" in devices else f" {named(devices)}"
        write_continued(f"source {name} does not observe{which}:", reason)


def _write_holds(current: pb.Snapshot, explained: frozenset[str]) -> None:
    """Those that a person has set, alike ones together."""
    alike: dict[tuple[int, str, str, str], list[str]] = {}
    for hold in (each for each in current.holds if each.kind in _HELD and each.id not in explained):
        until = f" until {for_people(hold.until, current.at)}" if hold.HasField("until") else ""
        alike.setdefault((hold.kind, hold.owner, until, hold.reason), []).append(hold.device)
    for (kind, owner, until, reason), devices in alike.items():
        held = _HELD[kind].format(devices=named(devices))
        write_continued(f"{held} by {owner}{until}:", reason)
