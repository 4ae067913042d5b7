"""Parts of an archive are processes: one that hangs, floods or fails costs its own place alone."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from nodeagent.cli.bundle.collecting import Collected, Part, collect

LONG_S = 600


def part(run: Callable[[], int], file: str = "a", **options: Any) -> Part:
    return Part(item="test", file=file, source=file, run=run, **options)


def printing(text: bytes) -> Callable[[], int]:
    def run() -> int:
        rest = memoryview(text)
        while rest:
            rest = rest[os.write(1, rest) :]
        return 0

    return run


def alone(run: Callable[[], int], **options: Any) -> Collected:
    return collect([part(run, **options)], LONG_S)[0]


def test_what_a_part_prints_is_its_content_and_its_errors_are_remarks() -> None:
    def run() -> int:
        os.write(1, b"out\n")
        os.write(2, b"err\n")
        return 0

    found = alone(run)
    assert (found.content, found.remarks, found.error, found.truncated) == (b"out\n", "err", "", False)


def test_one_that_hangs_is_ended_at_its_limit_and_the_others_are_whole() -> None:
    def hangs() -> int:
        os.write(1, b"so far\n")
        time.sleep(LONG_S)
        return 0

    hung, whole = collect([part(hangs, "hung", limit_s=0.5), part(printing(b"b"), "whole")], LONG_S)
    assert (hung.content, hung.error.startswith("ended after")) == (b"so far\n", True)
    assert (whole.content, whole.error) == (b"b", "")


def test_what_has_not_begun_when_the_time_is_over_is_named() -> None:
    def hangs() -> int:
        time.sleep(LONG_S)
        return 0

    found = collect([part(hangs, str(number)) for number in range(6)], 0.5)
    assert [each.error.split(" ", 2)[:2] for each in found] == [["ended", "after"]] * 4 + [
        ["not", "begun"]
    ] * 2


def test_of_too_much_output_the_beginning_is_kept() -> None:
    found = alone(printing(b"line\n" * 200_000), limit_bytes=1000)
    assert (found.content, found.truncated, found.error) == ((b"line\n" * 200), True, "")


def test_of_a_log_the_end_is_kept_in_whole_lines() -> None:
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    found = alone(printing(lines), limit_bytes=1000, keeps_end=True)
    assert (found.truncated, found.error) == (True, "")
    assert lines.endswith(b"\n" + found.content)
    assert 990 < len(found.content) <= 1000


def test_a_process_that_a_part_leaves_behind_holds_up_nothing() -> None:
    def run() -> int:
        subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({LONG_S})"])
        os.write(1, b"done\n")
        return 0

    found = alone(run, limit_s=LONG_S)
    assert (found.content, found.error) == (b"done\n", "")


def test_a_failure_is_reported_with_its_reason() -> None:
    def raises() -> int:
        raise ValueError("no such thing")

    assert alone(raises).error == "exit status 1: ValueError: no such thing"
    assert alone(lambda: 69, also_ok=(69,)).error == ""
    assert alone(lambda: 7).error == "exit status 7"
