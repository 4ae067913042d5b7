"""When records are sent again, as tables; and what the delivery does with each result."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.export.delivery import RecordDelivery
from nodeagent.export.lag import LagState
from nodeagent.export.records import ExportRecord
from nodeagent.export.rejected import RejectedRecords
from nodeagent.export.retries import TAKEN, SendOutcome, SendResult, http_result, pause_s
from tests.export import given

NOW_S = 1_767_323_045.0
FAILED = SendResult(outcome=SendOutcome.FAILED, reason="503")
REJECTED = SendResult(outcome=SendOutcome.REJECTED, reason="400 no such field")


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, SendOutcome.TAKEN) for status in (200, 201, 202, 204)),
        *((status, SendOutcome.FAILED) for status in (408, 425, 429, 500, 502, 503, 504, 599)),
        *((status, SendOutcome.REJECTED) for status in (400, 413, 422)),
        *(
            (status, SendOutcome.MISCONFIGURED)
            for status in (301, 302, 401, 403, 404, 405, 410, 415, 501, 505)
        ),
    ],
)
def test_what_a_status_of_http_means(status: int, outcome: SendOutcome) -> None:
    assert http_result(status, "", None, NOW_S).outcome is outcome


@pytest.mark.parametrize(
    ("header", "expected_s"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
        ("86400", 3600.0),
        ("soon", None),
        ("-1", None),
        (None, None),
    ],
)
def test_when_the_receiver_wants_to_be_asked_again(header: str | None, expected_s: float | None) -> None:
    assert http_result(503, "", header, NOW_S).retry_after_s == expected_s


@pytest.mark.parametrize(
    ("attempt", "result", "shortest_s", "longest_s"),
    [
        (1, FAILED, 0.05, 0.1),
        (2, FAILED, 0.1, 0.2),
        (4, FAILED, 0.4, 0.8),
        (20, FAILED, 15.0, 30.0),
        (1_000_000, FAILED, 15.0, 30.0),
        (1, REJECTED, 15.0, 30.0),
        (1, SendResult(outcome=SendOutcome.MISCONFIGURED), 15.0, 30.0),
        (1, SendResult(outcome=SendOutcome.FAILED, retry_after_s=40.0), 40.0, 40.0),
        (20, SendResult(outcome=SendOutcome.FAILED, retry_after_s=1.0), 15.0, 30.0),
    ],
)
def test_how_long_to_wait_after_an_attempt(
    attempt: int, result: SendResult, shortest_s: float, longest_s: float
) -> None:
    assert (pause_s(attempt, result, 0.0), pause_s(attempt, result, 1.0)) == (shortest_s, longest_s)


class Scripted:
    """Gives these results in turn, then takes all; ``poison`` is rejected each time."""

    def __init__(self, *results: SendResult, most: int = 64, poison: int = 0, seats: int = 64) -> None:
        self.most = most
        self._results = list(results)
        self._poison, self._seats = poison, seats
        self.sent: list[list[int]] = []
        self.taken: list[int] = []

    def send(self, records: Sequence[ExportRecord]) -> SendResult:
        numbers = [record.position.seq for record in records]
        self.sent.append(numbers)
        if self._results:
            return self._results.pop(0)
        if self._poison in numbers or len(numbers) > self._seats:
            return REJECTED
        self.taken += numbers
        return TAKEN

    def close(self) -> None:
        pass


class WaitedTooLong(Exception):
    pass


def deliver(
    destination: Scripted, *numbers: int, rejected: RejectedRecords | None = None, most_pauses: int = 10
) -> list[int]:
    """How far the delivery of records with these numbers comes; a pause takes no time here."""
    pauses = iter(range(most_pauses))

    def sleep(_pause_s: float) -> None:
        if next(pauses, None) is None:
            raise WaitedTooLong

    delivery = RecordDelivery(destination, rejected, sleep=sleep)
    return [position.seq for position in delivery.deliver(given.numbered(*numbers))]


def test_records_are_sent_until_they_are_taken_and_none_overtakes() -> None:
    destination = Scripted(FAILED, FAILED, most=2)

    assert deliver(destination, 1, 2, 3) == [2, 3]

    assert destination.sent == [[1, 2], [1, 2], [1, 2], [3]]


def test_a_rejected_record_holds_up_those_after_it_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    destination = Scripted(poison=3)

    with pytest.raises(WaitedTooLong):
        deliver(destination, 1, 2, 3, 4)

    assert destination.taken == [1, 2]
    assert [each.levelname for each in caplog.records] == ["ERROR"]
    assert ":3 is not taken: 400 no such field" in caplog.text


def test_a_rejected_record_is_put_aside_where_a_file_is_named(tmp_path: Path) -> None:
    destination = Scripted(poison=3)

    deliver(destination, 1, 2, 3, 4, rejected=RejectedRecords(tmp_path / "rejected"))

    (line,) = map(json.loads, (tmp_path / "rejected").read_text().splitlines())
    assert destination.taken == [1, 2, 4]
    assert (line["seq"], line["reason"], line["data"]["device"]) == (3, "400 no such field", "npu0")


def test_a_full_file_of_rejected_records_takes_no_more_and_the_export_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    destination = Scripted(poison=1)

    with pytest.raises(WaitedTooLong):
        deliver(destination, 1, 2, rejected=RejectedRecords(tmp_path / "rejected", largest_bytes=10))

    assert destination.taken == []
    assert "it would grow beyond 10 bytes" in caplog.text


def test_too_many_records_at_once_are_sent_in_smaller_groups() -> None:
    destination = Scripted(seats=1)

    deliver(destination, 1, 2, 3)

    assert destination.taken == [1, 2, 3]


def test_a_failure_that_the_next_attempt_mends_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    deliver(Scripted(FAILED, FAILED), 1)
    assert caplog.messages == []

    deliver(Scripted(*[FAILED] * 9), 1)
    assert [each.split(": ")[-1] for each in caplog.messages] == [
        "503; trying again",
        "the receiver takes events again, after 10 attempts",
    ]


def test_lag_is_reported_as_it_becomes_large_and_once_it_is_gone() -> None:
    state = LagState()

    reported = [state.change(lag) for lag in (10, 999, 1000, 5000, 500, 64, 0, 1000)]

    assert reported == [
        *("", ""),
        "the receiver falls behind: 1000 events wait for it",
        *("", ""),
        "the receiver has caught up",
        "",
        "the receiver falls behind: 1000 events wait for it",
    ]
