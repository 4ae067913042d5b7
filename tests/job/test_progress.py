"""What counts as progress, from a file, from names, and from beats."""

import pytest

from nodeagent.job.model import Counts
from nodeagent.job.sample import Beat
from nodeagent.job.watching.progress import (
    ByBeats,
    ByFile,
    ByNames,
    FileLook,
    number_in,
    number_of,
    with_baseline,
)

WHOLE = FileLook(size=100, changed_ns=1)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1000\n", 1000),
        ("global_step1200", 1200),
        ('{"step": 7}', 7),
        ("", None),
        ("release", None),
        ("12 of 100", None),
        ("9" * 19, None),
    ],
)
def test_a_file_holds_one_number_or_is_unknown(text: str, number: int | None) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("checkpoint-000123.json", 123),
        ("/ckpt/iter_0000100", 100),
        ("/ckpt/v2/step-300.pt", 300),
        ("/ckpt/global_step500/done", 500),
        ("/ckpt/epoch=3-step=90.ckpt", 90),
        ("/ckpt/latest", None),
        ("/ckpt/checkpoint-200.tmp", None),
        ("/ckpt/.checkpoint-200", None),
        ("/ckpt/tmp-checkpoint-200", None),
        ("/ckpt/checkpoint-200.incomplete/model.pt", None),
        ("/ckpt/template-5.pt", 5),
    ],
)
def test_the_number_of_a_checkpoints_name(name: str, number: int | None) -> None:
    assert number_of(name) == number


# ---------------------------------------------------------------------- a file


def test_each_greater_number_of_a_file_is_told_once() -> None:
    progress = ByFile(before=None)
    assert [progress.looked(text) for text in ("10", "10", "30", "20", "31")] == [10, None, 30, None, 31]


def test_the_number_that_lay_there_before_the_run_is_none_of_its_own() -> None:
    progress = ByFile(before="200")
    assert [progress.looked(text) for text in ("200", "100", "300")] == [None, None, 300]


@pytest.mark.parametrize("torn", [None, "", "30 40", "12x34"])
def test_an_unreadable_file_changes_nothing(torn: str | None) -> None:
    progress = ByFile(before="10")
    assert [progress.looked(text) for text in ("20", torn, "20", "30")] == [20, None, None, 30]


# ---------------------------------------------------------------------- names


def test_a_new_name_counts_once_it_looks_the_same_twice() -> None:
    progress = ByNames(before={})
    growing = FileLook(size=50, changed_ns=0)
    assert progress.looked({"step-100": growing}) is None
    assert progress.looked({"step-100": WHOLE}) is None
    assert progress.looked({"step-100": WHOLE}) == 100
    assert progress.looked({"step-100": WHOLE}) is None


def test_a_name_is_whole_as_soon_as_another_comes_after_it() -> None:
    progress = ByNames(before={})
    assert progress.looked({"step-100": WHOLE, "step-200": WHOLE}) == 100


def test_what_a_killed_run_left_half_done_is_no_progress_of_the_next() -> None:
    left = {"step-100": WHOLE, "step-200": FileLook(size=3, changed_ns=0)}
    progress = ByNames(before=left)
    assert [progress.looked(left) for _ in range(3)] == [None, None, None]
    redone = {**left, "step-200": WHOLE}
    assert [progress.looked(redone) for _ in range(2)] == [None, 200]


def test_names_that_vanish_change_nothing() -> None:
    progress = ByNames(before={})
    assert [progress.looked(each) for each in ({"s-1": WHOLE}, {"s-1": WHOLE}, {}, {})] == [
        None,
        1,
        None,
        None,
    ]


# ---------------------------------------------------------------------- beats


def test_steps_count_where_no_checkpoint_is_told() -> None:
    progress = ByBeats()
    found = []
    for step in (5, 6, 6, 4, 9):
        progress.beaten(Beat(t_s=0, step=step))
        found.append(progress.looked())
    assert found == [None, 6, None, None, 9]


def test_with_a_checkpoint_steps_count_no_more() -> None:
    progress = ByBeats()
    progress.beaten(Beat(t_s=0, step=500, checkpoint=1))
    assert progress.looked() == 1
    progress.beaten(Beat(t_s=1, step=600))
    assert progress.looked() is None
    progress.beaten(Beat(t_s=2, step=700, checkpoint=2))
    assert progress.looked() == 2


# ---------------------------------------------------------------------- the first placement


def test_what_lies_there_is_where_a_new_job_begins() -> None:
    assert with_baseline(Counts(), [None, 7, 5]).best == 7
    assert with_baseline(Counts(), [None]).best is None
    assert with_baseline(Counts(best=3), [7]).best == 3
