"""The turns of a worker's threads: one after the other, and past whoever stays too long."""

import threading
from collections.abc import Callable

from nodeagent.worker.turns import Turns

PATIENCE_S = 60.0
NEVER_S = 3600.0
THREADS = 6


def in_threads(*targets: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    return threads


def ended(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


class Visitor:
    """Takes turns of ``turns``; ``most`` is how many have had one at a time."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._counting = threading.Lock()
        self._present = 0
        self.most = 0
        self.visits = 0

    def visit(self) -> None:
        with self._turns.one():
            with self._counting:
                self._present += 1
                self.visits += 1
                self.most = max(self.most, self._present)
            with self._counting:
                self._present -= 1


def test_one_thread_at_a_time_has_its_turn() -> None:
    visitor = Visitor(Turns(NEVER_S))

    def visit_often() -> None:
        for _ in range(200):
            visitor.visit()

    ended(in_threads(*[visit_often] * THREADS))
    assert (visitor.visits, visitor.most) == (200 * THREADS, 1)


def test_a_turn_that_does_not_end_is_gone_round() -> None:
    turns = Turns(0.001)
    visitor = Visitor(turns)
    stuck, let_go = threading.Event(), threading.Event()

    def stay() -> None:
        with turns.one():
            stuck.set()
            assert let_go.wait(PATIENCE_S)

    staying = in_threads(stay)
    assert stuck.wait(PATIENCE_S)
    ended(in_threads(*[visitor.visit] * THREADS))
    assert visitor.visits == THREADS
    assert not turns.awaited

    let_go.set()
    ended(staying)
    visitor.visit()
    assert visitor.visits == THREADS + 1


def test_whoever_waits_is_known_to_the_one_whose_turn_it_is() -> None:
    turns = Turns(NEVER_S)
    visitor = Visitor(turns)
    seen = [turns.awaited]
    with turns.one():
        seen.append(turns.awaited)
        waiting = in_threads(visitor.visit)
        while not turns.awaited:
            pass
        seen.append(turns.awaited)
        assert visitor.visits == 0
    ended(waiting)
    assert [*seen, turns.awaited] == [False, False, True, False]
