"""The kernel log as a driver: read, match, coalesce, report, and record exactly how far it has read.

    ring ──read──> records ──match──> signals ──coalesce──> Batch(signals, lost, cursor)

Everything read before the ring's end was reached for the first time is history: its signals are
``backdated`` with the kernel's own stamps. Then ``CaughtUp``, and from there on lines are live.

A batch's cursor covers all it reports and nothing else, so a worker killed at any moment repeats
nothing and drops nothing. It decides nothing about faults: no levels, no clearing.
"""

import select
import sys
import time
from collections.abc import Sequence
from typing import Final

from nodeagent.drivers.api import CallFailed, Driver, Emit, Link, Population, Reading, Unavailable
from nodeagent.drivers.kmsg.coalesce import Coalescer
from nodeagent.drivers.kmsg.match import Match, Matcher
from nodeagent.drivers.kmsg.parse import KERNEL, Record
from nodeagent.drivers.kmsg.reader import CHUNK_RECORDS, Account, KernelLog, SourceGone
from nodeagent.drivers.kmsg.signals import place_of, signal_of
from nodeagent.wire import Batch, CaughtUp, Configure, Cursor, Lost, Pattern, Signal

CURSOR_INTERVAL_NS: Final = 5_000_000_000
LOSS_INTERVAL_NS: Final = 50_000_000
HISTORY_LIMIT_NS: Final = 5_000_000_000
"""A writer that is faster than this reader may keep it from the ring's end: from then on lines are live."""

BRISK_NS: Final = 250_000_000
BRISK_WAIT_MS: Final = 1.0
"""The kernel wakes a waiting reader at its next tick, up to 4 ms late. Faults come in groups, so for a
while after one the log is read each millisecond; doing so always would cost 3 % of a core."""

