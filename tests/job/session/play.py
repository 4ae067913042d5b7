"""Plays a session by hand: seconds instead of nanoseconds, and what usually follows an order."""

from collections.abc import Mapping
from typing import TypeVar

from nodeagent.job.model import SECOND_NS, Counts, Policy, RunRequest, Wish
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    Leave,
    LinkBack,
    LinkLost,
    ProcessId,
    Ran,
    RunFailure,
    SessionBegan,
    SessionEffect,
    SessionInput,
    SessionTick,
    Start,
)

T = TypeVar("T")

BOOT_ID = "boot-1"


class Play:
    """``orders`` are all that were given so far, ``now_s`` is the time of the last of them."""

    def __init__(self, policy: Policy | None = None, counts: Counts | None = None) -> None:
        self.session = JobSession()
        self.now_s = 0.0
        self.orders: list[SessionEffect] = []
        self.policy = policy or Policy()
        self.counts = counts or Counts()

    # ------------------------------------------------------------------ one step

    def give(self, given: SessionInput, after_s: float = 0.0) -> list[SessionEffect]:
        """At ``after_s`` from the last; what is due before is done at its time."""
        until_s = self.now_s + after_s
        orders = self._pass_until(until_s)
        self.now_s = until_s
        orders += self._step(given)
        return orders

    def wait(self, seconds: float) -> list[SessionEffect]:
        return self.give(SessionTick(), seconds)

    def wait_for_deadline(self) -> list[SessionEffect]:
        due_ns = self.session.next_deadline_ns()
        assert due_ns is not None, "nothing is due"
        return self.give(SessionTick(), due_ns / SECOND_NS - self.now_s)

    def _pass_until(self, until_s: float) -> list[SessionEffect]:
        orders: list[SessionEffect] = []
        while (due_ns := self.session.next_deadline_ns()) is not None and due_ns < until_s * SECOND_NS:
            self.now_s = due_ns / SECOND_NS
            orders += self._step(SessionTick())
        return orders

    def _step(self, given: SessionInput) -> list[SessionEffect]:
        orders = list(self.session.step(round(self.now_s * SECOND_NS), given))
        self.orders += orders
        return orders

    # ------------------------------------------------------------------ what a supervisor meets

    def begin(self) -> list[SessionEffect]:
        return self.give(SessionBegan(boot_id=BOOT_ID, policy=self.policy, counts=self.counts))

    def begin_with_daemon(self) -> list[SessionEffect]:
        return [*self.begin(), *self.give(LinkBack(job="slurm:7.0")), *self.allow()]

    def begin_without_daemon(self) -> list[SessionEffect]:
        return [*self.begin(), *self.give(LinkLost(why="no such file"))]

    def allow(self) -> list[SessionEffect]:
        """The daemon lets the next run begin; it does."""
        return self.want(Wish.RUN)

    def want(self, wish: Wish, *, run: int | None = None, isolated: bool = False) -> list[SessionEffect]:
        return self.give(RunRequest(wish=wish, run=run or self.run, isolated=isolated))

    def ran(self) -> list[SessionEffect]:
        return self.give(Ran(run=self.run, process=ProcessId(pid=1000 + self.run, start_time=self.run)))

    def exited(
        self, status: int | None = None, *, signal: int | None = None, **said: str
    ) -> list[SessionEffect]:
        """The command and all that it began."""
        failure = RunFailure(status=status, signal=signal, **said)
        run = self.run
        return [*self.give(CommandExited(run=run, failure=failure)), *self.give(Emptied(run=run))]

    # ------------------------------------------------------------------ what became of it

    @property
    def run(self) -> int:
        return self.session.state.run

    @property
    def phase(self) -> SessionPhase:
        return self.session.state.phase

    @property
    def starts(self) -> list[Mapping[str, str]]:
        return [each.environment for each in self.orders if isinstance(each, Start)]

    def left(self) -> int | None:
        statuses = [each.status for each in self.orders if isinstance(each, Leave)]
        assert len(statuses) <= 1, "it left twice"
        return statuses[0] if statuses else None


def running(policy: Policy, counts: Counts | None = None) -> Play:
    """Its first run goes on, and the daemon is there."""
    play = Play(policy, counts)
    play.begin_with_daemon()
    play.ran()
    return play


def only(orders: list[SessionEffect], of: type[T]) -> T:
    """The one order of that sort."""
    found = [each for each in orders if isinstance(each, of)]
    assert len(found) == 1, f"{len(found)} of {of.__name__}: {orders}"
    return found[0]


def kinds(orders: list[SessionEffect]) -> list[str]:
    return [type(each).__name__ for each in orders]
