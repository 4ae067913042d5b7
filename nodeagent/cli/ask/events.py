"""``nodeagent events``: the events that the store kept, and new ones. It reconnects where the daemon
restarts.
"""

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.cli.ask.reading import read, timeout_option
from nodeagent.cli.shared import json_forms
from nodeagent.cli.shared.connection import Reader, Unreachable, opened, unknown_codes, unknown_devices
from nodeagent.cli.shared.errors import EXIT_INTERRUPTED, EXIT_NOT_ALLOWED, CommandFailure
from nodeagent.cli.shared.event_filter import event_filter_options
from nodeagent.cli.shared.options import (
    Output,
    output_option,
    public_socket,
    query_socket,
    socket_option,
    time_option,
)
from nodeagent.cli.shared.output import note, write_json
from nodeagent.cli.shared.texts import for_people, without_age, write_event
from nodeagent.client import Client
from nodeagent.core.model import EventKind, Level
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2

NEWEST_SHOWN: Final = 100
NEWEST_BEFORE_FOLLOWING: Final = 10
_PAGE: Final = 1000
_PAUSE_S: Final = 0.5


@click.command("events")
@click.option("-f", "--follow", is_flag=True, help="Show new events, also after restarts of the daemon.")
@click.option("--after", metavar="N", type=click.IntRange(min=0), help="All kept events after number N.")
@click.option(
    "-n",
    "--newest",
    metavar="COUNT",
    type=click.IntRange(min=0, max=100_000),
    help=f"The newest COUNT events; {NEWEST_SHOWN}, or {NEWEST_BEFORE_FOLLOWING} with --follow.",
)
@event_filter_options
@time_option("--since", "At this time or later")
@time_option("--until", "Before this time")
@timeout_option
@socket_option
@output_option
def command(
    follow: bool,
    after: int | None,
    newest: int | None,
    devices: tuple[str, ...],
    codes: tuple[str, ...],
    since: Timestamp | None,
    until: Timestamp | None,
    kinds: tuple[str, ...],
    min_level: str | None,
    timeout_s: float | None,
    socket: Path | None,
    config_path: Path | None,
    output: Output,
) -> None:
    """Show the newest events, or all after a number or of a time, oldest first.

    Exit status 1 if a device or code is unknown and no event of it is kept. If no daemon answers, its store
    is read, but not with --follow.
    """
    if after is not None and newest is not None:
        raise click.UsageError("--after and --newest exclude each other")
    if follow and until is not None:
        raise click.UsageError("--follow and --until exclude each other")
    if newest is None and after is None and (since or until):
        after = 0
    wanted = pb.EventFilter(
        devices=devices,
        codes=codes,
        kinds=[enums.EVENT_KINDS[EventKind(kind)] for kind in kinds],
        minimum_level=enums.level_number(Level(min_level) if min_level else None),
    )
    asked = pb.ListEventsRequest(filter=wanted, since=since, until=until)
    count = newest if newest is not None else _newest(follow)
    try:
        if follow:
            path = public_socket(socket, config_path)
            follower = EventFollower(path, asked, output, follows=True)
            with opened(path) as daemon:
                follower.show_kept(daemon, after, count)
            follower.follow()
        else:
            path = query_socket(socket, config_path)
            shown = EventFollower(path, asked, output, follows=False)

            def show_kept(daemon: Reader) -> None:
                shown.show_kept(daemon, after, count)

            read(socket, config_path, timeout_s, show_kept, lambda _shown: None)
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPTED) from None


def _newest(follow: bool) -> int:
    return NEWEST_BEFORE_FOLLOWING if follow else NEWEST_SHOWN


class EventFollower:
    """Shows events once each, in order; ``_position`` is how far it has come.

    ``asked`` is what each page of kept events has; its times are not for later events.
    """

    def __init__(self, socket: Path, asked: pb.ListEventsRequest, output: Output, follows: bool) -> None:
        self._socket = socket
        self._asked = asked
        self._wanted = asked.filter
        self._follows = follows
        self._has_shown = False
        self._output = output
        self._store_id = types_pb2.StoreId()
        self._position = 0
        self._waiting = False

    def show_kept(self, daemon: Reader, after: int | None, newest: int) -> None:
        """All after a number, or else the newest that match."""
        if after is not None:
            kept = self._pages(daemon, after)
        elif self._wanted.codes or newest > _PAGE:
            kept = iter(deque(self._pages(daemon, 0), maxlen=newest))
        else:
            kept = self._newest(daemon, newest)
        for event in kept:
            self._show(event)
        if not self._has_shown and newest:
            self._check_known(daemon)

    def _check_known(self, daemon: Reader) -> None:
        """Nothing was found: raises ``CommandFailure`` for names that are unknown. With --follow: a note."""
        unknown = [*unknown_devices(daemon, self._wanted.devices), *unknown_codes(daemon, self._wanted.codes)]
        if unknown and not self._follows:
            raise CommandFailure("\n".join(unknown))
        for each in unknown:
            note(f"nodeagent: {each}; waiting for it")

    def follow(self) -> None:
        """Until interrupted. When the daemon is back, it continues after the last event."""
        while True:
            try:
                with opened(self._socket) as daemon:
                    self._watch(daemon)
            except Unreachable as error:
                if error.exit_code == EXIT_NOT_ALLOWED:
                    raise
                if not self._waiting:
                    note(f"nodeagent: {error.message}; waiting for it")
                    self._waiting = True
            time.sleep(_PAUSE_S)

    def _watch(self, daemon: Client) -> None:
        request = pb.WatchRequest(
            store_id=self._store_id,
            after_seq=self._position,
            snapshot=pb.SNAPSHOT_MODE_IF_NEEDED,
            filter=self._wanted,
        )
        for answer in daemon.stream(request):
            if self._waiting:
                note("nodeagent: the daemon answers again")
                self._waiting = False
            self._take(answer)

    def _take(self, answer: pb.WatchResponse) -> None:
        if answer.HasField("batch"):
            for event in answer.batch.events:
                if event.seq > self._position or answer.store_id != self._store_id:
                    self._show(event)
                    self._position = event.seq
        elif answer.HasField("snapshot"):
            missed = answer.snapshot.missed_from_seq
            if missed:
                note(f"nodeagent: events {missed} to {answer.snapshot.seq} are no longer kept")
            self._position = answer.snapshot.seq
        else:
            self._position = max(self._position, answer.bookmark.seq)
        self._store_id = answer.store_id

    def _newest(self, daemon: Reader, count: int) -> Iterator[types_pb2.Event]:
        page = self._page(daemon, pb.ListEventsRequest(newest=True, limit=max(count, 1)))
        self._position = page.next_after_seq
        yield from page.events if count else ()

    def _pages(self, daemon: Reader, after: int) -> Iterator[types_pb2.Event]:
        more = True
        while more:
            page = self._page(daemon, pb.ListEventsRequest(after_seq=after, limit=_PAGE))
            yield from page.events
            after, more = page.next_after_seq, page.more
            self._position = after

    def _page(self, daemon: Reader, request: pb.ListEventsRequest) -> pb.ListEventsResponse:
        request.MergeFrom(self._asked)
        page: pb.ListEventsResponse = daemon.call(request)
        self._store_id = page.store_id
        return page

    def _show(self, event: types_pb2.Event) -> None:
        self._position = max(self._position, event.seq)
        self._has_shown = True
        if self._output == Output.JSON:
            write_json(json_forms.form(event))
        else:
            write_event(event, time_text=without_age if self._follows else for_people)
