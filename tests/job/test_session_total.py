"""Whatever is given, in whatever order: a session has an answer, and says nothing more once it has left."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.job.model import SECOND_NS, Counts, HangMode, Policy, RunReport, RunRequest, Wish
from nodeagent.job.session.session import JobSession
from nodeagent.job.session.state import SessionPhase
from nodeagent.job.session.values import (
    CommandExited,
    CommandFailure,
    Emptied,
    Gathered,
    HangStage,
    Hung,
    Leave,
    LinkBack,
    LinkLost,
    NotRun,
    ProcessId,
    Progressed,
    Ran,
    SessionBegan,
    SessionInput,
    SessionTick,
    Signalled,
)

RUNS = st.integers(0, 4)
PROCESSES = st.builds(ProcessId, pid=st.integers(1, 9), start_time=st.integers(1, 9))
FAILURES = st.builds(
    CommandFailure,
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
GIVEN: st.SearchStrategy[SessionInput] = st.one_of(
    st.builds(
        SessionBegan,
        boot_id=st.sampled_from("ab"),
        policy=POLICIES,
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
