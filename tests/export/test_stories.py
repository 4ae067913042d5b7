"""The command against a real store and server: killed amid its work, with receivers that fail.

Each event comes at least once, in order, under one key; the daemon knows how far the receiver has come.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from nodeagent.api import messages
from nodeagent.client import Client, received
from nodeagent.export.connection import TlsFiles
from nodeagent.export.delivery import RecordDelivery
from nodeagent.export.lag import LagReporter
from nodeagent.export.syslog_connection import SyslogDestination, syslog_url
from tests.api.samples import event
from tests.api.stage import IMPATIENT, Stage
from tests.export import given, receivers
from tests.export.receivers import CloudEventsReceiver, Mood, OtlpReceiver, Receiver, SyslogReceiver
from tests.waiting import until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjwS"
COMMAND = (sys.executable, "-m", "nodeagent.cli", "export")
EVENTS = 300
NO_TLS = TlsFiles(None, None, None)


class Export:
    """One life of the command after another; ``log`` has what all wrote."""

    def __init__(self, place: Path, form: str, url: str, options: Sequence[str | Path]) -> None:
        (place / "secret").write_text(SECRET)
        secret = ("--secret", place / "secret") if form == "cloudevents" else ()
        self._command = (
            *COMMAND,
            form,
            url,
            *("--socket", place / "nodeagent.sock", "--consumer", "test"),
            *secret,
            *options,
        )
        self._log = place / "log"

    @property
    def log(self) -> str:
        return self._log.read_text()

    @asynccontextmanager
    async def running(self, *, kill: bool = False) -> AsyncIterator[asyncio.subprocess.Process]:
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(*map(str, self._command), stderr=log)
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill() if kill else process.terminate()
            status = await process.wait()
        assert status == (-9 if kill else 0), self.log


def acknowledged(stage: Stage) -> int:
    """-1 as long as the daemon does not know the name."""
    kept = stage.ledger.consumer("test")
    return -1 if kept is None else kept.seq


async def comes_to(stage: Stage, seq: int) -> None:
    await until(lambda: acknowledged(stage) >= seq, f"acknowledged: {seq}")


Open = Callable[[], AbstractContextManager[Receiver]]
FORMS: Sequence[tuple[str, Open, Sequence[str]]] = (
    ("otlp", lambda: receivers.http(OtlpReceiver(receivers.one_in_three())), ("--timeout", "0.5")),
    (
        "cloudevents",
        lambda: receivers.http(CloudEventsReceiver(receivers.one_in_three(), SECRET)),
        ("--batch", "16"),
    ),
    ("syslog", lambda: receivers.syslog(SyslogReceiver(receivers.one_in_three())), ()),
)


@pytest.mark.parametrize(("form", "opened", "options"), FORMS, ids=[form for form, _, _ in FORMS])
async def test_killed_twice_and_with_a_receiver_that_fails_no_event_is_lost_or_overtakes(
    stage: Stage, place: Path, form: str, opened: Open, options: Sequence[str]
) -> None:
    with opened() as receiver:
        export = Export(place, form, receiver.url, options)
        async with export.running(kill=True):
            await comes_to(stage, 0)
            await stage.commit(*[event() for _ in range(EVENTS)])
            await until(lambda: len(receiver.taken) > EVENTS // 3, export.log)
        async with export.running(kill=True):
            await until(lambda: len(set(receiver.taken)) > EVENTS // 2, export.log)
        async with export.running():
            await comes_to(stage, EVENTS)
    store = stage.ledger.store_id

    assert list(dict.fromkeys(receiver.taken)) == [
        f"{store.uuid}:{store.epoch}:{seq}" for seq in range(1, EVENTS + 1)
    ]
    assert len(receiver.taken) > EVENTS  # some were taken, and reported as failed


async def test_events_that_were_deleted_first_are_reported_to_the_receiver(stage: Stage, place: Path) -> None:
    with receivers.http(CloudEventsReceiver(receivers.always, SECRET)) as receiver:
        export = Export(place, "cloudevents", receiver.url, ())
        async with export.running():
            await comes_to(stage, 0)
            await stage.commit(event(), event(), long_ago=True)
            await comes_to(stage, 2)
        await stage.commit(event(), event(), event(), long_ago=True)
        await stage.commit(event())
        await stage.reopen()
        await until(lambda: stage.ledger.oldest_seq == 6)
        async with export.running():
            await comes_to(stage, 6)

    resync = receiver.records[2]
    assert (resync["type"], resync["id"].split(":", 1)[1]) == ("nodeagent.resync", "1:5:resync")
    assert (resync["data"]["missed_from_seq"], resync["data"]["missed_to_seq"]) == (3, 5)
    assert [each["id"].rsplit(":", 1)[1] for each in receiver.records[3:]] == ["6"]  # it is still kept
    assert "events 3 to 5 were deleted before they were exported" in export.log


async def test_a_new_exporter_begins_with_the_oldest_event_where_that_is_wanted(
    stage: Stage, place: Path
) -> None:
    await stage.commit(event(), event())
    with receivers.syslog(SyslogReceiver(receivers.always)) as receiver:
        async with Export(place, "syslog", receiver.url, ("--start", "beginning")).running():
            await comes_to(stage, 2)

    assert [key.rsplit(":", 1)[1] for key in receiver.taken] == ["1", "2"]


async def test_a_slow_receiver_gets_what_came_meanwhile_together(stage: Stage, place: Path) -> None:
    with receivers.http(OtlpReceiver(lambda: Mood.IS_SLOW)) as receiver:
        export = Export(place, "otlp", receiver.url, ())
        async with export.running():
            await comes_to(stage, 0)
            for _ in range(100):
                await stage.commit(event())
            await comes_to(stage, 100)

    assert receiver.requests < 20
    assert len(receiver.taken) == 100


async def test_what_the_filter_holds_back_is_acknowledged_too(place: Path) -> None:
    stage = Stage(place, pace=IMPATIENT)
    await stage.open()
    with receivers.syslog(SyslogReceiver(receivers.always)) as receiver:
        export = Export(place, "syslog", receiver.url, ("--device", "gpu1", "--min-level", "SeparateNPU"))
        async with export.running():
            await comes_to(stage, 0)
            await stage.commit(event("gpu0"), event("gpu1"), event("gpu0"))
            await comes_to(stage, 3)
    await stage.close()

    assert [key.rsplit(":", 1)[1] for key in receiver.taken] == ["2"]


async def test_the_service_manager_gets_how_many_events_wait(stage: Stage) -> None:
    await stage.commit(*[event() for _ in range(5)])
    async with stage.client() as client:
        await client.ack("test", received.position(messages.store_id(stage.ledger.store_id), 2))
    lines: list[str] = []
    with receivers.syslog(SyslogReceiver(receivers.always)) as receiver, Client(stage.socket) as daemon:
        destination = SyslogDestination(
            syslog_url(receiver.url, NO_TLS), tls=NO_TLS, facility=3, data_id="nodeagent@0", timeout_s=5.0
        )
        delivery = RecordDelivery(destination, None)
        await asyncio.to_thread(list, delivery.deliver(given.numbered(1, 2)))
        await asyncio.to_thread(LagReporter(daemon, delivery, "test", lines.append, lambda: None).report)

    assert lines == ["STATUS=2 events delivered, 3 waiting"]


async def test_a_position_that_another_exporter_moves_is_reported(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.commit(*[event() for _ in range(5)])
    store = messages.store_id(stage.ledger.store_id)
    async with stage.client() as client:
        await client.ack("test", received.position(store, 4))
    lines: list[str] = []
    with receivers.syslog(SyslogReceiver(receivers.always)) as receiver, Client(stage.socket) as daemon:
        destination = SyslogDestination(
            syslog_url(receiver.url, NO_TLS), tls=NO_TLS, facility=3, data_id="nodeagent@0", timeout_s=5.0
        )
        delivery = RecordDelivery(destination, None)
        for own in (4, 2):
            acknowledging = partial(received.position, store, own)
            reporter = LagReporter(daemon, delivery, "test", lines.append, acknowledging)
            await asyncio.to_thread(reporter.report)

    assert lines == [
        "STATUS=0 events delivered, 1 waiting",
        "STATUS=0 events delivered, 1 waiting; another exporter moves the position test",
    ]
    assert [each.getMessage().partition(":")[0] for each in caplog.records if each.levelname == "ERROR"] == [
        "another exporter moves the position test"
    ]