REOPEN_FIRST_S: Final = 0.05
REOPEN_LIMIT_S: Final = 5.0


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``path`` and ``trust_userspace``. Raises ``ValueError``."""
    return KernelLogDriver(
        path=str(configure.config.get("path", "/dev/kmsg")),
        trust_userspace=bool(configure.config.get("trust_userspace", False)),
        patterns=configure.patterns,
        account=Account(_position(configure.cursor, configure.boot_id)),
        emit=emit,
    )


def _position(cursor: Cursor | None, boot_id: str) -> int | None:
    """With a cursor of another boot, this boot is reported from its record 0 on."""
    if cursor is None:
        return None
    return cursor.seq if cursor.boot_id == boot_id else -1


class KernelLogDriver:
    """Has no devices of its own to poll: the records name them."""

    def __init__(
        self,
        *,
        path: str,
        trust_userspace: bool,
        patterns: Sequence[Pattern],
        account: Account,
        emit: Emit,
    ) -> None:
        self._log = KernelLog(path)
        self._trust_userspace = trust_userspace
        self._matcher = Matcher(patterns)
        self._account = account
        self._emit = emit
        self._coalescer = Coalescer()
        self._history = True
        self._begun_ns = 0
        self._lost = 0
        self._lost_reported_ns = 0
        self._reported_position = account.position
        self._reported_ns = 0
        self._brisk_until_ns = 0
        self._totals = {"records_total": 0.0, "malformed_total": 0.0, "matched_total": 0.0}

    def open(self) -> None:
        self._begun_ns = self._reported_ns = _now_ns()
        self._log.open()

    def devices(self) -> Population:
        return Population()

    def poll(self, device: str) -> Reading:
        raise CallFailed(f"the kernel log has no device {device!r} to poll")

    def reload(self, patterns: Sequence[Pattern]) -> None:
        self._matcher = Matcher(patterns)

    def close(self) -> None:
        """The process ends next and closes the descriptor; a reader may still be in it now."""

    def follow(self, link: Link) -> None:
        while not link.closed:
            try:
                self._read(link)
            except SourceGone as gone:
                self._emit(Lost(reason=str(gone), errno=gone.errno))
                self._reopen(link)

    # ------------------------------------------------------------------ reading

    def _read(self, link: Link) -> None:
        poller = select.poll()
        poller.register(self._log.fileno(), select.POLLIN)
        poller.register(link.fileno(), select.POLLIN)
        while not link.closed:
            chunk = self._log.read()
            self._totals["records_total"] += len(chunk.records)
            self._totals["malformed_total"] += chunk.malformed
            # A FIFO gives many records a read, and a batch may carry only so many; none is a turn too.
            for first in range(0, max(1, len(chunk.records)), CHUNK_RECORDS):
                self._take(chunk.records[first : first + CHUNK_RECORDS])
            if self._history and (chunk.drained or _now_ns() - self._begun_ns > HISTORY_LIMIT_NS):
                self._end_history()
            self._answer(link)
            if chunk.drained:
                poller.poll(self._patience_ms())

    def _reopen(self, link: Link) -> None:
        poller = select.poll()
        poller.register(link.fileno(), select.POLLIN)
        pause_s = REOPEN_FIRST_S
        while not link.closed:
            try:
                self.open()
            except Unavailable as error:
                print(error, file=sys.stderr, flush=True)
            else:
                self._history = True
                return
            self._answer(link)
            poller.poll(pause_s * 1000)
            pause_s = min(pause_s * 2, REOPEN_LIMIT_S)

    def _answer(self, link: Link) -> None:
        for poll in link.asked():
            link.answer(poll, Reading(readings=dict(self._totals)), begun_ns=_now_ns())

    def _end_history(self) -> None:
        if self._account.disown():
            print(
                "the stored cursor lies beyond this kernel log; reading all of it",
                file=sys.stderr,
                flush=True,
            )
            self._log.rewind()
            return
        self._report(self._coalescer.flush(_now_ns()))
        self._coalescer.reset()
        self._history = False
        self._emit(CaughtUp(begun_ns=self._begun_ns, active=()))

    # ------------------------------------------------------------------ reporting

    def _take(self, records: Sequence[Record]) -> None:
        now_ns = _now_ns()
        fresh = [record for record in records if self._admit(record)]
        signals: list[Signal] = []
        continued = {place for place, record in enumerate(fresh) if record.continues}
        matches = self._matcher.match([record.message for record in fresh], continued)
        for record, match in zip(fresh, matches, strict=True):
            if match is not None:
                self._totals["matched_total"] += 1
                signal = self._signal(record, match, now_ns)
                self._brisk_until_ns = now_ns + BRISK_NS
                signals += self._coalescer.add(signal, signal.last_ns if self._history else now_ns)
        if not self._history:
            signals += self._coalescer.expire(now_ns)
        due = self._loss_due_ns(now_ns) <= now_ns or self._cursor_due_ns(now_ns) <= now_ns
        if signals or due:
            signals += self._coalescer.flush(signals[-1].last_ns if self._history and signals else now_ns)
            self._report(signals)

    def _admit(self, record: Record) -> bool:
        """Whether to match it: it was not reported before."""
        lost = self._account.admit(record.seq)
        if lost is None:
            return False
        self._lost += lost
        return True

    def _report(self, signals: Sequence[Signal]) -> None:
        position = self._account.position
        if signals or self._lost or position != self._reported_position:
            now_ns = _now_ns()
            if self._lost:
                self._lost_reported_ns = now_ns
            self._emit(
                Batch(
                    signals=tuple(signals),
                    lost=self._lost,
                    cursor=None if position is None or position < 0 else position,
                )
            )
            self._lost = 0
            self._reported_position, self._reported_ns = position, now_ns

    def _signal(self, record: Record, match: Match, now_ns: int) -> Signal:
        return signal_of(
            match,
            place_of(record),
            at_ns=min(record.boottime_us * 1000, now_ns),
            trusted=record.facility == KERNEL or self._trust_userspace,
            backdated=self._history,
            properties=record.continuation,
        )

    # ------------------------------------------------------------------ waiting

    def _loss_due_ns(self, now_ns: int) -> int:
        return self._lost_reported_ns + LOSS_INTERVAL_NS if self._lost else now_ns + CURSOR_INTERVAL_NS

    def _cursor_due_ns(self, now_ns: int) -> int:
        advanced = self._account.position != self._reported_position
        return self._reported_ns + CURSOR_INTERVAL_NS if advanced else now_ns + CURSOR_INTERVAL_NS

    def _patience_ms(self) -> float | None:
        """How long nothing has to be done unless something comes; None: for ever."""
        now_ns = _now_ns()
        dues = [self._coalescer.due_ns]
        if self._lost:
            dues.append(self._loss_due_ns(now_ns))
        if self._account.position != self._reported_position:
            dues.append(self._cursor_due_ns(now_ns))
        first_ns = min((due for due in dues if due is not None), default=None)
        patience_ms = None if first_ns is None else max(0.0, (first_ns - now_ns) / 1e6)
        if now_ns < self._brisk_until_ns:
            return BRISK_WAIT_MS if patience_ms is None else min(patience_ms, BRISK_WAIT_MS)
        return patience_ms


def _now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
