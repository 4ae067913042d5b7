"""Each event as a structured entry of the systemd journal, or as a readable line on a terminal.

Written from a thread of its own: a journal or a terminal that does not take what is written holds up
nothing but itself. It writes events, not the daemon's log.

An entry has the MESSAGE_ID of its code where the package's message catalog explains that code, else that of
its kind, so that ``journalctl -x`` explains it. packaging/journal_catalog.py writes the catalog.
"""

import io
import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO
from uuid import UUID, uuid5

from nodeagent.api.faults.history import follow
from nodeagent.core.catalog.codes import canonical, root
from nodeagent.core.model import Event, EventKind, Verdict
from nodeagent.store.disk.thread import DiskThread
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import StoredEvent

Write = Callable[[StoredEvent], None]

_ERROR, _WARNING, _NOTICE, _INFO = 3, 4, 5, 6
_PRIORITIES = {Verdict.ISOLATE: _ERROR, Verdict.NO_NEW_JOBS: _WARNING, Verdict.UNKNOWN: _WARNING}
_QUIET = frozenset({EventKind.CLEARED, EventKind.RELEASED, EventKind.SOURCE_BACK, EventKind.DEVICE_SEEN})
_COLOURS = {
    Verdict.ISOLATE: "bold red",
    Verdict.NO_NEW_JOBS: "yellow",
    Verdict.UNKNOWN: "magenta",
    Verdict.ALLOW: "green",
}

CATALOG: Final = Path("/usr/lib/systemd/catalog/nodeagent.catalog")
"""Where the package puts the message catalog."""

_OF_A_CODE: Final = frozenset(
    {
        EventKind.RAISED,
        EventKind.LEVEL_CHANGED,
        EventKind.NOTICE,
        EventKind.PROMOTED,
        EventKind.SUPPRESSED,
    }
)
"""Kinds of events that are about what a code means, rather than about what is done."""

_NAMESPACE: Final = UUID("8d3f0c52-55d0-4d0b-9f3a-0c6f2f5a7e11")
"""Of the MESSAGE_IDs. It never changes: sites search by them."""

_CATALOG_ID: Final = re.compile(r"^-- ([0-9a-f]{32})$", re.MULTILINE)

_log = logging.getLogger(__name__)


async def write_events(feed: EventFeed, ledger: Ledger, after_seq: int, write: Write) -> None:
    """Writes every event after a number, until cancelled. Of failures in a row only the first is reported."""
    thread = DiskThread("events")
    reported = False
    try:
        async with aclosing(follow(feed, ledger, after_seq)) as batches:
            async for events in batches:
                try:
                    await thread.run(_writing(write, events))
                    reported = False
                except OSError as error:
                    if not reported:
                        _log.error("events cannot be written: %s", error)
                    reported = True
    finally:
        thread.abandon()


def _writing(write: Write, events: Sequence[StoredEvent]) -> Callable[[], None]:
    def write_all() -> None:
        for stored in events:
            write(stored)

    return write_all


def journal_writer(catalog: Path = CATALOG) -> Write:
    """Writes structured entries: ``journalctl NODEAGENT_DEVICE=...`` finds them."""
    from systemd import journal  # only where there is a journal

    explained = explained_ids(catalog)

    def write(stored: StoredEvent) -> None:
        journal.send(line(stored), MESSAGE_ID=message_id(stored.event, explained), **fields(stored))

    return write


def kind_id(kind: EventKind) -> str:
    """The MESSAGE_ID of events of this kind."""
    return uuid5(_NAMESPACE, f"kind {kind}").hex


def code_id(code: str) -> str:
    """The MESSAGE_ID of a fault code, or of a family such as ``XID_*``."""
    return uuid5(_NAMESPACE, f"code {canonical(code)}").hex


def message_id(event: Event, explained: Collection[str]) -> str:
    """That of the code, or of the family that includes it, if it is ``explained``; else that of the kind."""
    if event.code and event.kind in _OF_A_CODE:
        for code in _rows_of(event.code):
            if (found := code_id(code)) in explained:
                return found
    return kind_id(event.kind)


