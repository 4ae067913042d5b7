"""The counts that outlive a placement, as a file."""

import pytest

from nodeagent.job.codec import CodecError
from nodeagent.job.model import Counts
from nodeagent.job.shell.record import decode_counts, encode_counts

COUNTS = Counts(
    schedule=3, placements=2, placements_in_row=1, retries=4, hangs=1, best=900, signature="ValueError: x"
)


@pytest.mark.parametrize("counts", [COUNTS, Counts()])
def test_the_counts_are_read_as_they_were_written(counts: Counts) -> None:
    assert decode_counts(encode_counts(counts, job="train"), job="train") == counts


def test_no_torn_file_is_read_as_counts() -> None:
    whole = encode_counts(COUNTS, job="train").rstrip()
    for length in range(len(whole)):
        with pytest.raises(CodecError):
            decode_counts(whole[:length], job="train")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("nodeagent-job-run-state", "something", "^format: "),
        ('"version": 1', '"version": 2', "^version: 1, not 2"),
        ('"placements": 2', '"placements": "2"', "^placements: a whole number, not '2'"),
        ('"placements": 2', '"placements": -2', "^placements: a number from 0, not -2"),
        ('"retries"', '"retires"', "^retries: missing"),
    ],
)
def test_a_foreign_file_is_an_error_that_says_why(old: str, new: str, says: str) -> None:
    with pytest.raises(CodecError, match=says):
        decode_counts(encode_counts(COUNTS, job="train").replace(old, new), job="train")


def test_the_counts_of_another_job_are_not_taken() -> None:
    with pytest.raises(CodecError, match=r"^job: 'train', not 'other'; give each job a --state of its own"):
        decode_counts(encode_counts(COUNTS, job="other"), job="train")
