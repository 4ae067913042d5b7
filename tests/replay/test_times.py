"""What a line leaves open of its time is taken from the lines around it, and said."""

from tests.replay.reading import read, said


def test_a_zone_that_other_lines_have_is_the_files() -> None:
    lines, tally = read(
        "2025-03-11T03:00:00 n1 kernel: one\n2025-03-11T03:11:09.565426+08:00|err|kernel[-]|two\n"
    )

    assert said(lines) == ["2025-03-10T19:00:00 one", "2025-03-10T19:11:09.565426 two"]
    assert list(tally.remarks) == ["times without a zone are taken as +08:00, as other lines have it"]


def test_a_file_in_which_each_time_has_a_zone_needs_no_remark() -> None:
    _, tally = read("2025-03-11T03:11:09+08:00 n1 kernel: one\n")

    assert tally.remarks == {}


def test_a_date_without_a_year_is_near_to_those_that_have_one() -> None:
    lines, tally = read("Mar 11 03:00:00 n1 kernel: one\n2021-03-11T03:11:09+00:00 n1 kernel: two\n")

    assert said(lines) == ["2021-03-11T03:00:00 one", "2021-03-11T03:11:09 two"]
    assert tally.remarks == {}


def test_a_date_within_a_message_is_of_anything() -> None:
    lines, _ = read("Mar 11 03:00:00 n1 kernel: setting system clock to 2019-01-01 00:00:00+08:00\n")

    assert [text[:19] for text in said(lines)] == ["2026-03-11T03:00:00"]


def test_a_file_without_any_year_says_so() -> None:
    _, tally = read("Mar 11 03:00:00 n1 kernel: one\n")

    assert list(tally.remarks) == [
        "the lines have no year: each date is the last one before the file was written"
    ]


def test_the_years_end_is_passed() -> None:
    assert said(read("Dec 31 23:59:59 n1 kernel: one\nJan  1 00:00:01 n1 kernel: two\n")[0]) == [
        "2025-12-31T23:59:59 one",
        "2026-01-01T00:00:01 two",
    ]


def test_seconds_since_boot_are_set_behind_the_dated_line_before_them() -> None:
    lines, tally = read(
        "2025-03-11T03:11:09Z n1 kernel: one\n[  812.2] two\n[  813.2] three\n"
        "2025-03-11T04:00:00Z n1 kernel: four\n"
    )

    assert said(lines) == [
        "2025-03-11T03:11:09 one",
        "2025-03-11T03:11:09 two",
        "2025-03-11T03:11:10 three",
        "2025-03-11T04:00:00 four",
    ]
    assert list(tally.remarks) == ["seconds since boot are set behind the dated line before them"]


def test_a_dated_line_with_its_seconds_since_boot_tells_when_the_boot_was() -> None:
    lines, tally = read("2025-03-11T03:11:09Z n1 kernel: [  100.0] one\n[  160.0] two\n")

    assert said(lines) == ["2025-03-11T03:11:09 one", "2025-03-11T03:12:09 two"]
    assert tally.remarks == {}


def test_a_boot_time_that_is_given_counts() -> None:
    lines, _ = read("2025-03-11T03:11:09Z n1 kernel: one\n[  100.0] two\n", boot_ns=1_700_000_000 * 10**9)

    assert said(lines)[1] == "2023-11-14T22:15:00 two"


def test_another_boot_follows_the_one_before() -> None:
    lines, _ = read(
        "[    0.0] Linux version 6.1\n[  500.0] one\n[    0.0] Linux version 6.1\n[   10.0] two\n"
    )

    assert said(lines) == [
        "1970-01-01T00:00:00 Linux version 6.1",
        "1970-01-01T00:08:20 one",
        "1970-01-01T00:08:20 Linux version 6.1",
        "1970-01-01T00:08:30 two",
    ]


def test_seconds_that_go_back_without_a_boot_are_of_another_node() -> None:
    lines, _ = read("node-1: [  500.0] one\nnode-2: [   10.0] two\n")

    assert said(lines) == ["1970-01-01T00:08:20 one", "1970-01-01T00:00:10 two"]


def test_lines_of_several_hosts_are_said_to_be_judged_as_one() -> None:
    _, tally = read("".join(f"node-{number}: [  500.0] one\n" for number in range(5)))

    assert list(tally.remarks) == [
        "lines of 5 hosts are judged as those of one node: node-0, node-1, node-2 and others"
    ]
