"""Faults that other systems report: whose each is, what repeats it, what ends it, and what is too much."""

from typing import Any

import pytest

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.catalog.settings import PublicSettings
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Assertion,
    Carried,
    CatalogChanged,
    Condition,
    DeviceGone,
    EventKind,
    Kind,
    Level,
    Outcome,
    PublicFault,
    PublicFaults,
    Refused,
    Report,
    Reported,
    Started,
    Verdict,
    Withdrawn,
)
from nodeagent.core.state import limits
from tests.core.build import (
    begin,
    catalog,
    ns,
    related,
    repeat,
    row,
    seen,
    signal,
    stands,
    wait,
)

HOUR_S = 3600
SLOW, BROKEN = "110001010", "020001001"
BY_OTHERS = ClearOn(recover=True, operator=True)
TABLES = catalog(
    row(SLOW, Level.SUB_HEALTH, kind=Kind.PUBLIC, clear_on=BY_OTHERS),
    row(BROKEN, Level.SEPARATE_NPU, kind=Kind.PUBLIC, clear_on=BY_OTHERS),
    public=PublicSettings(
        expire_after_ns=ns(HOUR_S), expire_after_by_sender={"hourglass": ns(60), "ever": 0}
    ),
)

RELOADED = catalog(*TABLES.rows.values(), digest="other", public=PublicSettings(expire_after_ns=ns(60)))


def fault(
    fault_id: str = "fault-01",
    assertion: Assertion = Assertion.OCCUR,
    *,
    sender: str = "pingmesh",
    code: str = BROKEN,
    began_ms: int = 1000,
    devices: tuple[str, ...] = ("npu0",),
    by: str = "",
    **words: bool,
) -> PublicFault:
    report = Report(sender=sender, fault_id=fault_id, began_ms=began_ms, by=by)
    evidence = {"sender": sender, "fault_id": fault_id}
    return PublicFault(
        report=report, code=code, assertion=assertion, devices=devices, evidence=evidence, **words
    )


def reported(engine: Engine, at_s: float, *faults: PublicFault) -> tuple[Reported, ...]:
    outcome = step(engine, at_s, *faults)
    assert outcome.answer is not None
    return outcome.answer.reported


def step(engine: Engine, at_s: float, *faults: PublicFault) -> Outcome:
    return engine.step(ns(at_s), PublicFaults(faults=faults))


def of_fault(fault_id: str = "fault-01", **words: Any) -> PublicFault:
    """Its recovery."""
    return fault(fault_id, Assertion.RECOVER, **words)


def open_reports(engine: Engine) -> list[tuple[str, str]]:
    """Device and whose, of all that is open."""
    names = {device.id: device.name for device in engine.view().devices}
    return [
        (names[each.device_id], each.origin.report.key)
        for each in engine.view().conditions
        if each.origin.report is not None
    ]


def only(engine: Engine) -> Condition:
    (condition,) = engine.view().conditions
    return condition


@pytest.fixture
def engine() -> Engine:
    return begin(TABLES, RELOADED, chips=2)


def test_two_senders_report_two_faults_and_each_ends_its_own(engine: Engine) -> None:
    assert reported(engine, 1, fault(), fault(sender="CCAE"), fault("fault-02")) == (Reported.TAKEN,) * 3
    assert reported(engine, 2, of_fault(sender="CCAE")) == (Reported.CLOSED,)
    assert open_reports(engine) == [("npu0", "pingmesh/fault-01"), ("npu0", "pingmesh/fault-02")]
    assert [each.code for each in engine.view().conditions] == [BROKEN, BROKEN]


def test_what_a_driver_finds_under_the_same_code_is_a_fault_beside_it(engine: Engine) -> None:
    engine.step(ns(1), signal(BROKEN, device="npu0"))
    reported(engine, 2, fault())
    assert len(engine.view().conditions) == 2
    reported(engine, 3, of_fault())
    assert only(engine).origin.report is None


def test_a_repetition_is_no_second_fault_nor_an_occurrence() -> None:
    tables = catalog(*TABLES.rows.values(), frequency=[repeat(BROKEN, 2)], public=TABLES.settings.public)
    engine = begin(tables)
    reported(engine, 1, fault())
    assert reported(engine, 2, fault()) == (Reported.REPEATED,)
    assert (only(engine).presence.count, engine.view().promotions) == (1, ())
    assert reported(engine, 3, fault(began_ms=2000)) == (Reported.REPEATED,)
    assert (only(engine).presence.count, engine.view().promotions) == (1, ())
    assert reported(engine, 4, of_fault(), fault(began_ms=3000)) == (Reported.CLOSED, Reported.TAKEN)
    assert len(engine.view().promotions) == 1