def _rows_of(code: str) -> Iterator[str]:
    """The codes of the rows that may be of this code, the closest first."""
    yield code
    key = root(code)
    yield key
    for end in range(len(key), 0, -1):
        if key[end - 1] == "_":
            yield f"{key[:end]}*"


def explained_ids(catalog: Path) -> frozenset[str]:
    """The ids that a catalog file explains; none where it is not installed or cannot be read."""
    try:
        return frozenset(_CATALOG_ID.findall(catalog.read_text()))
    except (OSError, UnicodeDecodeError):
        return frozenset()


def fields(stored: StoredEvent) -> dict[str, str]:
    """The fields of a journal entry other than MESSAGE and MESSAGE_ID. Empty ones are left out."""
    event = stored.event
    values = {
        "SYSLOG_IDENTIFIER": "nodeagent",
        "PRIORITY": str(priority(stored)),
        "NODEAGENT_SEQ": str(stored.seq),
        "NODEAGENT_KIND": event.kind,
        "NODEAGENT_DEVICE": event.device,
        "NODEAGENT_DEVICE_ID": event.device_id,
        "NODEAGENT_LEVEL": event.level,
        "NODEAGENT_VERDICT": event.verdict,
        "NODEAGENT_HANDLING": event.handling,
        "NODEAGENT_CODE": event.code,
        "NODEAGENT_NAME": event.name,
        "NODEAGENT_CONDITION_ID": event.condition_id,
        "NODEAGENT_CONDITION_LEVEL": event.condition_level or "",
        "NODEAGENT_RULE": event.rule,
        "NODEAGENT_SOURCE": event.source,
        "NODEAGENT_WHY": event.why,
        "NODEAGENT_EVIDENCE": json.dumps(dict(event.evidence)) if event.evidence else "",
    }
    return {name: str(value) for name, value in values.items() if value}


def priority(stored: StoredEvent) -> int:
    """As syslog counts: 3 error, 4 warning, 5 notice, 6 information."""
    event = stored.event
    if event.kind in _QUIET or event.injected:
        return _INFO
    if not event.code:
        return _PRIORITIES.get(event.verdict, _INFO) if event.kind is EventKind.VERDICT_CHANGED else _INFO
    return _PRIORITIES.get(event.verdict, _NOTICE)


def line(stored: StoredEvent) -> str:
    """One line without a time: device, what happened, code, level, verdict after it, and why."""
    event = stored.event
    level = event.condition_level or event.level
    subject = f"{event.code} {level}" if event.code else event.rule
    marks = "".join(
        f" [{mark}]"
        for mark, is_set in (
            ("injected", event.injected),
            ("userspace", event.userspace),
            ("unknown", event.unknown),
            (f"x{event.count}", event.count > 1),
        )
        if is_set
    )
    words = (f"{event.device:<12}", f"{event.kind:<13}", subject, event.verdict, event.name or event.why)
    return _printable(" ".join(word for word in words if word) + marks)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def line_writer(stream: TextIO) -> Write:
    """Writes one line an event; on a terminal in colour and cut to its width."""
    if isinstance(stream, io.TextIOWrapper):
        # Names and kernel lines may hold what an old terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")
    if stream.isatty():
        return _terminal_writer(stream)

    def write(stored: StoredEvent) -> None:
        stream.write(f"{_clock_time(stored)} {line(stored)}\n")
        stream.flush()

    return write


def _terminal_writer(stream: TextIO) -> Write:
    from rich.console import Console  # slow to import, and of use on a terminal only
    from rich.text import Text

    console = Console(file=stream, highlight=False, soft_wrap=False)

    def write(stored: StoredEvent) -> None:
        text = Text(f"{_clock_time(stored)} ", style="dim", end="")
        text.append(line(stored), style=f"not dim {_COLOURS[stored.event.verdict]}")
        console.print(text, no_wrap=True, overflow="ellipsis", crop=True)

    return write


def _clock_time(stored: StoredEvent) -> str:
    return datetime.fromtimestamp(stored.wall_ns / 1e9).astimezone().strftime("%H:%M:%S")
