"""From bytes to keys, and from keys to choices."""

from dataclasses import replace

import pytest

from nodeagent.cli.top.choices import Choices, OnScreen, Pane, Sort, first_of_text, help_lines, pressed
from nodeagent.cli.top.keys import is_begun, keys

LIST = OnScreen(("npu0", "npu1", "npu2", "npu3"), lines=0, page=2)
TEXT = OnScreen((), lines=10, page=4)


def after(typed: str, choices: Choices | None = None, shown: OnScreen = LIST) -> Choices:
    now = choices or Choices()
    for key in keys(typed.encode()):
        now = pressed(now, key, shown)
    return now


def test_keys_of_a_terminal_have_names_and_what_is_none_is_left_out() -> None:
    sent = b"\x1b[A\x1bOB\x1b[5~\x1b[1;5Cq\r\x1b\x00\xc3\xa9?"
    assert keys(sent) == ["up", "down", "page up", "q", "Enter", "Esc", "?"]
    assert [is_begun(each) for each in (b"\x1b", b"a\x1b[", b"\x1b[5", b"\x1b[5~", b"a")] == [
        *(True, True, True, False, False),
    ]


@pytest.mark.parametrize(
    ("typed", "selected"),
    [
        ("j", "npu1"),
        ("jjjjj", "npu3"),
        ("jjk", "npu1"),
        ("k", "npu0"),
        ("G", "npu3"),
        ("Gg", "npu0"),
        (" ", "npu2"),
    ],
)
def test_a_device_is_selected_within_the_list(typed: str, selected: str) -> None:
    assert after(typed).selected == selected


def test_the_selection_stays_with_the_device_and_begins_anew_where_it_is_gone() -> None:
    shuffled = LIST._replace(devices=("npu3", "npu1", "npu0"))
    assert after("j", replace(Choices(), selected="npu1"), shuffled).selected == "npu0"
    assert after("j", replace(Choices(), selected="gone"), shuffled).selected == "npu1"
    assert after("j", shown=LIST._replace(devices=())).selected == ""


@pytest.mark.parametrize(
    ("typed", "sort", "is_reversed"),
    [
        ("n", Sort.NAME, False),
        ("t", Sort.TEMPERATURE, False),
        ("ur", Sort.USE, True),
        ("prs", Sort.VERDICT, False),
    ],
)
def test_each_order_has_a_key(typed: str, sort: Sort, is_reversed: bool) -> None:
    chosen = after(typed)
    assert (chosen.sort, chosen.is_reversed) == (sort, is_reversed)


@pytest.mark.parametrize(
    ("typed", "pane"),
    [
        ("\r", Pane.WHY),
        ("e", Pane.EVENTS),
        ("ee", Pane.DEVICES),
        ("?", Pane.HELP),
        ("h", Pane.HELP),
        ("\r\x1b", Pane.DEVICES),
        ("ee?e", Pane.EVENTS),
    ],
)
def test_a_key_opens_a_pane_and_closes_it(typed: str, pane: Pane) -> None:
    assert after(typed).pane is pane


def test_a_text_is_scrolled_within_its_lines_and_events_begin_at_the_newest() -> None:
    why = Choices(pane=Pane.WHY)
    assert [after(typed, why, TEXT).first_line for typed in ("j", "k", "G", "Gk", "  ", "jg")] == [
        1,
        0,
        6,
        5,
        6,
        0,
    ]
    events = after("e")
    assert first_of_text(events, TEXT) == 6
    assert after("k", events, TEXT).first_line == 5


def test_q_ends_it_from_everywhere() -> None:
    assert [after(typed).has_quit for typed in ("q", "eq", "?q", "\rq", "x")] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_the_help_names_every_key() -> None:
    assert [line for line in help_lines() if len(line) > 80] == []
    assert "  Enter           why the device has its verdict, and what to do" in help_lines()