def test_a_repetition_is_stored_only_now_and_then(engine: Engine) -> None:
    assert step(engine, 1, fault()).records != ()
    assert step(engine, 300, fault()).records == ()
    assert step(engine, 400, fault()).records != ()


def test_a_recovery_ends_the_fault_on_every_device_whichever_it_names(engine: Engine) -> None:
    reported(engine, 1, fault(devices=("npu0", "npu1", "node")))
    assert len(open_reports(engine)) == 3
    assert reported(engine, 2, of_fault()) == (Reported.CLOSED,)
    assert open_reports(engine) == []


def test_a_once_is_over_by_itself(engine: Engine) -> None:
    assert reported(engine, 1, fault(assertion=Assertion.ONCE)) == (Reported.TAKEN,)
    assert reported(engine, 2, fault(assertion=Assertion.ONCE)) == (Reported.REPEATED,)
    (cleared, *_) = wait(engine, 120)
    assert (cleared.kind, cleared.why, engine.view().conditions) == (EventKind.CLEARED, "not seen again", ())


class TestOutOfOrder:
    def test_an_occurrence_that_comes_after_its_recovery_opens_nothing(self, engine: Engine) -> None:
        assert reported(engine, 1, of_fault(began_ms=1000)) == (Reported.NOT_OPEN,)
        assert reported(engine, 2, fault(began_ms=1000)) == (Reported.OUTDATED,)
        assert reported(engine, 3, fault(began_ms=1001)) == (Reported.TAKEN,)

    def test_a_late_recovery_leaves_the_newer_occurrence(self, engine: Engine) -> None:
        reported(engine, 1, fault(began_ms=1000), of_fault(began_ms=1000), fault(began_ms=5000))
        assert reported(engine, 2, of_fault(began_ms=1000)) == (Reported.OUTDATED,)
        assert len(engine.view().conditions) == 1
        assert reported(engine, 3, of_fault(began_ms=5000)) == (Reported.CLOSED,)

    def test_a_late_message_about_an_earlier_occurrence_is_a_repetition(self, engine: Engine) -> None:
        reported(engine, 1, fault(began_ms=5000))
        assert reported(engine, 2, fault(began_ms=1000)) == (Reported.REPEATED,)
        assert only(engine).presence.count == 1

    def test_within_a_message_the_order_counts(self, engine: Engine) -> None:
        taken = reported(engine, 1, fault(), of_fault(), fault(began_ms=2000))
        assert taken == (Reported.TAKEN, Reported.CLOSED, Reported.TAKEN)
        assert len(engine.view().conditions) == 1


class TestCallers:
    """Two callers that report under one sender's name."""

    A, B = "certificate:a.example.org", "certificate:b.example.org"

    def test_nobody_ends_what_another_opened(self, engine: Engine) -> None:
        reported(engine, 1, fault(by=self.A))
        assert reported(engine, 2, of_fault(by=self.B)) == (Reported.NOT_OPEN,)
        assert reported(engine, 3, of_fault(by=self.A)) == (Reported.CLOSED,)

    def test_nobody_hides_what_another_reports(self, engine: Engine) -> None:
        assert reported(engine, 1, of_fault(by=self.B, began_ms=9_000_000)) == (Reported.NOT_OPEN,)
        assert reported(engine, 2, fault(by=self.B)) == (Reported.OUTDATED,)
        assert reported(engine, 3, fault(by=self.A)) == (Reported.TAKEN,)

    def test_each_has_a_fault_of_its_own(self, engine: Engine) -> None:
        reported(engine, 1, fault(by=self.A), fault(by=self.B))
        assert [each.backing.evidence["reported_by"] for each in engine.view().conditions] == [self.A, self.B]
        assert open_reports(engine) == [
            ("npu0", f"pingmesh/fault-01 of {self.A}"),
            ("npu0", f"pingmesh/fault-01 of {self.B}"),
        ]

    def test_who_may_end_all_ends_all_and_the_owner_s_late_message_opens_nothing(
        self, engine: Engine
    ) -> None:
        reported(engine, 1, fault(by=self.A), fault(by=self.B, devices=("npu1",)))
        assert reported(engine, 2, of_fault(by="uid:0", ends_all=True)) == (Reported.CLOSED,)
        assert open_reports(engine) == []
        assert reported(engine, 3, fault(by=self.A)) == (Reported.OUTDATED,)

    def test_what_an_older_version_stored_anybody_of_the_sender_goes_on_with(self, engine: Engine) -> None:
        reported(engine, 1, fault())
        assert reported(engine, 2, fault(by=self.A)) == (Reported.REPEATED,)
        assert open_reports(engine) == [("npu0", "pingmesh/fault-01")]
        assert reported(engine, 3, of_fault(by=self.A)) == (Reported.CLOSED,)


