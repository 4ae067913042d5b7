"""What ``top`` knows of the daemon: kept up by two threads, and read as a value at any time.

One thread follows the event stream: what happens has the state read again at once. The other reads it, the
measurements every two seconds, and what a pane shows. Where the daemon does not answer, the last state stays,
with the reason, and both try again. Nothing is drawn here.
"""

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeagent.cli.ask.devices import readings_of
from nodeagent.cli.ask.events import NEWEST_SHOWN
from nodeagent.cli.ask.why import write_why
from nodeagent.cli.shared import connection
from nodeagent.cli.shared.connection import take_snapshot
from nodeagent.cli.shared.errors import CommandFailure
from nodeagent.cli.shared.output import captured
from nodeagent.cli.shared.texts import for_people, present, write_event
from nodeagent.cli.top.choices import Pane
from nodeagent.cli.top.screen import LastAnswer
from nodeagent.client import Client, ClientError
from nodeagent.messages.pb import fault_service_pb2 as pb

MEASURED_EACH_S: Final = 2.0
_ANSWER_LIMIT_S: Final = 3.0
_RETRY_S: Final = 0.5
_AT_MOST_EACH_S: Final = 0.2
"""A flood of events has the state read five times a second."""

Text = Callable[[], list[str]]
"""The lines of a pane, made for the width that the terminal has when it is called."""


class NodeFeed:
    """``changed`` is called, from any thread, when there is something new to draw."""

    def __init__(self, path: Path, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._pane = (Pane.DEVICES, "")
        self._stopped = False
        self._follows = False
        self._clients: dict[str, Client] = {}
        self.seen: LastAnswer | None = None
        self.text: tuple[tuple[Pane, str], Text] = ((Pane.DEVICES, ""), list)

    def start(self) -> None:
        """Raises ``CommandFailure`` where the daemon does not answer."""
        with connection.opened(self._path, _ANSWER_LIMIT_S) as daemon:
            self._read(daemon, measures=True)
        for run in (self._follow, self._ask):
            threading.Thread(target=run, name=f"top{run.__name__}", daemon=True).start()

    def stop(self) -> None:
        self._stopped = True
        self._wanted.put(None)
        for client in tuple(self._clients.values()):
            client.close()

    def show(self, pane: Pane, device: str) -> None:
        """From now on ``text`` is kept for this pane."""
        if (pane, device) != self._pane:
            self._pane = (pane, device)
            self._wanted.put(None)

    def _follow(self) -> None:
        """What comes on the stream is not drawn itself: the state after it is read."""
        request = pb.WatchRequest(snapshot=pb.SNAPSHOT_MODE_IF_NEEDED)
        while not self._stopped:
            try:
                with Client(self._path) as daemon:
                    self._clients["follow"] = daemon
                    for _ in daemon.stream(request):
                        self._follows = True
                        self._wanted.put(None)
            except ClientError:
                pass  # the other thread learns why, and reports it
            if self._follows:
                self._follows = False
                self._report("the event stream broke off")
                self._wanted.put(None)
            time.sleep(_RETRY_S)

    def _ask(self) -> None:
        while not self._stopped:
            try:
                with connection.opened(self._path, _ANSWER_LIMIT_S) as daemon:
                    self._clients["ask"] = daemon
                    self._ask_again_and_again(daemon)
            except CommandFailure as error:
                self._report(error.message)
                time.sleep(_RETRY_S)

    def _ask_again_and_again(self, daemon: Client) -> None:
        """Until the daemon does not answer. Raises ``ClientError``."""
        measure_at_s = time.monotonic()
        while not self._stopped:
            left_s = measure_at_s - time.monotonic()
            if self._is_wanted(left_s) or not self._follows or self.seen is None or self.seen.silent:
                self._read(daemon, measures=left_s <= 0)
            elif left_s <= 0:
                self.seen = replace(self.seen, readings=readings_of(daemon), at=present())
            if left_s <= 0:
                measure_at_s = time.monotonic() + MEASURED_EACH_S
            self._changed()

    def _is_wanted(self, limit_s: float) -> bool:
        """Whether something has happened; after a pause, all that came meanwhile is one."""
        try:
            self._wanted.get(timeout=max(limit_s, 0.0) or 0.001)
        except queue.Empty:
            return False
        time.sleep(_AT_MOST_EACH_S)
        while not self._wanted.empty():
            self._wanted.get()
        return True

    def _read(self, daemon: Client, *, measures: bool) -> None:
        state = take_snapshot(daemon)
        measured = readings_of(daemon) if measures or self.seen is None else self.seen.readings
        pane, device = self._pane
        self.text = ((pane, device), _text_of(daemon, pane, device, state.snapshot))
        self.seen = LastAnswer(
            node=state.node.node_name,
            snapshot=state.snapshot,
            at=state.snapshot.at,
            readings=measured,
            durable=state.durable,
        )

    def _report(self, reason: str) -> None:
        """The last state stays, with why there is no newer one. An answer that comes later ends that."""
        if self.seen is not None and not self._stopped:
            self.seen = replace(self.seen, silent=reason)
            self._changed()


def _text_of(daemon: Client, pane: Pane, device: str, current: pb.Snapshot) -> Text:
    """Of a device that has gone, that it has."""
    if pane is Pane.EVENTS:
        return _events_text(daemon.call(pb.ListEventsRequest(limit=NEWEST_SHOWN, newest=True)))
    if pane is not Pane.WHY:
        return list
    try:
        why = daemon.call(pb.WhyDeviceRequest(device=device))
    except ClientError as error:
        if error.status != "NOT_FOUND":
            raise
        reason = error.reason
        return lambda: [reason]
    return _why_text(why, current)


def _events_text(listed: pb.ListEventsResponse) -> Text:
    def text() -> list[str]:
        with captured() as lines:
            for event in listed.events:
                write_event(event, time_text=for_people)
        return lines

    return text


def _why_text(why: pb.WhyDeviceResponse, current: pb.Snapshot) -> Text:
    def text() -> list[str]:
        now = pb.Snapshot()
        now.CopyFrom(current)
        now.at.CopyFrom(present())
        with captured() as lines:
            write_why(why, now)
        return lines

    return text
