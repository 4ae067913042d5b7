"""A supervisor may be killed between any two things that it does: nothing is lost, nothing done twice.

A small world stands for the shell: a process that lives or not, a daemon that takes reports, a file of
counts, and the journal's lines. It is crashed at points of random sequences; the rules are checked on the
way.

Whatever is given, in whatever order: a session has an answer, and says nothing more once it has left.
"""

from dataclasses import dataclass, field
from typing import Final

from hypothesis import example, given, settings
from hypothesis import strategies as st

from nodeagent.job.model import SECOND_NS, Counts, HangMode, Policy, RunReport, RunRequest, Wish
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    Emptied,
    Gathered,
    HangStage,
    Hung,
    KeepCounts,
    Kill,
    Leave,
    LinkBack,
    LinkLost,
    NotRun,
    ProcessId,
    Progressed,
    Ran,
    RunFailure,
    SessionBegan,
    SessionEffect,
    SessionInput,
    SessionTick,
    Signalled,
    Start,
    Terminate,
)
from nodeagent.job.shell.journal import decode_records, encode_record, replay

POLICIES: Final = (
    Policy(in_place=True, placements=4, unconditional=True, in_place_retries=2, hang=HangMode.RESTART),
    Policy(in_place=True, need_daemon=True),
    Policy(placements=2, refill=True),
    Policy(in_place_retries=3, hang=HangMode.NOTIFY),
    Policy(),
)
ACTIONS: Final = 14
NO_CRASH: Final = 9


@dataclass
class World:
    policy: Policy
    session: JobSession = field(default_factory=JobSession)
    journal: list[bytes] = field(default_factory=list)
    now_ns: int = 0
    alive: int | None = None
    is_dying: bool = False
    starts: list[int] = field(default_factory=list)
    reports: dict[int, RunReport] = field(default_factory=dict)
    kept: Counts = field(default_factory=Counts)
    left: list[int] = field(default_factory=list)
    progress: int = 0

    def begin(self) -> None:
        survivors = () if self.alive is None else (ProcessId(pid=1, start_time=self.alive),)
        self.give(SessionBegan(boot_id="b", policy=self.policy, counts=self.kept, survivors=survivors))

    def give(self, value: SessionInput, crash_at: int = NO_CRASH) -> None:
        """``crash_at``: before that order of the step; its number of orders: after all of them; above: in the
        step that follows from a start."""
        if self.left:
            return
        if self.session.is_written(self.now_ns, value):
            self.journal.append(encode_record(self.now_ns, value))
        orders = self.session.step(self.now_ns, value)
        for place, order in enumerate(orders):
            if place == crash_at:
                self.crash()
                return
            self.do(order)
        if crash_at == len(orders) and not self.left:
            self.crash()
            return
        started = next((each.run for each in orders if isinstance(each, Start)), None)
        if started is not None:
            ran = Ran(run=started, process=ProcessId(pid=1, start_time=started))
            self.give(ran, NO_CRASH if crash_at == NO_CRASH else crash_at - len(orders) - 1)
        self.look()

    def do(self, order: SessionEffect) -> None:
        if isinstance(order, Start):
            assert self.alive is None, "two runs at once"
            assert order.run not in self.starts, "one run twice"
            self.starts.append(order.run)
            self.alive, self.is_dying = order.run, False
        elif isinstance(order, Kill | Terminate):
            self.is_dying = True
        elif isinstance(order, RunReport):
            assert self.reports.setdefault(order.number, order) == order, "two reports of one number"
        elif isinstance(order, KeepCounts):
            self.kept = order.counts
        elif isinstance(order, Leave):
            self.left.append(order.status)

    def look(self) -> None:
        """A process that was killed is seen to have ended."""
        if self.alive is not None and self.is_dying:
            self.end(RunFailure(signal=15))

    def end(self, failure: RunFailure, crash_at: int = NO_CRASH) -> None:
        run, self.alive = self.alive, None
        if run is not None:
            run = self.session.state.run
            self.give(CommandExited(run=run, failure=failure), crash_at)
            self.give(Emptied(run=run))

    def crash(self) -> None:
        before = self.session.state
        self.session, orders = replay(decode_records(self.journal))
        assert self.session.state == before
        for order in orders:
            if isinstance(order, RunReport):
                self.do(order)
        for order in self.session.leave_again():
            self.do(order)
        self.begin()

    def act(self, action: int, seconds: int, crash_at: int) -> None:
        self.now_ns += seconds * SECOND_NS
        run = self.session.state.run
        hung = Hung(run=run, what=HangStage.CONFIRMED, why="quiet", since_s=1800)
        givens: dict[int, SessionInput] = {
            1: RunRequest(wish=Wish.RUN, run=run),
            2: RunRequest(wish=Wish.RUN, run=run, handling="RESCHEDULE"),
            3: RunRequest(wish=Wish.STOP, run=run),
            4: RunRequest(wish=Wish.HOLD, run=run),
            5: RunRequest(wish=Wish.LEAVE, run=run, isolated=True),
            6: LinkLost(why="restarted"),
            7: LinkBack(job="slurm:7.0"),
            8: hung,
            9: Gathered(run=run, path="/evidence"),
            10: Progressed(run=run, number=self.progress),
            11: Signalled(number=15),
        }
        if action == 10:
            self.progress += 1
        if action in (12, 13):
            error = (
                RunFailure(status=1, error_type="RuntimeError", message="x")
                if action == 12
                else RunFailure(status=0)
            )
            self.end(error, crash_at)
        else:
            self.give(givens.get(action, SessionTick()), crash_at)

    def finish(self) -> None:
        """The scheduler ends it, however it stands."""
        for _ in range(3):
            self.give(Signalled(number=15))
            self.now_ns += 60 * SECOND_NS
            self.give(SessionTick())