class TestMemoryOfRecoveries:
    def test_it_ends_when_the_fault_would_have_expired(self, engine: Engine) -> None:
        far_ms = 9_000_000_000
        reported(engine, 1, of_fault(sender="hourglass", began_ms=far_ms))
        assert reported(engine, 61, fault(sender="hourglass")) == (Reported.OUTDATED,)
        assert reported(engine, 62, fault(sender="hourglass")) == (Reported.TAKEN,)

    def test_it_ends_also_where_nothing_expires(self, engine: Engine) -> None:
        reported(engine, 1, of_fault(sender="ever"))
        assert reported(engine, 24 * HOUR_S + 1, fault(sender="ever")) == (Reported.OUTDATED,)
        assert reported(engine, 24 * HOUR_S + 2, fault(sender="ever")) == (Reported.TAKEN,)

    def test_one_that_an_older_version_stored_without_its_time_is_over(self) -> None:
        engine = begin(TABLES)
        engine.step(ns(HOUR_S * 2), Carried(cell=Withdrawn(report="pingmesh/fault-01", began_ms=10**13)))
        assert reported(engine, 2 * HOUR_S, fault()) == (Reported.TAKEN,)


class TestWithoutATime:
    """Of such messages each is newer than those before it, whatever the clock says."""

    def test_a_recovery_ends_what_began_later_by_the_clock(self, engine: Engine) -> None:
        reported(engine, 1, fault(began_ms=9000))
        assert reported(engine, 2, of_fault(began_ms=1000, is_now=True)) == (Reported.CLOSED,)
        assert reported(engine, 3, fault(began_ms=9000)) == (Reported.OUTDATED,)

    def test_an_occurrence_opens_though_the_clock_has_stepped_back(self, engine: Engine) -> None:
        reported(engine, 1, of_fault(began_ms=9000))
        assert reported(engine, 2, fault(began_ms=1000, is_now=True)) == (Reported.TAKEN,)
        assert reported(engine, 3, of_fault(began_ms=1001, is_now=True)) == (Reported.CLOSED,)


class TestInstances:
    @pytest.fixture
    def engine(self) -> Engine:
        engine = begin(TABLES)
        for name, mig in (("gpu0", "enabled"), ("gpu1", "disabled")):
            engine.step(ns(0), seen(name, f"GPU-{name}", vendor="nvidia", attributes={"mig": mig}))
        return engine

    @pytest.mark.parametrize("name", ["gpu0/gi5", "GPU-gpu0/gi5"])
    def test_a_report_takes_out_the_part_alone(self, engine: Engine, name: str) -> None:
        assert reported(engine, 1, fault(devices=(name,))) == (Reported.TAKEN,)
        assert reported(engine, 2, fault(devices=(name,))) == (Reported.REPEATED,)
        assert stands(engine, "gpu0/gi5")[1] is Verdict.ISOLATE
        assert stands(engine, "gpu0")[1] is not Verdict.ISOLATE
        assert reported(engine, 3, of_fault(devices=(name,))) == (Reported.CLOSED,)

    def test_what_asks_for_a_reset_is_of_the_chip(self, engine: Engine) -> None:
        opens = fault(devices=("gpu0/gi5",), code=Level.RESTART_NPU.value)
        assert reported(engine, 1, opens) == (Reported.TAKEN,)
        assert reported(engine, 2, opens) == (Reported.REPEATED,)
        assert open_reports(engine) == [("gpu0", "pingmesh/fault-01")]

    @pytest.mark.parametrize("name", ["gpu1/gi5", "gpu0/gi5/gi6", "gpu7/gi1", "npu0/ge1"])
    def test_what_is_no_part_is_not_known(self, engine: Engine, name: str) -> None:
        outcome = step(engine, 1, fault(devices=(name,)))
        assert outcome.answer is not None
        assert (outcome.answer.refused, outcome.records) == (Refused.UNKNOWN, ())

    def test_a_chip_has_so_many_parts_at_most(self, engine: Engine) -> None:
        names = tuple(f"gpu0/gi{number}" for number in range(limits.MAX_PARTS_ON_CHIP + 1))
        outcome = step(engine, 1, fault(devices=names))
        assert outcome.answer is not None
        assert (outcome.answer.refused, outcome.answer.reason) == (
            Refused.NO_ROOM,
            "gpu0 has no room for more parts; at most 32 parts of a chip are known",
        )
        assert reported(engine, 2, fault(devices=names[1:])) == (Reported.TAKEN,)


