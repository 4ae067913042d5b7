"""The end of the kernel log of the previous boot, from the systemd journal, where no shutdown ended it.

It may show what stopped the node. The core emits it as notices and acts on none of it. Once it is read
the source is absent until the next boot. It is absent too if no journal is on a disk, or if the previous boot
ended in order.

The cursor counts the lines that were taken up: if one of them ends the worker, the next worker goes on after
it.
"""

import errno
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from systemd import journal

from nodeagent.core.model import Assertion
from nodeagent.drivers.api import CallFailed, Driver, Emit, Link, Population, Reading, Unavailable
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.drivers.kmsg.parse import KERNEL
from nodeagent.drivers.kmsg.signals import evidence_of, line_of
from nodeagent.wire import MAX_SIGNALS, Batch, Configure, Pattern, Signal

STOPPED: Final = UUID("d93fb3c9c24d451a97cea615ce59c00b")
"""The last entry of a boot that ends in order: SD_MESSAGE_JOURNAL_STOPPED of systemd's sd-messages.h."""

JOURNALD: Final = "driver"
"""The ``_TRANSPORT`` of what journald itself writes (systemd.journal-fields(7)). Any user may write the
message id; only journald writes a field that begins with ``_``.
"""

MAX_LINES: Final = 100_000
AT_ONCE: Final = 4096

Entry = Mapping[str, Any]


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``path``, a folder of journals; ``window_ns``, how much of the boot's end is read.

    Raises ``ValueError``.
    """
    cursor, window_ns = configure.cursor, configure.config["window_ns"]
    if not isinstance(window_ns, int):
        raise ValueError(f"window_ns: {window_ns!r} must be a whole number")  # noqa: TRY004  as create says
    return PreviousBoot(
        path=str(configure.config["path"]),
        boot=UUID(configure.boot_id),
        window=timedelta(microseconds=window_ns / 1000),
        patterns=configure.patterns,
        taken=cursor.seq if cursor is not None and cursor.boot_id == configure.boot_id else 0,
        emit=emit,
    )


class PreviousBoot:
    """Has no devices. ``taken``: so many lines were taken up before."""

    def __init__(
        self, *, path: str, boot: UUID, window: timedelta, patterns: Sequence[Pattern], taken: int, emit: Emit
    ) -> None:
        self._path = path
        self._boot = boot
        self._window = window
        self._patterns = patterns
        self._taken = taken
        self._emit = emit
        self._lines: Sequence[Entry] = ()
        self._previous = ""

    def open(self) -> None:
        try:
            reader = journal.Reader(path=self._path)
        except OSError as error:
            is_absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
            raise Unavailable(f"{self._path}: no journal: {error.strerror}", absent=is_absent) from error
        last = _last_of_previous(reader, self._boot)
        if last is None:
            raise Unavailable(f"{self._path} holds no earlier boot", absent=True)
        self._previous = last["_BOOT_ID"].hex
        if last.get("MESSAGE_ID") == STOPPED and last.get("_TRANSPORT") == JOURNALD:
            raise Unavailable(f"the previous boot, {self._previous}, ended in order", absent=True)
        self._lines = tuple(_kernel_lines(reader, last, self._window))

    def devices(self) -> Population:
        return Population()

    def poll(self, device: str) -> Reading:
        raise CallFailed(f"the previous boot has no device {device!r} to poll")

    def reload(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns

    def close(self) -> None:
        """The process ends next."""

    def follow(self, link: Link) -> None:
        """Reports all there is. Raises ``Unavailable`` at its end.

        Patterns are compiled here: at most starts there is nothing to read.
        """
        matcher = Matcher(self._patterns)
        while self._taken < len(self._lines) and not link.closed:
            lines = self._lines[self._taken : self._taken + AT_ONCE]
            self._taken += len(lines)
            self._emit(Batch(cursor=self._taken))
            found = self._found(lines, matcher)
            for first in range(0, len(found), MAX_SIGNALS):
                self._emit(Batch(signals=tuple(found[first : first + MAX_SIGNALS])))
        if not link.closed:
            raise Unavailable(
                f"{len(self._lines)} kernel lines of the previous boot, {self._previous}, were read",
                absent=True,
            )

    def _found(self, lines: Sequence[Entry], matcher: Matcher) -> list[Signal]:
        """One signal for each fault of each device, with its last line and the number of its lines."""
        signals: dict[tuple[str, str, bool], Signal] = {}
        messages = [_text(line["MESSAGE"]) for line in lines]
        for line, message, match in zip(lines, messages, matcher.match(messages), strict=True):
            if match is None or match.assertion is Assertion.RECOVER:
                continue
            trusted = line.get("SYSLOG_FACILITY", KERNEL) == KERNEL
            key = (match.device, match.code, trusted)
            before = signals.pop(key, None)
            place = line_of(message) | {
                "boot_id": self._previous,
                "time": line["__REALTIME_TIMESTAMP"].isoformat(timespec="milliseconds"),
            }
            found = Signal(
                device=match.device,
                code=match.code,
                count=match.count if before is None else before.count + match.count,
                evidence=evidence_of(place, match, {}),
                trusted=trusted,
            )
            signals[key] = found
        return list(signals.values())


def _last_of_previous(reader: journal.Reader, boot: UUID) -> Entry | None:
    """The last entry of the boot before ``boot``, None if there is none."""
    reader.add_match(_BOOT_ID=boot.hex)
    reader.seek_head()
    first = reader.get_next()
    reader.flush_matches()
    if first:
        reader.seek_cursor(first["__CURSOR"])
        reader.get_next()
    else:
        reader.seek_tail()
    before = reader.get_previous()
    if not before or before["_BOOT_ID"] == boot:
        return None
    reader.add_match(_BOOT_ID=before["_BOOT_ID"].hex)
    reader.seek_tail()
    last: Entry = reader.get_previous()
    return last


def _kernel_lines(reader: journal.Reader, last: Entry, window: timedelta) -> Iterator[Entry]:
    """The kernel's lines of the boot that the reader is limited to, oldest first."""
    reader.add_match(_TRANSPORT="kernel")
    reader.seek_realtime(last["__REALTIME_TIMESTAMP"] - window)
    for _ in range(MAX_LINES):
        if not (entry := reader.get_next()):
            return
        if "MESSAGE" in entry:
            yield entry


def _text(message: str | bytes) -> str:
    return message if isinstance(message, str) else message.decode("utf-8", "backslashreplace")
