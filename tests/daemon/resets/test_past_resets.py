"""What a start reads of the record of resets."""

from pathlib import Path

import pytest

from nodeagent.core.model import NODE, ResetsRecorded
from nodeagent.daemon.resets.exchange import resets_recorded
from nodeagent.reset_unit.exchange.record import RecordedTime, ResetEntry, ResetRecord, now
from nodeagent.reset_unit.exchange.requests import RequestedDevice

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