def test_a_code_that_no_table_names_is_told_and_takes_nothing_out_of_service(engine: Engine) -> None:
    reported(engine, 1, fault(code="SITE_NCCL"))
    assert (only(engine).level, only(engine).grade.unknown) == (Level.SUB_HEALTH, True)
    assert stands(engine)[1] is Verdict.ALLOW


def test_nothing_is_taken_of_a_device_that_is_let_alone(engine: Engine) -> None:
    reported(engine, 1, fault())
    engine.step(ns(2), seen("npu0", "die0", attributes={"excluded": "by drivers.ascend.excluded"}))
    outcome = step(engine, 3, fault("fault-02"))
    assert outcome.answer is not None
    assert (outcome.answer.refused, outcome.answer.reason) == (
        Refused.NOT_POSSIBLE,
        "npu0 is excluded, so no report about it is taken: by drivers.ascend.excluded",
    )


def test_a_fault_of_a_part_that_is_gone_stands_and_closes_with_its_replacement(engine: Engine) -> None:
    engine.step(ns(1), DeviceGone(source="ascend", device="npu0", reason="fell off the bus"))
    assert reported(engine, 2, fault()) == (Reported.TAKEN,)
    engine.step(ns(3), seen("npu0", "another-part"))
    assert open_reports(engine) == []
    assert reported(engine, 4, of_fault(devices=("id-of-the-old-part",))) == (Reported.NOT_OPEN,)


class TestExpiry:
    def test_a_silent_sender_loses_its_fault_with_an_event_that_says_so(self, engine: Engine) -> None:
        reported(engine, 0, fault(sender="hourglass"))
        assert wait(engine, 65) == []
        (cleared, *_) = wait(engine, 67)
        assert (cleared.kind, cleared.code, cleared.condition_level) == (
            EventKind.CLEARED,
            BROKEN,
            Level.SEPARATE_NPU,
        )
        assert cleared.why == "expired: hourglass has not repeated it for 60 s"

    def test_who_repeats_in_time_keeps_his_fault(self, engine: Engine) -> None:
        for at_s in range(0, 600, 60):
            reported(engine, at_s, fault(sender="hourglass"))
        assert len(engine.view().conditions) == 1

    def test_a_repetition_that_is_not_stored_shortens_nothing(self, engine: Engine) -> None:
        reported(engine, 0, fault(sender="hourglass"))
        reported(engine, 5, fault(sender="hourglass"))
        assert wait(engine, 65) == []

    def test_who_need_not_repeat_is_waited_for_for_ever(self, engine: Engine) -> None:
        reported(engine, 0, fault(sender="ever"))
        assert wait(engine, 1e7) == []

    def test_while_the_daemon_is_away_nothing_expires(self, engine: Engine) -> None:
        reported(engine, 0, fault(sender="hourglass"))
        engine.step(ns(HOUR_S), Started(boot_id="", version="", resumed_ns=ns(1)))
        assert wait(engine, HOUR_S + 65) == []
        assert wait(engine, HOUR_S + 67) != []

    def test_what_expired_and_is_reported_again_is_there_again(self, engine: Engine) -> None:
        reported(engine, 0, fault(sender="hourglass"))
        wait(engine, 67)
        assert reported(engine, 68, fault(sender="hourglass")) == (Reported.TAKEN,)

    def test_a_new_time_holds_from_the_reload_on(self, engine: Engine) -> None:
        reported(engine, 0, fault())
        engine.step(ns(30), CatalogChanged(digest="other"))
        assert wait(engine, 95) == []
        assert wait(engine, 97) != []


