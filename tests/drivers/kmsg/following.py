"""A kernel-log driver that follows a log in a thread of the test, with its reports kept."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from nodeagent.drivers.api import CallFailed, Reading
from nodeagent.drivers.kmsg.driver import KernelLogDriver, create
from nodeagent.wire import Batch, CaughtUp, Configure, Cursor, Following, Pattern, Poll, Signal
from nodeagent.worker.reports import SourceLink

PATIENCE_S = 60.0
BOOT = "this-boot"
FAULT = Pattern(id="FAULT", code="{code}", regex=r"fault (?P<code>\w+)(?: of (?P<name>.*))?", device="node")

Wanted = TypeVar("Wanted")


class Reports:
    """Takes what the driver emits, and lets a test wait for it."""

    def __init__(self) -> None:
        self.all: list[Following] = []
        self.replies: list[Reading] = []
        self._changed = threading.Condition()

    def __call__(self, report: Following) -> None:
        with self._changed:
            self.all.append(report)
            self._changed.notify_all()

    def enqueue(self, report: Batch) -> None:
        self(report)

    def reply(self, _poll_id: int, _device: str, _begun_ns: int, outcome: Reading | CallFailed) -> None:
        assert isinstance(outcome, Reading)
        with self._changed:
            self.replies.append(outcome)
            self._changed.notify_all()

    @property
    def batches(self) -> list[Batch]:
        return [report for report in self.all if isinstance(report, Batch)]

    @property
    def signals(self) -> list[Signal]:
        return [signal for batch in self.batches for signal in batch.signals]

    @property
    def codes(self) -> list[tuple[str, int]]:
        return [(signal.code, signal.count) for signal in self.signals]

    @property
    def lost(self) -> int:
        return sum(batch.lost for batch in self.batches)

    @property
    def cursor(self) -> int | None:
        return next((batch.cursor for batch in reversed(self.batches) if batch.cursor is not None), None)

    def until(self, found: Callable[[], Wanted | None]) -> Wanted:
        with self._changed:
            self._changed.wait_for(lambda: bool(found()), PATIENCE_S)
            result = found()
        assert result, f"never came: {self.all}"
        return result

    def caught_up(self, times: int = 1) -> None:
        self.until(lambda: sum(isinstance(report, CaughtUp) for report in self.all) >= times)


class Followed:
    """``ask`` polls the source, as the daemon does each second."""

    def __init__(self, driver: KernelLogDriver, reports: Reports, link: SourceLink) -> None:
        self.driver = driver
        self.reports = reports
        self._link = link

    def ask(self) -> Reading:
        answered = len(self.reports.replies)
        self._link.ask(Poll(id=1, devices=("*",)))
        return self.reports.until(lambda: self.reports.replies[answered:])[0]


@contextlib.contextmanager
def followed(
    path: object,
    cursor: Cursor | None = None,
    patterns: tuple[Pattern, ...] = (FAULT,),
    **config: Any,
) -> Iterator[Followed]:
    reports = Reports()
    configure = Configure(
        driver="kmsg",
        boot_id=BOOT,
        config={"path": str(path), **config},
        patterns=patterns,
        cursor=cursor,
    )
    driver = create(configure, reports)
    assert isinstance(driver, KernelLogDriver)
    link = SourceLink(reports.reply)
    driver.open()
    thread = threading.Thread(target=driver.follow, args=(link,))
    thread.start()
    try:
        yield Followed(driver, reports, link)
    finally:
        link.close()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