STEPS: Final = st.tuples(
    st.integers(0, ACTIONS - 1),
    st.sampled_from((0, 1, 2, 5, 20, 700)),
    st.sampled_from((NO_CRASH, NO_CRASH, 0, 1, 2, 3, 4)),
)


@settings(max_examples=400)
@given(st.sampled_from(POLICIES), st.lists(STEPS, max_size=30))
@example(POLICIES[0], [(7, 0, 9), (1, 0, 0), (6, 0, 9)])
@example(POLICIES[0], [(7, 0, 9), (1, 0, 1), (6, 0, 9), (12, 0, 1), (0, 5, 0)])
def test_nothing_is_lost_or_done_twice_wherever_it_is_killed(
    policy: Policy, steps: list[tuple[int, int, int]]
) -> None:
    world = World(policy=policy)
    world.begin()
    for action, seconds, crash_at in steps:
        world.act(action, seconds, crash_at)
    world.finish()
    assert len(world.left) == 1
    assert world.session.state.phase is SessionPhase.LEFT
    assert world.kept == world.session.state.counts
    assert sorted(world.reports) == list(range(1, world.session.state.reports + 1))
    assert world.starts == sorted(world.starts)


@given(st.sampled_from(POLICIES), st.lists(STEPS, max_size=20))
def test_equal_values_at_equal_times_give_equal_sessions(
    policy: Policy, steps: list[tuple[int, int, int]]
) -> None:
    worlds = [World(policy=policy) for _ in range(2)]
    for world in worlds:
        world.begin()
        for action, seconds, _ in steps:
            world.act(action, seconds, NO_CRASH)
    one, two = worlds
    assert (one.session.state, one.journal) == (two.session.state, two.journal)
    assert (one.reports, one.starts) == (two.reports, two.starts)


RUNS = st.integers(0, 4)
PROCESSES = st.builds(ProcessId, pid=st.integers(1, 9), start_time=st.integers(1, 9))
FAILURES = st.builds(
    RunFailure,
    status=st.sampled_from((None, 0, 1, 127)),
    signal=st.sampled_from((None, None, 9)),
    error_type=st.sampled_from(("", "ValueError", "RuntimeError")),
)
POLICIES_OF_ANY_INPUT = st.builds(
    Policy,
    in_place=st.booleans(),
    placements=st.sampled_from((None, 1, 3)),
    unconditional=st.booleans(),
    in_place_retries=st.integers(0, 2),
    hang=st.sampled_from(HangMode),
    need_daemon=st.booleans(),
    in_step=st.booleans(),
)
GIVEN: st.SearchStrategy[SessionInput] = st.one_of(
    st.builds(
        SessionBegan,
        boot_id=st.sampled_from("ab"),
        policy=POLICIES_OF_ANY_INPUT,
        counts=st.builds(Counts, schedule=st.integers(1, 2)),
        survivors=st.sampled_from(((), (ProcessId(pid=1, start_time=1),))),
    ),
    st.builds(
        RunRequest,
        wish=st.sampled_from(Wish),
        run=RUNS,
        isolated=st.booleans(),
        by_operator=st.booleans(),
        handling=st.sampled_from(("NONE", "RESCHEDULE", "STOP_RESET_RESTART")),
    ),
    st.builds(LinkLost),
    st.builds(LinkBack, job=st.just("x")),
    st.builds(Ran, run=RUNS, process=PROCESSES),
    st.builds(NotRun, run=RUNS, error=st.sampled_from((2, 13)), why=st.just("w")),
    st.builds(CommandExited, run=RUNS, failure=FAILURES),
    st.builds(Emptied, run=RUNS),
    st.builds(Hung, run=RUNS, what=st.sampled_from(HangStage), why=st.just("w"), since_s=st.just(1.0)),
    st.builds(Gathered, run=RUNS, path=st.sampled_from(("", "/e"))),
    st.builds(Progressed, run=RUNS, number=st.integers(0, 5)),
    st.builds(Signalled, number=st.sampled_from((2, 15))),
    st.builds(SessionTick),
)


@settings(max_examples=500)
@given(st.lists(st.tuples(GIVEN, st.sampled_from((0, 1, 6, 30, 700))), max_size=40))
def test_a_session_has_an_answer_to_everything(steps: list[tuple[SessionInput, int]]) -> None:
    session, now_ns, number = JobSession(), 0, 0
    for value, seconds in steps:
        now_ns += seconds * SECOND_NS
        had_left = session.state.phase is SessionPhase.LEFT
        orders = session.step(now_ns, value)
        if had_left and not isinstance(value, SessionBegan):
            assert orders == ()
        leaves = [place for place, each in enumerate(orders) if isinstance(each, Leave)]
        assert leaves in ([], [len(orders) - 1])
        for report in (each for each in orders if isinstance(each, RunReport)):
            number += 1
            assert report.number == number
        due_ns = session.next_deadline_ns()
        assert due_ns is None or due_ns > now_ns
        assert session.state.counts.placements >= 0