class TestRoom:
    def test_a_message_without_room_changes_nothing_and_names_the_device(self, engine: Engine) -> None:
        _fill(engine, BROKEN)
        before = engine.view().conditions
        outcome = step(engine, 2, of_fault("fault-000"), fault("one-more"))
        assert outcome.answer is not None
        assert outcome.answer.refused is Refused.NO_ROOM
        assert outcome.answer.reason == (
            "npu0 has no room for more, nor is any fault there milder;"
            " at most 128 reported faults are open on a device: report the recovery of some first"
        )
        assert (outcome.events, outcome.records, engine.view().conditions) == ((), (), before)

    def test_a_milder_one_makes_way_and_its_event_says_so(self, engine: Engine) -> None:
        _fill(engine, SLOW)
        outcome = step(engine, 2, fault("one-more"))
        assert [(each.kind, each.code) for each in outcome.events if each.condition_id][:2] == [
            (EventKind.CLEARED, SLOW),
            (EventKind.RAISED, BROKEN),
        ]
        assert len(open_reports(engine)) == limits.MAX_REPORTED_ON_DEVICE

    def test_the_nodes_own_sources_always_find_room(self, engine: Engine) -> None:
        _fill(engine, BROKEN)
        for number in range(limits.MAX_CONDITIONS_ON_DEVICE - limits.MAX_REPORTED_ON_DEVICE):
            engine.step(ns(2), signal(f"OWN_{number}", device="npu0"))
        assert not any(each.code == "too_many_faults" for each in engine.view().conditions)
        assert len(open_reports(engine)) == limits.MAX_REPORTED_ON_DEVICE

    def test_where_both_are_as_strict_what_others_report_makes_way(self, engine: Engine) -> None:
        _fill(engine, BROKEN)
        for number in range(limits.MAX_CONDITIONS_ON_DEVICE - limits.MAX_REPORTED_ON_DEVICE):
            engine.step(ns(2), signal(f"8100{number:04X}", severity=3))
        assert len(open_reports(engine)) == limits.MAX_REPORTED_ON_DEVICE
        engine.step(ns(3), signal("81010000", severity=3))
        assert len(open_reports(engine)) == limits.MAX_REPORTED_ON_DEVICE - 1

    def test_what_is_remembered_of_recoveries_is_bounded(self, engine: Engine) -> None:
        for number in range(5000):
            reported(engine, 1, of_fault(f"fault-{number}"))
        kept = [each for each in engine.carry() if type(each.cell).__name__ == "Withdrawn"]
        assert len(kept) == 4096


def test_no_relation_absorbs_what_others_report() -> None:
    tables = catalog(*TABLES.rows.values(), relation=[related(SLOW, BROKEN)])
    engine = begin(tables)
    reported(engine, 1, fault(), fault("fault-02", code=SLOW))
    reported(engine, 2, fault("fault-03", code=SLOW), fault("fault-04"))
    assert len(engine.view().conditions) == 4


def test_a_promotion_is_not_quiet_while_another_sender_still_reports_the_fault() -> None:
    rule = repeat(BROKEN, 2, release_ns=ns(100))
    engine = begin(catalog(*TABLES.rows.values(), frequency=[rule], public=TABLES.settings.public))
    reported(engine, 1, fault(), fault(sender="CCAE"))
    reported(engine, 2, of_fault())
    assert not any(each.kind is EventKind.RELEASED for each in wait(engine, 500))
    reported(engine, 501, of_fault(sender="CCAE"))
    assert any(each.kind is EventKind.RELEASED for each in wait(engine, 700))


def test_a_device_that_is_not_known_refuses_the_whole_message(engine: Engine) -> None:
    outcome = step(engine, 1, fault(), fault("fault-02", devices=("npu77",)))
    assert outcome.answer is not None
    assert outcome.answer.refused is Refused.UNKNOWN
    assert engine.view().conditions == ()


def _fill(engine: Engine, code: str) -> None:
    many = [fault(f"fault-{number:03}", code=code) for number in range(limits.MAX_REPORTED_ON_DEVICE)]
    for begin_ in range(0, len(many), 64):
        reported(engine, 1, *many[begin_ : begin_ + 64])
