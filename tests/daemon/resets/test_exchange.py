"""The request of a reset, bounded whatever is known of its devices; and what a start reads of the record."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from nodeagent.config.load import load_config
from nodeagent.core.model import NODE, Reason, ResetsRecorded
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.resets.exchange import RequestBuilder, attempt_of, resets_recorded
from nodeagent.reset_unit.exchange.record import RecordedTime, ResetEntry, ResetRecord, now
from nodeagent.reset_unit.exchange.requests import MAX_BYTES, RequestedDevice
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, Transaction
from tests.daemon.resets.samples import action, view
from tests.store.samples import PATIENT, WALL_NS, event

AGO_NS = 60 * 10**9
RULE_NS = 10**18


def at(ago_ns: int) -> RecordedTime:
    present = now()
    return RecordedTime(
        boot_id=present.boot_id,
        boottime_ns=present.boottime_ns - ago_ns,
        wall_ns=present.wall_ns - ago_ns,
    )


async def test_each_reset_counts_for_its_devices_and_for_the_node(tmp_path: Path) -> None:
    record = ResetRecord(tmp_path / "record")
    record.make()
    known, nameless = (
        RequestedDevice(name="npu0", identity="die0"),
        RequestedDevice(name="npu1", pci="0000:01:00.0"),
    )
    for ago_ns, devices in ((2 * AGO_NS, (known,)), (AGO_NS, (known, nameless))):
        record.put(ResetEntry(action="a", attempt=1, vendor="ascend", devices=devices, begun=at(ago_ns)))

    stored = dict((await resets_recorded(tmp_path / "record", RULE_NS)).resets_ns)

    assert {device: len(times) for device, times in stored.items()} == {
        NODE: 2,
        "die0": 2,
        "slot:0000:01:00.0": 1,
    }
    assert stored["die0"][0] < stored["die0"][1] < RULE_NS - AGO_NS


async def test_no_record_is_none(tmp_path: Path) -> None:
    assert await resets_recorded(tmp_path / "record", RULE_NS) == ResetsRecorded(resets_ns=())


async def test_one_that_others_could_write_is_not_believed_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "record" / "resets").mkdir(parents=True)
    (tmp_path / "record" / "resets").chmod(0o777)
    assert await resets_recorded(tmp_path / "record", RULE_NS) == ResetsRecorded(resets_ns=())
    assert "chmod go-w" in caplog.text


EVENTS = 300
FAULTS = 256


async def test_the_evidence_of_a_device_with_many_faults_leaves_room_for_its_reset(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'[agent]\nstate_dir = "{tmp_path}/state"\n')
    ledger = Ledger(tmp_path / "state", "machine", limits=PATIENT)
    await ledger.open()
    all_of_them = tuple(
        Reason(kind="condition", id=f"die0/80E18005#{number}", code="80E18005", text="on-chip memory error")
        for number in range(FAULTS)
    )
    stored = [replace(event(number), device_id="die0", reasons=all_of_them) for number in range(EVENTS)]
    committed = await ledger.commit(Transaction(events=tuple((WALL_NS, each) for each in stored)))
    feed, shown = EventFeed(), view()
    feed.publish(
        Publication(
            view=shown, store_id=committed.store_id, seq=committed.last_seq, durable=True, wall_offset_ns=0
        )
    )
    clock = Clock(boot_id="boot", offset_ns=0)
    requests = RequestBuilder(load_config(tmp_path / "c.toml", {}), clock, feed, ledger)
    request = await requests.request(attempt_of(shown, shown.resets[0]), action(), {})
    assert len(msgspec.json.encode(request)) < MAX_BYTES
    numbers = [int(msgspec.json.decode(each)["event"]["evidence"]["number"]) for each in request.events]
    assert numbers == list(range(EVENTS - len(numbers), EVENTS))
    assert len(numbers) > 10
    await ledger.close()
