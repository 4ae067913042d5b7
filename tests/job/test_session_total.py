"""Whatever is given, in whatever order: a session has an answer, and says nothing more once it has left."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.job.inputs import (
    Began,
    Emptied,
    Exited,
    Failure,
    Gathered,
    Given,
    Hang,
    Hung,
    LinkBack,
    LinkLost,
    NotRun,
    Process,
    Progressed,
    Ran,
    Signalled,
    Tick,
    Wanted,
)
from nodeagent.job.model import SECOND_NS, Counts, HangMode, Policy, Wish
from nodeagent.job.orders import Leave, Report
from nodeagent.job.session.session import Session
from nodeagent.job.session.session_state import Phase

RUNS = st.integers(0, 4)
PROCESSES = st.builds(Process, pid=st.integers(1, 9), start_time=st.integers(1, 9))
FAILURES = st.builds(
    Failure,
    status=st.sampled_from((None, 0, 1, 127)),
    signal=st.sampled_from((None, None, 9)),
    error_type=st.sampled_from(("", "ValueError", "RuntimeError")),
)
POLICIES = st.builds(
    Policy,
    in_place=st.booleans(),
    placements=st.sampled_from((None, 1, 3)),
    unconditional=st.booleans(),
    in_place_retries=st.integers(0, 2),
    hang=st.sampled_from(HangMode),
    need_daemon=st.booleans(),
    in_step=st.booleans(),
)
GIVEN: st.SearchStrategy[Given] = st.one_of(
    st.builds(
        Began,
        boot_id=st.sampled_from("ab"),
        policy=POLICIES,
        counts=st.builds(Counts, schedule=st.integers(1, 2)),
        survivors=st.sampled_from(((), (Process(pid=1, start_time=1),))),
    ),
    st.builds(
        Wanted,
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
    st.builds(Exited, run=RUNS, failure=FAILURES),
    st.builds(Emptied, run=RUNS),
    st.builds(Hung, run=RUNS, what=st.sampled_from(Hang), why=st.just("w"), since_s=st.just(1.0)),
    st.builds(Gathered, run=RUNS, path=st.sampled_from(("", "/e"))),
    st.builds(Progressed, run=RUNS, number=st.integers(0, 5)),
    st.builds(Signalled, number=st.sampled_from((2, 15))),
    st.builds(Tick),
)


@settings(max_examples=500)
@given(st.lists(st.tuples(GIVEN, st.sampled_from((0, 1, 6, 30, 700))), max_size=40))
def test_a_session_has_an_answer_to_everything(steps: list[tuple[Given, int]]) -> None:
    session, now_ns, number = Session(), 0, 0
    for value, seconds in steps:
        now_ns += seconds * SECOND_NS
        had_left = session.state.phase is Phase.LEFT
        orders = session.step(now_ns, value)
        if had_left and not isinstance(value, Began):
            assert orders == ()
        leaves = [place for place, each in enumerate(orders) if isinstance(each, Leave)]
        assert leaves in ([], [len(orders) - 1])
        for report in (each for each in orders if isinstance(each, Report)):
            number += 1
            assert report.number == number
        due_ns = session.next_deadline_ns()
        assert due_ns is None or due_ns > now_ns
        assert session.state.counts.placements >= 0
