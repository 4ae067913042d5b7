"""How long is waited before an order is tried again."""

import pytest

from nodeagent.schedulers.kubernetes.state import Trouble, trouble_after

SECOND_NS = 1_000_000_000


def pauses(count: int, retry_after_s: int = 0, jitter: float = 0.0) -> list[float]:
    trouble: Trouble | None = None
    found = []
    for _ in range(count):
        trouble = trouble_after(trouble, "503", retry_after_s, jitter, 0)
        found.append(trouble.not_before_ns / SECOND_NS)
    return found


def test_the_first_pause_is_short_and_each_is_twice_the_one_before_up_to_a_minute() -> None:
    assert pauses(12) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0]


def test_what_the_server_asks_for_is_kept_at_least() -> None:
    assert pauses(1, retry_after_s=7) == [7.0]
    assert pauses(8, retry_after_s=7)[-1] == 12.8


def test_a_server_that_asks_for_days_is_not_obeyed() -> None:
    assert pauses(1, retry_after_s=86_400) == [600.0]


@pytest.mark.parametrize("jitter", [0.25, 1.0])
def test_nodes_that_failed_together_do_not_come_back_together(jitter: float) -> None:
    assert pauses(4, jitter=jitter)[-1] == pytest.approx(0.8 + 0.4 * jitter)
