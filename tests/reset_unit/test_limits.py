"""How often devices are reset: counted by the process of a reset, whatever the daemon says or forgets."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from nodeagent.config.reset import ResetConfig
from nodeagent.reset_unit.exchange.record import (
    KEPT_NS,
    PastReset,
    RecordedTime,
    ResetEntry,
    ResetRecord,
    ago_ns,
    now,
    resets_of_late,
)
from nodeagent.reset_unit.exchange.requests import RequestedDevice, ResetResult
from nodeagent.reset_unit.plan import limit_exceeded
from tests.reset_unit.conftest import INBAND, ResetUnit
from tests.waiting import wait_until

MINUTE_NS = 60 * 10**9
HOUR_NS = 60 * MINUTE_NS
NPU0 = RequestedDevice(name="npu0", identity="die0", pci="0000:1b:00.0")
NPU1 = RequestedDevice(name="npu1", identity="die1", pci="0000:1c:00.0")
LIMITS = ResetConfig(limit=2, node_limit=3, limit_window_ns=HOUR_NS, cool_down_ns=MINUTE_NS)
HERE = RecordedTime(boot_id="b", boottime_ns=50 * HOUR_NS, wall_ns=1_000 * HOUR_NS)


def ask_again(reset_unit: ResetUnit, number: int) -> ResetResult:
    return reset_unit.do(action=f"die0/reset#{number}")


# ---------------------------------------------------------------------- with the real process


def test_more_resets_than_the_limit_are_refused_whoever_asks_for_them(reset_unit: ResetUnit) -> None:
    reset_unit.configure("limit = 2")
    done = [ask_again(reset_unit, number) for number in range(1, 5)]
    assert [result.state for result in done] == ["done", "done", "refused", "refused"]
    assert done[2].reason == "npu0 had 2 resets within 6 h, by their record"
    assert reset_unit.resets == 2


def test_the_node_has_a_limit_of_its_own_and_a_cool_down(reset_unit: ResetUnit) -> None:
    reset_unit.configure("node_limit = 1")
    assert ask_again(reset_unit, 1).state == "done"
    assert ask_again(reset_unit, 2).reason == "this node had 1 reset within 6 h, by their record"
    reset_unit.configure('cool_down = "1h"')
    config = reset_unit.config.read_text().replace('cool_down = "0s"\n', "")
    reset_unit.config.write_text(config)
    assert ask_again(reset_unit, 3).reason.endswith(" s ago, and reset.cool_down is 3600 s")


def test_what_was_counted_is_told_to_who_may_only_read(reset_unit: ResetUnit) -> None:
    before = now()
    assert ask_again(reset_unit, 7).state == "done"
    (entry,) = resets_of_late(reset_unit.record)
    assert (entry.action, entry.attempt, entry.vendor) == ("die0/reset#7", 1, "ascend")
    assert [device.name for device in entry.devices] == ["npu0", "npu1", "npu2", "npu3"]
    assert all(device.identity and device.pci for device in entry.devices)
    assert before.boottime_ns < entry.at.boottime_ns <= now().boottime_ns
    assert 0 <= entry.ago_ns <= now().boottime_ns - before.boottime_ns


def test_one_whose_process_is_killed_while_the_vendor_is_asked_counts(reset_unit: ResetUnit) -> None:
    reset_unit.configure("limit = 1")
    reset_unit.node.hang("npu0", INBAND)
    process = reset_unit.start(reset_unit.ask())
    wait_until(lambda: resets_of_late(reset_unit.record), "its record")
    process.kill()
    process.wait(10)
    reset_unit.node.release()
    assert ask_again(reset_unit, 2).reason == "npu0 had 1 reset within 6 h, by their record"


def test_one_that_the_vendor_refused_does_not_count(reset_unit: ResetUnit) -> None:
    reset_unit.node.answer(-8005, "npu2", "dcmi_get_device_resource_info")
    assert "cannot be read: dcmi_get_device_resource_info" in reset_unit.do().reason
    assert list((reset_unit.record / "resets").iterdir()) == []


def test_where_it_cannot_be_counted_nothing_is_reset(reset_unit: ResetUnit) -> None:
    reset_unit.record.write_text("a file where there should be a folder")
    result = reset_unit.do()
    assert result.state == "refused"
    assert result.reason.startswith("the record of resets cannot be used: [Errno ")
    assert reset_unit.resets == 0


def test_a_count_that_somebody_holds_up_is_not_waited_for_for_ever(reset_unit: ResetUnit) -> None:
    record = ResetRecord(reset_unit.record)
    record.make()
    with record.counting(0):
        result = reset_unit.do()
    assert (result.state, result.reason) == (
        "refused",
        "another process keeps the record of resets locked",
    )


# ---------------------------------------------------------------------- the limits


def past(*agos_ns: int, devices: Sequence[RequestedDevice] = (NPU0,)) -> list[PastReset]:
    at = replace(HERE, boottime_ns=0)
    return [
        PastReset(action="a", attempt=1, vendor="ascend", devices=tuple(devices), at=at, ago_ns=ago)
        for ago in agos_ns
    ]


@pytest.mark.parametrize(
    ("of_late", "devices", "why"),
    [
        (past(), (NPU0,), ""),
        (past(2 * MINUTE_NS), (NPU0,), ""),
        (past(2 * MINUTE_NS, 3 * MINUTE_NS), (NPU0,), "npu0 had 2 resets within 1 h, by their record"),
        (past(2 * MINUTE_NS, 3 * MINUTE_NS), (NPU1,), ""),
        (past(2 * MINUTE_NS, 3 * MINUTE_NS), (NPU1, NPU0), "npu0 had 2 resets within 1 h, by their record"),
        (past(HOUR_NS, 2 * MINUTE_NS), (NPU0,), "npu0 had 2 resets within 1 h, by their record"),
        (past(HOUR_NS + 1, 2 * MINUTE_NS), (NPU0,), ""),
        (past(*[2 * MINUTE_NS] * 3), (NPU1,), "this node had 3 resets within 1 h, by their record"),
        (past(0), (NPU1,), "the last reset was 0 s ago, and reset.cool_down is 60 s"),
        (past(MINUTE_NS), (NPU1,), ""),
        (
            past(2 * MINUTE_NS, 3 * MINUTE_NS, devices=()),
            (NPU1,),
            "npu1 had 2 resets within 1 h, by their record",
        ),
    ],
)
def test_the_limits(of_late: list[PastReset], devices: tuple[RequestedDevice, ...], why: str) -> None:
    assert limit_exceeded(devices, of_late, LIMITS) == why


@pytest.mark.parametrize(
    ("before", "is_same"),
    [
        (RequestedDevice(name="npu5", identity="die0", pci="0000:ff:00.0"), True),
        (RequestedDevice(name="npu0", identity="die9", pci="0000:1b:00.0"), False),
        (RequestedDevice(name="npu5", pci="0000:1b:00.0"), True),
        (RequestedDevice(name="npu0", pci="0000:ff:00.0"), False),
        (RequestedDevice(name="npu0"), True),
        (RequestedDevice(name="npu5"), False),
    ],
)
def test_a_device_is_the_same_by_its_id_else_by_its_place(before: RequestedDevice, is_same: bool) -> None:
    one = past(2 * MINUTE_NS, devices=(before,))
    why = limit_exceeded((NPU0,), one, replace(LIMITS, limit=1))
    assert bool(why) is is_same


# ---------------------------------------------------------------------- the record


@pytest.mark.parametrize(
    ("at", "ago"),
    [
        (replace(HERE, boottime_ns=49 * HOUR_NS), HOUR_NS),
        (replace(HERE, boottime_ns=49 * HOUR_NS, wall_ns=0), HOUR_NS),
        (replace(HERE, boottime_ns=60 * HOUR_NS), 0),
        (replace(HERE, boot_id="earlier", wall_ns=900 * HOUR_NS), 100 * HOUR_NS),
        (replace(HERE, boot_id="earlier", wall_ns=2_000 * HOUR_NS), 50 * HOUR_NS),
        (replace(HERE, boot_id="earlier", wall_ns=999 * HOUR_NS), 50 * HOUR_NS),
        (RecordedTime(boot_id="", boottime_ns=0, wall_ns=999 * HOUR_NS), HOUR_NS),
        (RecordedTime(boot_id="", boottime_ns=0, wall_ns=2_000 * HOUR_NS), 0),
    ],
)
def test_the_time_since_is_by_the_clock_of_the_boot_and_never_ahead_of_now(
    at: RecordedTime, ago: int
) -> None:
    assert ago_ns(at, HERE) == ago


def entry(boottime_ns: int) -> ResetEntry:
    begun = replace(HERE, boottime_ns=boottime_ns)
    return ResetEntry(action="die0/reset#1", attempt=1, vendor="ascend", devices=(NPU0,), begun=begun)


@pytest.fixture
def record(tmp_path: Path) -> ResetRecord:
    made = ResetRecord(tmp_path / "record")
    made.make()
    return made


def test_where_nothing_was_ever_reset_there_is_no_record(tmp_path: Path) -> None:
    assert resets_of_late(tmp_path / "none") == ()


def test_they_are_told_from_the_oldest_on_by_their_ends(record: ResetRecord) -> None:
    first, second = entry(HERE.boottime_ns - 3 * HOUR_NS), entry(HERE.boottime_ns - 2 * HOUR_NS)
    record.put(second)
    record.put(first)
    record.put(replace(first, ended=replace(HERE, boottime_ns=HERE.boottime_ns - HOUR_NS), outcome="done"))
    counted = resets_of_late(record.folder, present=HERE)
    assert [(each.ago_ns, each.devices) for each in counted] == [(2 * HOUR_NS, (NPU0,)), (HOUR_NS, (NPU0,))]
    assert [each.ago_ns for each in resets_of_late(record.folder, HOUR_NS, HERE)] == [HOUR_NS]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 200_000, b"{}", b"x" * 300_000])
def test_a_damaged_file_counts_as_a_reset_of_who_knows_what_when_it_was_written(
    record: ResetRecord, content: bytes
) -> None:
    record.put(entry(HERE.boottime_ns - HOUR_NS))
    damaged = record.folder / "resets/b-1.json"
    damaged.write_bytes(content)
    os.utime(damaged, ns=(0, HERE.wall_ns - 2 * HOUR_NS))
    counted = resets_of_late(record.folder, present=HERE)
    assert [(each.ago_ns, each.devices) for each in counted] == [(2 * HOUR_NS, ()), (HOUR_NS, (NPU0,))]


def test_other_files_are_somebody_elses_and_links_are_not_followed(
    record: ResetRecord, tmp_path: Path
) -> None:
    for name in (".b-1.json", "notes", "b-1.json.bak"):
        (record.folder / "resets" / name).write_text("{")
    assert resets_of_late(record.folder, present=HERE) == ()
    (tmp_path / "elsewhere").write_text("{}")
    (record.folder / "resets/b-2.json").symlink_to(tmp_path / "elsewhere")
    (counted,) = resets_of_late(record.folder, KEPT_NS, now())
    assert counted.devices == ()


def test_what_no_window_spans_any_more_is_forgotten(record: ResetRecord) -> None:
    days_8 = 8 * 24 * HOUR_NS
    late = replace(HERE, boottime_ns=10 * 24 * HOUR_NS)
    record.put(entry(late.boottime_ns - days_8))
    record.put(entry(late.boottime_ns - HOUR_NS))
    record.forget_old(late)
    assert [each.ago_ns for each in resets_of_late(record.folder, days_8, late)] == [HOUR_NS]


@pytest.mark.root
def test_a_record_of_somebody_else_is_not_believed(record: ResetRecord) -> None:
    os.chown(record.folder / "resets", 65534, -1)
    with pytest.raises(ValueError, match="belongs to uid 65534: it must be root's"):
        resets_of_late(record.folder)
