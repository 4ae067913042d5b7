"""The threads that poll: one makes all quick polls, and nobody waits for one that is not quick."""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from nodeagent.worker.pollers import Pollers

PATIENCE_S = 60.0
NEVER_S = 3600.0
AT_ONCE_S = 0.001
CHIPS = 9
REPETITIONS = 3 * CHIPS


class Chips:
    """What is polled. Polls of those that are ``stuck`` do not end before ``let_go``. ``begun`` names the
    device of each poll and the thread that made it, ``polls`` are those that have ended, ``flushed`` those
    that had by the last flush.
    """

    def __init__(self, *stuck: str, quick_s: float = NEVER_S) -> None:
        self._stuck = stuck
        self._let_go = threading.Event()
        self._lock = threading.Lock()
        self.begun: list[tuple[str, int]] = []
        self.polls: list[tuple[int, str]] = []
        self.flushed: list[tuple[int, str]] = []
        self.pollers = Pollers(self._poll, self._flush, quick_s)
        self.pollers.suffice_for(CHIPS)

    @property
    def threads(self) -> set[int]:
        return {thread for _, thread in self.begun}

    def let_go(self) -> None:
        self._let_go.set()

    def stick(self) -> None:
        """Again."""
        self._let_go.clear()

    def has_polled(self, *devices: str) -> bool:
        with self._lock:
            return [device for _, device in self.polls] == list(devices)

    def has_begun(self, device: str) -> bool:
        with self._lock:
            return device in [begun for begun, _ in self.begun]

    def relieve_until(self, is_so: Callable[[], bool]) -> None:
        """As the main thread of a worker does."""
        deadline_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline_s
            time.sleep(min(self.pollers.relieve() or 0.0, 0.01))

    def _poll(self, poll_id: int, device: str) -> None:
        with self._lock:
            self.begun.append((device, threading.get_native_id()))
        if device in self._stuck:
            assert self._let_go.wait(PATIENCE_S)
        with self._lock:
            self.polls.append((poll_id, device))

    def _flush(self) -> None:
        with self._lock:
            self.flushed = list(self.polls)


def test_one_thread_makes_quick_polls_in_the_order_in_which_they_were_asked() -> None:
    chips = Chips()
    chips.pollers.ask(1, ["npu0", "npu1", "npu2"])
    chips.relieve_until(lambda: chips.has_polled("npu0", "npu1", "npu2"))
    chips.pollers.ask(2, ["npu1"])
    chips.relieve_until(lambda: chips.has_polled("npu0", "npu1", "npu2", "npu1"))

    assert chips.polls == [(1, "npu0"), (1, "npu1"), (1, "npu2"), (2, "npu1")]
    assert len(chips.threads) == 1


def test_a_poll_that_does_not_end_is_gone_round_and_its_thread_is_known_by_the_device() -> None:
    chips = Chips("npu1", quick_s=AT_ONCE_S)
    chips.pollers.ask(1, ["npu0", "npu1", "npu2"])
    chips.relieve_until(lambda: chips.has_polled("npu0", "npu2"))

    stuck = dict(chips.begun)["npu1"]
    assert Path(f"/proc/self/task/{stuck}/comm").read_text() == "npu1\n"
    assert dict(chips.begun)["npu2"] != stuck

    chips.let_go()
    chips.relieve_until(lambda: chips.has_polled("npu0", "npu2", "npu1"))


def test_what_was_held_back_is_sent_where_the_last_poll_does_not_end() -> None:
    chips = Chips("npu1", quick_s=AT_ONCE_S)
    chips.pollers.ask(1, ["npu0", "npu1"])
    chips.relieve_until(lambda: chips.flushed == [(1, "npu0")])
    chips.let_go()


def test_polls_that_hang_one_after_the_other_hold_up_nobody() -> None:
    names = [f"npu{number}" for number in range(8)]
    chips = Chips(*names[1:], quick_s=AT_ONCE_S)
    chips.pollers.ask(1, [*names, "npu8"])
    chips.relieve_until(lambda: chips.has_polled("npu0", "npu8"))
    chips.let_go()
    chips.relieve_until(lambda: len(chips.polls) == 9)


def test_threads_that_have_come_back_are_used_again_and_none_is_added() -> None:
    threads = threading.active_count() + CHIPS + 1
    chips = Chips("npu0", quick_s=AT_ONCE_S)
    for times in range(1, REPETITIONS + 1):
        chips.pollers.ask(times, ["npu0", "npu1"])
        chips.relieve_until(partial(chips.has_polled, *["npu1", "npu0"] * (times - 1), "npu1"))
        chips.let_go()
        chips.relieve_until(partial(chips.has_polled, *["npu1", "npu0"] * times))
        chips.stick()
        assert threading.active_count() == threads


def test_nothing_is_to_be_watched_while_nothing_is_asked() -> None:
    chips = Chips("npu0", quick_s=NEVER_S)
    assert chips.pollers.relieve() is None
    chips.pollers.ask(1, ["npu0"])
    chips.relieve_until(lambda: chips.has_begun("npu0"))
    assert 0 < (chips.pollers.relieve() or 0.0) <= NEVER_S
    chips.let_go()
    chips.relieve_until(lambda: chips.pollers.relieve() is None)


def test_another_follows_while_more_is_asked() -> None:
    chips = Chips("npu0")
    chips.pollers.ask(1, ["npu0", "npu1"])
    chips.relieve_until(lambda: chips.has_begun("npu0"))
    assert chips.pollers.is_more
    chips.let_go()
    chips.relieve_until(lambda: chips.has_polled("npu0", "npu1"))
    assert not chips.pollers.is_more
